"""What Stage 3 holds fixed, and how firmly it holds the rest to its start (docs/decisions/0007, 0028)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.assembly.frame_settings import FrameRefinementConfig
from geoweaver.datatypes import FrameState


@dataclass(frozen=True)
class FrameSetup:
    """What Stage 3 holds fixed: which frames take part, their cameras' start, and how they hang together."""

    intrinsics: Float[Tensor, "F 4"]
    group: Int[Tensor, "F"]
    """Physical camera of each frame, for the shared focal."""
    calibrated: bool
    unit: Float[Tensor, "F"]
    """Median depth of each frame, in world units: shifts are relative to it."""
    part: Int[Tensor, "F"]
    """Chunk of each frame's canonical observation: the solver's second level."""
    held: Bool[Tensor, "F"]
    """Frames whose pose is the gauge: one per component."""
    tied: Bool[Tensor, "F"]
    """Frames that have matches: the others stay where they are, and weigh nothing in any mean."""
    size: tuple[int, int]
    """Width and height of the images."""

    @property
    def count(self) -> int:
        """Frames that take part, one at least."""
        return max(int(self.tied.sum()), 1)


def bend_penalty(
    bend: Float[Tensor, "F r c"] | None, setup: FrameSetup, config: FrameRefinementConfig
) -> Tensor | float:
    """Grows with the logarithm of the bends' mean square: a prior that errs much is held less."""
    if bend is None:
        return 0.0
    usual = config.bend_usual**2
    return config.bend_prior * usual * (_mean_square(bend, setup) / usual).log1p()


def bend_stiffness(bend: Float[Tensor, "F r c"], setup: FrameSetup, config: FrameRefinementConfig) -> float:
    """Weight of the mean square in the quadratic that touches the penalty here and lies above it."""
    return config.bend_prior / (1 + float(_mean_square(bend, setup)) / config.bend_usual**2)


def _mean_square(bend: Float[Tensor, "F r c"], setup: FrameSetup) -> Tensor:
    """Over all nodes of the frames that take part."""
    return bend.square().mean((-2, -1)).sum() / setup.count


def group_focal(setup: FrameSetup) -> Tensor:
    """Mean focal of each group; of all frames for a group without any."""
    G = int(setup.group.max()) + 1
    total = torch.zeros(G, 2, dtype=torch.float64).index_add_(0, setup.group, setup.intrinsics[:, :2])
    count = torch.bincount(setup.group, minlength=G)[:, None]
    return torch.where(count > 0, total / count.clamp(min=1), setup.intrinsics[:, :2].mean(0))


def group_frames(setup: FrameSetup) -> Float[Tensor, "G"]:
    """How many frames of each physical camera take part, one at least."""
    return torch.bincount(setup.group, setup.tied.double()).clamp(min=1)


def focal_stiffness(setup: FrameSetup, config: FrameRefinementConfig) -> Float[Tensor, "k k"]:
    """Second derivative of the focal terms of the regulariser."""
    focal, frames = group_focal(setup), group_frames(setup)[:, None, None]
    G = len(focal)
    own = config.focal_prior / frames * torch.eye(2, dtype=torch.float64)
    aspect = config.aspect_prior * torch.tensor([[1.0, -1], [-1, 1]], dtype=torch.float64)
    blocks = 2 / G * (own + aspect) / (focal[:, :, None] * focal[:, None, :])
    stiffness: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return stiffness


def beside_chunk(state: FrameState, setup: FrameSetup) -> Float[Tensor, "F"]:
    """By how much each frame's depth scale differs from the mean of its chunk; 0 where it takes no part."""
    a, part, tied = state.depth_scale, setup.part, setup.tied.double()
    count = torch.bincount(part, tied)
    mean = torch.zeros(len(count), dtype=a.dtype).index_add(0, part, tied * a) / count.clamp(min=1)
    return tied * (a - mean[part])
