"""Incremental structure from motion of one chunk through pycolmap, in memory and with one thread."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int

from geoweaver.geometry import SE3
from geoweaver.geometry.directions import direction_scatter
from geoweaver.priors.sfm_pairs import VerifiedPair
from geoweaver.store import NOT_IN_KEY

CAMERA = 1
"""The one camera's number in every model."""
FOCAL_RANGE = (0.3, 4.0)
"""In image lengths: a focal outside of this is no camera that people film with."""
HANDFUL = 5
"""Images below which any two may be all that there is."""
T = TypeVar("T")

_SLIGHT_START, _SLIGHT_ANGLE = 0.25, 0.1
"""Degrees under which a first pair and its points are seen where a camera hardly moved."""


@dataclass(frozen=True)
class SparseModel:
    """Cameras and points that one run of structure from motion agrees on, in units of its own."""

    member: Int[np.ndarray, "n"]
    """Positions in the chunk, ascending."""
    cam_from_chunk: SE3
    intrinsics: tuple[float, float, float, float]
    """(fx, fy, cx, cy) at the images' size."""
    points: Float[np.ndarray, "p 3"]
    point_of: Int[np.ndarray, "n k"]
    """For each member and keypoint (padded to the largest number) its point, -1 where it has none."""

    def __len__(self) -> int:
        return len(self.member)


@dataclass(frozen=True)
class MappingCamera:
    """What is known of a chunk's camera when mapping starts."""

    intrinsics: tuple[float, float, float, float]
    size: tuple[int, int]
    fixed: bool
    """True where the focal is given or agreed on: it is not refined."""
    agreed: bool = False
    """True where other chunks agreed on the focal: it may give way once, to be checked by the matches."""
    told: bool = field(default=False, metadata=NOT_IN_KEY)
    """True where the images tell the focal roughly (they are in every key): no other lens is tried."""


def map_chunk(
    keypoints: Sequence[Float[np.ndarray, "_ 2"]],
    pairs: Sequence[VerifiedPair],
    camera: MappingCamera,
    first_pair: tuple[int, int] | None = None,
    seed: int = 0,
) -> list[SparseModel]:
    """All models that incremental mapping finds, largest first; the first pair may be imposed."""
    options = mapper_options(camera.fixed, first_pair, seed)
    read = partial(read_model, keypoints)
    return largest_first(run_mapper(keypoints, pairs, written_camera(camera), options, read))


def largest_first(models: Sequence[SparseModel]) -> list[SparseModel]:
    """Models with cameras, by their number."""
    return sorted((m for m in models if len(m)), key=len, reverse=True)


def written_camera(camera: MappingCamera) -> Any:
    """The camera as pycolmap's: with one focal where that is to be refined."""
    import pycolmap

    fx, fy, cx, cy = camera.intrinsics
    width, height = camera.size
    model, params = ("PINHOLE", [fx, fy, cx, cy]) if camera.fixed else ("SIMPLE_PINHOLE", [fx, cx, cy])
    written = pycolmap.Camera(camera_id=CAMERA, model=model, width=width, height=height, params=params)
    written.has_prior_focal_length = camera.fixed
    return written


def run_mapper(
    keypoints: Sequence[Float[np.ndarray, "_ 2"]],
    pairs: Sequence[VerifiedPair],
    camera: Any,
    options: Any,
    read: Callable[[Any], T],
) -> list[T]:
    """What `read` takes from each model that pycolmap's mapper makes of matches, all of one camera."""
    import pycolmap

    if len(keypoints) < HANDFUL:
        # of a handful of images most points are seen by two, and two may be all that overlap
        options.min_model_size, options.triangulation.ignore_two_view_tracks = 2, False
    geometries = ((pair, _matched(pair)) for pair in pairs)
    return run_pipeline(keypoints, geometries, camera, partial(pycolmap.IncrementalPipeline, options), read)


def _matched(pair: VerifiedPair) -> Any:
    """Matches that are verified, in a geometry that the mapper finds out for itself."""
    import pycolmap

    geometry = pycolmap.TwoViewGeometry()
    geometry.config = int(pycolmap.TwoViewGeometryConfiguration.UNCALIBRATED)
    geometry.inlier_matches = pair.matches.astype(np.uint32)
    return geometry


def run_pipeline(
    keypoints: Sequence[Float[np.ndarray, "_ 2"]],
    geometries: Iterable[tuple[VerifiedPair, Any]],
    camera: Any,
    pipeline: Callable[[Any, Any], Any],
    read: Callable[[Any], T],
) -> list[T]:
    """What `read` takes from each model that a pipeline of pycolmap's makes of a database in memory."""
    import pycolmap

    quiet = pycolmap.logging.minloglevel
    pycolmap.logging.minloglevel = 3  # a mapper that finds no initial pair says so in its answer
    try:
        with pycolmap.Database.open(":memory:") as database:
            _write_images(database, keypoints, camera)
            for pair, geometry in geometries:
                database.write_two_view_geometry(pair.a + 1, pair.b + 1, geometry)
            manager = pycolmap.ReconstructionManager()
            pipeline(database, manager).run()
            return [read(manager.get(i)) for i in range(manager.size())]
    finally:
        pycolmap.logging.minloglevel = quiet


