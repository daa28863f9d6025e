"""A camera for every frame: keyframes from the weave, the others between them, each with a verdict."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.assembly.frame_problem import corrected_intrinsics
from geoweaver.assembly.frames_start import interpolate_cameras
from geoweaver.assembly.pairs import tied_frames
from geoweaver.assembly.trust import CONTRADICTED
from geoweaver.datatypes import Frames, Reconstruction
from geoweaver.priors.sfm_focal import start_intrinsics
from geoweaver.weave import Woven

_ASTRAY = 3.0
"""A frame without matches may lie so many times as far off its neighbours' way as these lie apart."""

_SHORT = 20
"""Frames up to which a piece that is contradicted is left out: so few can be placed by what lies around."""

_HOLLOW = "its prior is not believed: it has no depth, or features move otherwise than it says"


def placed_by_prior(frames: Frames, woven: Woven) -> Bool[Tensor, "F"]:
    """Frames whose camera and depth a prior told, but for those that only a prior puts far off the way.

    Nor those of a short piece that the frames before and after it contradict.
    """
    seen, tied = woven.tables.canonical >= 0, tied_frames(woven.matches, len(frames))
    seen &= ~_enclosed(frames, woven, seen & tied & ~woven.trust.contradicted)
    out = seen.clone()
    for camera in torch.unique(frames.camera[seen & ~tied]).tolist():
        mine = seen & (frames.camera == camera)
        known = (mine & tied).nonzero().squeeze(1)
        alone = (mine & ~tied).nonzero().squeeze(1)
        if len(known) > 1:
            out[alone[_astray(woven.state.cam_from_world.centre, known, alone)]] = False
    return out


def _enclosed(frames: Frames, woven: Woven, sound: Bool[Tensor, "F"]) -> Bool[Tensor, "F"]:
    """Frames of short contradicted pieces that have sound frames of their camera before and after them."""
    out, piece = torch.zeros(len(frames), dtype=torch.bool), woven.setup.part
    for k in torch.unique(piece[woven.trust.contradicted]).tolist():
        own = (woven.trust.contradicted & (piece == k)).nonzero().squeeze(1)
        others = (sound & (frames.camera == frames.camera[own[0]])).nonzero().squeeze(1)
        if len(own) <= _SHORT and bool((others < own[0]).any()) and bool((others > own[-1]).any()):
            out[own] = True
    return out


def _astray(
    centre: Float[Tensor, "F 3"], known: Int[Tensor, "k"], alone: Int[Tensor, "n"]
) -> Bool[Tensor, "n"]:
    """Which frames lie far off the way between the known ones before and after them."""
    after = torch.searchsorted(known, alone).clamp(1, len(known) - 1)
    low, high = known[after - 1], known[after]
    step = ((centre[known[1:]] - centre[known[:-1]]).norm(dim=-1) / known.diff()).median()
    reach = torch.maximum((alone - low).abs(), (alone - high).abs())
    way = torch.maximum((centre[high] - centre[low]).norm(dim=-1), step * reach)
    off = torch.minimum(*((centre[alone] - centre[k]).norm(dim=-1) for k in (low, high)))
    return off > _ASTRAY * way


def place_frames(
    frames: Frames, woven: Woven, seen: Bool[Tensor, "F"], said: Mapping[int, str] | None = None
) -> Reconstruction:
    """Every frame, in order; those not seen lie between their neighbours and are not trusted.

    `said` is why the prior could not place a frame.
    """
    cameras = interpolate_cameras(woven.state.cam_from_world, seen, frames.timestamps, frames.chain)
    intrinsics = corrected_intrinsics(woven.setup, woven.state)
    reason = {f: r for f, r in enumerate(woven.trust.reason) if r}
    canonical = woven.tables.canonical
    hollow = (canonical >= 0) & (woven.tables.observations.confidence[canonical.clamp(min=0)] == 0)
    reason |= {f: _HOLLOW for f in hollow.nonzero().squeeze(1).tolist() if f in reason}
    for frame in (~seen).nonzero().squeeze(1).tolist():
        reason[frame] = _why_unseen(frames, woven, frame, said or {})
    sigma = torch.where(seen[:, None], woven.trust.sigma, torch.inf)
    trusted = torch.tensor([f not in reason for f in range(len(frames))], dtype=torch.bool)
    return Reconstruction(
        frames.names,
        frames.timestamps.double(),
        cameras,
        _filled(intrinsics, seen, frames),
        frames.size,
        trusted,
        sigma,
        reason,
        woven.reports,
    )


def _why_unseen(frames: Frames, woven: Woven, frame: int, said: Mapping[int, str]) -> str:
    if bool(woven.trust.contradicted[frame]):
        return f"{CONTRADICTED}: the camera is interpolated"
    if int(woven.tables.canonical[frame]) >= 0:
        return "no match ties it, and its prior lies far off its neighbours' way: the camera is interpolated"
    if frame in frames.broken:
        return "its image cannot be read: the camera is interpolated"
    if not bool(frames.keyframe[frame]):
        return "between keyframes: the camera is interpolated"
    why = f" ({said[frame]})" if frame in said else ""
    return f"the prior could not place it{why}: the camera is interpolated"


def _filled(
    intrinsics: Float[Tensor, "F 4"], seen: Bool[Tensor, "F"], frames: Frames
) -> Float[Tensor, "F 4"]:
    """Frames that were not seen get their camera's intrinsics: what others tell, else where they began."""
    out = intrinsics.clone()
    for camera in torch.unique(frames.camera).tolist():
        mine = frames.camera == camera
        if bool((mine & seen).any()):
            out[mine & ~seen] = intrinsics[mine & seen].median(0).values
        else:
            out[mine] = torch.tensor(start_intrinsics(frames.cameras[camera], frames.size), dtype=out.dtype)
    return out
