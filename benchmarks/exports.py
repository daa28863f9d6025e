"""What COLMAP makes of exported runs: tracks, time, and by how many sigmas a bundle adjustment moves cameras.

python -m benchmarks.exports RUN...
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness import print_table, write_results
from geoweaver.export.colmap_folder import write_colmap_folder
from geoweaver.finished import load_run
from geoweaver.geometry import SE3
from geoweaver.geometry.registration import umeyama
from geoweaver.geometry.so3 import so3_log
from geoweaver.results import FinishedRun


def measure(run: FinishedRun, folder: Path) -> dict[str, Any]:
    """Export one run, adjust the model with COLMAP's defaults, compare the cameras."""
    import pycolmap

    torch.set_num_threads(1)
    begun = time.process_time()
    made = write_colmap_folder(run, folder)
    seconds = time.process_time() - begun
    model = pycolmap.Reconstruction(folder / "sparse" / "0")
    before, error = _cameras(model), model.compute_mean_reprojection_error()
    ended = _adjust(model)
    moved = _moved_sigmas(before, _cameras(model), _sigma(run, folder))
    return {
        "run": run.folder.name,
        "images": len(made.pictures),
        "points": len(made.tracks),
        "track_length": model.compute_mean_track_length(),
        "error_px": error,
        "adjusted_px": model.compute_mean_reprojection_error(),
        "cpu_s_per_100": 100 * seconds / len(made.pictures),
        "over_3_sigmas": int((moved > 3).any(1).sum()),
        "centre_sigmas": float(moved[:, 0].max()),
        "rotation_sigmas": float(moved[:, 1].max()),
        "ended": ended,
    }


def _adjust(model: Any) -> str:
    """Bundle adjustment as `pycolmap.bundle_adjustment` sets it up; tells why it ended."""
    import pycolmap

    config = pycolmap.BundleAdjustmentConfig()
    for image in model.images:
        config.add_image(image)
    config.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    adjuster = pycolmap.create_default_bundle_adjuster(pycolmap.BundleAdjustmentOptions(), config, model)
    why = str(adjuster.solve().termination_type).rsplit(".", 1)[-1]
    model.update_point_3d_errors()
    return why


def _cameras(model: Any) -> SE3:
    """cam_from_world in order of the names."""
    images = sorted(model.images.values(), key=lambda image: image.name)
    matrices = torch.tensor(np.array([image.cam_from_world().matrix() for image in images]))
    return SE3(matrices[:, :, :3], matrices[:, :, 3])


def _sigma(run: FinishedRun, folder: Path) -> torch.Tensor:
    """Stated sigmas of centre and rotation, in order of the names."""
    names = json.loads((folder / "geoweaver.json").read_text())["frames"]
    row = {name: i for i, name in enumerate(run.frames.names)}
    return run.result.sigma[[row[names[name]] for name in sorted(names)]]


def _moved_sigmas(before: SE3, after: SE3, sigma: torch.Tensor) -> torch.Tensor:
    """By how many sigmas centres and rotations moved, one Sim(3) of the whole taken out."""
    fit = umeyama(after.centre, before.centre, 1 / sigma[:, 0].square())
    centre = (fit.act(after.centre) - before.centre).norm(dim=-1)
    turn = so3_log(after.rotation @ fit.rotation.mT @ before.rotation.mT).norm(dim=-1)
    return torch.stack([centre, turn], -1) / sigma


def main() -> None:
    """Measure the given runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    rows = []
    for path in parser.parse_args().runs:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(load_run(path), Path(folder) / "colmap"))
    print_table(rows)
    write_results("exports", rows)


if __name__ == "__main__":
    main()