def _write_images(database: Any, keypoints: Sequence[Float[np.ndarray, "_ 2"]], camera: Any) -> None:
    import pycolmap

    database.write_camera(camera, use_camera_id=True)
    rig = pycolmap.Rig(rig_id=CAMERA)
    rig.add_ref_sensor(camera.sensor_id)
    database.write_rig(rig, use_rig_id=True)
    for position, pixels in enumerate(keypoints):
        image = pycolmap.Image(name=f"{position:06d}", camera_id=CAMERA, image_id=position + 1)
        database.write_image(image, use_image_id=True)
        frame = pycolmap.Frame(frame_id=position + 1, rig_id=CAMERA)
        frame.add_data_id(image.data_id)
        database.write_frame(frame, use_frame_id=True)
        database.write_keypoints(position + 1, np.asarray(pixels, np.float32))


def mapper_options(fixed: bool, first_pair: tuple[int, int] | None, seed: int) -> Any:
    """Thresholds for short baselines and few matches: what covered whole chunks of a hand-held walk."""
    import pycolmap

    options = pycolmap.IncrementalPipelineOptions()
    options.num_threads, options.extract_colors = 1, False
    options.min_model_size, options.min_num_matches = 4, 15
    options.random_seed = options.mapper.random_seed = options.triangulation.random_seed = seed
    options.mapper.num_threads = 1
    options.mapper.init_min_num_inliers = 50
    options.mapper.abs_pose_min_num_inliers = 15
    options.mapper.abs_pose_min_inlier_ratio = 0.15
    options.mapper.init_min_tri_angle = 4
    # a chunk is small: adjusting all of it less often costs a third less and changes nothing measurable
    options.ba_global_frames_ratio = options.ba_global_points_ratio = 1.3
    options.ba_global_max_refinements, options.ba_local_max_refinements = 2, 1
    options.ba_refine_focal_length = not fixed
    options.mapper.abs_pose_refine_focal_length = not fixed
    options.min_focal_length_ratio, options.max_focal_length_ratio = FOCAL_RANGE
    if first_pair is not None:
        options.init_image_id1, options.init_image_id2 = first_pair[0] + 1, first_pair[1] + 1
        # every further model would begin with the same pair
        options.multiple_models = False
    return options


def read_model(keypoints: Sequence[Float[np.ndarray, "_ 2"]], model: Any) -> SparseModel:
    """Plain arrays of a pycolmap reconstruction."""
    images = [model.images[i] for i in sorted(model.reg_image_ids())]
    row = {point: k for k, point in enumerate(sorted(model.points3D))}
    points = np.array([model.points3D[p].xyz for p in row]).reshape(-1, 3)
    point_of = np.full((len(images), max(map(len, keypoints), default=0)), -1, np.int64)
    for k, image in enumerate(images):
        for at in image.get_observation_point2D_idxs():
            point_of[k, at] = row[image.points2D[at].point3D_id]
    matrices = np.array([image.cam_from_world().matrix() for image in images]).reshape(-1, 3, 4)
    params = model.cameras[CAMERA].params
    fx, fy, cx, cy = params if len(params) == 4 else (params[0], params[0], params[1], params[2])
    return SparseModel(
        np.array([image.image_id - 1 for image in images], np.int64),
        SE3.from_matrix(torch.from_numpy(matrices)),
        (float(fx), float(fy), float(cx), float(cy)),
        points,
        point_of,
    )


def map_slight_motion(
    keypoints: Sequence[Float[np.ndarray, "_ 2"]],
    pairs: Sequence[VerifiedPair],
    camera: MappingCamera,
    seed: int = 0,
) -> list[SparseModel]:
    """Models of a camera that moved little, or straight ahead: points under small angles count.

    So little motion cannot tell the focal, which stays as it was given or guessed. A mere turn with a wrong
    focal would be explained as well: `moves_slightly` has to rule that out first.
    """
    held = replace(camera, fixed=True)
    options = mapper_options(True, None, seed)
    options.mapper.init_min_tri_angle, options.mapper.init_max_forward_motion = _SLIGHT_START, 1.0
    options.mapper.filter_min_tri_angle = options.triangulation.min_angle = _SLIGHT_ANGLE
    options.mapper.ba_local_min_tri_angle = _SLIGHT_ANGLE

    read = partial(read_model, keypoints)
    return largest_first(run_mapper(keypoints, pairs, written_camera(held), options, read))


def ray_spread(model: SparseModel) -> Float[np.ndarray, "p"]:
    """Standard deviation, in radians, of the directions in which each point is seen."""
    centre = model.cam_from_chunk.centre.numpy()
    row, feature = np.nonzero(model.point_of >= 0)
    point = model.point_of[row, feature]
    return direction_scatter(model.points[point] - centre[row], point, len(model.points))
