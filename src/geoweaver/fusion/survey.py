"""A first look at every view, coarse enough to keep: where its surfaces are, how fine its pixels lie."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from geoweaver.engine import Engine
from geoweaver.fusion.views import DepthView, ViewReader

GRID = (8, 12)
"""Rows and columns of the places looked at."""
BLOCK = 16
"""Frames read by a worker at a time."""


@dataclass(frozen=True)
class Survey:
    """What is known of all views at once: about 1 kB a frame."""

    frame: Int[np.ndarray, "n"]
    depth: Float[np.ndarray, "n rows columns"]
    """At the middle of each cell of a coarse grid; 0 = unknown."""
    camera: Float[np.ndarray, "n 16"]
    """Rotation (9), translation (3), intrinsics (4) in widths and heights of the image."""
    median: Float[np.ndarray, "n"]
    footprint: Float[np.ndarray, "n"]
    """Size of a pixel where it lies on near surfaces (the first quartile of depth)."""

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def centre(self) -> Float[np.ndarray, "n 3"]:
        R, t = self.camera[:, :9].reshape(-1, 3, 3), self.camera[:, 9:12]
        return np.asarray(-np.einsum("nji,nj->ni", R, t))


def survey_views(reader: ViewReader, engine: Engine) -> Survey:
    """Read every contributing view once; views that know nothing are left out."""
    frames = reader.contributing()
    blocks = [frames[k : k + BLOCK] for k in range(0, len(frames), BLOCK)]
    found = [row for rows in engine.map(_LookAt(reader), blocks, title="cloud: depth maps") for row in rows]
    rows, columns = GRID
    table = np.array(found).reshape(len(found), 1 + rows * columns + 16 + 2)
    depth = table[:, 1 : 1 + rows * columns].reshape(-1, rows, columns)
    return Survey(
        table[:, 0].astype(np.int64), depth, table[:, -18:-2].copy(), table[:, -2].copy(), table[:, -1].copy()
    )


@dataclass(frozen=True)
class _LookAt:
    """What a worker does with a block of frames."""

    reader: ViewReader

    def __call__(self, block: list[int]) -> list[Float[np.ndarray, "row"]]:
        views = ((frame, self.reader.read(frame)) for frame in block)
        return [_row(frame, view) for frame, view in views if (view.depth > 0).any()]


def _row(frame: int, view: DepthView) -> Float[np.ndarray, "row"]:
    height, width = view.depth.shape
    y = ((np.arange(GRID[0]) + 0.5) * height / GRID[0]).astype(int)
    x = ((np.arange(GRID[1]) + 0.5) * width / GRID[1]).astype(int)
    known = view.depth[view.depth > 0].astype(np.float64)
    shares = view.intrinsics / (width, height, width, height)
    camera = np.concatenate([view.rotation.ravel(), view.translation, shares])
    footprint = np.quantile(known, 0.25) / np.mean(view.intrinsics[:2])
    return np.concatenate([[frame], view.depth[np.ix_(y, x)].ravel(), camera, [np.median(known), footprint]])
