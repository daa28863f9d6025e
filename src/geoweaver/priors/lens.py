"""How a lens bends the image and where its axis is: what windows of the recording agree on, else nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from geoweaver.datatypes import Camera, Chunk
from geoweaver.errors import InputError
from geoweaver.geometry.distortion import Lens, rectify
from geoweaver.priors.lens_fusion import FusedLens, fuse_votes
from geoweaver.priors.lens_vote import LensStart, LensVote

_FEWEST_KEYFRAMES = 20
"""Two windows that share no frame."""
_MATERIAL = 1.0
"""Pixels: less bending changes nothing."""
_AS_THEY_ARE = "images are taken as they are"
_CERTAIN = 5.0
_ASIDE = 3.0
"""Deviations from straight, and of the principal point from the image's middle, that are no chance."""
_ALONE = 10.0
"""How much more bending, and how much more certain, than else where one window alone can tell."""
_CONTRADICTS = 3.0
"""Deviations between windows, in the mean, that no chance explains."""
_KEPT = 0.7
"""Of the image's width and height, that a rectified view must still show."""


@dataclass(frozen=True)
class LensConfig:
    """Distortion of cameras without calibration: looked for, and removed where it is certain."""

    lens: Literal["auto", "pinhole"] = "auto"
    """auto: images are rectified by what some windows agree on; pinhole: they are taken as they are."""
    windows: int = 6
    """Windows of keyframes that vote, spread evenly over the recording."""
    length: int = 20
    """Keyframes per window."""


@dataclass(frozen=True)
class LensVerdict:
    """What the windows agree on, in words too."""

    lens: Lens | None
    """At the original size; None where cameras stay as they were opened."""
    votes: tuple[LensVote, ...]
    note: str


def lens_windows(keyframes: Sequence[int], config: LensConfig) -> list[Chunk]:
    """Windows spread evenly over a camera's keyframes; none where these are too few to be asked twice."""
    if config.lens == "pinhole" or len(keyframes) < _FEWEST_KEYFRAMES:
        return []
    length = min(config.length, len(keyframes) // 2)
    # overlapping windows say the same twice
    count = max(2, min(config.windows, len(keyframes) // length))
    starts = np.linspace(0, len(keyframes) - length, count).round().astype(int)
    return [Chunk(k, tuple(keyframes[s : s + length])) for k, s in enumerate(starts)]


def agree_on_lens(camera: Camera, start: LensStart, votes: Sequence[LensVote]) -> LensVerdict:
    """What windows agree on: bending and the principal point, each where it is certain and matters."""
    sound = [vote for vote in votes if vote.sound and vote.covariance]
    few = f"too few stretches of the recording tell the lens' distortion: {_AS_THEY_ARE}"
    if not sound:
        return LensVerdict(None, tuple(votes), few)
    fused = fuse_votes(start, sound)
    if len(sound) == 1 and not _plainly_bent(start, fused):
        return LensVerdict(None, tuple(votes), few)
    if fused.apart > _CONTRADICTS:
        return LensVerdict(
            None,
            tuple(votes),
            f"stretches of the recording contradict each other about the lens: {_AS_THEY_ARE}",
        )
    bend = fused.most_bend(start.corner)
    if abs(bend) < _MATERIAL or fused.bending_certainty() < _CERTAIN:
        lens, where = _straight_lens(camera, start, fused.straight())
        return LensVerdict(
            lens, tuple(votes), f"the lens has no certain distortion ({bend:.1f} px at most){where}"
        )
    lens = _bent_lens(camera, start, fused)
    if not _keeps_the_image(lens):
        note = f"the lens found would bend images by {bend:.1f} px, which none fits: {_AS_THEY_ARE}"
        return LensVerdict(None, tuple(votes), note)
    return LensVerdict(lens, tuple(votes), _found(lens, bend, len(sound)))


def _plainly_bent(start: LensStart, fused: FusedLens) -> bool:
    """Bending that no single window gets by mistake: a wide lens, seen well."""
    bend, certainty = fused.most_bend(start.corner), fused.bending_certainty()
    return abs(bend) > _ALONE * _MATERIAL and certainty > _ALONE * _CERTAIN


def _straight_lens(camera: Camera, start: LensStart, fused: FusedLens) -> tuple[Lens | None, str]:
    """The camera with its principal point where windows saw it, if that is not the image's middle."""
    if fused.aside((start.camera.intrinsics[2], start.camera.intrinsics[3])) < _ASIDE:
        return None, ""
    cx, cy = _original_middle(camera, start, fused)
    lens = Lens(camera.model, (*camera.params[:-2], cx, cy), (camera.width, camera.height))
    return lens, f", principal point {cx:.1f}, {cy:.1f} px"


def _bent_lens(camera: Camera, start: LensStart, fused: FusedLens) -> Lens:
    """The lens at the original size."""
    focal, _, _, k1, k2 = fused.params
    middle = _original_middle(camera, start, fused)
    return Lens("RADIAL", (_factor(camera) * focal, *middle, k1, k2), (camera.width, camera.height))


def _original_middle(camera: Camera, start: LensStart, fused: FusedLens) -> tuple[float, float]:
    moved = _factor(camera) * (fused.params[1:3] - start.camera.intrinsics[2:])
    return camera.params[-2] + float(moved[0]), camera.params[-1] + float(moved[1])


def _factor(camera: Camera) -> float:
    """Original pixels per pixel of the working images."""
    assert camera.rectified is not None, "frames are opened with a view of every camera"
    return camera.params[0] / camera.rectified[0]


def _keeps_the_image(lens: Lens) -> bool:
    """A polynomial that folds back within the image would cut most of it away."""
    try:
        view = rectify(lens)
    except InputError:
        return False
    spans = np.ptp(view.map_x) / lens.size[0], np.ptp(view.map_y) / lens.size[1]
    return bool(min(spans) > _KEPT)


def _found(lens: Lens, bend: float, windows: int) -> str:
    focal, cx, cy, k1, k2 = lens.params
    return (
        f"lens distortion k1={k1:.4f} k2={k2:.4f} (focal {focal:.1f}, middle {cx:.1f}, {cy:.1f} px): "
        f"{_stretches(windows)}: pixels move by up to {bend:.1f}; images are rectified"
    )


def _stretches(count: int) -> str:
    return (
        "one stretch of the recording says so" if count == 1 else f"{count} stretches of the recording agree"
    )
