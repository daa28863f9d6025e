"""The last step on cameras: bundle adjustment of tracks, whose points no depth map holds."""

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Frames, StageReport
from geoweaver.export.symmetric import solve_symmetric
from geoweaver.export.tracks import TrackConfig, Tracks, build_tracks
from geoweaver.features import FrameFeatures
from geoweaver.finished import RunDepths, RunMatches, SavedRun
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import bearing, project_with_depth
from geoweaver.geometry.so3 import nearest_rotation, rotation_angle
from geoweaver.results import FinishedRun
from geoweaver.slight_motion import slight_motion
from geoweaver.store import PriorStore, Store
from geoweaver.track_model import FEWEST, depths, model_of_tracks, pinhole

VERSION = 8
"""Goes up when the same run is polished to something else."""
NAME = "bundle adjustment"
_LEAST_MISS = 0.02
"""Pixels below which no miss is worth telling from another."""
_HELD_BACK = 5
"""Every so many-th track judges the others' cameras."""
_FEWEST_CAMERAS = 3
_LENS_SURE = 0.005
"""Share of the image diagonal to which pixels that err by one must tell a lens for it to settle too."""
_WORSE = 1.1
"""How much more they may miss: they were chosen by the cameras of before, and favour them."""
log = logging.getLogger(__name__)


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
    iterations: int = 50
    """At the most."""


@dataclass(frozen=True)
class Polished:
    """Cameras of some frames with their lenses, and by how much depth grew in each."""

    frame: Int[Tensor, "n"]
    cam_from_world: SE3
    intrinsics: Float[Tensor, "n 4"]
    depth_ratio: Float[Tensor, "n"]


def polish_run(frames: Frames, saved: SavedRun, config: PolishConfig, store: Store) -> SavedRun:
    """The run with cameras adjusted to tracks, where tracks that were held back agree that it is better."""
    began = perf_counter()
    polished, report = _polished(frames, saved, config, store)
    report = replace(report, seconds=perf_counter() - began)
    log.info("%s: %s", NAME, "; ".join(report.notes))
    return replace(polished, result=replace(polished.result, reports=(*saved.result.reports, report)))


def _polished(
    frames: Frames, saved: SavedRun, config: PolishConfig, store: Store
) -> tuple[SavedRun, StageReport]:
    rows = (saved.result.trusted & (saved.chunk >= 0)).nonzero().squeeze(1).tolist()
    if len(rows) < _FEWEST_CAMERAS:
        return saved, StageReport(NAME, notes=("left out: too few trusted cameras",))
    run = _opened(frames, saved, store)
    tracks = build_tracks(run, rows, config.tracks)
    held = tracks.point % _HELD_BACK == 0
    if int((~held).sum()) < FEWEST * len(rows):
        return saved, StageReport(NAME, notes=("left out: too few tracks",))
    doubts = slight_motion(saved.result, tracks, all(camera.calibrated for camera in saved.cameras))
    found = adjust(run, tracks, ~held, config)
    moved = apply(saved, found)
    before, after = (held_back_error(s, tracks, held) for s in (saved, moved))
    if not after < _WORSE * before:
        note = f"undone: tracks held back miss by {after:.2f} px rather than {before:.2f}"
        return saved, StageReport(NAME, notes=(note,), doubts=doubts)
    moved = replace(moved, result=replace(moved.result, sigma=doubted(saved, moved, found.frame)))
    note = f"tracks held back miss by {after:.2f} px, before by {before:.2f}"
    notes = (note, *_lens_notes(frames, saved, moved))
    return moved, StageReport(NAME, notes=notes, median_px=after, doubts=doubts)


def _lens_notes(frames: Frames, saved: SavedRun, moved: SavedRun) -> list[str]:
    """What became of each lens that nobody calibrated."""
    notes = []
    for group, camera in enumerate(frames.cameras):
        rows = (saved.camera == group).nonzero().squeeze(1)
        if camera.calibrated or not len(rows):
            continue
        old, new = (s.result.intrinsics[rows[0]] for s in (saved, moved))
        aside = float((new - old)[2:].norm())
        settled = f"focal {old[0]:.1f} to {new[0]:.1f} px, principal point moved by {aside:.1f} px"
        kept = "the tracks do not tell its lens, which stays"
        notes.append(f"camera {group}: {kept if torch.equal(old, new) else settled}")
    return notes


def _opened(frames: Frames, saved: SavedRun, store: Store) -> FinishedRun:
    """What building tracks asks of a run; colours are not needed."""
    depths = RunDepths(saved, PriorStore(store, "priors", saved.priors))
    return FinishedRun(
        Path(), replace(frames, pixels=None), saved.result, saved.graph, saved.rejected, saved.chunk,
        saved.depth_scale, saved.depth_shift, saved.views, depths, RunMatches(saved, store),
        FrameFeatures(frames, store), {},
    )  # fmt: skip


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


def _problem(model: Any, frame_of: dict[int, int]) -> Any:
    import pycolmap

    problem = pycolmap.BundleAdjustmentConfig()
    for image in frame_of:
        problem.add_image(image)
    for camera in set(model.cameras) - _free_lenses(model):
        problem.set_constant_cam_intrinsics(camera)
    return problem


