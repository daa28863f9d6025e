"""What the viewer is set to: one frozen value, so that a change is a comparison."""

from dataclasses import dataclass

from geoweaver.viewer.scene import RESULT
from geoweaver.viewer.scene_colours import ColourBy


@dataclass(frozen=True)
class Look:
    """The state of the side panel."""

    point_size: float = 1.0
    """In multiples of what suits the scene, as `camera_size`."""
    camera_size: float = 1.0
    colour: ColourBy = "RGB"
    stage: str = RESULT
    confidence: float = 0.0
    """Points below it are hidden."""
    points: bool = True
    cameras: bool = True
    reference: bool = True
    side_by_side: bool = False
    hidden: frozenset[int] = frozenset()
    """Runs that are not shown."""
    run: int = 0
    """Whose frames the slider steps through."""
    frame: int = 0

    flying: bool = False
    """A camera that looks along the path would run into the others."""

    def run_shown(self, index: int) -> bool:
        return index not in self.hidden

    @property
    def cameras_shown(self) -> bool:
        return self.cameras and not self.flying
