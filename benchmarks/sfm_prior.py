"""`python -m benchmarks.sfm_prior`: cameras, depth, confidence and seconds of the sfm prior on slices.

Writes a figure of what confidence means beside the JSON. Cameras are scored per piece after its own Sim(3),
depth after one scale per piece (from its confident half).
Recordings are read from the folder GEOWEAVER_DATA; `world:NAME` is rendered.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from jaxtyping import Float
from torch import Tensor

from benchmarks.harness import RESULTS, print_table, write_results
from geoweaver.datatypes import Camera, Chunk, ChunkPrior, Frames
from geoweaver.features import extract_features
from geoweaver.formats.depth import depth_files, read_depth
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.frames.opening import open_frames
from geoweaver.geometry import SE3
from geoweaver.geometry.registration import umeyama
from geoweaver.priors.plane_sweep import SweepConfig
from geoweaver.priors.sfm import SfmConfig, SfmEstimate, SfmPrior, chunk_pieces, dense_piece

_BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@dataclass(frozen=True)
class Options:
    """Measure the sfm prior."""

    sequences: tuple[str, ...] = (
        "indoor_walk", "fox", "world:apartment", "world:corridor", "world:street", "world:tabletop",
    )  # fmt: skip
    start: int = 0
    """First frame of the slice."""
    frames: int = 60
    prior: SfmConfig = field(default_factory=SfmConfig)


@dataclass(frozen=True)
class Measured:
    """A sequence with its truth; depth by frame at a given size, empty where there is none."""

    frames: Frames
    cam_from_world: SE3
    depth: Callable[[int, tuple[int, int]], Float[np.ndarray, "h w"]]


def recording(name: str) -> Measured:
    """One of the folders of real recordings."""
    folder = Path(os.environ["GEOWEAVER_DATA"]) / name
    frames = open_frames(folder / "images")
    reference = folder / "groundtruth.tum"
    truth = read_trajectory(reference if reference.exists() else folder / "transforms.json")
    order = torch.arange(len(frames))
    if truth.names is not None:
        stems = [Path(n).stem for n in truth.names]
        order = torch.tensor([stems.index(Path(n).stem) for n in frames.names])
    maps = depth_files(folder / "depth") if (folder / "depth").is_dir() else {}

    def depth(frame: int, size: tuple[int, int]) -> Float[np.ndarray, "h w"]:
        return _resized(read_depth(maps[frame]).numpy(), size) if frame in maps else np.zeros(size[::-1])

    return Measured(frames, truth.cam_from_world[order], depth)


def rendered(name: str, start: int, count: int) -> Measured:
    """The beginning of the world's default walk."""
    from geoweaver.synth.clips import ClipOptions, make_clip, render_frame
    from geoweaver.synth.world import build_world

    clip = make_clip(build_world(name), ClipOptions())
    shown = {k: render_frame(clip, k) for k in range(start, min(start + count, len(clip)))}

    class Pixels:
        def read(self, frame: int) -> np.ndarray:
            return shown[frame].rgb

    focal = 1.2 * max(clip.size)
    guess = (focal, focal, clip.size[0] / 2, clip.size[1] / 2)
    camera = Camera("PINHOLE", guess, *clip.size, rectified=guess)
    n = len(clip)
    frames = Frames(
        tuple(map(str, range(n))), clip.timestamps, torch.zeros(n, dtype=torch.int64),
        torch.ones(n, dtype=torch.bool), (camera,), clip.size, Pixels(),
    )  # fmt: skip

    def depth(frame: int, size: tuple[int, int]) -> Float[np.ndarray, "h w"]:
        return _resized(shown[frame].depth.numpy(), size)

    return Measured(frames, clip.cam_from_world, depth)


def _resized(depth: np.ndarray, size: tuple[int, int]) -> Float[np.ndarray, "h w"]:
    import cv2

    return np.asarray(cv2.resize(depth, size, interpolation=cv2.INTER_NEAREST))


@dataclass(frozen=True)
class DepthErrors:
    """Relative errors and confidences of pixels with reference and prediction, and how many have both."""

    error: Float[Tensor, "m"]
    confidence: Float[Tensor, "m"]
    coverage: float


def depth_errors(prior: ChunkPrior, truth: Measured) -> DepthErrors:
    """One scale for the piece: the median ratio over the more confident half."""
    size = (prior.depth.shape[2], prior.depth.shape[1])
    true = torch.from_numpy(np.stack([truth.depth(int(f), size) for f in prior.frame])).float()
    known = true > 0.05
    both = known & (prior.depth > 0)
    if not both.any():
        return DepthErrors(torch.zeros(0), torch.zeros(0), float("nan"))
    found, real, sure = prior.depth[both], true[both], prior.confidence[both]
    half = sure >= sure.median()
    scale = (real[half] / found[half]).median()
    return DepthErrors((found * scale - real).abs() / real, sure, float(both.sum() / known.sum()))


