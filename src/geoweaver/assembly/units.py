"""Every chunk in its own unit, its median depth: the same numbers for millimetres and kilometres."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.datatypes import ChunkLayout, Correspondences, Observations
from geoweaver.geometry import SE3, Sim3


def chunk_units(table: Correspondences, observations: Observations) -> Float[Tensor, "K"]:
    """Median depth of each chunk's matched pixels; 1 where it has none."""
    depth = torch.cat([table.depth_i, table.depth_j]).double()
    chunk = observations.chunk[torch.cat([table.observation_i, table.observation_j])]
    usable = (depth > 0) & depth.isfinite()
    depth, chunk = depth[usable], chunk[usable]
    units = torch.ones(observations.chunks, dtype=torch.float64)
    order = torch.argsort(depth)
    order = order[torch.sort(chunk[order], stable=True).indices]
    count = torch.bincount(chunk, minlength=len(units))
    first = count.cumsum(0) - count
    middle = (first + (count - 1).clamp(min=0) // 2)[count > 0]
    units[count > 0] = depth[order][middle]
    return units


def in_units(
    table: Correspondences, observations: Observations, units: Float[Tensor, "K"]
) -> tuple[Correspondences, Observations]:
    """Depths and local translations divided by their chunk's unit."""
    per = units[observations.chunk]
    scaled = replace(
        table,
        depth_i=(table.depth_i.double() / per[table.observation_i]).to(table.depth_i.dtype),
        depth_j=(table.depth_j.double() / per[table.observation_j]).to(table.depth_j.dtype),
    )
    local = observations.cam_from_chunk
    moved = replace(observations, cam_from_chunk=SE3(local.rotation, local.translation / per[:, None]))
    return scaled, moved


def from_units(layout: ChunkLayout, units: Float[Tensor, "K"]) -> ChunkLayout:
    """The layout for chunks in their original units, in a world whose unit is the first chunk's."""
    s, world = layout.world_from_chunk, units[0]
    return replace(layout, world_from_chunk=Sim3(s.scale * world / units, s.rotation, s.translation * world))
