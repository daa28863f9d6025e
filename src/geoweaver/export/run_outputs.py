"""What stands in a run folder beside run.json and trajectory.tum; all of it belongs to run.json's result."""

import shutil
from pathlib import Path

from geoweaver.export.nerfstudio_folder import CLOUD
from geoweaver.export.whole_folder import MARKER
from geoweaver.results import FinishedRun
from geoweaver.store.whole import disk_errors

ALWAYS = ("points.ply", "report.html")
WITH_CAMERAS = ("colmap", "transforms.json", CLOUD)
"""Of trusted keyframes: a run that trusts none has none of these."""
WITH_DEPTH = ("depth",)


def expected_outputs(run: FinishedRun) -> tuple[str, ...]:
    """The files and folders that a complete run folder holds for this result."""
    trusted = bool((run.result.trusted & run.frames.keyframe).any())
    return (*ALWAYS, *(WITH_CAMERAS if trusted else ()), *(WITH_DEPTH if run.depths.frames else ()))


def remove_outputs(out: Path) -> list[str]:
    """Take away what an earlier result left, run.json first, and say what; folders of others stay."""
    with disk_errors("clean", out):
        for name in ("run.json", "trajectory.tum"):
            (out / name).unlink(missing_ok=True)
        names = [name for name in (*ALWAYS, *WITH_CAMERAS, *WITH_DEPTH) if _remove(out / name)]
        # halves of folders that a killed run was writing
        for name in ("colmap", "depth"):
            for half in (*out.glob(f".{name}.*.tmp"), *out.glob(f".{name}.*.old")):
                shutil.rmtree(half)
    return names


def _remove(path: Path) -> bool:
    """Whether there was something of ours."""
    if path.is_dir():
        ours = (path / MARKER).is_file()
        if ours:
            shutil.rmtree(path)
        return ours
    found = path.exists()
    path.unlink(missing_ok=True)
    return found
