"""What a lens's model leaves: a smooth field of offsets over a camera's image, read from what tracks miss."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

NODES = 12
"""Cells of the field along the image's longer side."""
_FEWEST = 50
"""Observations without which a cell knows nothing."""
_DOUBT = 100.0
"""Observations with which a cell is believed by half."""
_OUTLIER = 4.0
"""Usual misses beyond which an observation says nothing of the lens."""
_BOLD = 3.0
"""How much farther a step goes than what is left: points and cameras take up most of what a lens does."""


@dataclass(frozen=True)
class LensFields:
    """One field per physical camera, in pixels of the working images."""

    offset: Float[Tensor, "G 2 h w"]
    size: tuple[int, int]

    def straight(self, pixel: Float[Tensor, "n 2"], camera: Int[Tensor, "n"]) -> Float[Tensor, "n 2"]:
        """Where a lens that is as its model says would have shown the same."""
        at = 2 * pixel.double() / torch.tensor(self.size, dtype=torch.float64) - 1
        moved = pixel.clone()
        for group, field in enumerate(self.offset):
            mine = camera == group
            read = torch.nn.functional.grid_sample(
                field[None], at[mine][None, None], padding_mode="border", align_corners=False
            )
            moved[mine] -= read[0, :, 0].T.to(pixel.dtype)
        return moved

    def stepped(
        self, pixel: Float[Tensor, "n 2"], camera: Int[Tensor, "n"], miss: Float[Tensor, "n 2"]
    ) -> "LensFields":
        """The fields with what observations at these pixels still miss by, cell by cell."""
        sound = _sound(miss.norm(dim=-1), camera)
        h, w = self.offset.shape[2:]
        share = pixel / torch.tensor(self.size, dtype=pixel.dtype)
        column, row = (share * torch.tensor([w, h])).long().clamp(min=0).unbind(-1)
        cell = (camera * h + row.clamp(max=h - 1)) * w + column.clamp(max=w - 1)
        left = _medians(cell[sound].numpy(), miss[sound].numpy(), len(self.offset) * h * w)
        step = torch.from_numpy(left).reshape(-1, h, w, 2).permute(0, 3, 1, 2)
        return LensFields(self.offset + _BOLD * step, self.size)

    def notes(self) -> list[str]:
        """What there is to know about each lens that is not as its model says."""
        largest = self.offset.norm(dim=1).amax((1, 2)).tolist()
        return [
            f"camera {k}: its lens's model is off by up to {x:.2f} px" for k, x in enumerate(largest) if x
        ]


def same_fields(one: LensFields | None, two: LensFields | None) -> bool:
    """Whether two findings about the lenses are one."""
    return one is two or (one is not None and two is not None and torch.equal(one.offset, two.offset))


def no_fields(cameras: int, size: tuple[int, int]) -> LensFields:
    """Lenses that are as their models say."""
    cells = [max(2, round(NODES * side / max(size))) for side in size]
    return LensFields(torch.zeros(cameras, 2, cells[1], cells[0], dtype=torch.float64), size)


def _sound(length: Float[Tensor, "n"], camera: Int[Tensor, "n"]) -> Bool[Tensor, "n"]:
    """Observations that miss by no more than some of their own camera's usual misses."""
    sound = torch.zeros(len(length), dtype=torch.bool)
    for group in torch.unique(camera):
        mine = camera == group
        sound[mine] = length[mine] < _OUTLIER * length[mine & length.isfinite()].median()
    return sound


def _medians(
    cell: Int[np.ndarray, "n"], miss: Float[np.ndarray, "n 2"], count: int
) -> Float[np.ndarray, "count 2"]:
    """Median miss of each cell, less where few observations tell it."""
    found = np.zeros((count, 2))
    order = np.argsort(cell, kind="stable")
    bounds = np.searchsorted(cell[order], np.arange(count + 1))
    for k in range(count):
        rows = order[bounds[k] : bounds[k + 1]]
        if len(rows) >= _FEWEST:
            found[k] = np.median(miss[rows], axis=0) * len(rows) / (len(rows) + _DOUBT)
    return found
