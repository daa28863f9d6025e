"""What a given calibration leaves out: four numbers say nothing of how the lens bends."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from geoweaver.datatypes import Camera, Chunk
from geoweaver.geometry.distortion import Lens
from geoweaver.priors.lens import LensConfig, LensVerdict
from geoweaver.priors.lens_settle import settle
from geoweaver.priors.lens_vote import NO_VOTE, LensStart, LensVote, read_vote
from geoweaver.priors.protocol import ReadFeatures
from geoweaver.priors.sfm_global import run_globally
from geoweaver.priors.sfm_mapping import MappingCamera
from geoweaver.priors.sfm_pairs import pixel_array, verified_pairs

OFFSETS = (1, 2, 3, 4, 6, 8, 12, 16)
"""Distances in the window at which frames are matched."""
PINHOLES = ("PINHOLE", "SIMPLE_PINHOLE")
"""Models that say nothing of bending."""
_MATERIAL = 1.0
"""Pixels at the corner below which bending changes nothing."""
_CLEARLY = 3.0
"""How many times its own uncertainty, and what windows differ by, the bending must be."""


def residual_windows(config: LensConfig) -> LensConfig:
    """Longer windows by half: only those in which the camera turns can tell."""
    return replace(config, length=config.length * 3 // 2)


def residual_vote(start: LensStart, read_features: ReadFeatures, window: Chunk) -> LensVote:
    """The bending that a window's images ask for when the focal stays as given.

    All cameras are placed at once: driving straight ahead, no two frames are a beginning that holds.
    """
    features = [read_features(frame) for frame in window.frames]
    pairs = verified_pairs(features, OFFSETS)
    keypoints = [_square(pixel_array(f), start.camera) for f in features]
    fx, _, cx, cy = start.camera.intrinsics
    camera = replace(start.camera, intrinsics=(fx, fx, cx, cy))
    votes = run_globally(keypoints, pairs, camera, partial(_refined, start, len(keypoints)))
    return max(votes, key=lambda vote: vote.frames, default=NO_VOTE)


def _square(pixels: Float[np.ndarray, "n 2"], camera: MappingCamera) -> Float[np.ndarray, "n 2"]:
    """As pixels would lie if the camera had its horizontal focal both ways: a lens bends evenly around."""
    fx, fy, _, cy = camera.intrinsics
    return np.asarray([0, cy] + (pixels - [0, cy]) * [1, fx / fy])


def _refined(start: LensStart, frames: int, model: Any) -> LensVote:
    """Let cameras, points and one coefficient of the lens settle."""
    if model.num_reg_images() < 3 or not model.num_points3D():
        return NO_VOTE
    fx, _, cx, cy = start.camera.intrinsics
    settled = settle(model, "SIMPLE_RADIAL", [fx, cx, cy, 0.0], focal=False, middle=False)
    return read_vote(model, start, frames, settled)


def agree_on_residual(camera: Camera, start: LensStart, votes: Sequence[LensVote]) -> LensVerdict:
    """The bending that windows which can tell agree on, where it is certain and large enough to matter."""
    known = [(v, v.covariance[0] ** 0.5) for v in votes if v.sound and v.covariance]
    telling = [(v, sigma) for v, sigma in known if abs(v.k1) > _CLEARLY * sigma]
    if len(telling) < 2:
        return LensVerdict(None, tuple(votes), "nothing speaks against the given intrinsics")
    k1 = float(np.average([v.k1 for v, _ in telling], weights=[sigma**-2 for _, sigma in telling]))
    bends = [v.bend(start.corner) for v, _ in telling]
    bend = float(np.average(bends))
    said = ", ".join(f"{b:.1f}" for b in bends)
    if abs(bend) < max(_MATERIAL, _CLEARLY * (max(bends) - min(bends))):
        return LensVerdict(
            None, tuple(votes), f"no certain distortion beside the given intrinsics ({said} px)"
        )
    focal = camera.params if len(camera.params) == 4 else (camera.params[0], *camera.params)
    lens = Lens("OPENCV", (*focal, k1, 0.0, 0.0, 0.0), (camera.width, camera.height))
    note = (
        f"the given intrinsics leave out lens distortion k1={k1:.4f}: "
        f"windows agree that corners move by {said} px, images are rectified (--lens pinhole: they are not)"
    )
    return LensVerdict(lens, tuple(votes), note)
