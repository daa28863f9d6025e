"""Smooth fields over an image: values at the nodes of a coarse grid, bilinear between them."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def node_shares(place: Float[Tensor, "n"], nodes: int) -> tuple[Int[Tensor, "n"], Float[Tensor, "n"]]:
    """The node before each place (0 to 1 from the first node to the last) and the share of the one after."""
    along = place.clamp(0, 1) * (nodes - 1)
    before = along.floor().clamp(max=nodes - 2)
    return before.long(), along - before


def bilinear_nodes(
    pixel: Float[Tensor, "n 2"], size: tuple[int, int], nodes: tuple[int, int]
) -> tuple[Int[Tensor, "n 4"], Float[Tensor, "n 4"]]:
    """The four nodes (row by row) around each pixel, and what each counts; `nodes`: rows, columns."""
    left, x = node_shares(pixel[:, 0].double() / size[0], nodes[1])
    top, y = node_shares(pixel[:, 1].double() / size[1], nodes[0])
    first = top * nodes[1] + left
    index = torch.stack([first, first + 1, first + nodes[1], first + nodes[1] + 1], -1)
    return index, torch.stack([(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y], -1)


def field_over_image(grid: Float[Tensor, "r c"], height: int, width: int) -> Float[Tensor, "h w"]:
    """The field at the centre of every pixel."""
    rows, columns = (
        _interpolation(count, nodes, grid)
        for count, nodes in ((height, grid.shape[0]), (width, grid.shape[1]))
    )
    return rows @ grid @ columns.mT


def _interpolation(count: int, nodes: int, like: Tensor) -> Float[Tensor, "n nodes"]:
    """What every node counts at the centres of so many pixels."""
    place = (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) / count
    before, after = node_shares(place, nodes)
    out = torch.zeros(count, nodes, dtype=like.dtype, device=like.device)
    pixel = torch.arange(count, device=like.device)
    out[pixel, before] = 1 - after
    out[pixel, before + 1] += after
    return out
