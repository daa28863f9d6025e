"""Rays against the fixed world and its movers: what is hit first, where, and how it looks."""

from dataclasses import dataclass

import numba
import numpy as np

from geoweaver.synth.casting import first_hits
from geoweaver.synth.movers import Body
from geoweaver.synth.quads import Array
from geoweaver.synth.shading import shade


@dataclass(frozen=True, eq=False)
class Hits:
    """First hits of n rays; triangle -1 and t inf where a ray meets nothing."""

    t: Array
    triangle: Array
    owner: Array
    """Index of the body hit; 0 is the fixed world (and the sky)."""


def trace(bodies: tuple[Body, ...], origins: Array, directions: Array) -> Hits:
    """The nearest hit over all bodies."""
    t, triangle = first_hits(bodies[0].meeting, origins, directions)
    owner = np.zeros(len(t), np.int64)
    for k, body in enumerate(bodies[1:], 1):
        near = np.flatnonzero(_passes(origins, directions, body.position, body.radius))
        if len(near) == 0:
            continue
        own_t, own_triangle = first_hits(body.meeting, *in_body(body, origins[near], directions[near]))
        closer = own_t < t[near]
        t[near[closer]], triangle[near[closer]], owner[near[closer]] = own_t[closer], own_triangle[closer], k
    return Hits(t, triangle, owner)


def in_body(body: Body, origins: Array, directions: Array) -> tuple[Array, Array]:
    """Rays in the body's own axes; factors along them stay the same."""
    return (origins - body.position) @ body.rotation, directions @ body.rotation


def colours(
    bodies: tuple[Body, ...], hits: Hits, origins: Array, directions: Array, step_x: Array, step_y: Array
) -> Array:
    """Linear colour (n 3) of every hit."""
    fixed = bodies[0]
    linear = shade(
        fixed.look,
        fixed.meeting.plane,
        origins,
        directions,
        step_x,
        step_y,
        hits.t,
        np.where(hits.owner > 0, -1, hits.triangle),
    )
    for k, body in enumerate(bodies[1:], 1):
        mine = np.flatnonzero(hits.owner == k)
        if len(mine):
            o, d = in_body(body, origins[mine], directions[mine])
            steps = step_x @ body.rotation, step_y @ body.rotation
            linear[mine] = shade(
                body.look, body.meeting.plane, o, d, *steps, hits.t[mine], hits.triangle[mine]
            )
    return linear


def normals(bodies: tuple[Body, ...], hits: Hits, directions: Array) -> Array:
    """Unit normals (n 3) in the world, towards the viewer; 0 where nothing is hit."""
    out: Array = np.zeros_like(directions)
    for k, body in enumerate(bodies):
        _normals(body.meeting.plane, body.rotation, hits.triangle, hits.owner, k, directions, out)
    return out


def edges(bodies: tuple[Body, ...], hits: Hits, linear: Array, width: int) -> Array:
    """True (n) where a neighbour in the image of a width in pixels shows another thing in another colour."""
    fixed, surface = bodies[0], hits.triangle // 2
    material = fixed.look.material[np.where(hits.owner > 0, -1, surface)]
    out: Array = _edges(
        surface + (hits.owner << 32), material, fixed.meeting.plane, hits.owner, hits.t, linear, width
    )
    return out


@numba.njit(cache=True)
def _passes(origins, directions, centre, radius):  # type: ignore[no-untyped-def]
    """True where a ray passes within `radius` of a centre ahead of it."""
    out = np.zeros(len(origins), np.bool_)
    for i in range(len(origins)):
        dot, square, length = 0.0, 0.0, 0.0
        for c in range(3):
            w = centre[c] - origins[i, c]
            dot += w * directions[i, c]
            square += w * w
            length += directions[i, c] ** 2
        inside = square < radius * radius
        out[i] = inside or (dot > 0 and square - dot * dot / length < radius * radius)
    return out


@numba.njit(cache=True)
def _normals(plane, rotation, triangle, owner, body, directions, out):  # type: ignore[no-untyped-def]
    for i in range(len(triangle)):
        if triangle[i] < 0 or owner[i] != body:
            continue
        p = plane[triangle[i]]
        scale = 1 / np.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
        towards = 0.0
        for c in range(3):
            out[i, c] = scale * (rotation[c, 0] * p[0] + rotation[c, 1] * p[1] + rotation[c, 2] * p[2])
            towards += out[i, c] * directions[i, c]
        if towards > 0:
            for c in range(3):
                out[i, c] = -out[i, c]


@numba.njit(cache=True)
def _edges(surface, material, plane, owner, t, linear, width):  # type: ignore[no-untyped-def]
    out = np.zeros(len(surface), np.bool_)
    for i in range(len(surface)):
        for k in (i + 1, i + width):
            if k >= len(surface) or (k == i + 1 and k % width == 0) or surface[i] == surface[k]:
                continue
            step, level = 0.0, 0.02
            for c in range(3):
                step += abs(linear[i, c] - linear[k, c])
                level += linear[i, c] + linear[k, c]
            if step < 0.1 * level:
                continue
            bend = (
                owner[i] + owner[k] > 0
                or material[i] != material[k]
                or abs(t[i] - t[k]) > 0.01 * min(t[i], t[k])
            )
            if bend or not _parallel(plane, surface[i], surface[k]):
                out[i] = out[k] = True
    return out


@numba.njit(cache=True)
def _parallel(plane, one, two):  # type: ignore[no-untyped-def]
    """True where two surfaces differ by less than about 25 degrees."""
    dot, a, b = 0.0, 0.0, 0.0
    for c in range(3):
        p, q = plane[2 * one, c], plane[2 * two, c]
        dot, a, b = dot + p * q, a + p * p, b + q * q
    return dot * dot > 0.82 * a * b
