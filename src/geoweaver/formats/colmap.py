"""COLMAP models, binary or text, through pycolmap: world-to-camera, axes and pixels as ours."""

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64, UInt8
from torch import Tensor

from geoweaver.datatypes import Camera, Trajectory
from geoweaver.errors import FormatError, InputError
from geoweaver.formats.colmap_load import OPTIONAL, REQUIRED, load_colmap, pycolmap_complaints
from geoweaver.formats.files import is_file, place, quoted, reason, write_advice
from geoweaver.formats.names import indices_by_number, indices_by_order, indices_in_folder, natural_key
from geoweaver.formats.poses import FARTHEST, from_quaternions
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import quaternion_from_matrix

SUBFOLDERS = (".", "sparse/0", "colmap/sparse/0", "sparse", "0")


@dataclass(frozen=True)
class ColmapPoints:
    """Coloured points and, as one flat table, where the images see them."""

    position: Float64[Tensor, "P 3"]
    colour: UInt8[Tensor, "P 3"]
    error: Float64[Tensor, "P"]
    """Mean reprojection error in pixels; -1 where unknown."""
    track_point: Int64[Tensor, "T"]
    track_image: Int64[Tensor, "T"]
    track_pixel: Float64[Tensor, "T 2"]

    def __len__(self) -> int:
        return len(self.position)


@dataclass(frozen=True)
class ColmapModel:
    """Registered images in natural order of their names, their cameras, and the points."""

    names: tuple[str, ...]
    cam_from_world: SE3
    cameras: tuple[Camera, ...]
    camera: Int64[Tensor, "n"]
    """Which of `cameras` took each image."""
    points: ColmapPoints

    def __len__(self) -> int:
        return len(self.names)


def find_colmap(folder: Path) -> Path | None:
    """The model in a folder or where COLMAP and GeoWeaver put it below; None where there is none."""
    for candidate in (folder / name for name in SUBFOLDERS):
        for suffix in (".bin", ".txt"):
            if all(is_file(candidate / f"{name}{suffix}") for name in ("cameras", "images")):
                return candidate
    return None


def read_colmap(folder: Path) -> ColmapModel:
    """A whole model."""
    model = load_colmap(folder)
    images = _registered(folder, model)
    row_of_camera = {camera_id: i for i, camera_id in enumerate(sorted(model.cameras))}
    return ColmapModel(
        names=tuple(image.name for image in images),
        cam_from_world=_cam_from_world(folder, images),
        cameras=tuple(_camera(folder, model.cameras[camera_id]) for camera_id in row_of_camera),
        camera=torch.tensor([row_of_camera[image.camera_id] for image in images]),
        points=_points(folder, model, images),
    )


def read_colmap_trajectory(folder: Path) -> Trajectory:
    """The cameras alone."""
    images = _registered(folder, load_colmap(folder))
    names = tuple(image.name for image in images)
    return Trajectory(_cam_from_world(folder, images), index=_indices(folder, names), names=names)


def write_colmap(folder: Path, model: ColmapModel, text: bool = False) -> None:
    """Write a model; a model that is already there is replaced file by file, in both its forms."""
    if text and any(blank in name for name in model.names for blank in " \t"):
        raise InputError("COLMAP's text form cannot store image names with blanks: write the binary form")
    reconstruction = as_pycolmap(model)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as temporary:
            (reconstruction.write_text if text else reconstruction.write_binary)(temporary)
            for name in (*REQUIRED, *OPTIONAL):
                (folder / f"{name}{'.bin' if text else '.txt'}").unlink(missing_ok=True)
            for file in Path(temporary).iterdir():
                file.replace(folder / file.name)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{place(folder)} cannot be written ({reason(error)}): {write_advice(error)}"
        ) from None


def _indices(folder: Path, names: tuple[str, ...]) -> Int64[Tensor, "n"]:
    """Places in the image folder if it is near, else the numbers in the names: a model may lack images."""
    near = [ancestor / "images" for ancestor in folder.absolute().parents[:3]]
    in_folder = indices_in_folder(names, near)
    if in_folder is not None:
        return in_folder
    number = indices_by_number(names)
    if number is None:
        return indices_by_order(names)
    return number - 1 if number.min() == 1 else number


def _registered(folder: Path, model: Any) -> list[Any]:
    """The images with a pose, in natural order."""
    with pycolmap_complaints(place(folder)):
        images = [image for image in model.images.values() if image.has_pose]
        images.sort(key=lambda image: natural_key(image.name))
    if not images:
        raise FormatError(f"{place(folder)}: the COLMAP model holds no registered image: give a larger model")
    for one, next_one in pairwise(images):
        if one.name == next_one.name:
            raise FormatError(
                f"{place(folder)}: two images are called {quoted(one.name)}: rename one of them"
            )
    return images


def _cam_from_world(folder: Path, images: list[Any]) -> SE3:
    with pycolmap_complaints(place(folder)):
        poses = [image.cam_from_world() for image in images]
        xyzw = np.array([pose.rotation.quat for pose in poses], dtype=np.float64)
        translation = np.array([pose.translation for pose in poses], dtype=np.float64)
    return from_quaternions(
        translation, xyzw[:, [3, 0, 1, 2]], lambda i: f"{place(folder)}, image {quoted(images[i].name)}"
    )


