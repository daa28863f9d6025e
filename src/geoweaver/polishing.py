"""The last step on cameras: bundle adjustment of tracks, whose points no depth map holds."""

import logging
import math
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Frames, StageReport
from geoweaver.export.symmetric import solve_symmetric
from geoweaver.export.tracks import Tracks, build_tracks
from geoweaver.features import FrameFeatures
from geoweaver.finished import RunDepths, RunMatches, SavedRun
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import bearing, project_with_depth
from geoweaver.geometry.so3 import nearest_rotation, rotation_angle
from geoweaver.lens_field import LensFields, no_fields
from geoweaver.results import FinishedRun
from geoweaver.slight_motion import slight_motion
from geoweaver.store import PriorStore, Store
from geoweaver.track_adjustment import PolishConfig, Polished, adjust
from geoweaver.track_model import FEWEST

VERSION = 12
"""Goes up when the same run is polished to something else."""
NAME = "bundle adjustment"
_HELD_BACK = 5
"""Every so many-th track judges the others' cameras."""
_FEWEST_CAMERAS = 3
_WORSE = 1.1
"""How much more they may miss: they were chosen by the cameras of before, and favour them."""
_CHANCE = 3.0
"""Sigmas of what chance does to the votes of tracks, beyond which another round counts."""
log = logging.getLogger(__name__)


def polish_run(frames: Frames, saved: SavedRun, config: PolishConfig, store: Store) -> SavedRun:
    """The run with cameras adjusted to tracks, where tracks that were held back agree that it is better."""
    began = perf_counter()
    polished, report = _polished(frames, saved, config, store)
    report = replace(report, seconds=perf_counter() - began)
    log.info("%s: %s", NAME, "; ".join(report.notes))
    return replace(polished, result=replace(polished.result, reports=(*saved.result.reports, report)))


def worse(after: SavedRun, before: SavedRun) -> bool:
    """Whether another turn of the stages ended worse: each is judged by tracks that its own cameras chose."""
    return not _left_over(after) < _WORSE * _left_over(before)


def _left_over(run: SavedRun) -> float:
    """Pixels by which held-back tracks miss in a run that was polished; infinite where it was not."""
    told = [report.median_px for report in run.result.reports if report.name == NAME]
    return told[-1] if told and math.isfinite(told[-1]) else math.inf


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
    begin = saved.lenses or no_fields(len(saved.cameras), saved.result.size)
    end = _in_rounds(run, saved, tracks, held, begin, config)
    shown = replace(tracks, pixel=begin.straight(tracks.pixel, saved.camera[tracks.frame]))
    before = float(misses(saved, shown)[held].norm(dim=-1).median())
    if not end.miss < _WORSE * before:
        note = f"undone: tracks held back miss by {end.miss:.2f} px rather than {before:.2f}"
        return saved, StageReport(NAME, notes=(note,), doubts=doubts)
    sigma = doubted(saved, end.moved, end.found.frame)
    lenses = end.fields if bool(end.fields.offset.any()) else None
    moved = replace(end.moved, result=replace(end.moved.result, sigma=sigma), lenses=lenses)
    note = f"tracks held back miss by {end.miss:.2f} px, before by {before:.2f}"
    notes = (note, *_lens_notes(frames, saved, moved), *end.fields.notes())
    return moved, StageReport(NAME, notes=notes, median_px=end.miss, doubts=doubts)


@dataclass(frozen=True)
class _Round:
    """What one adjustment found, the run that follows from it, and what was taken for the lenses' doing."""

    found: Polished
    moved: SavedRun
    fields: LensFields
    left: Float[Tensor, "h"]
    """Pixels by which tracks that were held back miss."""
    next: LensFields
    """The fields with what the others still miss by."""

    @property
    def miss(self) -> float:
        """The usual one."""
        return float(self.left.median())


def _in_rounds(
    run: FinishedRun, saved: SavedRun, tracks: Tracks, held: Bool[Tensor, "T"], fields: LensFields,
    config: PolishConfig,
) -> _Round:  # fmt: skip
    """Adjust anew with what tracks missed by alike as the lens's, as long as those held back miss less."""
    camera, judges = saved.camera[tracks.frame], tracks.point[held]

    def adjusted(fields: LensFields) -> _Round:
        shown = replace(tracks, pixel=fields.straight(tracks.pixel, camera))
        found = adjust(run, shown, ~held, config)
        moved = apply(saved, found)
        miss = misses(moved, shown)
        step = fields.stepped(tracks.pixel[~held], camera[~held], miss[~held])
        return _Round(found, moved, fields, miss[held].norm(dim=-1), step)

    best = adjusted(fields)
    for _ in range(config.rounds):
        now = adjusted(best.next)
        if not better(best.left, now.left, judges):
            break
        best = now
    return best


def better(before: Float[Tensor, "h"], after: Float[Tensor, "h"], point: Int[Tensor, "h"]) -> bool:
    """Whether tracks miss less, and more of them than chance would have it."""
    vote = torch.sign(before - after).nan_to_num()
    point = torch.unique(point, return_inverse=True)[1]
    # the views of one track are not independent: together they have one vote
    vote = torch.zeros(int(point.max()) + 1, dtype=vote.dtype).index_add_(0, point, vote)
    vote = vote / torch.bincount(point)
    chance = float(vote.std()) / len(vote) ** 0.5
    return bool(after.median() < before.median()) and float(vote.mean()) > _CHANCE * chance


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


def misses(saved: SavedRun, tracks: Tracks) -> Float[Tensor, "T 2"]:
    """Pixels by which tracks miss the points that a run's cameras make of them; infinite behind a camera."""
    result, frame = saved.result, tracks.frame
    camera, intrinsics = result.cam_from_world[frame], result.intrinsics[frame]
    position = _nearest_to_rays(tracks.point, camera, bearing(tracks.pixel, intrinsics))
    shown, z = project_with_depth(camera.act(position[tracks.point]), intrinsics)
    return torch.where((z > 0)[:, None], tracks.pixel - shown, torch.inf)


def _nearest_to_rays(point: Int[Tensor, "T"], camera: SE3, ray: Float[Tensor, "T 3"]) -> Float[Tensor, "P 3"]:
    """For each point the place nearest to all of its rays."""
    unit = torch.nn.functional.normalize((ray[:, :, None] * camera.rotation).sum(1), dim=-1)
    across = torch.eye(3, dtype=ray.dtype) - unit[:, :, None] * unit[:, None, :]
    count = int(point.max()) + 1
    H = ray.new_zeros(count, 3, 3).index_add_(0, point, across)
    g = ray.new_zeros(count, 3).index_add_(0, point, (across @ camera.centre[..., None])[..., 0])
    return solve_symmetric(H, g)