def camera_error(prior: ChunkPrior, truth: SE3) -> tuple[float, float]:
    """Sum of squared position errors after the piece's own Sim(3), and the extent about the middle."""
    centre, real = prior.cam_from_chunk.centre, truth[prior.frame].centre
    error = (umeyama(centre, real).act(centre) - real).norm(dim=1)
    return float(error.square().sum()), float((real - real.mean(0)).norm(dim=1).max())


def measure(name: str, options: Options) -> dict[str, Any]:
    """One row of the table."""
    world = name.removeprefix("world:")
    truth = recording(name) if world == name else rendered(world, options.start, options.frames)
    stop = min(options.start + options.frames, len(truth.frames))
    chunk = Chunk(0, tuple(range(options.start, stop)))
    assert truth.frames.pixels is not None
    seconds = {}
    begin = time.process_time()
    features = {k: extract_features(truth.frames.pixels.read(k)) for k in chunk.frames}
    seconds["features"] = time.process_time() - begin
    prior = SfmPrior(options.prior)
    context = prior.prepare(truth.frames, [chunk], features.__getitem__)
    begin = time.process_time()
    found = chunk_pieces(options.prior, context.cameras[0], context.read_features, chunk)
    seconds["sfm"] = time.process_time() - begin
    begin = time.process_time()
    sweep = options.prior.sweep
    priors = tuple(dense_piece(m, chunk, truth.frames, sweep) for m in found.models)
    seconds["depth"] = time.process_time() - begin
    estimate = SfmEstimate(priors, {}, found.attempts)
    return _row(name, chunk, estimate, truth, {k: v / len(chunk) for k, v in seconds.items()})


def _row(
    name: str, chunk: Chunk, found: SfmEstimate, truth: Measured, seconds: dict[str, float]
) -> dict[str, Any]:
    cameras = [camera_error(p, truth.cam_from_world) for p in found.priors]
    depths = [depth_errors(p, truth) for p in found.priors]
    count = sum(len(p) for p in found.priors)
    error, sure = torch.cat([d.error for d in depths]), torch.cat([d.confidence for d in depths])
    half = sure >= sure.median() if len(sure) else sure > 0
    size = SweepConfig().map_size(truth.frames.size)
    focal = [float(p.intrinsics[0, 0]) * truth.frames.size[0] / size[0] for p in found.priors]
    return {
        "sequence": name,
        "frames": len(chunk),
        "placed": len({int(f) for p in found.priors for f in p.frame}),
        "pieces": [len(p) for p in found.priors],
        "attempts": found.attempts,
        "focal": round(focal[0], 1) if focal else 0.0,
        "ate": round((sum(c[0] for c in cameras) / max(count, 1)) ** 0.5, 4),
        "extent": round(max((c[1] for c in cameras), default=0.0), 3),
        "absrel_half": _known(error[half].mean()),
        "absrel_all": _known(error.mean()),
        "within5_half": _known((error[half] < 0.05).float().mean()),
        "coverage": _known(torch.tensor([d.coverage for d in depths]).mean()),
        **{f"cpu_{k}": round(v, 2) for k, v in seconds.items()},
        "calibration": calibration(error, sure),
    }


def _known(value: Tensor) -> float | None:
    """Rounded, or nothing where there is no reference depth: JSON knows no nan."""
    return round(float(value), 4) if value.isfinite() else None


def calibration(error: Tensor, sure: Tensor) -> list[list[float]]:
    """Per bin of confidence: its mean, the share of errors below 5 %, and the share of pixels."""
    rows = []
    for low, high in pairwise(_BINS):
        inside = (sure >= low) & (sure < high) if high < 1 else sure >= low
        if inside.any():
            right = float((error[inside] < 0.05).float().mean())
            rows.append(
                [round(v, 3) for v in (float(sure[inside].mean()), right, float(inside.float().mean()))]
            )
    return rows


def plot(path: Path, rows: list[dict[str, Any]]) -> None:
    """Share of depths within 5 % against confidence: on the diagonal confidence means what it says."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
    axis.plot([0, 1], [0, 1], color="0.7", lw=1)
    for row in rows:
        if row["absrel_all"] is not None:
            said, right, _ = zip(*row["calibration"], strict=True)
            axis.plot(said, right, "o-", ms=3, label=row["sequence"].removeprefix("world:"))
    axis.set(xlabel="confidence", ylabel="share of depths within 5 %", xlim=(0, 1), ylim=(0, 1))
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print a table, write JSON."""
    options = tyro.cli(Options, config=(tyro.conf.FlagCreatePairsOff,))
    torch.set_num_threads(1)
    rows = []
    for name in options.sequences:
        rows.append(measure(name, options))
        print_table([{k: v for k, v in rows[-1].items() if k != "calibration"}])
        print("   confidence, share within 5 %, pixels:", rows[-1]["calibration"], flush=True)
    write_results("sfm_prior", rows)
    plot(RESULTS / "sfm_prior.png", rows)


if __name__ == "__main__":
    main()
