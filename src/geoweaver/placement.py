"""A camera for every frame: keyframes from the weave, the others between them, each with a verdict."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.assembly.frame_problem import corrected_intrinsics
from geoweaver.assembly.frames_start import interpolate_cameras
from geoweaver.datatypes import Frames, Reconstruction
from geoweaver.weave import Woven


def place_frames(frames: Frames, woven: Woven) -> Reconstruction:
    """Every frame, in order; those that no prior saw lie between their neighbours and are not trusted."""
    seen = woven.tables.canonical >= 0
    cameras = interpolate_cameras(woven.state.cam_from_world, seen, frames.timestamps, frames.camera)
    intrinsics = corrected_intrinsics(woven.setup, woven.state)
    reason = {f: r for f, r in enumerate(woven.trust.reason) if r}
    for frame in (~seen).nonzero().squeeze(1).tolist():
        reason[frame] = _why_unseen(frames, frame)
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


def _why_unseen(frames: Frames, frame: int) -> str:
    if frame in frames.broken:
        return "its image cannot be read: the camera is interpolated"
    if not bool(frames.keyframe[frame]):
        return "between keyframes: the camera is interpolated"
    return "the prior could not place it: the camera is interpolated"


def _filled(
    intrinsics: Float[Tensor, "F 4"], seen: Bool[Tensor, "F"], frames: Frames
) -> Float[Tensor, "F 4"]:
    """Frames of a camera that were not seen get that camera's intrinsics."""
    out = intrinsics.clone()
    for camera in torch.unique(frames.camera).tolist():
        mine = frames.camera == camera
        if bool((mine & seen).any()):
            out[mine & ~seen] = intrinsics[mine & seen].median(0).values
    return out
