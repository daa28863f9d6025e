"""What one iteration is shown: clips of views with images, depth and cameras, all of one size.

Letters in shapes: B clips, S views, H W pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Clips of equally many views."""

    images: Float[Tensor, "B S 3 H W"]
    """RGB in [0, 1]."""
    depth: Float[Tensor, "B S H W"]
    """z in the source's unit; 0 where it is not known."""
    cam_from_world: Float[Tensor, "B S 3 4"]
    """In the same unit; the world is the first view's camera."""
    intrinsics: Float[Tensor, "B S 4"]

    def to(self, device: torch.device) -> "Batch":
        return Batch(*(getattr(self, f.name).to(device, non_blocking=True) for f in fields(self)))


def join_clips(clips: Sequence[Batch]) -> Batch:
    """Several clips as one batch."""
    return Batch(*(torch.cat([getattr(clip, f.name) for clip in clips]) for f in fields(Batch)))
