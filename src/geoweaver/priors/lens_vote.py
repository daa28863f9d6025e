"""What one window of frames says about its lens: structure from motion whose camera may bend."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from geoweaver.datatypes import Camera, Chunk, Features
from geoweaver.geometry.distortion import Lens, undistort_points
from geoweaver.priors.lens_settle import Settled, settle
from geoweaver.priors.protocol import ReadFeatures
from geoweaver.priors.sfm_mapping import CAMERA, FOCAL_RANGE, MappingCamera, mapper_options, run_mapper
from geoweaver.priors.sfm_motion import first_pairs, pair_motion
from geoweaver.priors.sfm_pairs import (
    VerifiedPair,
    chunk_pairs,
    match_descriptors,
    pixel_array,
    verify_pair,
)

OFFSETS = (1, 2, 4, 8, 12)
"""Distances in the window at which frames are matched."""
FEATURES = 1000
"""Strongest features of a frame that are used: a lens has few parameters, and these match best."""
_LOOSE_PX = 4.0
"""Straight epipolar lines miss the borders of a bent image by some pixels."""
_TIGHT_PX = 2.0
_BENT = 2.0
"""Pixels at the corner from which on a second round is worth its time."""
_PARALLAX = math.radians(2)
_WIDE = 0.84
"""Start of an unknown focal in image lengths: lenses that bend are wide, and from there fewer runs escape."""
_ASIDE = 0.15
"""Of the way to the corner, that a principal point may lie beside the image's middle."""
_ATTEMPTS = 3
"""Initial pairs tried: two views alone may explain themselves by an absurd lens."""

_SEED = 0

Pixels = Sequence[Float[np.ndarray, "_ 2"]]
Rows = dict[tuple[int, int], Int[np.ndarray, "_ 2"]]


@dataclass(frozen=True)
class LensVote:
    """A window's lens in pixels of the working images, and how well its images could tell."""

    focal: float
    k1: float
    k2: float
    frames: int
    """Of the window that were placed."""
    points: int
    error: float
    """Mean reprojection error in pixels."""
    reach: float
    """How far from the middle points were seen (95 of 100 nearer), as a part of the way to the corner."""
    angle: float
    """Median over the points of the angle between their first and their last view, radians."""
    share: float
    """Frames placed, as a part of the window."""
    first_pair: tuple[int, int] = (0, 1)
    """Where mapping began."""
    middle: tuple[float, float] = (0.0, 0.0)
    """The principal point."""
    covariance: tuple[float, ...] = ()
    """Of (focal, middle, k1, k2) row by row if keypoints err by a pixel, of k1 alone where the rest was
    given; empty where they cannot all be told."""

    def bend(self, radius: float) -> float:
        """Pixels by which the lens moves a point that a pinhole would show so far from the middle."""
        return float(radius * (self.k1 * (radius / self.focal) ** 2 + self.k2 * (radius / self.focal) ** 4))

    @property
    def sound(self) -> bool:
        """Whether the window could tell: most frames placed, points enough, far out, from several sides."""
        seen = self.share >= 0.7 and self.points >= 10 * self.frames and self.error < 1.0
        return seen and self.reach >= 0.6 and self.angle >= _PARALLAX


