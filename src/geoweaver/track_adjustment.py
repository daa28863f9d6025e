"""One bundle adjustment of tracks: cameras are held where Stage 3 has them, uncalibrated lenses are free."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.export.tracks import TrackConfig, Tracks
from geoweaver.geometry import SE3
from geoweaver.results import FinishedRun
from geoweaver.track_model import depths, model_of_tracks, part_of_model, pinhole

_LENS_SURE = 0.005
"""Share of the image diagonal to which pixels that err by one must tell a lens for it to settle too."""
_ASKED_TOGETHER = 300
"""Images whose lens is asked for at once: for a thousand it would take half a gigabyte."""
_LEAST_MISS = 0.02
"""Pixels below which no miss is worth telling from another."""


@dataclass(frozen=True)
class PolishConfig:
    """Bundle adjustment after Stage 3; the paper has none."""

    polish: bool = True
    """False: cameras stay as Stage 3 left them."""
    tracks: TrackConfig = field(default_factory=lambda: TrackConfig(per_frame=400))
    """Fewer than for export: cameras need few points that lie well apart."""
    robust: float = 1.0
    """Median misses of the tracks from which on a residual counts less: what is matched beside an edge misses
    little, but to one side."""
    hold: float = 1.9
    """Sigmas of Stage 3 within which it holds every camera's place."""
    rounds: int = 4
    """Of adjusting anew without what a lens's model leaves, at the most; 0: lenses are as models say."""
    again: int = 2
    """Times that all stages run anew on straightened matches, at the most, while lenses prove to be off."""
    iterations: int = 50
    """At the most."""


@dataclass(frozen=True)
class Polished:
    """Cameras of some frames with their lenses, and by how much depth grew in each."""

    frame: Int[Tensor, "n"]
    cam_from_world: SE3
    intrinsics: Float[Tensor, "n 4"]
    depth_ratio: Float[Tensor, "n"]


def adjust(run: FinishedRun, tracks: Tracks, used: Bool[Tensor, "T"], config: PolishConfig) -> Polished:
    """Cameras, points and lenses that nobody calibrated settle together; overall scale and place are kept."""
    model, frame_of = model_of_tracks(run, tracks, used)
    before = depths(model, frame_of)
    options = _options(config, float(tracks.error.median()))
    _settle(run, model, frame_of, config.hold, options)
    unsure = _unsure_lenses(model, frame_of, options)
    if unsure:
        model, _ = model_of_tracks(run, tracks, used, unsure)
        _settle(run, model, frame_of, config.hold, options)
    return _read(model, frame_of, before, depths(model, frame_of))


def _settle(run: FinishedRun, model: Any, frame_of: dict[int, int], hold_within: float, options: Any) -> None:
    """Adjust a model, every camera held where Stage 3 has it."""
    import pycolmap

    sigma = hold_within * _firmness(run, list(frame_of.values()))
    held = [
        _held(run, model.images[i], f, float(s)) for (i, f), s in zip(frame_of.items(), sigma, strict=True)
    ]
    hold = pycolmap.PosePriorBundleAdjustmentOptions()
    hold.alignment_ransac.random_seed = 0
    problem = _problem(model, frame_of)
    pycolmap.create_pose_prior_bundle_adjuster(options, hold, problem, held, model).solve()


def _problem(model: Any, images: Iterable[int]) -> Any:
    import pycolmap

    problem = pycolmap.BundleAdjustmentConfig()
    for image in images:
        problem.add_image(image)
    for camera in set(model.cameras) - _free_lenses(model):
        problem.set_constant_cam_intrinsics(camera)
    return problem


def _free_lenses(model: Any) -> set[int]:
    """Lenses that settle, see `model_of_tracks`."""
    return {number for number, camera in model.cameras.items() if camera.model.name == "SIMPLE_PINHOLE"}


