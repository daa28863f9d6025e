"""Tiny scenes in the layouts of the suites, all with one camera path, and a stand-in that weaves them."""

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from geoweaver.benchmark import Plan, find_scenes, run_benchmark
from geoweaver.datatypes import Camera, Matches, Reconstruction, Trajectory, ViewGraph
from geoweaver.errors import InputError
from geoweaver.features.sift import no_features
from geoweaver.formats.colmap import ColmapModel, ColmapPoints, write_colmap
from geoweaver.formats.tnt_log import write_tnt_log
from geoweaver.formats.tum import write_tum
from geoweaver.frames import open_frames
from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.pipeline import Config
from geoweaver.results import DepthMap, FinishedRun, StageView

FRAMES = 8
SIZE = (64, 48)
DEPTH = 2.5
"""Everywhere, in the reference's units."""
SHRUNK = 0.5
"""The stand-in's units per unit of the reference."""


def path(count: int = FRAMES) -> SE3:
    """Cameras on a rising curve that look about."""
    k = torch.arange(count, dtype=torch.float64)
    turn = torch.stack([0.02 * k, 0.1 * k, 0.01 * k], -1)
    return SE3.exp(torch.cat([turn, torch.stack([k.sin(), 0.3 * k, 0.1 * k * k], -1)], -1))


