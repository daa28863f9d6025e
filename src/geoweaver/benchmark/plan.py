"""What a benchmark runs on every scene."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from geoweaver.datatypes import Reconstruction
from geoweaver.evaluation.alignment import MAX_TIME_DIFF
from geoweaver.finished import load_run
from geoweaver.pipeline import Config, reconstruct
from geoweaver.results import FinishedRun

STAGES = ("stage-1", "stage-2", "stage-3")
OWN = ("geoweaver", *STAGES)
"""Methods that are read out of one run."""
METHODS = (*OWN, "colmap")


@dataclass(frozen=True)
class Plan:
    """Settings and methods, the same for all scenes."""

    suite: str
    config: Config = field(default_factory=Config)
    methods: tuple[str, ...] = OWN
    max_time_diff: float = MAX_TIME_DIFF
    """Seconds that the time stamps of one frame may differ by."""
    overwrite: bool = False
    """Throw earlier runs of these scenes away."""
    command: str = ""
    """Stands in the results."""
    reconstruct: Callable[[Path, Path, Config, bool], Reconstruction] = reconstruct
    load: Callable[[Path], FinishedRun] = load_run
