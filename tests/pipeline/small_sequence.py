"""A tiny rendered recording, and runs of it by the real command."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from geoweaver.frames import FramesConfig
from geoweaver.outputs import OutputConfig
from geoweaver.pipeline import Config
from geoweaver.synth.clips import ClipOptions, make_clip
from geoweaver.synth.sequence import Output, write_sequence
from geoweaver.synth.world import build_world

FRAMES = 14
OPTIONS = ("--workers", "1", "--max-size", "192")


def write_small(folder: Path, images: str = "jpg", frames: int = FRAMES) -> Path:
    """Fourteen frames around a table, 256x144, with their truth."""
    clip = make_clip(
        build_world("tabletop"), ClipOptions(frames=frames, laps=0.012 * frames, size=(256, 144))
    )
    write_sequence(clip, folder, Output(images=images, depth_every=4))  # type: ignore[arg-type]
    return folder


def small_config(**changed: Any) -> Config:
    """What OPTIONS say, cameras only."""
    return Config(frames=FramesConfig(max_size=192), workers=1, outputs=OutputConfig("cameras"), **changed)


def command(*arguments: str | Path) -> list[str]:
    """`geoweaver ...` in this Python."""
    return [sys.executable, "-m", "geoweaver", *map(str, arguments)]


def environment() -> dict[str, str]:
    """One thread per process; the tests' own shape checks stay out of the command's process."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, "1"), "NUMBA_NUM_THREADS": "1"}


def geoweaver(
    *arguments: str | Path, timeout: float = 900, **process: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command(*arguments), env=environment(), capture_output=True, text=True, timeout=timeout, check=False,
        **process,
    )  # fmt: skip
