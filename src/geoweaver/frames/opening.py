"""Open a video or a folder: frames in order, cameras, times, and pixels on demand."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from geoweaver.datatypes import Camera, Frames
from geoweaver.errors import ConfigError, InputError
from geoweaver.formats.files import is_file, is_folder, place
from geoweaver.formats.names import IMAGE_SUFFIXES
from geoweaver.frames.cameras import CameraGroups, group_cameras
from geoweaver.frames.folder import open_folder
from geoweaver.frames.pixels import RectifiedMasks, RectifiedPixels, find_masks, mask_notes
from geoweaver.frames.selection import choose_places
from geoweaver.frames.source import Recording
from geoweaver.frames.timestamps import read_timestamps
from geoweaver.frames.video import open_video
from geoweaver.frames.views import View, common_view, native_view
from geoweaver.geometry.distortion import Lens
from geoweaver.store import digest_of, file_digest


@dataclass(frozen=True)
class FramesConfig:
    """Which frames are used, at which size, and what is known about the cameras."""

    intrinsics: str | None = None
    """fx,fy,cx,cy[,k1,k2,p1,p2] in original pixels, or a cameras.txt, COLMAP model or transforms.json."""
    masks: Path | None = None
    """Folder of masks, one per image and named like it: black pixels are ignored."""
    timestamps: Path | None = None
    """TUM rgb.txt, EuRoC csv or one number a line: times in seconds instead of the frames' own."""
    frames: Path | None = None
    """List of the frames to use, one name or index per line."""
    stride: int = 1
    """Use every n-th frame."""
    max_frames: int | None = None
    """Use at most so many frames, from the beginning."""
    max_size: int | None = None
    """Long side of the working images in pixels; without it they have about `megapixels`."""
    megapixels: float = 0.2304
    """Size of the working images (640x360); smaller originals stay as they are."""

    def found_from_anywhere(self) -> "FramesConfig":
        """The same with a calibration file that is named from the root: a run is read from other folders."""
        if self.intrinsics is None or not Path(self.intrinsics).exists():
            return self
        return replace(self, intrinsics=str(Path(self.intrinsics).absolute()))


DEFAULTS = FramesConfig()


def open_frames(input: Path, options: FramesConfig = DEFAULTS) -> Frames:
    """The frames of a video file or of a folder of images (sub-folders are physical cameras)."""
    _check(options)
    recording = _open(input)
    if options.timestamps is not None:
        recording = replace(recording, timestamps=read_timestamps(options.timestamps, recording))
    chosen = choose_places(recording, options.frames, options.stride, options.max_frames)
    recording = recording.choose(chosen)
    _refuse_too_few(recording, input)
    frames = _rectified(recording, group_cameras(recording, options.intrinsics), options)
    return replace(frames, chosen=tuple(chosen))


def _open(input: Path) -> Recording:
    if is_folder(input):
        return open_folder(input)
    if not is_file(input):
        raise InputError(f"{place(input)} does not exist: give a video file or a folder of images")
    if input.suffix.lower() in IMAGE_SUFFIXES:
        raise InputError(f"{place(input)} is a single image: give a folder of images or a video file")
    return open_video(input)


def _check(options: FramesConfig) -> None:
    if options.max_size is not None and options.max_size < 64:
        raise ConfigError(f"--max-size is {options.max_size}: give at least 64 pixels")
    if not 0.001 <= options.megapixels <= 100:
        raise ConfigError(f"--megapixels is {options.megapixels}: give 0.001 to 100")


def _refuse_too_few(recording: Recording, input: Path) -> None:
    good = sum(size is not None for size in recording.sizes)
    if good >= 2:
        return
    why = f" ({recording.notes[0]})" if recording.notes else ""
    found = "no readable frame" if good == 0 else "only one readable frame"
    raise InputError(f"{place(input)} has {found}{why}: at least two are needed")


