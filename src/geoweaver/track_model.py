"""Tracks and the cameras that see them as a model of pycolmap's, and what is read back from it."""

from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from geoweaver.datatypes import Camera
from geoweaver.export.tracks import Tracks
from geoweaver.formats.colmap import ColmapModel, ColmapPoints, as_pycolmap
from geoweaver.results import FinishedRun

FEWEST = 10
"""Observations that a camera needs to be moved."""


def model_of_tracks(
    run: FinishedRun, tracks: Tracks, used: Bool[Tensor, "T"], kept: Collection[int] = ()
) -> tuple[Any, dict[int, int]]:
    """A pycolmap reconstruction of the cameras with enough observations, and which frame each image is.

    Lenses that may settle are SIMPLE_PINHOLE; those that were calibrated, or are in `kept`, PINHOLE.
    """
    result = run.result
    enough = torch.bincount(tracks.frame[used], minlength=len(result)) >= FEWEST
    used = used & enough[tracks.frame]
    used = used & (torch.bincount(tracks.point[used], minlength=len(tracks)) >= 2)[tracks.point]
    chosen = enough.nonzero().squeeze(1)
    group = run.frames.camera[chosen]
    told = torch.cat([group[:, None].double(), result.intrinsics[chosen]], 1)
    lenses, camera_of = torch.unique(told, dim=0, return_inverse=True)
    seen, point = torch.unique(tracks.point[used], return_inverse=True)
    points = ColmapPoints(
        tracks.position[seen], tracks.colour[seen], torch.full((len(seen),), -1.0, dtype=torch.float64),
        point, torch.searchsorted(chosen, tracks.frame[used]), tracks.pixel[used],
    )  # fmt: skip
    cameras = tuple(
        _camera(params, run.result.size, k in kept or run.frames.cameras[int(g)].calibrated)
        for k, (g, *params) in enumerate(lenses.tolist(), 1)
    )
    names = tuple(map(str, chosen.tolist()))
    model = ColmapModel(names, result.cam_from_world[chosen], cameras, camera_of, points)
    return as_pycolmap(model), dict(enumerate(chosen.tolist(), 1))


def part_of_model(model: Any, images: Collection[int]) -> Any:
    """The same cameras and lenses with some images only, and the points that two of these see."""
    import pycolmap

    part = pycolmap.Reconstruction()
    for lens in model.cameras.values():
        part.add_camera_with_trivial_rig(lens)
    for number in images:
        old = model.images[number]
        keypoints = np.array([p.xy for p in old.points2D]).reshape(-1, 2)
        image = pycolmap.Image(name=old.name, keypoints=keypoints, camera_id=old.camera_id, image_id=number)
        part.add_image_with_trivial_frame(image, old.cam_from_world())
    for number, point in model.points3D.items():
        elements = [e for e in point.track.elements if e.image_id in images]
        if len(elements) >= 2:
            kept = pycolmap.Point3D(xyz=point.xyz, color=point.color, track=pycolmap.Track(elements))
            part.add_point3D_with_id(number, kept)
    return part


def _camera(params: list[float], size: tuple[int, int], kept: bool) -> Camera:
    """A lens as it is, or with one focal for both directions, to settle."""
    fx, fy, cx, cy = params
    if kept:
        return Camera("PINHOLE", (fx, fy, cx, cy), *size)
    return Camera("SIMPLE_PINHOLE", ((fx + fy) / 2, cx, cy), *size)


def depths(model: Any, frame_of: dict[int, int]) -> dict[int, np.ndarray]:
    """By image, the depth of each of its points."""
    found = {}
    for image in frame_of:
        pose = model.images[image].cam_from_world().matrix()
        seen = [p.point3D_id for p in model.images[image].get_observation_points2D()]
        position = np.array([model.points3D[p].xyz for p in seen]).reshape(-1, 3)
        found[image] = position @ pose[2, :3] + pose[2, 3]
    return found


def pinhole(camera: Any) -> tuple[float, ...]:
    """(fx, fy, cx, cy) of a lens of either model."""
    return camera.focal_length_x, camera.focal_length_y, camera.principal_point_x, camera.principal_point_y