NO_VOTE = LensVote(1.0, 0.0, 0.0, 0, 0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class LensStart:
    """What is known of a camera before anything is mapped, in pixels of the working images."""

    camera: MappingCamera
    """Fixed where it was given: then only the bending that the given numbers leave out is asked for."""
    corner: float
    """From the image's middle to its corner."""


def lens_start(camera: Camera, size: tuple[int, int]) -> LensStart:
    """A camera whose images are still as they were recorded, at most resized and padded."""
    assert camera.rectified is not None, "frames are opened with a view of every camera"
    fx, fy, cx, cy = camera.rectified
    width, height = camera.width * fx / camera.params[0], camera.height * fy / camera.params[1]
    corner = float(np.hypot(width, height)) / 2
    if camera.calibrated:
        return LensStart(MappingCamera((fx, fy, cx, cy), size, fixed=True), corner)
    focal = fx if camera.focal_hint else _WIDE * max(width, height)
    return LensStart(MappingCamera((focal, focal, cx, cy), size, fixed=False), corner)


def lens_vote(start: LensStart, read_features: ReadFeatures, window: Chunk) -> LensVote:
    """A first lens from loosely verified matches, then a finer one from what it explains."""
    features = [_strongest(read_features(frame)) for frame in window.frames]
    keypoints = [pixel_array(f) for f in features]
    matches = _match(features)
    first = _first_lens(keypoints, _verified(keypoints, matches, _LOOSE_PX), start)
    if not first.sound or abs(first.bend(start.corner)) < _BENT:
        return first
    straight = _straightened(keypoints, first, start.camera)
    return _map(keypoints, _verified(straight, matches, _TIGHT_PX), start, first.first_pair, first)


def _first_lens(keypoints: Pixels, pairs: list[VerifiedPair], start: LensStart) -> LensVote:
    """From the pair with the most parallax, or from the next where that leads nowhere."""
    motions = [pair_motion(pair, keypoints, start.camera) for pair in pairs]
    for pair in first_pairs(pairs, motions, len(keypoints), _ATTEMPTS):
        found = _map(keypoints, pairs, start, pair)
        if found.sound:
            return replace(found, first_pair=pair)
    return NO_VOTE


def _strongest(features: Features) -> Features:
    return Features(
        features.keypoints[:FEATURES], features.descriptors[:FEATURES], features.scale[:FEATURES],
        features.orientation[:FEATURES],
    )  # fmt: skip


def _match(features: Sequence[Features]) -> Rows:
    pairs = chunk_pairs(len(features), OFFSETS)
    return {(a, b): match_descriptors(features[a], features[b]) for a, b in pairs}


def _verified(keypoints: Pixels, matches: Rows, threshold: float) -> list[VerifiedPair]:
    found = [verify_pair((a, b), keypoints[a], keypoints[b], m, threshold) for (a, b), m in matches.items()]
    return [pair for pair in found if len(pair.matches)]


def _straightened(keypoints: Pixels, vote: LensVote, camera: MappingCamera) -> list[np.ndarray]:
    """Keypoints as a pinhole would show them; those that the lens cannot explain go far away."""
    _, _, cx, cy = camera.intrinsics
    lens = Lens("RADIAL", (vote.focal, *vote.middle, vote.k1, vote.k2), camera.size)
    pinhole = torch.tensor([vote.focal, vote.focal, cx, cy], dtype=torch.float64)
    moved = [undistort_points(torch.from_numpy(pixels), lens, pinhole).numpy() for pixels in keypoints]
    return [np.where(np.isnan(m), -1e4 * (1 + np.arange(len(m)))[:, None], m) for m in moved]


def _map(
    keypoints: Pixels,
    pairs: list[VerifiedPair],
    start: LensStart,
    first_pair: tuple[int, int],
    lens: LensVote | None = None,
) -> LensVote:
    """The vote of the largest model; a known lens is refined with one more coefficient."""
    import pycolmap

    focal, _, cx, cy = start.camera.intrinsics
    model, params = "SIMPLE_RADIAL", [focal, cx, cy, 0.0]
    if lens is not None:
        model, params = "RADIAL", [lens.focal, *lens.middle, lens.k1, lens.k2]
    width, height = start.camera.size
    camera = pycolmap.Camera(camera_id=CAMERA, model=model, width=width, height=height, params=params)
    camera.has_prior_focal_length = lens is not None
    options = mapper_options(False, first_pair, _SEED)
    # searching on for a beginning takes minutes where the camera drives straight ahead
    options.init_num_trials = 1
    options.ba_refine_extra_params = options.mapper.abs_pose_refine_extra_params = True
    votes = run_mapper(keypoints, pairs, camera, options, partial(_settled_vote, start, len(keypoints)))
    return max(votes, key=lambda vote: vote.frames, default=NO_VOTE)


def _settled_vote(start: LensStart, frames: int, model: Any) -> LensVote:
    """What a model says, with its principal point free in the end where the rest is sound."""
    focal, cx, cy, k1, *rest = model.cameras[CAMERA].params
    vote = read_vote(model, start, frames, Settled((focal, cx, cy, k1, *rest), ()))
    if not vote.sound:
        return vote
    settled = settle(model, "RADIAL", [focal, cx, cy, k1, vote.k2], focal=True, middle=True)
    return read_vote(model, start, frames, settled)


def read_vote(model: Any, start: LensStart, frames: int, settled: Settled) -> LensVote:
    """What a model says, unless its focal or its middle is no camera's."""
    images = [model.images[i] for i in sorted(model.reg_image_ids()) if model.images[i].num_points3D]
    focal, cx, cy, k1, *rest = settled.params
    low, high = (bound * max(start.camera.size) for bound in FOCAL_RANGE)
    aside = np.hypot(*np.subtract((cx, cy), start.camera.intrinsics[2:]))
    if not images or not low < focal < high or aside > _ASIDE * start.corner:
        return NO_VOTE
    seen = np.concatenate([[p.xy for p in image.get_observation_points2D()] for image in images])
    radius = np.linalg.norm(seen - [cx, cy], axis=1)
    return LensVote(
        float(focal), float(k1), float(rest[0]) if rest else 0.0, len(images), len(model.points3D),
        float(model.compute_mean_reprojection_error()), float(np.quantile(radius, 0.95) / start.corner),
        _median_angle(model), len(images) / frames,
        middle=(float(cx), float(cy)), covariance=settled.covariance,
    )  # fmt: skip


def _median_angle(model: Any) -> float:
    """Over the points, the angle between their first and their last view."""
    centre = {i: model.images[i].projection_center() for i in model.reg_image_ids()}
    angles = []
    for _, point in sorted(model.points3D.items()):
        views = sorted({element.image_id for element in point.track.elements})
        a, b = centre[views[0]] - point.xyz, centre[views[-1]] - point.xyz
        angles.append(np.arccos(np.clip(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), -1, 1)))
    return float(np.median(angles))
