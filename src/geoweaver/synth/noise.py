"""Seamless random fields: the grain, stains and veins of every texture."""

from typing import Any

import numpy as np
from scipy import fft as sp_fft

from geoweaver.synth.quads import Array


def clouds(
    rng: np.random.Generator, n: int, slope: float = 1.0, coarsest: float = 1.0, stretch: float = 1.0
) -> Array:
    """A tileable n x n field, mean 0 and deviation 1, spectrum 1/f^slope, nothing coarser than n/coarsest.

    `stretch` > 1 draws it out along the columns (wood grain, rain streaks).
    """
    f_down = (sp_fft.fftfreq(n)[:, None] * n * stretch).astype(np.float32)
    f_across = (sp_fft.rfftfreq(n)[None, :] * n).astype(np.float32)
    f2 = f_down**2 + f_across**2
    amplitude = np.where(f2 >= coarsest**2, np.maximum(f2, 1e-9) ** np.float32(-slope / 2), 0)
    spectrum = sp_fft.rfft2(rng.standard_normal((n, n), dtype=np.float32)) * amplitude
    field: Array = sp_fft.irfft2(spectrum, s=(n, n))
    return np.asarray((field - field.mean()) / (field.std() + 1e-12))


def mixed(low: Array | tuple[float, ...], high: Array | tuple[float, ...], share: Array) -> Array:
    """Colours between `low` and `high` by a field in [0, 1]."""
    s = np.clip(share, 0, 1)[..., None]
    return np.asarray(np.asarray(low, float) * (1 - s) + np.asarray(high, float) * s)


def soft(field: Array, spread: float = 0.6) -> Array:
    """A field of deviation 1 squeezed into [0, 1]."""
    return 0.5 + 0.5 * np.tanh(spread * field)


def cells(rng: np.random.Generator, n: int, count: int) -> tuple[Array, Array]:
    """Tileable cells around random points: index of the nearest point, and pixels to the border."""
    from scipy.spatial import cKDTree

    points = rng.uniform(0, n, (count, 2))
    tree: Any = cKDTree(points, boxsize=n)  # type: ignore[call-overload]
    grid = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), -1) + 0.5
    distance, index = tree.query(grid, k=2)
    return index[..., 0], (distance[..., 1] - distance[..., 0]) / 2


def grid_cells(n: int, rows: int, columns: int, stagger: float = 0.0) -> tuple[Array, Array]:
    """Running bond: the index of the brick at each pixel, and the distance to its border in shares of n."""
    v = ((np.arange(n) + 0.5) / n * rows)[:, None]
    row = v.astype(np.int64)
    x = (v.T * (columns / rows) + stagger * (row % 2)).astype(np.float32)
    column = x.astype(np.int64)
    x -= column
    to_side = np.minimum(x, 1 - x) / columns
    to_bed = np.minimum(v - row, 1 - v + row) / rows
    return row * columns + column % columns, np.minimum(to_side, to_bed)
