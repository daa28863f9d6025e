"""The demo: a walk through a synthetic apartment, filmed, reconstructed from the pixels alone, and scored."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.evaluation.cloud import near_cameras, score_cloud
from geoweaver.evaluation.depth import DepthFrame, score_depth
from geoweaver.evaluation.scores import TrajectoryScores, score_trajectory
from geoweaver.finished import load_run
from geoweaver.formats.depth import read_depth
from geoweaver.formats.ply import read_ply
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry.camera import bearing, pixel_centres
from geoweaver.results import FinishedRun
from geoweaver.synth.clips import Clip, ClipOptions, make_clip
from geoweaver.synth.sequence import Output, frame_name, is_written, write_sequence
from geoweaver.synth.world import build_world

DEPTH_EVERY = 3
THRESHOLD = 0.02
"""A cloud's point is right within this share of the median depth."""
_MOST = 200_000
"""Points of either cloud that are compared."""


@dataclass(frozen=True)
class DemoScores:
    """How close the reconstruction is to the exact truth."""

    trajectory: TrajectoryScores
    absrel: float
    absrel_confident: float
    fscore: float
    """Percent, at 2 % of the median depth, within four median depths of some camera."""
    fscore_all: float
    """The same of everything that the film shows, however far outside the windows."""


def film_demo(folder: Path, frames: int, seed: int, workers: int) -> Clip:
    """Render the walk to video.mp4 with the truth beside it; the same film is not made again."""
    laps = 1.0 + 8 / max(frames, 1)
    clip = make_clip(build_world("apartment", seed), ClipOptions(frames=frames, laps=laps, seed=seed))
    if not is_written(clip, folder):
        write_sequence(clip, folder, Output("mp4", "npz", DEPTH_EVERY, workers))
    return clip


def score_demo(run_folder: Path, film: Path, clip: Clip) -> DemoScores:
    """Cameras by the paper's protocol, depth by the cameras' one scale, the cloud in the truth's world."""
    run = load_run(run_folder)
    truth = read_trajectory(film / "groundtruth.tum")
    scores = score_trajectory(read_trajectory(run_folder), truth, missing="ignore")
    depth = score_depth(
        (
            DepthFrame(found.depth, read_depth(film / "depth" / f"{frame_name(f)}.npz"), found.confidence)
            for f in _with_truth(run)
            for found in [run.depths.read(f)]
        ),
        scores.scale,
    )
    cloud = scores.reference_from_estimate.act(read_ply(run_folder / "points.ply").points.double())
    surface, threshold = _surface(clip, film)
    every = score_cloud(cloud, surface, threshold, _MOST)
    near = partial(near_cameras, centre=clip.cam_from_world.centre, median_depth=threshold / THRESHOLD)
    precision = score_cloud(cloud[near(cloud)], surface, threshold, _MOST).precision
    recall = score_cloud(cloud, surface[near(surface)], threshold, _MOST).recall
    fscore = 2 * precision * recall / max(precision + recall, 1e-9)
    absrel_confident = depth.absrel_confident or float("nan")
    return DemoScores(scores, depth.absrel, absrel_confident, fscore, every.fscore)


def _with_truth(run: FinishedRun) -> list[int]:
    return [f for f in run.depths.frames if f % DEPTH_EVERY == 0]


def _surface(clip: Clip, film: Path) -> tuple[Float[Tensor, "m 3"], float]:
    """What the film shows, one point per voxel, and the distance within which a point is right."""
    frames = range(0, len(clip), DEPTH_EVERY)
    depth = {k: read_depth(film / "depth" / f"{frame_name(k)}.npz") for k in frames}
    threshold = THRESHOLD * float(torch.cat([d[d > 0][::97] for d in depth.values()]).median())
    pixel, points = pixel_centres(*clip.size), []
    for k, d in depth.items():
        local = bearing(pixel, clip.intrinsics[k]) * d.double()[..., None]
        points.append(_thinned(clip.cam_from_world[k].inverse().act(local[d > 0]), threshold / 2))
    return _thinned(torch.cat(points), threshold / 2), threshold


def _thinned(points: Float[Tensor, "n 3"], size: float) -> Float[Tensor, "m 3"]:
    """One point per voxel: near and far surfaces count by their area."""
    cell = np.floor(points.numpy() / size).astype(np.int64) + (1 << 20)
    key = (cell[:, 0] << 42) | (cell[:, 1] << 21) | cell[:, 2]
    return points[torch.from_numpy(np.sort(np.unique(key, return_index=True)[1]))]
