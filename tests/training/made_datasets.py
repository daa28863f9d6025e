"""Tiny folders in the layouts of public datasets, all showing one wall from two cameras."""

import gzip
import json
from pathlib import Path

import cv2
import numpy as np

from geoweaver.formats.depth_arrays import pfm_bytes

SIZE = (32, 24)
"""Width and height."""
STEP = np.array([0.2, 0.0, 0.0])
"""From the first camera to the second, in our camera axes; neither is turned."""
DEPTH = 2.5


def picture(index: int) -> np.ndarray:
    return np.random.default_rng(index).integers(0, 255, (SIZE[1], SIZE[0], 3), dtype=np.uint8)


def save_picture(path: Path, rgb: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), rgb[..., ::-1])


def save_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def rows(matrix: np.ndarray) -> str:
    return "\n".join(" ".join(f"{x:.9g}" for x in row) for row in matrix) + "\n"


def camera_to_world(index: int) -> np.ndarray:
    """In our axes."""
    pose = np.eye(4)
    pose[:3, 3] = index * STEP
    return pose


def make_scannet(root: Path) -> None:
    """Colour of twice the depth's size; the third frame's pose was lost."""
    scene = root / "scene0001_00"
    K = np.array([[30.0, 0, 15.5, 0], [0, 31, 11.5, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    save_text(scene / "intrinsic/intrinsic_depth.txt", rows(K))
    for i in range(3):
        save_picture(scene / f"color/{10 * i}.jpg", cv2.resize(picture(i), (64, 48)))
        depth = np.full((24, 32), round(1000 * DEPTH), dtype=np.uint16)
        depth[0, 0] = 0
        (scene / "depth").mkdir(exist_ok=True)
        cv2.imwrite(str(scene / f"depth/{10 * i}.png"), depth)
        pose = camera_to_world(i) if i < 2 else np.full((4, 4), -np.inf)
        save_text(scene / f"pose/{10 * i}.txt", rows(pose))


def make_tartanair(root: Path) -> None:
    """Cameras look north (x), with east (y) to the right and down (z) below."""
    folder = root / "office" / "Easy" / "P000"
    for i in range(2):
        save_picture(folder / f"image_left/{i:06d}_left.png", cv2.resize(picture(i), (640, 480)))
        depth = np.full((480, 640), DEPTH, dtype=np.float32)
        depth[:10] = 10_000
        (folder / "depth_left").mkdir(exist_ok=True)
        np.save(folder / f"depth_left/{i:06d}_left_depth.npy", depth)
    # a step to the right is a step east
    save_text(folder / "pose_left.txt", "0 0 0 0 0 0 1\n0 0.2 0 0 0 0 1\n")


def make_blendedmvs(root: Path) -> None:
    scene = root / "5a0271884e62597cdee0d0eb"
    for i in range(3):
        save_picture(scene / f"blended_images/{i:08d}.jpg", picture(i))
        save_picture(scene / f"blended_images/{i:08d}_masked.jpg", picture(i))
        (scene / "rendered_depth_maps").mkdir(exist_ok=True)
        depth = np.full((24, 32), DEPTH, dtype=np.float32)
        depth[0] = 0
        (scene / f"rendered_depth_maps/{i:08d}.pfm").write_bytes(pfm_bytes(depth))
        world_to_camera = np.linalg.inv(camera_to_world(i))
        K = np.array([[30.0, 0, 15.5], [0, 31, 11.5], [0, 0, 1]])
        text = f"extrinsic\n{rows(world_to_camera)}\nintrinsic\n{rows(K)}\n1.0 0.01 128 4.0\n"
        save_text(scene / f"cams/{i:08d}_cam.txt", text)
    save_text(scene / "cams/pair.txt", "3\n0\n1 1 9.5\n1\n2 0 9.5 2 3.0\n2\n1 1 3.0\n")


def make_dynamicreplica(root: Path) -> None:
    """PyTorch3D's cameras: x points left and y up, points are rows, half the short side is 1."""
    frames = []
    for i in reversed(range(2)):
        stem = f"a1b2_source_left-{i:04d}"
        image, depth = f"a1b2_source_left/images/{stem}.png", f"a1b2_source_left/depths/{stem}.geometric.png"
        save_picture(root / image, picture(i))
        metres = np.full((24, 32), DEPTH, dtype=np.float16)
        metres[0] = np.inf
        (root / depth).parent.mkdir(exist_ok=True)
        cv2.imwrite(str(root / depth), metres.view(np.uint16))
        viewpoint = {
            "R": np.diag([-1.0, -1, 1]).tolist(), "T": (i * STEP).tolist(), "focal_length": [2.5, 2.5],
            "principal_point": [0.0, 0.0], "intrinsics_format": "ndc_isotropic",
        }  # fmt: skip
        frames.append({
            "sequence_name": "a1b2_source", "camera_name": "left", "frame_number": i,
            "image": {"path": image, "size": [24, 32]}, "depth": {"path": depth}, "viewpoint": viewpoint,
        })  # fmt: skip
    root.mkdir(exist_ok=True)
    (root / "frame_annotations_train.jgz").write_bytes(gzip.compress(json.dumps(frames).encode()))


def make_hypersim(root: Path, skew: float = 0.0) -> None:
    """Cameras look along -z with y up, in asset units of which there are 50 to the metre."""
    import h5py

    def save(path: Path, array: np.ndarray) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            file["dataset"] = array

    scene, width, height = root / "ai_001_001", *SIZE
    projection = np.zeros((4, 4))
    projection[0, 0], projection[1, 1], projection[0, 1] = 2 * 30 / width, 2 * 30 / height, skew
    names = [f"M_proj_{i}{j}" for i in range(4) for j in range(4)]
    values = ",".join(map(str, projection.ravel()))
    save_text(root / "metadata_camera_parameters.csv", f"scene_name,{','.join(names)}\nai_001_001,{values}\n")
    text = "parameter_name,parameter_value\nmeters_per_asset_unit,0.02\n"
    save_text(scene / "_detail/metadata_scene.csv", text)
    position = np.array([camera_to_world(i)[:3, 3] / 0.02 for i in range(2)])
    save(scene / "_detail/cam_00/camera_keyframe_positions.hdf5", position)
    save(scene / "_detail/cam_00/camera_keyframe_orientations.hdf5", np.stack([np.eye(3)] * 2))
    y, x = np.mgrid[:height, :width]
    ray = np.sqrt(((x + 0.5 - width / 2) / 30) ** 2 + ((y + 0.5 - height / 2) / 30) ** 2 + 1)
    for i in range(2):
        images, frame = scene / "images", f"frame.{i:04d}"
        light = (picture(i) / 255.0) ** 2.2 * 7
        distance = (DEPTH * ray).astype(np.float32)
        distance[0, 0] = np.nan
        save(images / f"scene_cam_00_final_hdf5/{frame}.color.hdf5", light.astype(np.float32))
        geometry = images / "scene_cam_00_geometry_hdf5"
        save(geometry / f"{frame}.depth_meters.hdf5", distance)
        save(geometry / f"{frame}.render_entity_id.hdf5", np.ones((24, 32), np.int32))
