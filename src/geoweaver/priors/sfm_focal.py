"""One focal for all chunks of a camera: what the well-conditioned ones agree on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geoweaver.datatypes import Camera, Chunk

_AGREE = 0.05
"""Relative difference within which focals say the same."""


@dataclass(frozen=True)
class FocalVote:
    """The focal that one chunk's largest sound piece was refined to, in pixels of the working images."""

    focal: float
    weight: float
    """Frames of the piece: longer pieces pin the focal better."""


def start_intrinsics(camera: Camera, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """What is known of the rectified images' pinhole, else a normal lens."""
    if camera.rectified is not None:
        return camera.rectified
    focal = 1.2 * max(size)
    return focal, focal, size[0] / 2, size[1] / 2


def voting_chunks(chunks: Sequence[Chunk], count: int) -> list[Chunk]:
    """Some chunks, evenly over the sequence."""
    if len(chunks) <= count:
        return list(chunks)
    return [chunks[k] for k in np.linspace(0, len(chunks) - 1, count).round().astype(int)]


def focal_consensus(votes: Sequence[FocalVote]) -> float:
    """The mean of the votes around their weighted median; 0 where fewer than two agree."""
    if len(votes) < 2:
        return 0.0
    focal = np.array([v.focal for v in votes])
    weight = np.array([v.weight for v in votes])
    order = np.argsort(focal, kind="stable")
    middle = order[np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)]
    near = np.abs(np.log(focal / focal[middle])) < _AGREE
    return float(np.average(focal[near], weights=weight[near])) if near.sum() >= 2 else 0.0
