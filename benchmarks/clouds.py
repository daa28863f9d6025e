"""`python -m benchmarks.clouds`: fused clouds of the synthetic worlds against their exact surfaces.

Depth is exact or errs like the simulated prior; cameras are exact. `--run FOLDER` draws a finished run
instead. Pictures from three sides go to `--pictures`.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from jaxtyping import Bool, Float
from torch import Tensor

from benchmarks.harness import print_table, saved_rows, write_results
from geoweaver.datatypes import Camera, Frames, Reconstruction
from geoweaver.engine import LocalEngine
from geoweaver.evaluation.cloud import near_cameras
from geoweaver.formats.ply import PlyCloud, write_ply
from geoweaver.fusion import SIDES, FusionConfig, fuse_cloud, mean_up, render_cloud, side_view
from geoweaver.geometry.camera import bearing, pixel_centres, project_with_depth, resize_intrinsics
from geoweaver.results import DepthMap
from geoweaver.synth.clips import Clip, ClipOptions, clip_depth, make_clip, render_clip
from geoweaver.synth.simulated_depth import predicted_depth
from geoweaver.synth.simulated_noise import PriorNoise
from geoweaver.synth.world import build_world

NOISE = {"exact": PriorNoise.exact(), "default": PriorNoise.default(), "hard": PriorNoise.hard()}
THRESHOLD = 0.02
"""Of the median depth: within it a point is right."""
SEEN_WITHIN = 0.01
"""Relative depth up to which a view sees a point of the truth."""
MATCH_ERROR = 0.3
"""Pixels by which a good match errs, for what views could tell of a point at all."""
_CHUNK = 60


@dataclass(frozen=True)
class Options:
    """Measure the fused clouds."""

    worlds: tuple[str, ...] = ("apartment", "corridor", "street", "tabletop")
    noise: tuple[str, ...] = ("exact", "default")
    """exact, default or hard."""
    frames: int = 150
    size: tuple[int, int] = (512, 288)
    depth_size: tuple[int, int] = (256, 144)
    seed: int = 1
    """Of worlds, ways and errors; the fusion's settings were chosen on seed 0."""
    workers: int = 1
    run: Path | None = None
    """A finished run folder: its cloud is made and drawn, not scored."""
    pictures: Path | None = None
    """Folder for pictures and clouds."""


@dataclass(frozen=True)
class Filmed:
    """A clip with its pixels, exact depth at two sizes, and the truth as a cloud."""

    clip: Clip
    rgb: tuple[np.ndarray, ...]
    depth: Float[Tensor, "F h w"]
    truth: Float[Tensor, "m 3"]
    views: Float[Tensor, "m"]
    """How many views see each point of the truth."""
    scatter: Float[Tensor, "m"]
    """How far a point may be off along its worst axis where every view errs by a good match's error."""
    threshold: float

    def near(self, points: Float[Tensor, "n 3"]) -> Bool[Tensor, "n"]:
        """Within four median depths of some camera."""
        return near_cameras(points, self.clip.cam_from_world.centre, self.threshold / THRESHOLD)

    def read(self, frame: int) -> np.ndarray:
        return self.rgb[frame]


@dataclass(frozen=True)
class Depths:
    """Depth maps in memory."""

    depth: Float[Tensor, "F h w"]
    confidence: Float[Tensor, "F h w"]
    intrinsics: Float[Tensor, "F 4"]

    @property
    def frames(self) -> tuple[int, ...]:
        return tuple(range(len(self.depth)))

    def read(self, frame: int) -> DepthMap:
        return DepthMap(self.depth[frame], self.confidence[frame], self.intrinsics[frame])


def film(world: str, options: Options) -> Filmed:
    """Render a walk through a world and find out what of it was seen how often."""
    ways = ClipOptions(frames=options.frames, size=options.size, seed=options.seed)
    clip = make_clip(build_world(world, options.seed), ways)
    shown = [(r.rgb, r.depth.float()) for r in render_clip(clip, options.workers)]
    exact = torch.stack([depth for _, depth in shown])
    depth = torch.stack([d.float() for d in clip_depth(clip, options.depth_size, options.workers)])
    threshold = THRESHOLD * float(exact[exact > 0].median())
    truth = true_cloud(clip, exact, threshold / 2)
    return Filmed(clip, tuple(rgb for rgb, _ in shown), depth, truth, *seen_by(clip, exact, truth), threshold)


