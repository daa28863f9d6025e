"""Settings of Stage 3: its phases, regularisers and stopping, the paper's table where it gives a value."""

from dataclasses import dataclass, field
from typing import Literal

from geoweaver.assembly.kernel import Kernel
from geoweaver.assembly.pairs import Objective, require_jacobian
from geoweaver.assembly.stopping import StopRule
from geoweaver.errors import ConfigError


@dataclass(frozen=True)
class Phase:
    """One pass of Stage 3 over the graph."""

    name: str
    pixels: Kernel
    view_centred: bool
    points_weight: float
    """Weight of the 3D term."""
    all_matches: bool = False
    """End on every match, not only on the first few of each pair."""
    bend: bool = False
    """Depth may bend inside a frame; asks for no 3D term."""


def _phases() -> tuple[Phase, ...]:
    """Coarse as the paper's table; fine in true pixels, the 3D term faded (0004); then depth bends (0028)."""
    # A prior's depth errs alike over whole regions: its agreement is worth little beside a pixel's.
    return (
        Phase("coarse refinement", Kernel(15.0, 250, 2.0, "log1p"), True, 0.1),
        Phase("fine refinement", Kernel(30.0, 600, 3.0), False, 0.02),
        Phase("depth bending", Kernel(4.0, 80, 3.0), False, 0.0, True, True),
    )


def paper_phases() -> tuple[Phase, ...]:
    """The paper's table to the letter."""
    wide = Kernel(15.0, 250, 2.0, "log1p")
    return Phase("coarse refinement", wide, True, 1.0, True), Phase("fine refinement", wide, False, 1.0, True)


@dataclass(frozen=True)
class FrameRefinementConfig:
    """Settings of Stage 3; the paper's table where it gives a value."""

    solver: Literal["lm", "adam"] = "lm"
    """lm: re-weighted Levenberg-Marquardt. adam: the paper's recipe."""
    learning_rate: float = 1e-4
    """Adam only."""
    phases: tuple[Phase, ...] = field(default_factory=_phases)
    """Coarse: CDF range 15, 250 bins, smoothing 2, view-centred. Fine: the complete graph."""
    points_range: float = 0.1
    """3D CDF range, as a share of depth (or in world units with residual=world)."""
    residual: Literal["relative", "world"] = "relative"
    """world: the paper's literal 3D residual; adam only."""
    both_directions: bool = True
    """Carry every match both ways; False is the paper's text."""
    scale_prior: float = 1e-2
    """lambda_a, per frame, on the depth scale beside the mean of its chunk, relative to the data's whole
    weight of 1."""
    chunk_scale_prior: float = 1e-4
    """The same on the depth scale itself: chunks that start a fifth off shall not be held there."""
    shift_prior: float = 1e-2
    """lambda_b, per frame, on the shift over the frame's median depth."""
    focal_prior: float = 0.3
    """lambda_f, per camera over its number of frames, on the correction over the focal length: the longer a
    recording, the less is a guess worth beside it."""
    aspect_prior: float = 10.0
    """Weight of the squared difference between the relative corrections of fx and fy: pixels are square, and
    a walk with little pitch leaves fy alone undetermined."""
    bend_prior: float = 8.0
    """Weight of the mean squared log factor by which depth is bent, where a phase bends it and as long as it
    bends little."""
    bend_usual: float = 0.017
    """Root mean square of those bends at which the weight is half of it: a prior's quality shows in them."""
    bend_nodes: int = 8
    """Nodes of that factor along the image's longer side."""
    matches_first: int = 96
    """Matches per pair in all of lm's iterations but the last phase's last ones, which use every match."""
    lm_rule: StopRule = field(default_factory=lambda: StopRule(most=40))
    """When lm stops a phase."""
    adam_rule: StopRule = field(default_factory=lambda: StopRule(most=20_000, window=200, median_only=True))
    """When Adam stops a phase."""

    def __post_init__(self) -> None:
        require_jacobian(self.solver, self.residual, "Stage 3")
        for phase in self.phases:
            if phase.bend and (phase.points_weight > 0 or self.residual == "world"):
                raise ConfigError(
                    f"Stage 3, phase {phase.name!r}: depth bends under pixel errors alone: "
                    "choose points_weight=0 and residual=relative there, or bend=False"
                )

    def objective(self, phase: Phase) -> Objective:
        points = Kernel(self.points_range, 250, 2.0)
        relative = self.residual == "relative"
        return Objective(phase.pixels, points, phase.points_weight, self.both_directions, relative)
