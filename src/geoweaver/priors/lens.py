"""How much a lens bends the image: what windows over the whole recording agree on, else nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from geoweaver.datatypes import Camera, Chunk
from geoweaver.errors import InputError
from geoweaver.geometry.distortion import Lens, rectify
from geoweaver.priors.lens_vote import LensStart, LensVote

_FEWEST_KEYFRAMES = 20
"""Two windows that share no frame."""
_MATERIAL = 1.0
_NOISE = 0.5
"""Pixels at the corner: less bending changes nothing, and windows of straight images miss by this."""
_CLEARLY = 3.0
"""How many times larger the bending must be than what the windows disagree by."""
_MAJORITY = 2 / 3
_KEPT = 0.7
"""Of the image's width and height, that a rectified view must still show."""


@dataclass(frozen=True)
class LensConfig:
    """Distortion of cameras without calibration: looked for, and removed where it is certain."""

    lens: Literal["auto", "pinhole"] = "auto"
    """auto: images are rectified by what some windows agree on; pinhole: they are taken as they are."""
    windows: int = 4
    """Windows of keyframes that vote, spread evenly over the recording."""
    length: int = 20
    """Keyframes per window."""


@dataclass(frozen=True)
class LensVerdict:
    """What the windows agree on, in words too."""

    lens: Lens | None
    """At the original size; None where images stay as they are."""
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
    """The mean of the windows that agree, where bending is certain and large enough to matter."""
    sound = [vote for vote in votes if vote.sound]
    said = ", ".join(f"{vote.bend(start.corner):.1f}" for vote in sound)
    near = _agreeing(sound, start.corner)
    if len(near) < 2:
        return LensVerdict(None, tuple(votes), "too few windows can tell whether the lens bends the images")
    bends = [vote.bend(start.corner) for vote in near]
    bend, spread = float(np.mean(bends)), max(max(bends) - min(bends), _NOISE)
    if abs(bend) < max(_MATERIAL, _CLEARLY * spread):
        return LensVerdict(None, tuple(votes), f"no certain distortion (corners move by {said} px)")
    lens = _mean_lens(camera, near)
    if not _keeps_the_image(lens):
        return LensVerdict(None, tuple(votes), f"windows agree on a lens that no image fits ({said} px)")
    return LensVerdict(lens, tuple(votes), _found(lens, said))


def _keeps_the_image(lens: Lens) -> bool:
    """A polynomial that folds back within the image would cut most of it away."""
    try:
        view = rectify(lens)
    except InputError:
        return False
    spans = np.ptp(view.map_x) / lens.size[0], np.ptp(view.map_y) / lens.size[1]
    return bool(min(spans) > _KEPT)


def _agreeing(votes: Sequence[LensVote], corner: float) -> list[LensVote]:
    """The two thirds of the votes, at least two, that lie closest together."""
    count = max(2, int(np.ceil(_MAJORITY * len(votes))))
    order = sorted(votes, key=lambda vote: vote.bend(corner))
    groups = [order[k : k + count] for k in range(len(order) - count + 1)]
    return min(groups, key=lambda g: g[-1].bend(corner) - g[0].bend(corner), default=[])


def _mean_lens(camera: Camera, votes: Sequence[LensVote]) -> Lens:
    """One lens at the original size; what is averaged is the bending in pixels, whatever the focals say."""
    weight = [vote.frames for vote in votes]
    focal = float(np.average([v.focal for v in votes], weights=weight))
    k1 = focal**2 * float(np.average([v.k1 / v.focal**2 for v in votes], weights=weight))
    k2 = focal**4 * float(np.average([v.k2 / v.focal**4 for v in votes], weights=weight))
    assert camera.rectified is not None
    original = focal * camera.params[0] / camera.rectified[0]
    middle = camera.params[2:4]
    return Lens("RADIAL", (original, *middle, k1, k2), (camera.width, camera.height))


def _found(lens: Lens, said: str) -> str:
    focal, _, _, k1, k2 = lens.params
    return (
        f"lens distortion k1={k1:.4f} k2={k2:.4f} (focal {focal:.1f} px): "
        f"windows agree that corners move by {said} px, images are rectified"
    )
