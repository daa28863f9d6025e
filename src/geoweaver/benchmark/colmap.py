"""What a user would otherwise run: COLMAP through pycolmap on the same images."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from geoweaver.benchmark.scene import Scene
from geoweaver.benchmark.scoring import Row, camera_row, shown_part
from geoweaver.datatypes import Frames, Trajectory
from geoweaver.errors import DegenerateError, InputError
from geoweaver.formats.colmap import read_colmap
from geoweaver.formats.colmap_load import pycolmap_complaints
from geoweaver.formats.files import is_file, is_folder, place
from geoweaver.formats.json_document import read_json, write_json
from geoweaver.frames import FramesConfig, open_frames
from geoweaver.frames.folder import list_images
from geoweaver.geometry import SE3
from geoweaver.store import digest_of

MOST_FEATURES, LONG_SIDE, NEIGHBOURS = 2048, 640, 8
_NOTE = "mapping.json"


@dataclass(frozen=True)
class Mapping:
    """How COLMAP's mapper ended."""

    models: int
    seconds: float
    largest: Any
    """pycolmap's model with the most images; None without any."""


def map_images(
    images: Path, names: Sequence[str], database: Path, camera: tuple[str, str] | None = None
) -> Mapping:
    """Features, sequential pairs with quadratic overlap, incremental mapping of images with one camera."""
    import pycolmap

    begun = time.perf_counter()
    reader, extraction = pycolmap.ImageReaderOptions(), pycolmap.FeatureExtractionOptions()
    options = pycolmap.IncrementalPipelineOptions()
    if camera is not None:
        reader.camera_model, reader.camera_params = camera
        options.ba_refine_focal_length = options.ba_refine_extra_params = False
    extraction.max_image_size, extraction.sift.max_num_features = LONG_SIDE, MOST_FEATURES
    pycolmap.extract_features(
        database, images, image_names=list(names), camera_mode=pycolmap.CameraMode.SINGLE,
        reader_options=reader, extraction_options=extraction,
    )  # fmt: skip
    pairing = pycolmap.SequentialPairingOptions()
    pairing.overlap, pairing.quadratic_overlap = NEIGHBOURS, True
    pycolmap.match_sequential(database, pairing_options=pairing)
    models = pycolmap.incremental_mapping(database, images, database.parent, options)
    largest = max(models.values(), key=lambda model: model.num_reg_images(), default=None)
    return Mapping(len(models), time.perf_counter() - begun, largest)


def colmap_row(scene: Scene, folder: Path, options: FramesConfig, max_time_diff: float) -> Row:
    """COLMAP's row of a scene: mapped once, scored as often as asked for."""
    if not is_folder(scene.input):
        raise InputError(f"{place(scene.input)} is a video: the method colmap takes folders of images")
    reference, frames = scene.read_reference(), open_frames(scene.input, options)
    if len(frames.cameras) > 1:
        raise InputError(f"{place(scene.input)} was taken by several cameras: the method colmap takes one")
    given = _given(frames)
    note = _mapped(scene.input, frames, folder)
    estimate = _registered(folder, given)
    scores = camera_row(estimate, shown_part(reference, given, max_time_diff), max_time_diff)
    head = {"scene": scene.name, "method": "colmap", "status": "done", "total": len(frames)}
    return {**head, **scores, "models": note["models"], "seconds": note["seconds"]}


def _mapped(input: Path, frames: Frames, folder: Path) -> dict[str, Any]:
    """Map the images unless these very ones were mapped before; the largest model is kept."""
    import pycolmap

    camera = frames.cameras[0]
    lens = (camera.model, ",".join(map(repr, camera.params))) if camera.calibrated else None
    settings = [pycolmap.__version__, MOST_FEATURES, LONG_SIDE, NEIGHBOURS, lens]
    key = digest_of([settings, frames.names, frames.digests])
    if is_file(folder / _NOTE):
        note = read_json(folder / _NOTE, "what COLMAP made of a scene")
        if note.get("key") == key:
            return note
    with TemporaryDirectory() as scratch, pycolmap_complaints(place(input)):
        done = map_images(list_images(input)[0], frames.names, Path(scratch) / "database.db", lens)
    if done.largest is None:
        raise DegenerateError("COLMAP registered no image: it finds no pair of images to begin with")
    (folder / "model").mkdir(parents=True, exist_ok=True)
    done.largest.write_binary(folder / "model")
    note = {"key": key, "models": done.models, "seconds": done.seconds}
    write_json(folder / _NOTE, note)
    return note


def _registered(folder: Path, given: Trajectory) -> Trajectory:
    """The model's cameras as rows of the given frames, whose names, times and places they have."""
    model = read_colmap(folder / "model")
    assert given.names is not None
    row = {name: k for k, name in enumerate(given.names)}
    rows = torch.tensor([row[name] for name in model.names])
    order = torch.argsort(rows)
    chosen = given.choose(rows[order])
    return Trajectory(model.cam_from_world[order], chosen.index, chosen.names, chosen.timestamps)


def _given(frames: Frames) -> Trajectory:
    """The frames as a run's trajectory tells of them; stamps of a folder are places in it."""
    times = frames.timestamps.double()
    counted = bool((times == times.round()).all()) and bool((times.diff() > 0).all())
    index = times.long() if counted else torch.arange(len(frames))
    return Trajectory(SE3.identity(len(frames)), index, frames.names, times)