def _unsure_lenses(model: Any, frame_of: dict[int, int], options: Any) -> set[int]:
    """Lenses that the tracks do not tell: short or straight ways leave the middle of the image open.

    What all images together tell takes memory with their number squared; stretches of them are asked instead,
    and what they tell of a lens adds up.
    """
    free, images = _free_lenses(model), list(frame_of)
    known = {k: np.zeros((3, 3)) for k in free}
    stretches = -(-len(images) // _ASKED_TOGETHER)
    for stretch in np.array_split(images, stretches) if free else ():
        part = model if stretches == 1 else part_of_model(model, {int(i) for i in stretch})
        for k, told in _told_of_lenses(part, [int(i) for i in stretch], free, options).items():
            known[k] += told
    return {k for k in free if not _sure(model.cameras[k], known[k])}


def _told_of_lenses(model: Any, images: list[int], free: set[int], options: Any) -> dict[int, np.ndarray]:
    """The inverse covariance of each lens: nothing where images tell nothing."""
    import pycolmap

    problem = _problem(model, images)
    problem.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    adjuster = pycolmap.create_default_ceres_bundle_adjuster(options, problem, model)
    found = pycolmap.estimate_ba_covariance(pycolmap.BACovarianceOptions(), model, adjuster)
    if found is None:
        return {}
    covariance = {k: found.get_other_params_cov(model.cameras[k].params) for k in free}
    return {k: np.linalg.pinv(c) for k, c in covariance.items() if c is not None and np.isfinite(c).all()}


def _sure(camera: Any, known: np.ndarray) -> bool:
    """Whether focal and principal point are known to a small share of the image."""
    if np.linalg.matrix_rank(known) < len(known):
        return False
    worst = float(np.sqrt(np.diag(np.linalg.inv(known))).max())
    return worst <= _LENS_SURE * float(np.hypot(camera.width, camera.height))


def _options(config: PolishConfig, usual: float) -> Any:
    """Robust beyond the usual miss (pixels); one thread sums in one order: the same bytes every time."""
    import pycolmap

    options = pycolmap.BundleAdjustmentOptions()
    options.refine_focal_length = options.refine_principal_point = True
    options.refine_extra_params = options.print_summary = False
    options.ceres.loss_function_type = pycolmap.LossFunctionType.CAUCHY
    options.ceres.loss_function_scale = max(config.robust * usual, _LEAST_MISS)
    options.ceres.solver_options.max_num_iterations = config.iterations
    options.ceres.solver_options.num_threads = 1
    return options


def _firmness(run: FinishedRun, frames: list[int]) -> Float[Tensor, "n"]:
    """Stage 3's sigmas of places; a camera that it held fixed is no firmer than a tenth of the usual."""
    sigma = run.result.sigma[torch.tensor(frames), 0]
    return sigma.clamp(min=0.1 * float(sigma.median()))


def _held(run: FinishedRun, image: Any, frame: int, sigma: float) -> Any:
    """Where Stage 3 has a camera, and how firmly: what bends slowly over the whole map it knows better."""
    import pycolmap

    place = run.result.cam_from_world[frame].centre.numpy()
    return pycolmap.PosePrior(
        pose_prior_id=image.image_id, position=place, position_covariance=sigma**2 * np.eye(3),
        corr_data_id=image.data_id,
        coordinate_system=pycolmap.PosePriorCoordinateSystem.CARTESIAN,
    )  # fmt: skip


def _read(
    model: Any, frame_of: dict[int, int], before: dict[int, np.ndarray], after: dict[int, np.ndarray]
) -> Polished:
    """The cameras at the scale they had: the median depth of all frames is kept."""
    ratio = np.array([np.median(after[i] / before[i]) if len(before[i]) else 1.0 for i in frame_of])
    scale = float(np.median(ratio))
    pose = torch.from_numpy(np.array([model.images[i].cam_from_world().matrix() for i in frame_of]))
    cameras = SE3.from_matrix(pose)
    cameras = SE3(cameras.rotation, cameras.translation / scale)
    lenses = torch.tensor(
        [pinhole(model.cameras[model.images[i].camera_id]) for i in frame_of], dtype=torch.float64
    )
    return Polished(torch.tensor(list(frame_of.values())), cameras, lenses, torch.from_numpy(ratio / scale))
