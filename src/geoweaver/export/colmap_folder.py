"""A COLMAP folder of a run: images/ and sparse/0/ with cameras, poses and coloured points with tracks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float64
from torch import Tensor

from geoweaver.errors import DegenerateError
from geoweaver.export.cameras import ExportCameras, camera_notes, export_cameras
from geoweaver.export.masks import write_masks
from geoweaver.export.pictures import Picture, picture_names, plain_names, write_pictures
from geoweaver.export.tracks import Tracks, build_tracks
from geoweaver.export.whole_folder import sign_folder, whole_folder
from geoweaver.formats.colmap import ColmapModel, ColmapPoints, write_colmap
from geoweaver.results import FinishedRun


@dataclass(frozen=True)
class ColmapExport:
    """What was written, for whoever refers to it."""

    pictures: tuple[Picture, ...]
    cameras: ExportCameras
    tracks: Tracks
    masks: tuple[str, ...] | None
    """Below masks/, one per picture; None where every pixel counts."""


def chosen_frames(run: FinishedRun, all_frames: bool) -> list[int]:
    """Trusted keyframes, or every frame that has an image."""
    result = run.result
    rows = (result.trusted & run.frames.keyframe).nonzero().squeeze(1).tolist()
    if all_frames:
        rows = sorted(set(range(len(result))) - set(run.frames.broken))
    if not rows:
        raise DegenerateError("the run trusts none of its frames: --all-frames exports them nevertheless")
    return rows


def write_colmap_folder(
    run: FinishedRun, folder: Path, all_frames: bool = False, plain: bool = False
) -> ColmapExport:
    """Write images/ and sparse/0/; `plain` also removes folders and foreign letters from the names."""
    with whole_folder(folder) as temporary:
        return fill_colmap_folder(run, temporary, all_frames, plain)


def fill_colmap_folder(
    run: FinishedRun, folder: Path, all_frames: bool, plain: bool = False, label: str = "colmap"
) -> ColmapExport:
    """Write the model into a folder that is being made, and sign the folder with the format's label."""
    rows = chosen_frames(run, all_frames)
    own = picture_names(run, rows)
    pictures = write_pictures(run, rows, folder / "images", plain_names(own) if plain else own)
    masks = write_masks(run, folder / "masks", pictures)
    cameras = export_cameras(run, pictures)
    tracks = build_tracks(run, [row for row in rows if bool(run.result.trusted[row])])
    write_colmap(folder / "sparse" / "0", _model(run, pictures, cameras, tracks))
    sign_folder(
        folder,
        label,
        {
            "images": len(pictures),
            "points": len(tracks),
            "mean_track_length": len(tracks.point) / max(len(tracks), 1),
            "cameras": camera_notes(run, cameras, pictures),
            "frames": {picture.name: run.frames.names[picture.frame] for picture in pictures},
        },
    )
    return ColmapExport(tuple(pictures), cameras, tracks, None if masks is None else tuple(masks))


def _model(
    run: FinishedRun, pictures: Sequence[Picture], cameras: ExportCameras, tracks: Tracks
) -> ColmapModel:
    frames = torch.tensor([picture.frame for picture in pictures])
    row_of = torch.full((len(run.frames),), -1)
    row_of[frames] = torch.arange(len(frames))
    scale = torch.tensor([picture.scale for picture in pictures], dtype=torch.float64)
    shift = torch.tensor([picture.shift for picture in pictures], dtype=torch.float64)
    image = row_of[tracks.frame]
    return ColmapModel(
        names=tuple(picture.name for picture in pictures),
        cam_from_world=run.result.cam_from_world[frames],
        cameras=cameras.cameras,
        camera=cameras.camera,
        points=ColmapPoints(
            tracks.position, tracks.colour, _mean_error(tracks, scale[image].mean(1)),
            tracks.point, image, scale[image] * tracks.pixel + shift[image],
        ),
    )  # fmt: skip


def _mean_error(tracks: Tracks, scale: Float64[Tensor, "T"]) -> Float64[Tensor, "P"]:
    """Of each point, in pixels of the exported images."""
    total = torch.zeros(len(tracks), dtype=torch.float64).index_add_(0, tracks.point, tracks.error * scale)
    return total / torch.bincount(tracks.point, minlength=len(tracks)).clamp(min=1)
