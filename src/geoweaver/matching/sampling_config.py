"""Settings of the sampling, the paper's table as defaults."""

from dataclasses import dataclass
from typing import Literal

from geoweaver.errors import ConfigError
from geoweaver.matching.weights import Normalisation


@dataclass(frozen=True)
class SamplingConfig:
    """How matches are weighed, judged and sampled; every threshold is a ratio."""

    confidence: float = 0.5
    """A match needs this share of the pair's typical weight."""
    relative_to: Literal["median", "max"] = "median"
    """What the confidence threshold is relative to: the pair's median weight, or its largest."""
    depth_consistency: float = 0.2
    """Relative depth error |d_projected - d_j| / d_j up to which a match agrees with the prior."""
    lateral: bool = True
    """Also ask that the projection lands within the same share of half the image diagonal (paper: off)."""
    spread: float = 4.0
    """With it: rows whose residual exceeds the pair's median so many times are outliers (paper: infinite)."""
    max_per_pair: int = 10_000
    """Matches kept per pair of observations."""
    max_rows: int = 50_000_000
    """Rows of the whole table, divided over the pairs."""
    memory_share: float = 0.5
    """Share of the machine's memory that the table may take, where that is less than max_rows."""
    min_per_pair: int = 20
    """A pair with fewer consistent matches is weak: it is relaxed where the graph needs it, else dropped."""
    min_support: float = 0.15
    """Share of a pair's matches that must agree beyond what chance would give; below it the pair is wrong."""
    relax_factor: float = 1.5
    """The depth-consistency threshold grows by this factor for weak pairs that hold the graph together."""
    relax_limit: float = 1.0
    """The relaxed threshold stays below this: an error as large as the depth itself says nothing."""
    normalisation: Normalisation = "median"
    """How a frame's confidence is made comparable with other models': by its median, or by rank."""
    gamma_ceiling: float = 4.0
    """Largest normalised confidence: a few very sure pixels must not outvote their frame."""
    weights: Literal["kept", "uniform"] = "kept"
    """What sampled rows weigh in the objective: w again (the paper), or all the same since w chose them."""
    hypotheses: int = 128
    """Three-point fits tried for a pair across chunks: enough for two thirds wrong matches."""
    fit_rows: int = 512
    """Matches that such a fit is made on."""
    cached_chunks: int = 4
    """Chunk priors kept in memory while the table is made."""

    def __post_init__(self) -> None:
        if not (0 < self.depth_consistency < self.relax_limit and self.relax_factor > 1):
            raise ConfigError(
                "sampling: need 0 < depth_consistency < relax_limit and relax_factor > 1, "
                f"not {self.depth_consistency}, {self.relax_limit}, {self.relax_factor}"
            )
        if min(self.max_per_pair, self.max_rows, self.min_per_pair, self.hypotheses, self.cached_chunks) < 1:
            raise ConfigError(
                "sampling: counts (max_per_pair, max_rows, min_per_pair, ...) must be at least 1"
            )

    def thresholds(self) -> tuple[float, ...]:
        """The strict depth-consistency threshold and its relaxed steps."""
        steps = [self.depth_consistency]
        while steps[-1] * self.relax_factor < self.relax_limit:
            steps.append(steps[-1] * self.relax_factor)
        return tuple(steps)
