"""Several windows' cameras become one: each counts by what it could tell; who contradicts is dropped."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from geoweaver.priors.lens_vote import LensStart, LensVote

_ASIDE = 0.02
"""Of the longer side: how far beside the image's middle a principal point usually lies."""
_BENDS = 1.0
"""How large k1 and k2 usually are."""
_CONTRADICTS = 3.0
"""Deviations, in the mean over the parameters, from which on a window contradicts the others."""
_FREE = 5


@dataclass(frozen=True)
class FusedLens:
    """(focal, cx, cy, k1, k2) in pixels of the working images, and how well they are known."""

    params: Float[np.ndarray, "5"]
    covariance: Float[np.ndarray, "5 5"]
    apart: float = 0.0
    """By how many deviations the windows differ, root mean square."""

    def most_bend(self, corner: float) -> float:
        """The largest of the pixels by which the lens moves points between the middle and the corner."""
        f, _, _, k1, k2 = self.params
        radius = np.linspace(0.1, 1, 10) * corner
        bends = radius * (k1 * (radius / f) ** 2 + k2 * (radius / f) ** 4)
        return float(bends[np.abs(bends).argmax()])

    def bending_certainty(self) -> float:
        """How many deviations k1 and k2 are from nothing, root mean square."""
        k = self.params[3:]
        return float(np.sqrt(k @ np.linalg.solve(self.covariance[3:, 3:], k) / len(k)))

    def straight(self) -> "FusedLens":
        """What the rest is if nothing bends."""
        of_rest, of_both = self.covariance[:3, 3:], self.covariance[3:, 3:]
        gain = np.linalg.solve(of_both, of_rest.T).T
        params = np.append(self.params[:3] - gain @ self.params[3:], [0.0, 0.0])
        covariance = np.zeros((_FREE, _FREE))
        covariance[:3, :3] = self.covariance[:3, :3] - gain @ of_rest.T
        return FusedLens(params, covariance)

    def aside(self, middle: tuple[float, float]) -> float:
        """How many deviations the principal point lies from a place, on the axis where it is more."""
        sigma = np.sqrt(np.diag(self.covariance)[1:3])
        return float(np.abs((self.params[1:3] - middle) / sigma).max())


def fuse_votes(start: LensStart, votes: Sequence[LensVote]) -> FusedLens:
    """One camera from votes with covariances; those that contradict the others are left out, but for two."""
    kept = list(votes)
    while len(kept) > 2:
        apart = [_apart(vote, _fused(start, [v for v in kept if v is not vote])) for vote in kept]
        worst = int(np.argmax(apart))
        if apart[worst] < _CONTRADICTS:
            break
        kept.pop(worst)
    fused = _fused(start, kept)
    # windows that differ by more than they say know less than they say
    left = float(np.sqrt(np.mean([_apart(vote, fused) ** 2 for vote in kept])))
    return FusedLens(fused.params, max(1.0, left) ** 2 * fused.covariance, left)


def _fused(start: LensStart, votes: Sequence[LensVote]) -> FusedLens:
    """The mean by information, with what is usual as one more vote."""
    usual = np.array([1e9, *[_ASIDE * max(start.camera.size)] * 2, _BENDS, _BENDS])
    information = np.diag(usual**-2)
    pulled = information @ [0.0, *start.camera.intrinsics[2:], 0.0, 0.0]
    for vote in votes:
        own = np.linalg.inv(_matrix(vote))
        information, pulled = information + own, pulled + own @ _vector(vote)
    covariance = np.linalg.inv(information)
    return FusedLens(covariance @ pulled, covariance)


def _apart(vote: LensVote, fused: FusedLens) -> float:
    """Deviations between a vote and what others say, root mean square over the parameters."""
    off = _vector(vote) - fused.params
    return float(np.sqrt(off @ np.linalg.solve(_matrix(vote) + fused.covariance, off) / _FREE))


def _vector(vote: LensVote) -> Float[np.ndarray, "5"]:
    return np.array([vote.focal, *vote.middle, vote.k1, vote.k2])


def _matrix(vote: LensVote) -> Float[np.ndarray, "5 5"]:
    return np.array(vote.covariance).reshape(_FREE, _FREE)
