"""From Stage 2 to Stage 3: canonical cameras in the world, globally scaled depth, one focal per camera."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.assembly.frame_priors import FrameSetup
from geoweaver.assembly.pairs import PairMatches, group_pairs, select_pairs, tied_frames
from geoweaver.datatypes import ChunkLayout, Correspondences, FrameState, Observations
from geoweaver.geometry import SE3, world_camera
from geoweaver.geometry.registration import weighted_quantile


@dataclass(frozen=True)
class FrameStart:
    """All that Stage 3 needs."""

    matches: PairMatches
    setup: FrameSetup
    state: FrameState


def start_frames(
    table: Correspondences,
    observations: Observations,
    layout: ChunkLayout,
    canonical: Int[Tensor, "F"],
    group: Int[Tensor, "F"],
    calibrated: bool,
    shared_focal: bool = True,
) -> FrameStart:
    """Eq. stage3_initialization; `shared_focal=False` starts from each frame's own focal, as the paper."""
    seen = canonical >= 0
    observation = canonical.clamp(min=0)
    chunk = observations.chunk[observation]
    cameras = world_camera(layout.world_from_chunk[chunk], observations.cam_from_chunk[observation])
    cameras = interpolate_cameras(cameras, seen)
    scale = layout.world_from_chunk.scale[observations.chunk]
    world_table = Correspondences(
        table.edge, observations.frame[table.observation_i], observations.frame[table.observation_j],
        table.pixel_i, table.pixel_j,
        table.depth_i * scale[table.observation_i], table.depth_j * scale[table.observation_j], table.weight,
    )  # fmt: skip
    component = layout.component[chunk]
    # between pieces that nothing ties places are arbitrary: their matches would accuse the sound one too
    matches = group_pairs(world_table)
    matches = select_pairs(matches, component[matches.observation_i] == component[matches.observation_j])
    intrinsics = observations.intrinsics[observation].clone()
    if shared_focal and not calibrated:
        intrinsics = _shared_focal(intrinsics, group, observations.confidence[observation] * seen)
    F, G = len(canonical), int(group.max()) + 1
    setup = FrameSetup(
        intrinsics, group, calibrated,
        _frame_units(matches, F), _contiguous(chunk), _first_frames(component, matches, F),
        tied_frames(matches, F), observations.size,
    )  # fmt: skip
    one, zero = torch.ones(F, dtype=torch.float64), torch.zeros(F, dtype=torch.float64)
    return FrameStart(matches, setup, FrameState(cameras, one, zero, torch.zeros(G, 2, dtype=torch.float64)))


def _contiguous(chunk: Tensor) -> Tensor:
    number: Tensor = torch.unique(chunk, return_inverse=True)[1]
    return number


def interpolate_cameras(
    cameras: SE3,
    seen: Bool[Tensor, "F"],
    times: Float[Tensor, "F"] | None = None,
    chain: Int[Tensor, "F"] | None = None,
) -> SE3:
    """Unseen frames lie on the geodesic between the seen ones of their camera before and after them."""
    times = torch.arange(len(seen), dtype=torch.float64) if times is None else times
    chain = torch.zeros(len(seen), dtype=torch.long) if chain is None else chain
    rotation, translation = cameras.rotation.clone(), cameras.translation.clone()
    for camera in torch.unique(chain[~seen]).tolist():
        mine = chain == camera
        known = (seen & mine).nonzero().squeeze(1)
        known = known if len(known) else seen.nonzero().squeeze(1)
        for frame in (~seen & mine).nonzero().squeeze(1).tolist():
            placed = _between(cameras, known, times, frame) if len(known) else SE3.identity()
            rotation[frame], translation[frame] = placed.rotation, placed.translation
    return SE3(rotation, translation)


def _between(cameras: SE3, known: Tensor, times: Tensor, frame: int) -> SE3:
    after = min(int(torch.searchsorted(known, frame)), len(known) - 1)
    low, high = int(known[max(after - 1, 0)]), int(known[after])
    if high < frame or low > frame or times[high] <= times[low]:
        return cameras[high]
    share = float((times[frame] - times[low]) / (times[high] - times[low]))
    step = (cameras[high] @ cameras[low].inverse()).log()
    return SE3.exp(min(max(share, 0.0), 1.0) * step) @ cameras[low]


def _shared_focal(intrinsics: Tensor, group: Tensor, confidence: Tensor) -> Tensor:
    """Every camera's confidence-weighted median focal in place of its frames' own."""
    out = intrinsics.clone()
    for g in torch.unique(group).tolist():
        mine = (group == g) & (confidence > 0)
        if mine.any():
            for axis in (0, 1):
                out[group == g, axis] = weighted_quantile(
                    intrinsics[mine, axis], confidence[mine].double(), 0.5
                )
    return out


def _frame_units(matches: PairMatches, frames: int) -> Tensor:
    """Median depth of each frame's matched pixels in world units; the run's median where it has none."""
    pair = matches.pair_of_row
    frame = torch.cat([matches.observation_i[pair], matches.observation_j[pair]])
    depth = torch.cat([matches.depth_i, matches.depth_j]).double()
    usable = depth > 0
    frame, depth = frame[usable], depth[usable]
    units = torch.full((frames,), float(depth.median()) if len(depth) else 1.0, dtype=torch.float64)
    order = torch.argsort(depth)
    order = order[torch.sort(frame[order], stable=True).indices]
    count = torch.bincount(frame, minlength=frames)
    first = count.cumsum(0) - count
    units[count > 0] = depth[order][(first + (count - 1) // 2)[count > 0]]
    return units


def _first_frames(component: Tensor, matches: PairMatches, frames: int) -> Tensor:
    """The first matched frame of each component holds the gauge."""
    touched = tied_frames(matches, frames)
    held = torch.zeros(frames, dtype=torch.bool)
    for c in torch.unique(component).tolist():
        mine = ((component == c) & touched).nonzero().squeeze(1)
        if len(mine):
            held[mine[0]] = True
    return held