def _free_lenses(model: Any) -> set[int]:
    """Lenses that settle, see `model_of_tracks`."""
    return {number for number, camera in model.cameras.items() if camera.model.name == "SIMPLE_PINHOLE"}


def _unsure_lenses(model: Any, frame_of: dict[int, int], options: Any) -> set[int]:
    """Lenses that the tracks do not tell: short or straight ways leave the middle of the image open."""
    import pycolmap

    free = _free_lenses(model)
    if not free:
        return free
    problem = _problem(model, frame_of)
    problem.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    adjuster = pycolmap.create_default_ceres_bundle_adjuster(options, problem, model)
    found = pycolmap.estimate_ba_covariance(pycolmap.BACovarianceOptions(), model, adjuster)
    return free if found is None else {k for k in free if not _sure(model.cameras[k], found)}


def _sure(camera: Any, found: Any) -> bool:
    """Whether focal and principal point are known to a small share of the image."""
    covariance = found.get_other_params_cov(camera.params)
    if covariance is None:
        return False
    worst = float(np.sqrt(np.diag(covariance)).max())
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


def apply(saved: SavedRun, found: Polished) -> SavedRun:
    """The adjusted cameras; every other frame follows the nearest of them, each by its own lens."""
    old, intrinsics = saved.result.cam_from_world, saved.result.intrinsics.clone()
    for group in torch.unique(saved.camera):
        mine, seen = (saved.camera == group).nonzero().squeeze(1), saved.camera[found.frame] == group
        if bool(seen.any()):
            intrinsics[mine] = found.intrinsics[seen][_nearest(found.frame[seen], len(intrinsics))[mine]]
    near = _nearest(found.frame, len(saved.result))
    cameras = old @ old[found.frame[near]].inverse() @ found.cam_from_world[near]
    ratio = torch.ones_like(saved.depth_scale)
    ratio[found.frame] = found.depth_ratio
    return replace(
        saved, result=replace(saved.result, cam_from_world=cameras, intrinsics=intrinsics),
        depth_scale=saved.depth_scale * ratio, depth_shift=saved.depth_shift * ratio,
    )  # fmt: skip


def doubted(before: SavedRun, after: SavedRun, frame: Int[Tensor, "n"]) -> Float[Tensor, "F 2"]:
    """Stage 3's sigmas, at least half of what lies between its cameras and the adjusted ones.

    Two answers scatter by half of their distance; one similarity of the whole is no difference.
    """
    old, new = (run.result.cam_from_world[frame] for run in (before, after))
    world = nearest_rotation((new.rotation.mT @ old.rotation).mean(0))
    here, there = old.centre @ world.mT, new.centre
    here, there = here - here.mean(0), there - there.mean(0)
    scale = (here * there).sum() / here.square().sum()
    shift = (scale * here - there).norm(dim=-1)
    turn = rotation_angle(new.rotation @ world @ old.rotation.mT)
    sigma = before.result.sigma.clone()
    sigma[frame] = torch.fmax(sigma[frame], torch.stack([shift, turn], -1) / 2)
    return sigma


def _nearest(frame: Int[Tensor, "n"], count: int) -> Int[Tensor, "F"]:
    """For each of so many frames the place in an ascending list that is nearest in the sequence."""
    every = torch.arange(count)
    after = torch.searchsorted(frame, every).clamp(max=len(frame) - 1)
    before = (after - 1).clamp(min=0)
    return torch.where((every - frame[before]).abs() <= (frame[after] - every).abs(), before, after)


def held_back_error(saved: SavedRun, tracks: Tracks, held: Bool[Tensor, "T"]) -> float:
    """Median pixels by which tracks miss the points that a run's cameras make of them."""
    result, frame = saved.result, tracks.frame[held]
    _, point = torch.unique(tracks.point[held], return_inverse=True)
    camera, intrinsics, pixel = result.cam_from_world[frame], result.intrinsics[frame], tracks.pixel[held]
    position = _nearest_to_rays(point, camera, bearing(pixel, intrinsics))
    shown, z = project_with_depth(camera.act(position[point]), intrinsics)
    error = (shown - pixel).norm(dim=-1)
    return float(torch.where(z > 0, error, torch.inf).median()) if len(error) else float("inf")


def _nearest_to_rays(point: Int[Tensor, "T"], camera: SE3, ray: Float[Tensor, "T 3"]) -> Float[Tensor, "P 3"]:
    """For each point the place nearest to all of its rays."""
    unit = torch.nn.functional.normalize((ray[:, :, None] * camera.rotation).sum(1), dim=-1)
    across = torch.eye(3, dtype=ray.dtype) - unit[:, :, None] * unit[:, None, :]
    count = int(point.max()) + 1
    H = ray.new_zeros(count, 3, 3).index_add_(0, point, across)
    g = ray.new_zeros(count, 3).index_add_(0, point, (across @ camera.centre[..., None])[..., 0])
    return solve_symmetric(H, g)
