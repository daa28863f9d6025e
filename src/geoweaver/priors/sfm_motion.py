"""What the matches alone say about the camera's motion: none, a mere turn, or a walk."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from jaxtyping import Float

from geoweaver.priors.sfm_check import Pixels
from geoweaver.priors.sfm_mapping import HANDFUL, MappingCamera
from geoweaver.priors.sfm_pairs import VerifiedPair

_STILL_PX = 2.0
_TURN_PX = 1.0
_FEW_KEYPOINTS = 40
_FOCALS = (1.0, 0.6, 0.75, 1.35, 1.8)
"""A mere turn is one for some focal; the given one is tried first."""
_ANY_FOCAL = tuple(np.geomspace(0.4, 3.0, 18).tolist())
"""So finely that a turn leaves less than noise does at the focal nearest to the true one."""
_SLIGHT = np.radians(1.0)
"""Parallax up to this is below what mapping needs to begin, and to believe a point."""
_CLEAR_PX = 2.0
"""What no turn explains must be more than this where little motion is to be believed."""


class Motion(Enum):
    """Whether a chunk's images can determine depth, in words for the user."""

    MOVES = "the camera moves"
    STILL = "the camera hardly moved: film while walking, or give more distant frames"
    TURNS = "the camera only turned on the spot: depth needs steps to the side"
    NO_TEXTURE = "there is too little texture to match: blank surfaces, blur or darkness"
    NO_OVERLAP = "neighbouring frames share too little: film slower, or give more frames"


@dataclass(frozen=True)
class PairMotion:
    """Median pixels that a pair's matches moved, and that are left when the best rotation is taken out."""

    shift: float
    parallax: float


def pair_motion(pair: VerifiedPair, keypoints: Pixels, camera: MappingCamera) -> PairMotion:
    """The parallax is the smallest over some focals, so that a wrong guess does not look like a walk."""
    p, q = matched_pixels(pair, keypoints)
    shift = float(np.median(np.linalg.norm(p - q, axis=1)))
    factors = _FOCALS[:1] if camera.fixed else _FOCALS
    return PairMotion(shift, min(_turn_residual(p, q, camera, factor) for factor in factors))


def matched_pixels(
    pair: VerifiedPair, keypoints: Pixels
) -> tuple[Float[np.ndarray, "m 2"], Float[np.ndarray, "m 2"]]:
    """Where a pair's matches are in its two frames."""
    return keypoints[pair.a][pair.matches[:, 0]], keypoints[pair.b][pair.matches[:, 1]]


def _turn_residual(
    p: Float[np.ndarray, "m 2"], q: Float[np.ndarray, "m 2"], camera: MappingCamera, factor: float
) -> float:
    """Median pixels that are left between the two frames' keypoints after the best rotation."""
    x, y = _rays(p, camera, factor), _rays(q, camera, factor)
    keep = np.ones(len(x), bool)
    left = np.zeros(len(x))
    for _ in range(4):
        U, _, Vt = np.linalg.svd(y[keep].T @ x[keep])
        R = U @ np.diag([1, 1, np.sign(np.linalg.det(U @ Vt))]) @ Vt
        left = np.linalg.norm(x @ R.T - y, axis=1)
        keep = left <= np.median(left) * 2 + 1e-9
    return float(np.median(left)) * factor * camera.intrinsics[0]


def _rays(pixel: Float[np.ndarray, "m 2"], camera: MappingCamera, factor: float) -> Float[np.ndarray, "m 3"]:
    fx, fy, cx, cy = camera.intrinsics
    ray = np.concatenate([(pixel - [cx, cy]) / [factor * fx, factor * fy], np.ones((len(pixel), 1))], 1)
    return np.asarray(ray / np.linalg.norm(ray, axis=1, keepdims=True))


def chunk_motion(pairs: Sequence[VerifiedPair], motions: Sequence[PairMotion], keypoints: Pixels) -> Motion:
    """The verdict over all pairs: depth needs some that are more than a turn."""
    if np.median([len(k) for k in keypoints]) < _FEW_KEYPOINTS:
        return Motion.NO_TEXTURE
    frames = {pair.a for pair in pairs} | {pair.b for pair in pairs}
    still = bool(motions) and np.quantile([m.shift for m in motions], 0.95) < _STILL_PX
    # of a handful of images two that overlap are worth having
    if len(frames) < max(2 if len(keypoints) < HANDFUL else 3, len(keypoints) / 10):
        return Motion.NO_OVERLAP
    if still:
        return Motion.STILL
    if np.quantile([m.parallax for m in motions], 0.95) < _TURN_PX:
        return Motion.TURNS
    return Motion.MOVES


def moves_slightly(
    pairs: Sequence[VerifiedPair], motions: Sequence[PairMotion], keypoints: Pixels, camera: MappingCamera
) -> bool:
    """Too little parallax to begin with as usual, yet clearly more than a turn leaves with any one focal."""
    parallax = np.array([m.parallax for m in motions])
    if not len(parallax) or np.quantile(parallax, 0.95) > _SLIGHT * camera.intrinsics[0]:
        return False
    widest = [pair for pair, wide in zip(pairs, parallax >= np.quantile(parallax, 0.9), strict=True) if wide]
    left = [
        np.median([_turn_residual(*matched_pixels(pair, keypoints), camera, factor) for pair in widest])
        for factor in (_FOCALS[:1] if camera.fixed else _ANY_FOCAL)
    ]
    return bool(min(left) > _CLEAR_PX)


def first_pairs(
    pairs: Sequence[VerifiedPair], motions: Sequence[PairMotion], frames: int, count: int
) -> list[tuple[int, int]]:
    """Pairs to begin a model with: many matches, much parallax, each in another part of the chunk."""
    worth = [len(p.matches) * min(m.parallax, 15.0) for p, m in zip(pairs, motions, strict=True)]
    chosen: list[tuple[int, int]] = []
    for k in np.argsort(-np.array(worth), kind="stable"):
        if len(chosen) == count:
            break
        middle = (pairs[k].a + pairs[k].b) / 2
        if all(abs(middle - (a + b) / 2) >= frames / (count + 1) for a, b in chosen):
            chosen.append((pairs[k].a, pairs[k].b))
    return chosen
