"""What a user would otherwise run: COLMAP through pycolmap on the same images, kept by the images' digest."""

import hashlib
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import saved_rows, write_results
from geoweaver.datatypes import Trajectory
from geoweaver.evaluation.scores import score_trajectory
from geoweaver.geometry import SE3

MOST_FEATURES, LONG_SIDE, NEIGHBOURS = 2048, 640, 8


def images_digest(folder: Path) -> str:
    """Changes when an image does."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def colmap_row(name: str, images: Path, truth: Trajectory, params: str | None, fresh: bool) -> dict[str, Any]:
    """COLMAP's row of a sequence: kept where the same images were measured before."""
    key = f"{name}-{images_digest(images)}-{params or 'unknown'}"
    kept = [row for row in saved_rows("colmap") if row["key"] != key or fresh]
    found = [row for row in saved_rows("colmap") if row["key"] == key and not fresh]
    if found:
        return found[0]
    row = {"key": key, "sequence": name, **run_colmap(images, truth, params)}
    write_results("colmap", [*kept, row])
    return row


def run_colmap(images: Path, truth: Trajectory, params: str | None) -> dict[str, Any]:
    """Features, sequential pairs with quadratic overlap, incremental mapping; scores of the largest model."""
    import pycolmap

    begun, frames = time.perf_counter(), len(list(images.iterdir()))
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch) / "database.db"
        reader, extraction = pycolmap.ImageReaderOptions(), pycolmap.FeatureExtractionOptions()
        if params is not None:
            reader.camera_model = "PINHOLE" if params.count(",") == 3 else "OPENCV"
            reader.camera_params = _corner_origin(params)
        extraction.max_image_size, extraction.sift.max_num_features = LONG_SIDE, MOST_FEATURES
        pycolmap.extract_features(
            database, images, camera_mode=pycolmap.CameraMode.SINGLE,
            reader_options=reader, extraction_options=extraction,
        )  # fmt: skip
        pairing = pycolmap.SequentialPairingOptions()
        pairing.overlap, pairing.quadratic_overlap = NEIGHBOURS, True
        pycolmap.match_sequential(database, pairing_options=pairing)
        options = pycolmap.IncrementalPipelineOptions()
        if params is not None:
            options.ba_refine_focal_length = options.ba_refine_extra_params = False
        models = pycolmap.incremental_mapping(database, images, Path(scratch), options)
        seconds = time.perf_counter() - begun
        return {"frames": frames, "seconds": seconds, "models": len(models), **_scores(models, truth, images)}


def _scores(models: Any, truth: Trajectory, images: Path) -> dict[str, Any]:
    if not models:
        return {"registered": 0, "ate": None, "rre_deg": None, "auc3": None}
    largest = max(models.values(), key=lambda m: m.num_reg_images())
    place = {path.name: k for k, path in enumerate(sorted(images.iterdir()))}
    found = sorted((place[image.name], image) for image in largest.images.values() if image.has_pose)
    poses = torch.tensor([image.cam_from_world().matrix() for _, image in found], dtype=torch.float64)
    index = torch.tensor([k for k, _ in found])
    names = tuple(image.name for _, image in found) if truth.names else None
    estimate = Trajectory(SE3(poses[:, :, :3], poses[:, :, 3]), index, names, index.double())
    scores = score_trajectory(estimate, truth, missing="ignore")
    return {"registered": len(found), "ate": scores.ate, "rre_deg": scores.rre_deg, "auc3": scores.auc3}


def _corner_origin(params: str) -> str:
    """Typed-in principal points count from the first pixel's centre; COLMAP's from the image's corner."""
    numbers = [float(x) for x in params.split(",")]
    numbers[2], numbers[3] = numbers[2] + 0.5, numbers[3] + 0.5
    return ",".join(str(x) for x in numbers)