def true_cloud(clip: Clip, depth: Float[Tensor, "F h w"], size: float) -> Float[Tensor, "m 3"]:
    """Every surface that any frame sees, one point per voxel, so that near and far count by their area."""
    pixel = pixel_centres(*clip.size)
    kept = torch.zeros(0, 3, dtype=torch.float64)
    for k in range(len(clip)):
        local = bearing(pixel, clip.intrinsics[k]) * depth[k].double()[..., None]
        world = clip.cam_from_world[k].inverse().act(local[depth[k] > 0])
        together = torch.cat([kept, world]).numpy()
        cell = np.floor(together / size).astype(np.int64) + (1 << 20)
        key = (cell[:, 0] << 42) | (cell[:, 1] << 21) | cell[:, 2]
        kept = torch.from_numpy(together[np.sort(np.unique(key, return_index=True)[1])])
    return kept


def seen_by(
    clip: Clip, depth: Float[Tensor, "F h w"], points: Float[Tensor, "m 3"]
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """How many frames see each point, at the depth that is there, and how well they tell it.

    The second is the sigma along the point's worst axis, all of its views' rays intersected.
    """
    count, known = torch.zeros(len(points)), torch.zeros(len(points), 3, 3, dtype=torch.float64)
    width, height = clip.size
    for k in range(len(clip)):
        local = clip.cam_from_world[k].act(points)
        pixel, z = project_with_depth(local, clip.intrinsics[k])
        x, y = pixel.unbind(-1)
        inside = (z > 0) & (x >= 0) & (x < width) & (y >= 0) & (y < height)
        x, y = torch.where(inside, x, 0).long(), torch.where(inside, y, 0).long()
        seen = inside & ((depth[k][y, x] - z).abs() <= SEEN_WITHIN * z)
        count += seen
        ray = local[seen] / z[seen, None]
        slope = torch.zeros(len(ray), 2, 3, dtype=torch.float64)
        slope[:, 0, 0], slope[:, 1, 1], slope[:, :, 2] = 1, 1, -ray[:, :2]
        slope *= clip.intrinsics[k][:2, None] / z[seen, None, None]
        slope = slope @ clip.cam_from_world[k].rotation
        known[seen] += slope.mT @ slope
    weakest = torch.linalg.eigvalsh(known)[:, 0].clamp(min=1e-12)
    return count, MATCH_ERROR / weakest.sqrt()


def noisy(filmed: Filmed, name: str, size: tuple[int, int], seed: int) -> Depths:
    """What the simulated prior makes of the exact depth, chunk by chunk."""
    parts = [
        predicted_depth(filmed.depth[k : k + _CHUNK], NOISE[name], seed, k // _CHUNK)
        for k in range(0, len(filmed.depth), _CHUNK)
    ]
    confidence = torch.cat([c for _, c in parts])
    intrinsics = resize_intrinsics(filmed.clip.intrinsics, filmed.clip.size, size)
    # 1 + exp(logit) as a probability
    return Depths(torch.cat([d for d, _ in parts]), (confidence - 1) / confidence, intrinsics)


def measure(filmed: Filmed, name: str, options: Options) -> tuple[dict[str, Any], PlyCloud]:
    """One row of the table."""
    clip, n = filmed.clip, len(filmed.clip)
    names = tuple(f"{k:05d}" for k in range(n))
    camera = Camera("PINHOLE", tuple(clip.intrinsics[0].tolist()), *clip.size)
    every = torch.ones(n, dtype=torch.bool)
    frames = Frames(
        names, clip.timestamps, torch.zeros(n, dtype=torch.long), every, (camera,), clip.size, filmed
    )
    result = Reconstruction(
        names, clip.timestamps, clip.cam_from_world, clip.intrinsics, clip.size, every, torch.zeros(n, 2)
    )
    depths = noisy(filmed, name, options.depth_size, options.seed)
    begun = time.process_time()
    cloud = fuse_cloud(frames, result, depths, FusionConfig(), LocalEngine(options.workers))
    seconds = time.process_time() - begun
    return {
        "world": clip.world.name,
        "noise": name,
        "seed": options.seed,
        "frames": n,
        **scores(filmed, cloud),
        "cpu": seconds,
    }, cloud


def scores(filmed: Filmed, cloud: PlyCloud) -> dict[str, Any]:
    """Scores within four median depths of the cameras, of what three views saw, and everywhere."""
    points = cloud.points.double()
    right = within(points, filmed.truth, filmed.threshold).double()
    found = within(filmed.truth, points, filmed.threshold).double()
    near_points, near_truth = filmed.near(points), filmed.near(filmed.truth)
    precision, recall = float(right[near_points].mean()), float(found[near_truth].mean())
    seen = near_truth & (filmed.views >= 3)
    told = filmed.scatter <= filmed.threshold
    return {
        "points": len(cloud),
        "fscore": _mean(precision, recall),
        "precision": precision,
        "recall": recall,
        "complete3": float(found[seen].mean()),
        "told3": float(told[seen].double().mean()),
        "complete3_told": float(found[seen & told].mean()),
        "fscore_all": _mean(float(right.mean()), float(found.mean())),
        "complete3_all": float(found[filmed.views >= 3].mean()),
        "near": float(near_truth.double().mean()),
    }


def within(points: Float[Tensor, "n 3"], cloud: Float[Tensor, "m 3"], distance: float) -> Bool[Tensor, "n"]:
    """Which points have one of the cloud within a distance: much faster than how far the nearest is."""
    from scipy.spatial import cKDTree

    found, _ = cKDTree(cloud.numpy()).query(points.numpy(), distance_upper_bound=distance)
    return torch.from_numpy(np.isfinite(found))


def _mean(precision: float, recall: float) -> float:
    """Harmonic."""
    return 2 * precision * recall / max(precision + recall, 1e-9)


def draw(cloud: PlyCloud, up: Float[Tensor, "3"], folder: Path, stem: str) -> None:
    """Pictures from three sides, and the cloud itself."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    write_ply(folder / f"{stem}.ply", cloud)
    for side in SIDES:
        view = side_view(cloud, side, up, cut=0.3 if side == "above" else 0.0)
        view = replace(view, radius=1 if len(cloud) < 400_000 else 0)
        Image.fromarray(render_cloud(cloud, view)).save(folder / f"{stem}_{side}.png")


def fuse_run(folder: Path, pictures: Path, workers: int) -> dict[str, Any]:
    """The cloud of a finished run, drawn."""
    from geoweaver.finished import load_run

    run = load_run(folder)
    begun = time.process_time()
    cloud = fuse_cloud(run.frames, run.result, run.depths, FusionConfig(), LocalEngine(workers), run.graph)
    seconds = time.process_time() - begun
    draw(cloud, mean_up(run.result.cam_from_world[run.result.trusted]), pictures, folder.name)
    return {"run": str(folder), "frames": len(run.frames), "points": len(cloud), "cpu": seconds}


def main() -> None:
    """Measure, print a table, write JSON."""
    options = tyro.cli(Options, config=(tyro.conf.FlagCreatePairsOff,))
    torch.set_num_threads(1)
    if options.run is not None:
        print_table([fuse_run(options.run, options.pictures or options.run / "pictures", options.workers)])
        return
    rows = [row for row in saved_rows("clouds") if row["world"] not in options.worlds]
    for world in options.worlds:
        filmed = film(world, options)
        for name in options.noise:
            row, cloud = measure(filmed, name, options)
            rows.append(row)
            print_table(rows[-1:])
            if options.pictures is not None:
                draw(cloud, torch.tensor([0.0, 0, 1]), options.pictures, f"{world}_{name}")
        write_results("clouds", rows)
    print_table(rows)


if __name__ == "__main__":
    main()
