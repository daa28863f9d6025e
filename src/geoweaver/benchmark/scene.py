"""The nouns: a scene is a recording with its reference; a suite knows its scenes and where they lie."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from geoweaver.datatypes import Trajectory
from geoweaver.formats.depth import MILLIMETRE
from geoweaver.formats.files import is_folder, list_folder
from geoweaver.formats.names import IMAGE_SUFFIXES
from geoweaver.geometry.distortion import Lens


@dataclass(frozen=True)
class Scene:
    """One recording, and what is known about it."""

    name: str
    """In tables, and of its run folder."""
    input: Path
    """A folder of images or a video."""
    read_reference: Callable[[], Trajectory]
    intrinsics: str | None = None
    """As `geoweaver reconstruct --intrinsics` takes them; None: the method finds them."""
    lens: Lens | None = None
    """The same where no file states it."""
    masks: Path | None = None
    timestamps: Path | None = None
    depth: Path | None = None
    """Folder of reference depth."""
    depth_unit: float = MILLIMETRE
    depth_far: float = float("inf")
    """Depth from here on stands for the sky and does not count."""


Found = dict[str, Scene | str]
"""Every scene that was looked for; in place of one that is not there, what is missing."""


@dataclass(frozen=True)
class Suite:
    """Scenes that are reported together."""

    title: str
    layout: str
    """What a folder of it looks like, in one line."""
    find: Callable[[Path, bool], Found]
    """Scenes below a folder; the flag asks for the calibration to be given, where the suite has one."""
    scores: tuple[str, str] = ("auc3", "ate")
    """What the paper's table of it shows."""


def has_images(folder: Path) -> bool:
    """Whether images lie directly in a folder."""
    if not is_folder(folder):
        return False
    files = list_folder(folder, "a folder of images")
    return any(path.suffix.lower() in IMAGE_SUFFIXES for path in files)
