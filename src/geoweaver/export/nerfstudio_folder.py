"""nerfstudio's transforms.json of a run: +Z up, original-size intrinsics, depth, masks and a cloud."""

import logging
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.export.colmap_folder import ColmapExport
from geoweaver.export.depth_folder import DepthExport
from geoweaver.formats.nerfstudio import NerfstudioScene, write_transforms
from geoweaver.formats.ply import PlyCloud, write_ply
from geoweaver.geometry import SE3
from geoweaver.geometry.upright import up_direction, z_up_from_world
from geoweaver.results import FinishedRun

log = logging.getLogger(__name__)
_MOST_POINTS = 500_000
"""A start for training, not the cloud itself."""
CLOUD = "sparse_pc.ply"


def write_nerfstudio(
    run: FinishedRun,
    folder: Path,
    colmap: ColmapExport,
    model: str,
    depth: DepthExport | None,
    cloud: PlyCloud | None = None,
) -> None:
    """Write transforms.json and its cloud beside depth/; images/ and masks/ lie below `model`."""
    frames = torch.tensor([picture.frame for picture in colmap.pictures])
    cam_from_world = run.result.cam_from_world[frames]
    turn = z_up_from_world(up_direction(run.result.cam_from_world, run.result.trusted))
    turned = SE3(cam_from_world.rotation @ turn.T, cam_from_world.translation)
    write_ply(folder / CLOUD, _turned_cloud(cloud or track_cloud(colmap), turn))
    paths = tuple(f"{model}images/{picture.name}" for picture in colmap.pictures)
    scene = NerfstudioScene(paths, turned, colmap.cameras.cameras, colmap.cameras.camera)
    # nerfstudio wants depth for all frames or for none
    complete = depth is not None and all(int(frame) in depth.png_files for frame in frames)
    _warn_of_lacking_depth(run, frames.tolist())
    files = None
    if depth is not None and complete:
        files = [f"depth/{depth.png_files[int(frame)]}" for frame in frames]
    masks = None if colmap.masks is None else [f"{model}masks/{name}" for name in colmap.masks]
    write_transforms(
        folder / "transforms.json", scene, files, CLOUD, masks, _words(turn, depth if complete else None)
    )


def _warn_of_lacking_depth(run: FinishedRun, frames: list[int]) -> None:
    """Some frames without depth take it from all."""
    lacking = len(set(frames) - set(run.depths.frames))
    if lacking:
        log.warning(
            "%d of %d frames have no depth map (those between keyframes have none): nerfstudio wants depth "
            "for all or for none, so transforms.json states none; --to depth writes what there is",
            lacking, len(frames),
        )  # fmt: skip


def track_cloud(colmap: ColmapExport) -> PlyCloud:
    """The tracks' points as a cloud."""
    return PlyCloud(colmap.tracks.position.float(), colmap.tracks.colour)


def _turned_cloud(cloud: PlyCloud, turn: Float[Tensor, "3 3"]) -> PlyCloud:
    """The cloud in the file's own axes, thinned evenly."""
    step = max(1, -(-len(cloud) // _MOST_POINTS))
    points = cloud.points[::step].double() @ turn.T
    colours = None if cloud.colours is None else cloud.colours[::step].contiguous()
    return PlyCloud(points.float().contiguous(), colours)


def _words(turn: Float[Tensor, "3 3"], depth: DepthExport | None) -> dict[str, Any]:
    """What the file says beyond the cameras."""
    rows: list[list[float]] = torch.cat([turn, turn.new_zeros(3, 1)], 1).tolist()
    words: dict[str, Any] = {"applied_transform": rows, "up": "+z, from the cameras' own up directions"}
    if depth is not None:
        words["depth_unit_scale_factor"] = depth.unit
    return words