def rectify_frames(frames: Frames, lenses: Sequence[Lens], options: FramesConfig = DEFAULTS) -> Frames:
    """The same frames with their images rectified anew by these lenses, one per camera, at original size."""
    assert isinstance(frames.pixels, RectifiedPixels), "only opened frames can be rectified"
    old = frames.pixels
    views = _views(lenses, old.camera, options)
    cameras = [
        replace(c, model=lens.model, params=lens.params, rectified=view.intrinsics)
        for c, lens, view in zip(frames.cameras, lenses, views, strict=True)
    ]
    masks = frames.masks
    if isinstance(masks, RectifiedMasks) or any(view.inner != view.size for view in views):
        files, alpha = (masks.files, masks.alpha) if isinstance(masks, RectifiedMasks) else (None, False)
        masks = RectifiedMasks(old.source, views, old.camera, files or (None,) * len(frames), alpha)
    shape = [_shape(lens, view) for lens, view in zip(lenses, views, strict=True)]
    return replace(
        frames,
        cameras=tuple(cameras),
        size=views[0].size,
        pixels=RectifiedPixels(old.source, views, old.camera, old.broken),
        masks=masks,
        digests=tuple(digest_of([d, shape[g]]) for d, g in zip(frames.digests, old.camera, strict=True)),
    )


def _views(lenses: Sequence[Lens], camera: Sequence[int], options: FramesConfig) -> tuple[View, ...]:
    """Views of all cameras at the size of the one with the most frames."""
    counts = Counter(camera)
    leader = max(counts, key=lambda g: (counts[g], -g))
    native = native_view(lenses[leader], options.max_size, options.megapixels)
    return tuple(native if g == leader else common_view(lens, native.size) for g, lens in enumerate(lenses))


def _rectified(recording: Recording, groups: CameraGroups, options: FramesConfig) -> Frames:
    views = _views(groups.lenses, groups.camera, options)
    folders = tuple(dict.fromkeys(recording.folders))
    broken = tuple(i for i, size in enumerate(recording.sizes) if size is None)
    files = None if options.masks is None else find_masks(options.masks, recording.names)
    keyframe = torch.ones(len(recording), dtype=torch.bool)
    keyframe[list(broken)] = False
    return Frames(
        names=recording.names,
        timestamps=recording.timestamps,
        camera=torch.tensor(groups.camera, dtype=torch.int64),
        keyframe=keyframe,
        cameras=tuple(_camera(groups, g, view) for g, view in enumerate(views)),
        size=views[0].size,
        pixels=RectifiedPixels(recording.source, views, groups.camera, frozenset(broken)),
        masks=_masks(recording, views, groups, files),
        broken=broken,
        digests=_digests(recording, views, groups, files),
        notes=(*recording.notes, *(mask_notes(files, recording.sizes) if files else ())),
        lost=recording.lost,
        folder=torch.tensor([folders.index(f) for f in recording.folders], dtype=torch.int64),
    )


def _camera(groups: CameraGroups, group: int, view: View) -> Camera:
    lens = groups.lenses[group]
    return Camera(
        lens.model,
        lens.params,
        *lens.size,
        calibrated=groups.calibrated,
        rectified=view.intrinsics,
        focal_hint=groups.hinted[group],
    )


def _masks(
    recording: Recording, views: tuple[View, ...], groups: CameraGroups, files: tuple[Path | None, ...] | None
) -> RectifiedMasks | None:
    padded = any(view.inner != view.size for view in views)
    if files is None and not recording.masked and not padded:
        return None
    files = files or (None,) * len(recording)
    return RectifiedMasks(recording.source, views, groups.camera, files, recording.masked)


def _digests(
    recording: Recording, views: tuple[View, ...], groups: CameraGroups, files: tuple[Path | None, ...] | None
) -> tuple[str, ...]:
    """What the rectified pixels and the mask are made from."""
    shape = [_shape(lens, view) for lens, view in zip(groups.lenses, views, strict=True)]
    masks = [file_digest(file) if file else "" for file in files or (None,) * len(recording)]
    rows = zip(recording.digests, groups.camera, masks, strict=True)
    return tuple(digest_of([digest, shape[g], mask]) for digest, g, mask in rows)


def _shape(lens: Lens, view: View) -> str:
    """What a view does to the pixels: the intrinsics matter only where they bend the image."""
    bent = [lens.model, lens.params] if view.map_x is not None else None
    return digest_of([view.scaled, view.inner, view.size, bent])
