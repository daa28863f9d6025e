"""Three of the paper's suites where their own downloads put them: T&T, Mip-NeRF 360, Virtual KITTI 2."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from geoweaver.benchmark.scene import Found, Scene, Suite, has_images
from geoweaver.datatypes import Trajectory
from geoweaver.errors import InputError
from geoweaver.formats.colmap import find_colmap, read_colmap_trajectory
from geoweaver.formats.files import is_file, is_folder, place
from geoweaver.formats.tnt_log import read_tnt_alignment, read_tnt_log
from geoweaver.formats.vkitti import read_vkitti, read_vkitti_intrinsics
from geoweaver.frames.folder import list_images
from geoweaver.geometry import world_camera

TANKS = ("Barn", "Caterpillar", "Courthouse", "Ignatius", "Meetingroom", "Truck")
MIP_NERF = ("bicycle", "bonsai", "counter", "flowers", "garden", "kitchen", "room", "stump", "treehill")
VKITTI = ("Scene01", "Scene02", "Scene06", "Scene18", "Scene20")
VARIATION = "clone"
"""Virtual KITTI's weather; the paper does not say which one it took."""
_IMAGES = ("images_4", "images_2", "images", "images_8")
"""Of Mip-NeRF 360: quarter size is what our working images need, and names are the same in all."""
_SKY = 655.35
"""Metres: Virtual KITTI's largest depth stands for everything from there on."""


def find_tanks(data: Path, calibrated: bool) -> Found:
    """Tanks and Temples; the suite states no calibration."""
    return {name: _tanks(data, name) for name in TANKS}


def find_mip_nerf(data: Path, calibrated: bool) -> Found:
    """Mip-NeRF 360."""
    return {name: _mip_nerf(data / name, calibrated) for name in MIP_NERF}


def find_vkitti(data: Path, calibrated: bool) -> Found:
    """Virtual KITTI 2, left camera."""
    return {name: _vkitti(data / name / VARIATION, name, calibrated) for name in VKITTI}


def _tanks(data: Path, name: str) -> Scene | str:
    images = next((f for f in (data / name / "images", data / name) if has_images(f)), None)
    logs = [folder / f"{name}_COLMAP_SfM.log" for folder in (data / name, data)]
    log = next(filter(is_file, logs), None)
    if images is None:
        return f"no images in {name}/ or {name}/images/"
    if log is None:
        return f"no {name}_COLMAP_SfM.log in {name}/"
    return Scene(name, images, partial(_tanks_reference, log, images))


def _tanks_reference(log: Path, images: Path) -> Trajectory:
    """The log's cameras, in metres where the scene's alignment lies beside it."""
    reference, count = read_tnt_log(log), len(list_images(images)[1])
    if int(reference.index.max()) >= count:
        raise InputError(
            f"{place(log)} tells of frame {int(reference.index.max())}, but {place(images)} has {count} "
            "images: its frames are matched by their place, so give the whole image set"
        )
    alignment = log.with_name(log.name.replace("_COLMAP_SfM.log", "_trans.txt"))
    if not is_file(alignment):
        return reference
    return replace(
        reference, cam_from_world=world_camera(read_tnt_alignment(alignment), reference.cam_from_world)
    )


def _mip_nerf(folder: Path, calibrated: bool) -> Scene | str:
    images = next((folder / name for name in _IMAGES if has_images(folder / name)), None)
    model = find_colmap(folder) if is_folder(folder) else None
    if images is None:
        return f"no images in {folder.name}/images/ (or images_2, images_4, images_8)"
    if model is None:
        return f"no COLMAP model in {folder.name}/sparse/0/"
    intrinsics = str(model) if calibrated else None
    return Scene(folder.name, images, partial(read_colmap_trajectory, model), intrinsics)


def _vkitti(folder: Path, name: str, calibrated: bool) -> Scene | str:
    images, poses = folder / "frames/rgb/Camera_0", folder / "extrinsic.txt"
    if not has_images(images):
        return f"no images in {name}/{VARIATION}/frames/rgb/Camera_0/"
    if not is_file(poses):
        return f"no {name}/{VARIATION}/extrinsic.txt (of the archive textgt)"
    depth = folder / "frames/depth/Camera_0"
    return Scene(
        name, images, partial(_vkitti_reference, poses),
        _vkitti_intrinsics(folder / "intrinsic.txt") if calibrated else None,
        depth=depth if has_images(depth) else None, depth_unit=0.01, depth_far=_SKY,
    )  # fmt: skip


def _vkitti_reference(poses: Path) -> Trajectory:
    """By image names: a folder may lack frames."""
    reference = read_vkitti(poses)
    return replace(reference, names=tuple(f"rgb_{k:05d}.jpg" for k in reference.index.tolist()))


def _vkitti_intrinsics(path: Path) -> str:
    return ",".join(map(str, read_vkitti_intrinsics(path)))


TANKS_SUITE = Suite(
    "Tanks and Temples",
    "DIR/Barn/ with the image set (also in images/), Barn_COLMAP_SfM.log and Barn_trans.txt, and so on",
    find_tanks,
)
MIP_NERF_SUITE = Suite(
    "Mip-NeRF 360", "DIR/bicycle/ with images/ (or images_4/) and sparse/0/, and so on", find_mip_nerf
)
VKITTI_SUITE = Suite(
    "Virtual KITTI 2",
    "DIR/Scene01/clone/ with frames/rgb/Camera_0/, extrinsic.txt and frames/depth/Camera_0/, and so on",
    find_vkitti,
)
