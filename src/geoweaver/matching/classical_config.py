"""Settings of the classical matcher."""

from dataclasses import dataclass, field

from geoweaver.errors import ConfigError
from geoweaver.matching.classical_flow import FlowConfig
from geoweaver.matching.two_view import TwoViewConfig


@dataclass(frozen=True)
class ClassicalConfig:
    """How pairs of frames are matched densely without any network."""

    max_matches: int = 2000
    """Matches per pair at most: one per cell of the image."""
    min_score: float = 0.25
    """Matches less probable than this are left out."""
    min_matches: int = 30
    """A pair with fewer matches that are more likely right than wrong is rejected whole."""
    max_pixels: int = 350_000
    """Images are matched at this size at most."""
    wide: float = 0.06
    """Feature pairs that move by more than this share of the image's diagonal make the pair wide."""
    blind_share: float = 0.4
    """Without feature pairs, so much of what is textured must come back and look alike (blurred frames)."""
    two_view: TwoViewConfig = field(default_factory=TwoViewConfig)
    """The pair's own geometry from features."""
    near_flow: FlowConfig = field(default_factory=FlowConfig)
    """Flow for pairs that move little."""
    wide_flow: FlowConfig = field(default_factory=lambda: FlowConfig(0, 5, 8, 1))
    """Flow for pairs that move much: few, and worth the time."""

    def __post_init__(self) -> None:
        if min(self.max_matches, self.min_matches, self.max_pixels) < 1:
            raise ConfigError("classical matcher: max_matches, min_matches and max_pixels must be at least 1")
        if not (0 <= self.min_score < 1 and self.wide > 0 and 0 < self.blind_share <= 1):
            raise ConfigError(
                "classical matcher: need 0 <= min_score < 1, wide > 0 and 0 < blind_share <= 1, "
                f"not {self.min_score}, {self.wide}, {self.blind_share}"
            )
