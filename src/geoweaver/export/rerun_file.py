"""A recording for the rerun viewer: cameras, images, trajectory and points along time."""

from pathlib import Path
from types import ModuleType
from typing import Any

from geoweaver.errors import MissingExtraError
from geoweaver.export.colmap_folder import chosen_frames
from geoweaver.formats.ply import PlyCloud
from geoweaver.results import FinishedRun


def write_rerun(run: FinishedRun, path: Path, cloud: PlyCloud, all_frames: bool = False) -> None:
    """Write an .rrd file; needs the extra `rerun`."""
    rerun = _rerun()
    here: Any = rerun.RecordingStream("geoweaver")
    rerun.save(str(path), recording=here)
    rerun.log("world", rerun.ViewCoordinates.RDF, static=True, recording=here)
    colours = None if cloud.colours is None else cloud.colours.numpy()
    points = rerun.Points3D(cloud.points.numpy(), colors=colours)
    rerun.log("world/points", points, static=True, recording=here)
    walk = rerun.LineStrips3D([run.result.cam_from_world.centre.numpy()])
    rerun.log("world/trajectory", walk, static=True, recording=here)
    for frame in chosen_frames(run, all_frames):
        _log_frame(rerun, here, run, frame)
    rerun.disconnect(recording=here)


def _log_frame(rerun: ModuleType, here: Any, run: FinishedRun, frame: int) -> None:
    """One camera with its working image, at its place in the sequence and in time."""
    camera = run.result.cam_from_world[frame].inverse()
    fx, fy, cx, cy = run.result.intrinsics[frame].tolist()
    rerun.set_time("frame", sequence=frame, recording=here)
    rerun.set_time("time", duration=float(run.result.timestamps[frame]), recording=here)
    pose = rerun.Transform3D(translation=camera.translation.numpy(), mat3x3=camera.rotation.numpy())
    rerun.log("world/camera", pose, recording=here)
    size = list(run.result.size)
    pinhole = rerun.Pinhole(resolution=size, focal_length=[fx, fy], principal_point=[cx, cy])
    rerun.log("world/camera/image", pinhole, recording=here)
    if run.frames.pixels is not None:
        image = rerun.Image(run.frames.pixels.read(frame)).compress()
        rerun.log("world/camera/image", image, recording=here)


def _rerun() -> ModuleType:
    try:
        import rerun
    except ImportError:
        raise MissingExtraError("rerun-sdk", "rerun", "exporting a rerun recording") from None
    assert isinstance(rerun, ModuleType)
    return rerun
