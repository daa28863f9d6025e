"""Simple solids made of quadrilaterals: panels, boxes, tubes, turned (lathe) bodies."""

import numpy as np
from jaxtyping import Float

from geoweaver.synth.quads import Array, Quads, from_corners

Point = tuple[float, float, float]

_SIDES = {  # unit-cube corners of each side, top-left first as seen from outside
    "-y": [(0, 0, 1), (1, 0, 1), (1, 0, 0), (0, 0, 0)],
    "+x": [(1, 0, 1), (1, 1, 1), (1, 1, 0), (1, 0, 0)],
    "+y": [(1, 1, 1), (0, 1, 1), (0, 1, 0), (1, 1, 0)],
    "-x": [(0, 1, 1), (0, 0, 1), (0, 0, 0), (0, 1, 0)],
    "+z": [(0, 1, 1), (1, 1, 1), (1, 0, 1), (0, 0, 1)],
    "-z": [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)],
}


def box(lo: Point, hi: Point, material: str | dict[str, str], fit: bool = False, without: str = "") -> Quads:
    """An upright box from corner to corner; `material` may name sides (-x +x -y +y -z +z, '' the rest)."""
    sides = [side for side in _SIDES if side not in without.split()]
    lo_, hi_ = np.asarray(lo, float), np.asarray(hi, float)
    corners = np.array([_SIDES[side] for side in sides]) * (hi_ - lo_) + lo_
    offset = (0.0, 0.0) if fit else (lo[0] + lo[1], lo[1] - lo[2])
    if isinstance(material, str):
        return from_corners(corners, material, fit, offset)
    names = np.array([material.get(side, material.get("", "plain")) for side in sides])
    return from_corners(corners, names, fit, offset)


def panel(
    centre: Point, width: float, height: float, facing: float, material: str, fit: bool = True
) -> Quads:
    """An upright rectangle whose front looks along the compass angle `facing` (degrees from +x to +y)."""
    a = np.radians(facing)
    right = np.array([-np.sin(a), np.cos(a), 0]) * width / 2
    up = np.array([0, 0, height / 2])
    corners = np.array([up - right, up + right, right - up, -right - up]) + np.asarray(centre, float)
    return from_corners(corners[None], material, fit)


def sheet(
    lo: tuple[float, float], hi: tuple[float, float], z: float, material: str, fit: bool = False
) -> Quads:
    """A horizontal rectangle that looks up."""
    corners = [(lo[0], hi[1], z), (hi[0], hi[1], z), (hi[0], lo[1], z), (lo[0], lo[1], z)]
    return from_corners(np.array([corners], float), material, fit, (0.0, 0.0) if fit else lo)


def lathe(profile: Float[np.ndarray, "p 2"], material: str, sides: int = 24, fit: bool = False) -> Quads:
    """A body of revolution about z from a profile of (radius, height), bottom first."""
    angle = np.linspace(0, 2 * np.pi, sides + 1)
    ring = np.stack([np.cos(angle), np.sin(angle)], -1)
    points = np.concatenate(
        [profile[:, None, :1] * ring, np.broadcast_to(profile[:, None, 1:], (len(profile), sides + 1, 1))], -1
    )
    corners = np.stack([points[1:, :-1], points[1:, 1:], points[:-1, 1:], points[:-1, :-1]], 2)
    quads = from_corners(corners.reshape(-1, 4, 3), material)
    return Quads(quads.corners, _lathe_uv(profile, sides, fit), quads.material, quads.tint)


def _lathe_uv(profile: Array, sides: int, fit: bool) -> Array:
    """Texture wound around the body once: along the widest ring's circumference and the profile's length."""
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(profile, axis=0), axis=-1))])
    around, along = (1.0, length / length[-1]) if fit else (2 * np.pi * profile[:, 0].max(), length)
    top = (along[-1] - along)[:, None] + np.zeros(sides)
    uv = np.zeros((len(profile) - 1, sides, 3, 2))
    uv[:, :, 0, 0] = np.arange(sides) / sides * around
    uv[:, :, 0, 1] = top[1:]
    uv[:, :, 1, 0] = around / sides
    uv[:, :, 2, 1] = top[:-1] - top[1:]
    return uv.reshape(-1, 3, 2)


def tube(base: Point, radius: float, height: float, material: str, sides: int = 16) -> Quads:
    """An upright closed cylinder."""
    profile = np.array([[0, 0], [radius, 0], [radius, height], [0, height]], float)
    return lathe(profile, material, sides).moved(*base)


def ball(centre: Point, radius: float, material: str, sides: int = 20, squash: float = 1) -> Quads:
    """A sphere, flattened or stretched by `squash` along z."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, sides // 2 + 1)
    profile = np.stack([np.cos(angle) * radius, np.sin(angle) * radius * squash], -1)
    profile[[0, -1], 0] = 0
    return lathe(profile, material, sides).moved(*centre)