def save_images(folder: Path, names: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for k, name in enumerate(names):
        pixels = np.random.default_rng(k).integers(0, 255, (SIZE[1], SIZE[0], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name)
    return folder


def save_depth(folder: Path, names: list[str], unit: float, sky: int = 0) -> None:
    """16-bit maps of `DEPTH`; their first row is none, their second the sky."""
    folder.mkdir(parents=True, exist_ok=True)
    depth = np.full((SIZE[1], SIZE[0]), round(DEPTH / unit), np.uint16)
    depth[0], depth[1] = 0, sky
    for name in names:
        Image.fromarray(depth).save(folder / name)


def make_folder_scene(folder: Path, depth: bool = False) -> Path:
    names = [f"{k:03}.png" for k in range(FRAMES)]
    save_images(folder / "images", names)
    write_tum(folder / "groundtruth.tum", Trajectory(path(), torch.arange(FRAMES)))
    if depth:
        save_depth(folder / "depth", names[::2], 0.001)
    return folder


def make_tanks(folder: Path, scale: float = 2.0) -> Path:
    """Numbered from 1, the log from 0; the alignment doubles every length."""
    save_images(folder, [f"{k + 1:06}.jpg" for k in range(FRAMES)])
    name = folder.name
    write_tnt_log(folder / f"{name}_COLMAP_SfM.log", Trajectory(path(), torch.arange(FRAMES)))
    rows = scale * np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    matrix = np.vstack([np.hstack([rows, [[1], [2], [3]]]), [0, 0, 0, 1]])
    (folder / f"{name}_trans.txt").write_text("\n".join(" ".join(map(str, r)) for r in matrix) + "\n")
    return folder


def make_mip_nerf(folder: Path, images: tuple[str, ...] = ("images", "images_4")) -> Path:
    names = [f"DSC{k:03}.JPG" for k in range(FRAMES)]
    for name in images:
        save_images(folder / name, names)
    camera = Camera("PINHOLE", (200.0, 200.0, 128.0, 96.0), 4 * SIZE[0], 4 * SIZE[1], calibrated=True)
    none = torch.zeros(0, dtype=torch.int64)
    points = ColmapPoints(
        torch.zeros(0, 3, dtype=torch.float64), torch.zeros(0, 3, dtype=torch.uint8),
        torch.zeros(0, dtype=torch.float64), none, none, torch.zeros(0, 2, dtype=torch.float64),
    )  # fmt: skip
    model = ColmapModel(tuple(names), path(), (camera,), torch.zeros(FRAMES, dtype=torch.int64), points)
    write_colmap(folder / "sparse/0", model)
    return folder


def make_vkitti(scene: Path, first: int = 0) -> Path:
    """Rows of both cameras, as the dataset has them; the right one stands elsewhere."""
    folder, numbers = scene / "clone", range(first, first + FRAMES)
    save_images(folder / "frames/rgb/Camera_0", [f"rgb_{k:05}.jpg" for k in numbers])
    save_depth(folder / "frames/depth/Camera_0", [f"depth_{k:05}.png" for k in numbers], 0.01, sky=65535)
    lines = ["frame cameraID r1,1 r1,2 r1,3 t1 r2,1 r2,2 r2,3 t2 r3,1 r3,2 r3,3 t3 0 0 0 1"]
    inner = ["frame cameraID K[0,0] K[1,1] K[0,2] K[1,2]"]
    for k, matrix in zip(numbers, path().matrix().numpy(), strict=True):
        for camera in (0, 1):
            shifted = matrix + camera * np.array([[0, 0, 0, -0.5]] + [[0] * 4] * 3)
            lines.append(f"{k} {camera} " + " ".join(map(repr, shifted.ravel().tolist())))
            inner.append(f"{k} {camera} 50.5 51.5 {31.5 + camera} 23.5")
    (folder / "extrinsic.txt").write_text("\n".join(lines) + "\n")
    (folder / "intrinsic.txt").write_text("\n".join(inner) + "\n")
    return scene


def make_spires(sequence: Path) -> Path:
    """Images at 16 Hz, the body's poses at 8 Hz and 3 ms late."""
    times = [1710338123.25 + 0.0625 * k for k in range(2 * FRAMES)]
    save_images(sequence / "raw/cam0", [f"{t:.9f}.jpg" for t in times])
    late = torch.tensor(times[::2], dtype=torch.float64) + 0.003
    (sequence / "processed/trajectory").mkdir(parents=True)
    body = Trajectory(path(), torch.arange(FRAMES), timestamps=late)
    write_tum(sequence / "processed/trajectory/gt-tum.txt", body)
    return sequence


@dataclass(frozen=True)
class FlatDepth:
    """A tenth too deep everywhere, in the stand-in's units."""

    frames: tuple[int, ...]

    def read(self, frame: int) -> DepthMap:
        depth = torch.full((SIZE[1] // 2, SIZE[0] // 2), 1.1 * DEPTH * SHRUNK)
        return DepthMap(depth, torch.ones_like(depth), torch.tensor([25.0, 25.0, 16.0, 12.0]))


class Nothing:
    """No features, no matches."""

    def read(self, index: int):
        return no_features() if index >= 0 else Matches(*(torch.zeros(0) for _ in range(4)))


@dataclass
class StandIn:
    """Reconstructs by looking at the truth: a shrunk and moved world, cameras a little off."""

    truth: SE3 = field(default_factory=path)
    off: float = 0.01
    fails: tuple[str, ...] = ()
    error: type[Exception] = InputError
    lens: Camera | None = None
    configs: list[Config] = field(default_factory=list)

    def reconstruct(self, input: Path, out: Path, config: Config, overwrite: bool = False) -> Reconstruction:
        self.configs.append(config)
        (out / "work").mkdir(parents=True, exist_ok=True)
        if out.name in self.fails:
            raise self.error(f"{input}: made to fail | here")
        frames = open_frames(input, config.frames)
        cameras = self.cameras(frames.timestamps.long(), self.off)
        write_tum(
            out / "trajectory.tum",
            Trajectory(cameras, torch.arange(len(frames)), timestamps=frames.timestamps),
        )
        first = len(self.configs) == 1
        summary = {
            "input": str(input), "names": list(frames.names), "untrusted": [{"frame": 0, "reason": "so"}],
            "frames": {"total": len(frames), "keyframes": len(frames), "trusted": len(frames) - 1},
            "stages": [{"name": "weave", "peak_rss_mib": 300.0 if first else 20.0}],
            "seconds_total": 50.0 if first else 1.0, "peak_rss_bytes": 1 << 40,
            "result": f"seed {config.seed}",
        }  # fmt: skip
        (out / "run.json").write_text(json.dumps(summary))
        self.frames = frames
        return self._result(cameras)

    def cameras(self, places: Tensor, off: float) -> SE3:
        moved = Sim3.exp(torch.tensor([0.1, 0.2, 0.3, 1.0, 2.0, 3.0, math.log(SHRUNK)], dtype=torch.float64))
        rng = torch.Generator().manual_seed(0)
        noise = off * torch.randn(len(self.truth), 6, generator=rng, dtype=torch.float64)
        return world_camera(moved, (SE3.exp(noise) @ self.truth)[places])

    def load(self, folder: Path) -> FinishedRun:
        places = self.frames.timestamps.long()
        views = tuple(
            StageView(f"Stage {k}", self.cameras(places, self.off * (4 - k)), torch.zeros(1), torch.zeros(1))
            for k in (1, 2, 3)
        )
        frames = self.frames if self.lens is None else replace(self.frames, cameras=(self.lens,))
        none, whole = torch.zeros(0, dtype=torch.bool), torch.ones(len(frames), dtype=torch.float64)
        graph = ViewGraph(torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
        return FinishedRun(
            folder, frames, self._result(self.cameras(places, self.off)), graph, none,
            torch.zeros(len(frames), dtype=torch.int64), whole, 0 * whole, views,
            FlatDepth(tuple(range(len(frames)))), Nothing(), Nothing(),
            json.loads((folder / "run.json").read_text()),
        )  # fmt: skip

    def _result(self, cameras: SE3) -> Reconstruction:
        count = len(cameras)
        return Reconstruction(
            self.frames.names, self.frames.timestamps, cameras, torch.ones(count, 4, dtype=torch.float64),
            self.frames.size, torch.ones(count, dtype=torch.bool),
            torch.zeros(count, 2, dtype=torch.float64), {},
        )  # fmt: skip


def run(data: Path, out: Path, made: StandIn, suite: str = "folder", **options) -> list[dict]:
    """A benchmark in which the stand-in reconstructs."""
    plan = Plan(suite, reconstruct=made.reconstruct, load=made.load, **options)
    return run_benchmark(find_scenes(suite, data), out, plan)


def done(rows: list[dict], method: str = "geoweaver") -> dict:
    (row,) = [row for row in rows if row["method"] == method and row["status"] == "done"]
    return row
