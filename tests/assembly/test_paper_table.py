"""Every row of the paper's hyper-parameter table (supp_backend_hparams) against the settings."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from geoweaver.assembly.chunk_alignment import ChunkAlignmentConfig
from geoweaver.assembly.frame_problem import frame_problem
from geoweaver.assembly.frame_settings import FrameRefinementConfig, paper_phases
from geoweaver.errors import ConfigError
from geoweaver.weave import WeaveConfig, paper_config
from tests.assembly.test_problems import frame_setup

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"


@dataclass(frozen=True)
class Row:
    """One row: what the paper says, where it is set, and the page on which a departure is explained."""

    name: str
    paper: object
    setting: str
    """Attributes from WeaveConfig on; [n] is an index."""
    departure: str = ""
    """File of the decision, '' where the default is the paper's value."""
    default: object = None


TABLE = (
    Row("Stage 1 confidence retention", 0.5, "links.confident_share"),
    Row("Stage 2 learning rate", 1e-2, "alignment.solver.learning_rate"),
    Row("Stage 2 maximum iterations", 5000, "alignment.solver.adam_rule.most"),
    Row("Stage 2 3D range", 0.8, "alignment.solver.points_range"),
    Row("Stage 2 3D weight", 2.0, "alignment.solver.points_weight"),
    Row("Stage 3 coarse CDF range", 15.0, "refinement.phases[0].pixels.limit"),
    Row("Stage 3 coarse CDF bins", 250, "refinement.phases[0].pixels.bins"),
    Row("Stage 3 coarse smoothing bandwidth", 2.0, "refinement.phases[0].pixels.bandwidth"),
    Row("Stage 3 fine learning rate", 1e-4, "refinement.learning_rate"),
    Row("Stage 3 3D range", 0.1, "refinement.points_range"),
    Row("Stage 3 coarse 3D weight", 1.0, "refinement.phases[0].points_weight", "0004-fading-3d-term.md", 0.1),
    Row("Stage 3 fine 3D weight", 1.0, "refinement.phases[1].points_weight", "0004-fading-3d-term.md", 0.02),
    Row("CCAS confidence threshold", 0.5, "sampling.confidence"),
    Row("CCAS depth-consistency threshold", 0.2, "sampling.depth_consistency"),
    Row("CCAS maximum samples per pair", 10_000, "sampling.max_per_pair"),
)

SILENT = (
    Row("solver of Stage 2", "adam", "alignment.solver.solver", "0005-solver.md", "lm"),
    Row("solver of Stage 3", "adam", "refinement.solver", "0005-solver.md", "lm"),
    Row(
        "3D residual of Stage 2",
        "world",
        "alignment.solver.residual",
        "0003-relative-residuals.md",
        "relative",
    ),
    Row("3D residual of Stage 3", "world", "refinement.residual", "0003-relative-residuals.md", "relative"),
    Row("ways of Stage 2", False, "alignment.solver.both_directions", "0003-relative-residuals.md", True),
    Row("ways of Stage 3", False, "refinement.both_directions", "0003-relative-residuals.md", True),
    Row("rounds of judgement", 0, "alignment.loops.rounds", "0006-loops.md", 4),
    Row("focal start", False, "shared_focal", "0007-focal-priors.md", True),
    Row("aspect", 0.0, "refinement.aspect_prior", "0007-focal-priors.md", 10.0),
    Row("fine CDF range", 15.0, "refinement.phases[1].pixels.limit", "0009-kernels.md", 30.0),
    Row("fine mapping", "log1p", "refinement.phases[1].pixels.mapping", "0009-kernels.md", "identity"),
    Row("lateral test", False, "sampling.lateral", "0002-sampling.md", True),
)
"""What the paper says in its text, or does without."""


def setting(config: WeaveConfig, path: str) -> object:
    value: object = config
    for name in path.replace("[", ".[").split("."):
        value = value[int(name[1:-1])] if name.startswith("[") else getattr(value, name)  # type: ignore[index]
    return value


@pytest.mark.parametrize("row", TABLE + SILENT, ids=lambda row: row.name)
def test_the_preset_is_the_paper_and_the_default_too_unless_a_page_says_why(row: Row) -> None:
    assert setting(paper_config(), row.setting) == row.paper
    assert setting(WeaveConfig(), row.setting) == (row.default if row.departure else row.paper)
    if row.departure:
        parameter = row.setting.split(".")[-1]
        page = (DECISIONS / row.departure).read_text()
        assert f"`{parameter}" in page, f"{row.departure} does not speak of {parameter}"


def test_no_phase_departs_unseen() -> None:
    """A new phase needs its own rows above."""
    assert len(paper_config().refinement.phases) == 2
    *paper, bending = WeaveConfig().refinement.phases
    assert [p.name for p in paper] == [p.name for p in paper_config().refinement.phases]
    assert bending.bend and not any(p.bend for p in paper)
    assert "`bend`" in (DECISIONS / "0028-bending-depth.md").read_text()


def test_focal_corrections_are_per_camera_group_and_only_without_calibration() -> None:
    """Stage 3's last row (with its dagger) is no number: variables exist per group or not at all."""
    for calibrated, groups, corrections in ((False, 2, 4), (True, 2, 0)):
        _, start = frame_setup(0.0, calibrated)
        assert int(start.setup.group.max()) + 1 == groups
        config = FrameRefinementConfig()
        problem = frame_problem(start.matches, start.setup, config, config.phases[1])
        _, system = problem.linearise(start.state)
        assert len(system.corner_gradient) == corrections


@pytest.mark.parametrize("config", [ChunkAlignmentConfig, FrameRefinementConfig])
def test_the_strong_solver_refuses_the_residual_that_it_would_shrink(config: type) -> None:
    with pytest.raises(ConfigError, match=r"residual=world.*solver=adam"):
        config(solver="lm", residual="world")
    literal = {"phases": paper_phases()} if config is FrameRefinementConfig else {}
    assert config(solver="adam", residual="world", **literal).residual == "world"
