"""What of a finished run goes into which format; nothing is computed again but tracks."""

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from geoweaver.datatypes import Trajectory
from geoweaver.errors import ConfigError, DegenerateError
from geoweaver.export.colmap_folder import chosen_frames, fill_colmap_folder, write_colmap_folder
from geoweaver.export.depth_folder import fill_depth_folder, write_depth_folder
from geoweaver.export.nerfstudio_folder import write_nerfstudio
from geoweaver.export.pictures import smaller_pictures
from geoweaver.export.rerun_file import write_rerun
from geoweaver.export.tracks import build_tracks
from geoweaver.export.whole_folder import whole_folder
from geoweaver.formats.files import is_file, writing
from geoweaver.formats.kitti import write_kitti
from geoweaver.formats.ply import PlyCloud, read_ply, write_ply
from geoweaver.formats.tum import write_tum
from geoweaver.results import FinishedRun

log = logging.getLogger(__name__)
CLOUD = "points.ply"


@dataclass(frozen=True)
class ExportChoice:
    """How an export is made."""

    all_frames: bool = False
    """Also frames that are not trusted, at their interpolated cameras."""
    downscale: tuple[int, ...] = ()
    """Whole factors of smaller copies beside images/ (gsplat)."""


def write_exports(run: FinishedRun, out: Path, cloud: PlyCloud | None = None) -> None:
    """The exports that stand in every run folder: colmap/, depth/, transforms.json with its cloud."""
    depth = write_depth_folder(run, out / "depth") if run.depths.frames else None
    try:
        chosen_frames(run, all_frames=False)
    except DegenerateError as nothing:
        log.warning("no COLMAP model and no transforms.json: %s", nothing)
        return
    colmap = write_colmap_folder(run, out / "colmap")
    log.info("colmap: %d images, %d points", len(colmap.pictures), len(colmap.tracks))
    write_nerfstudio(run, out, colmap, "colmap/", depth, cloud)


def export_run(
    run: FinishedRun, to: str, path: Path | None = None, choice: ExportChoice | None = None
) -> Path:
    """Write one format, below the run's own exports/ unless told where; returns where it is."""
    require_format(to)
    name, write = FORMATS[to]
    target = run.folder / "exports" / name if path is None else path
    write(run, target, choice or ExportChoice())
    return target


def require_format(to: str) -> None:
    """Refuse what is no format before anything is opened."""
    if to not in FORMATS:
        raise ConfigError(f"there is no export format {to!r}: choose one of {', '.join(FORMATS)}")


def _colmap(run: FinishedRun, path: Path, choice: ExportChoice) -> None:
    write_colmap_folder(run, path, choice.all_frames)


def _gsplat(run: FinishedRun, path: Path, choice: ExportChoice) -> None:
    """A COLMAP folder with plain names, and smaller copies of the images."""
    with whole_folder(path) as folder:
        made = fill_colmap_folder(run, folder, choice.all_frames, plain=True, label="gsplat")
        for factor in choice.downscale:
            smaller_pictures(folder / "images", folder / f"images_{factor}", made.pictures, factor)


def _nerfstudio(run: FinishedRun, path: Path, choice: ExportChoice) -> None:
    with whole_folder(path) as folder:
        made = fill_colmap_folder(run, folder, choice.all_frames, label="nerfstudio")
        rows = [picture.frame for picture in made.pictures]
        depth = None
        if set(rows) <= set(run.depths.frames):
            depth = fill_depth_folder(run, folder / "depth", rows)
        write_nerfstudio(run, folder, made, "", depth, fused_cloud(run))


def _depth(run: FinishedRun, path: Path, choice: ExportChoice) -> None:
    write_depth_folder(run, path)


def _ply(run: FinishedRun, path: Path, choice: ExportChoice) -> None:
    """The fused cloud, unchanged; without one the tracks' points."""
    if not is_file(run.folder / CLOUD):
        log.warning("the run has no %s: the points of its tracks are written instead", CLOUD)
        write_ply(path, _track_points(run))
        return
    with (run.folder / CLOUD).open("rb") as source, writing(path) as file:
        shutil.copyfileobj(source, file)


def _rrd(run: FinishedRun, path: Path, choice: ExportChoice) -> None:
    cloud = fused_cloud(run)
    with writing(path) as file:
        # the library opens the file by its name
        write_rerun(run, Path(file.name), cloud or _track_points(run), choice.all_frames)


def _trajectory(
    write: Callable[[Path, Trajectory], None], run: FinishedRun, path: Path, choice: ExportChoice
) -> None:
    """Every frame: files without names cannot leave any out."""
    result = run.result
    index = torch.arange(len(result))
    write(path, Trajectory(result.cam_from_world, index, result.names, result.timestamps, result.trusted))


def fused_cloud(run: FinishedRun) -> PlyCloud | None:
    """The run's own cloud, where it has one."""
    return read_ply(run.folder / CLOUD) if is_file(run.folder / CLOUD) else None


def _track_points(run: FinishedRun) -> PlyCloud:
    tracks = build_tracks(run, chosen_frames(run, all_frames=False))
    return PlyCloud(tracks.position.float(), tracks.colour)


Writer = Callable[[FinishedRun, Path, ExportChoice], None]
FORMATS: dict[str, tuple[str, Writer]] = {
    "colmap": ("colmap", _colmap),
    "nerfstudio": ("nerfstudio", _nerfstudio),
    "gsplat": ("gsplat", _gsplat),
    "tum": ("trajectory.tum", partial(_trajectory, write_tum)),
    "kitti": ("kitti.txt", partial(_trajectory, write_kitti)),
    "ply": ("points.ply", _ply),
    "depth": ("depth", _depth),
    "rerun": ("run.rrd", _rrd),
}
"""What the file or folder is called unless told, and who writes it."""