def _camera(folder: Path, camera: Any) -> Camera:
    params = tuple(float(value) for value in camera.params)
    sound = camera.verify_params() and np.isfinite(params).all() and min(camera.width, camera.height) > 0
    if not sound or max(camera.width, camera.height) > 10_000_000:
        raise FormatError(
            f"{place(folder)}: camera {camera.camera_id} has impossible parameters: write the model anew"
        )
    return Camera(camera.model.name, params, int(camera.width), int(camera.height))


def _points(folder: Path, model: Any, images: list[Any]) -> ColmapPoints:
    row_of_image = {image.image_id: row for row, image in enumerate(images)}
    pixels = [np.array([p.xy for p in image.points2D], dtype=np.float64).reshape(-1, 2) for image in images]
    points = [model.points3D[i] for i in sorted(model.points3D)]
    with pycolmap_complaints(place(folder)):
        tracks = [
            (row, row_of_image[element.image_id], element.point2D_idx)
            for row, point in enumerate(points)
            for element in point.track.elements
            if element.image_id in row_of_image
        ]
        pixel = np.array([pixels[image][k] for _, image, k in tracks], dtype=np.float64).reshape(-1, 2)
    position = np.array([p.xyz for p in points], dtype=np.float64).reshape(-1, 3)
    if not (np.abs(position) < FARTHEST).all() or not np.isfinite(pixel).all():
        raise FormatError(f"{place(folder)}: a point or its pixel is not finite: write the model anew")
    table = torch.tensor(tracks, dtype=torch.int64).reshape(-1, 3)
    return ColmapPoints(
        position=torch.from_numpy(position),
        colour=torch.from_numpy(np.array([p.color for p in points], dtype=np.uint8).reshape(-1, 3)),
        error=torch.tensor([float(p.error) for p in points], dtype=torch.float64),
        track_point=table[:, 0],
        track_image=table[:, 1],
        track_pixel=torch.from_numpy(pixel),
    )


def as_pycolmap(model: ColmapModel) -> Any:
    """The model as pycolmap's own object, ids counted from 1."""
    import pycolmap

    reconstruction = pycolmap.Reconstruction()
    for i, camera in enumerate(model.cameras):
        reconstruction.add_camera_with_trivial_rig(_pycolmap_camera(camera, i + 1))
    quaternion = quaternion_from_matrix(model.cam_from_world.rotation)[:, [1, 2, 3, 0]].numpy()
    translation = model.cam_from_world.translation.numpy()
    slot, keypoints = _keypoints(model)
    for i, name in enumerate(_writable_names(model.names)):
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(quaternion[i]), translation[i])
        camera_id = int(model.camera[i]) + 1
        image = pycolmap.Image(name=name, keypoints=keypoints[i], camera_id=camera_id, image_id=i + 1)
        reconstruction.add_image_with_trivial_frame(image, pose)
    _add_points(reconstruction, model.points, slot)
    return reconstruction


def _keypoints(model: ColmapModel) -> tuple[Int64[np.ndarray, "T"], list[Float64[np.ndarray, "_ 2"]]]:
    """Each image's observed pixels, and where each track row stands among its image's."""
    image = model.points.track_image.numpy()
    order = np.argsort(image, kind="stable")
    starts = np.searchsorted(image[order], np.arange(len(model) + 1))
    slot = np.empty(len(image), dtype=np.int64)
    slot[order] = np.arange(len(image)) - starts[image[order]]
    pixel = model.points.track_pixel.numpy()[order]
    return slot, [pixel[a:b] for a, b in pairwise(starts)]


def _add_points(reconstruction: Any, points: ColmapPoints, slot: Int64[np.ndarray, "T"]) -> None:
    import pycolmap

    order = np.argsort(points.track_point.numpy(), kind="stable")
    starts = np.searchsorted(points.track_point.numpy()[order], np.arange(len(points) + 1)).tolist()
    image = (points.track_image.numpy()[order] + 1).tolist()
    slots = slot[order].tolist()
    position, colour, error = points.position.numpy(), points.colour.numpy(), points.error.tolist()
    for i in range(len(points)):
        rows = range(starts[i], starts[i + 1])
        track = pycolmap.Track([pycolmap.TrackElement(image[row], slots[row]) for row in rows])
        point = pycolmap.Point3D(xyz=position[i], color=colour[i], error=error[i], track=track)
        reconstruction.add_point3D_with_id(i + 1, point)


def _pycolmap_camera(camera: Camera, camera_id: int) -> Any:
    import pycolmap

    if camera.model not in pycolmap.CameraModelId.__members__:
        raise InputError(f"{quoted(camera.model)} is no COLMAP camera model: name one that COLMAP knows")
    made = pycolmap.Camera(
        model=camera.model,
        width=camera.width,
        height=camera.height,
        params=camera.params,
        camera_id=camera_id,
        has_prior_focal_length=camera.calibrated,
    )
    if not made.verify_params():
        raise InputError(
            f"a {camera.model} camera cannot have {len(camera.params)} parameters: correct its parameters"
        )
    return made


def _writable_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not name or set(name) & set("\0\r\n") or name != name.strip():
            raise InputError(f"COLMAP cannot store the image name {quoted(name)}: rename the image")
    if len(set(names)) < len(names):
        raise InputError("two images of the model have the same name: COLMAP needs different ones")
    return names
