"""What a user would otherwise run: COLMAP through pycolmap on the same images, kept by the images' digest."""

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import saved_rows, write_results
from geoweaver.benchmark.colmap import map_images
from geoweaver.datatypes import Trajectory
from geoweaver.evaluation.scores import score_trajectory
from geoweaver.geometry import SE3


def images_digest(folder: Path) -> str:
    """Changes when an image does."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def colmap_row(
    name: str, images: Path, truth: Trajectory, params: str | None, how: str
) -> dict[str, Any] | None:
    """COLMAP's row of a sequence: `kept` where the same images were measured before, or measured `fresh`.

    `known`: nothing is measured, None where nothing is kept.
    """
    key = f"{name}-{images_digest(images)}-{params or 'unknown'}"
    kept = [row for row in saved_rows("colmap") if row["key"] != key]
    found = [row for row in saved_rows("colmap") if row["key"] == key]
    if how == "known" or (found and how == "kept"):
        return found[0] if found else None
    row = {"key": key, "sequence": name, **run_colmap(images, truth, params)}
    write_results("colmap", [*kept, row])
    return row


def run_colmap(images: Path, truth: Trajectory, params: str | None) -> dict[str, Any]:
    """Map the images, then score the largest model."""
    names = sorted(path.name for path in images.iterdir())
    with tempfile.TemporaryDirectory() as scratch:
        done = map_images(images, names, Path(scratch) / "database.db", _camera(params))
    head = {"frames": len(names), "seconds": done.seconds, "models": done.models}
    return head | _scores(done.largest, truth, names)


def _scores(model: Any, truth: Trajectory, names: list[str]) -> dict[str, Any]:
    if model is None:
        return {"registered": 0, "ate": None, "rre_deg": None, "auc3": None}
    place = {name: k for k, name in enumerate(names)}
    found = sorted((place[image.name], image) for image in model.images.values() if image.has_pose)
    poses = torch.tensor([image.cam_from_world().matrix() for _, image in found], dtype=torch.float64)
    index = torch.tensor([k for k, _ in found])
    own = tuple(image.name for _, image in found) if truth.names else None
    estimate = Trajectory(SE3(poses[:, :, :3], poses[:, :, 3]), index, own, index.double())
    scores = score_trajectory(estimate, truth, missing="ignore")
    return {"registered": len(found), "ate": scores.ate, "rre_deg": scores.rre_deg, "auc3": scores.auc3}


def _camera(params: str | None) -> tuple[str, str] | None:
    """Typed-in principal points count from the first pixel's centre; COLMAP's from the image's corner."""
    if params is None:
        return None
    numbers = [float(x) for x in params.split(",")]
    numbers[2], numbers[3] = numbers[2] + 0.5, numbers[3] + 0.5
    return "PINHOLE" if len(numbers) == 4 else "OPENCV", ",".join(str(x) for x in numbers)
