"""A walk through a synthetic world, woven from a simulated prior and scored after each stage."""

from dataclasses import dataclass

import torch

from geoweaver.datatypes import StageReport, Trajectory
from geoweaver.evaluation.scores import TrajectoryScores, score_trajectory
from geoweaver.geometry import SE3, world_camera
from geoweaver.synth.simulated_sequence import Simulated, simulate_sequence
from geoweaver.weave import WeaveConfig, Woven, input_layouts, weave


@dataclass(frozen=True)
class Demonstration:
    """What was woven, and how good it was after each stage."""

    truth: Trajectory
    stages: tuple[tuple[str, Trajectory, TrajectoryScores], ...]
    reports: tuple[StageReport, ...]
    trusted: int


def demonstrate(sequence: str = "apartment_walk", frames: int = 180, seed: int = 0) -> Demonstration:
    """Simulate, weave, score."""
    simulated = simulate_sequence(sequence, frames=frames, seed=seed, per_edge=200)
    priors = simulated.priors
    woven = weave(
        simulated.observations, simulated.graph, simulated.matches, lambda k: priors[k],
        torch.zeros(frames, dtype=torch.long), False, WeaveConfig(), seed,
    )  # fmt: skip
    truth = _trajectory(simulated.truth.cam_from_world)
    names = ("1 sequential initialisation", "2 chunk alignment", "3 frame refinement")
    cameras = [_trajectory(c) for c in stage_cameras(simulated, woven)]
    stages = tuple((n, c, score_trajectory(c, truth)) for n, c in zip(names, cameras, strict=True))
    return Demonstration(truth, stages, woven.reports, int(woven.trust.trusted.sum()))


def stage_cameras(simulated: Simulated, woven: Woven) -> tuple[SE3, SE3, SE3]:
    """Every frame's camera after each stage."""
    observations, canonical = simulated.observations, woven.tables.canonical
    local, chunk = observations.cam_from_chunk[canonical], observations.chunk[canonical]
    first, second = (world_camera(x.world_from_chunk[chunk], local) for x in input_layouts(woven))
    return first, second, woven.state.cam_from_world


def _trajectory(cameras: SE3) -> Trajectory:
    index = torch.arange(len(cameras))
    return Trajectory(cameras, index, timestamps=index.double())
