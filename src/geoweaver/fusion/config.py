"""Settings of the fusion: shares, angles and counts, never a length."""

from dataclasses import dataclass

from geoweaver.errors import ConfigError


@dataclass(frozen=True)
class FusionConfig:
    """How depth maps become one cloud."""

    target: int = 1_500_000
    """Points that the cloud may have; voxels grow until it has no more. Small inputs give fewer."""
    views: int = 3
    """Views that must agree on a point, its own included."""
    neighbours: int = 12
    """Other views that a frame is compared with."""
    least_confidence: float = 0.3
    """Depth below this confidence neither makes nor judges points."""
    lone_confidence: float = 0.6
    """Confidence from which a point may stand that too few views could have confirmed."""
    least_tolerance: float = 0.01
    """Relative difference of depths that always counts as agreement."""
    most_tolerance: float = 0.05
    """Bound of the tolerance, which follows the spread of the depth maps among each other."""
    rounds: int = 4
    """How often each depth map is bent, smoothly, towards what its neighbours say."""
    reach: float = 0.01
    """How far a point may come back from its place by way of another view, in image diagonals."""
    jump: float = 0.05
    """Relative bend of inverse depth from pixel to pixel that is an edge, unless the map is that noisy."""
    least_cosine: float = 0.05
    """Cosine between view and normal below which a surface is seen too much from the side (87 degrees)."""
    far: float = 10.0
    """Depth is ignored beyond so many median depths of its frame."""
    fineness: float = 1.0
    """Smallest voxel in pixels of the depth maps, as they lie on near surfaces."""
    second_look: bool = True
    """Drop points that more of all views contradict than confirm, not only of their neighbours."""
    version: int = 4
    """Goes up when the same settings make another cloud of the same input."""

    def __post_init__(self) -> None:
        if self.target < 1 or self.views < 1 or self.neighbours < 0 or self.fineness <= 0:
            raise ConfigError(
                f"a cloud of {self.target} points from {self.views} views and {self.neighbours} neighbours "
                f"with voxels of {self.fineness:g} pixels cannot be made: give numbers above 0"
            )


DEFAULTS = FusionConfig()
