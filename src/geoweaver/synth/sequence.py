"""Write a clip as users know sequences: a folder of images or a video, and the truth beside it."""

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from geoweaver.datatypes import Camera, Trajectory
from geoweaver.errors import InputError
from geoweaver.formats.colmap import ColmapModel, ColmapPoints, write_colmap
from geoweaver.formats.depth import write_depth
from geoweaver.formats.files import is_file
from geoweaver.formats.json_document import read_json, write_json
from geoweaver.formats.nerfstudio import NerfstudioScene, write_transforms
from geoweaver.formats.tum import write_tum
from geoweaver.synth.clips import Clip, map_frames, render_frame
from geoweaver.synth.quads import Array
from geoweaver.synth.rays import camera_lens
from geoweaver.synth.render import Rendered
from geoweaver.synth.video import writing_video


@dataclass(frozen=True)
class Output:
    """What is written."""

    images: Literal["jpg", "png", "mp4"] = "jpg"
    depth: Literal["npz", "png", "none"] = "npz"
    """float32 .npz, or 16-bit .png that states its unit."""
    depth_every: int = 1
    """Depth and masks of every so many frames."""
    workers: int = 1


def write_sequence(clip: Clip, folder: Path, output: Output | None = None) -> None:
    """Write images/ or video.mp4, groundtruth.tum, depth/, masks/ where things move, and sequence.json.

    Images also get transforms.json and a COLMAP model in sparse/0. Cameras of a folder are stamped by index,
    those of a video by seconds. Masks are 0 where something moves.
    """
    how = output or Output()
    wanted = {"images": how.images != "mp4", "depth": how.depth != "none", "masks": clip.movers}
    for name in ("", *(name for name, used in wanted.items() if used)):
        _make(folder / name)
    # sequence.json is written last: until then nothing here counts as finished
    (folder / "sequence.json").unlink(missing_ok=True)
    frames = map_frames(partial(_write_frame, folder, how), clip, how.workers)
    if how.images == "mp4":
        rate = 1 / float(clip.timestamps[1] - clip.timestamps[0])
        with writing_video(folder / "video.mp4", clip.size, rate) as write:
            for picture in frames:
                write(np.asarray(picture))
    else:
        for _ in frames:
            pass
    _write_truth(clip, folder, how)


def is_written(clip: Clip, folder: Path) -> bool:
    """Whether the folder holds this very clip, finished: another length or seed is another clip."""
    path = folder / "sequence.json"
    told = json.loads(json.dumps(_description(clip)))
    return is_file(path) and read_json(path, "the description of a rendered clip") == told


def depth_unit(clip: Clip) -> float:
    """Metres per step of a 16-bit depth map that reaches across the world: millimetres where they suffice."""
    low, high = clip.world.bounds
    return max(0.001, float(np.ceil(1000 * np.linalg.norm(high - low) / 65_000) / 1000))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror}): check the output path") from None


def frame_name(frame: int) -> str:
    """The stem of a frame's files."""
    return f"frame_{frame:05d}"


def _write_frame(folder: Path, how: Output, clip: Clip, frame: int) -> Array | None:
    """Files of one frame; the pixels go back where a video is being written."""
    shown = render_frame(clip, frame)
    if frame % how.depth_every == 0:
        _write_frame_truth(clip, folder, how, frame, shown)
    if how.images == "mp4":
        return shown.rgb
    _write_image(folder / "images" / f"{frame_name(frame)}.{how.images}", shown.rgb[..., ::-1])
    return None


def _write_frame_truth(clip: Clip, folder: Path, how: Output, frame: int, shown: Rendered) -> None:
    if how.depth != "none":
        write_depth(folder / "depth" / f"{frame_name(frame)}.{how.depth}", shown.depth, depth_unit(clip))
    if clip.movers:
        still = np.where(shown.moving.numpy(), 0, 255).astype(np.uint8)
        _write_image(folder / "masks" / f"{frame_name(frame)}.png", still)


def _write_image(path: Path, picture: Array) -> None:
    import cv2

    quality = [cv2.IMWRITE_JPEG_QUALITY, 95] if path.suffix == ".jpg" else []
    _, data = cv2.imencode(path.suffix, picture, quality)
    try:
        path.write_bytes(data.tobytes())
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): check the output path") from None


def _write_truth(clip: Clip, folder: Path, how: Output) -> None:
    index = torch.arange(len(clip))
    times = clip.timestamps if how.images == "mp4" else None
    write_tum(folder / "groundtruth.tum", Trajectory(clip.cam_from_world, index, timestamps=times))
    write_json(folder / "sequence.json", _description(clip))
    if how.images == "mp4":
        return
    names = tuple(f"{frame_name(k)}.{how.images}" for k in range(len(clip)))
    cameras = [_camera(clip, k) for k in range(len(clip))]
    distinct = tuple(dict.fromkeys(cameras))
    camera = torch.tensor([distinct.index(c) for c in cameras])
    paths = tuple(f"images/{name}" for name in names)
    write_transforms(
        folder / "transforms.json", NerfstudioScene(paths, clip.cam_from_world, distinct, camera)
    )
    write_colmap(
        folder / "sparse" / "0", ColmapModel(names, clip.cam_from_world, distinct, camera, _no_points())
    )


def _camera(clip: Clip, frame: int) -> Camera:
    fx, fy, cx, cy = (float(x) for x in clip.intrinsics[frame])
    lens = camera_lens((fx, fy, cx, cy), clip.effects.distortion, clip.size)
    return Camera(lens.model, lens.params, *clip.size, calibrated=True)


def _no_points() -> ColmapPoints:
    none = torch.zeros(0, dtype=torch.int64)
    return ColmapPoints(
        torch.zeros(0, 3, dtype=torch.float64), torch.zeros(0, 3, dtype=torch.uint8),
        torch.zeros(0, dtype=torch.float64),
        none, none, torch.zeros(0, 2, dtype=torch.float64),
    )  # fmt: skip


def _description(clip: Clip) -> dict[str, Any]:
    """What sequence.json says: enough to render the clip again, and every frame's intrinsics."""
    return {
        "world": clip.world.name, "world_seed": clip.world.seed, "seed": clip.seed, "frames": len(clip),
        "size": list(clip.size), "timestamps": clip.timestamps.tolist(),
        "intrinsics": clip.intrinsics.tolist(),
        "exposure": clip.exposure.tolist(), "effects": asdict(clip.effects), "movers": clip.movers,
        "depth_unit_of_png": depth_unit(clip),
    }  # fmt: skip
