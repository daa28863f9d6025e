"""One row of a table: what an estimate is worth, by the functions behind `geoweaver evaluate`."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import torch

from geoweaver.benchmark.scene import Scene
from geoweaver.datatypes import Trajectory
from geoweaver.errors import DegenerateError, GeoWeaverError
from geoweaver.evaluation import associate, score_depth, score_doubts, score_trajectory
from geoweaver.evaluation.depth import DepthFrame
from geoweaver.evaluation.depth_files import depth_maps, same_names
from geoweaver.formats.depth import read_depth
from geoweaver.formats.files import place
from geoweaver.geometry.distortion import is_pinhole
from geoweaver.results import FinishedRun

Row = dict[str, Any]


def failed_row(scene: Scene, method: str, error: GeoWeaverError) -> Row:
    """In place of scores, why there are none."""
    reason = " ".join(str(error).split())
    return {"scene": scene.name, "method": method, "status": "failed", "reason": reason}


def shown_part(reference: Trajectory, given: Trajectory, max_time_diff: float) -> Trajectory:
    """The reference's frames that a method was shown: what --stride leaves out is nobody's failure."""
    return reference.choose(associate(given, reference, max_time_diff).reference)


def camera_row(estimate: Trajectory, reference: Trajectory, max_time_diff: float) -> Row:
    """Scores of the cameras; a frame that the method was shown and did not place fails its pairs."""
    scores = score_trajectory(estimate, reference, "fail", max_time_diff)
    doubts = score_doubts(scores, estimate, reference)
    return {**scores.row(), **({"warnings": list(doubts)} if doubts else {})}


def depth_row(run: FinishedRun, scene: Scene, scale: float) -> Row:
    """Scores of a run's final depth by the trajectory's one scale; a note where they would mean nothing."""
    if scene.depth is None:
        return {}
    if not all(is_pinhole(camera.lens) for camera in run.frames.cameras):
        return {"depth_note": "depth is not scored: the run straightened a bent lens, the reference is bent"}
    try:
        return dict(score_depth(_compared(run, scene), scale).row())
    except GeoWeaverError as error:
        # the cameras are scored all the same
        return {"depth_note": f"depth is not scored: {error}"}


def _compared(run: FinishedRun, scene: Scene) -> Iterator[DepthFrame]:
    """Reference depth of every frame that the run was shown, with the run's own where it has one."""
    assert scene.depth is not None
    stems = {PurePosixPath(name).stem: frame for frame, name in enumerate(run.frames.names)}
    frames, truth = same_names(stems, depth_maps(scene.depth))
    if not frames.keys() & truth.keys():
        raise DegenerateError(
            f"no depth map in {place(scene.depth)} has the name or number of an image of {scene.name}: "
            "name the maps like their images"
        )
    has_depth = set(run.depths.frames)
    for name, path in truth.items():
        if name not in frames:
            continue
        depth = read_depth(path, scene.depth_unit)
        # the far end's own value is not exact in floats
        depth = torch.where(depth < scene.depth_far * (1 - 1e-6), depth, 0)
        if frames[name] in has_depth:
            found = run.depths.read(frames[name])
            yield DepthFrame(found.depth, depth, found.confidence, place(path))
        else:
            yield DepthFrame(torch.zeros_like(depth), depth)
