"""When a stage has had enough: the paper's test on the median reprojection error, and the objective's own."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class StopRule:
    """Adaptive stopping, shared by both solvers."""

    most: int = 100
    """Iterations at the most."""
    window: int = 5
    """Iterations over which the median reprojection error must hold still."""
    median_change: float = 1e-3
    """Relative change of the median over the window that counts as still."""
    decrease: float = 1e-5
    """Decrease of the objective per iteration, over the objective, below which nothing more is gained."""
    share: float = 1e-4
    """The same over the whole decrease since the start."""
    median_only: bool = False
    """Leave the objective out of it: Adam's jitters."""


@dataclass
class Progress:
    """The trace of one run, and the reason to stop it."""

    rule: StopRule
    losses: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def record(self, loss: float, median: float, seconds: float) -> None:
        self.losses.append(loss)
        self.medians.append(median)
        self.seconds.append(seconds)

    def followed_by(self, later: "Progress") -> "Progress":
        """One trace of two runs, the later one's seconds counted on."""
        offset = self.seconds[-1] if self.seconds else 0.0
        seconds = self.seconds + [offset + s for s in later.seconds]
        return Progress(later.rule, self.losses + later.losses, self.medians + later.medians, seconds)

    def why_stop(self) -> str:
        """Empty while it should go on."""
        if len(self.losses) > self.rule.most:
            return "iteration limit"
        if len(self.losses) > 1 and not self.rule.median_only and self._gain() <= 0:
            return "objective stable"
        recent = self.medians[-self.rule.window - 1 :]
        if len(recent) <= self.rule.window:
            return ""
        if max(recent) - min(recent) <= self.rule.median_change * recent[-1]:
            return "median reprojection error stable"
        return ""

    def _gain(self) -> float:
        """The last decrease beyond what the rule calls nothing."""
        first, before, now = self.losses[0], self.losses[-2], self.losses[-1]
        return before - now - max(self.rule.decrease * abs(before), self.rule.share * (first - now))
