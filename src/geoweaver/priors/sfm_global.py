"""Global structure from motion of one chunk through pycolmap: all cameras at once, so that none drifts."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from geoweaver.priors.sfm_mapping import (
    MappingCamera,
    SparseModel,
    largest_first,
    read_model,
    run_pipeline,
    written_camera,
)
from geoweaver.priors.sfm_pairs import VerifiedPair

T = TypeVar("T")

_ESSENTIAL_PX = 1.5
_FEWEST = 15
"""Matches that a pair's relative pose must rest on."""


def map_globally(
    keypoints: Sequence[Float[np.ndarray, "_ 2"]],
    pairs: Sequence[VerifiedPair],
    camera: MappingCamera,
    seed: int = 0,
) -> list[SparseModel]:
    """Models by averaged rotations and one solve for all positions, largest first; the focal must be known.

    An incremental model carries its scale from frame to frame and may lose it in a sharp turn; here every
    track of the chunk votes on all of it at once.
    """
    return largest_first(run_globally(keypoints, pairs, camera, partial(read_model, keypoints), seed))


def run_globally(
    keypoints: Sequence[Float[np.ndarray, "_ 2"]],
    pairs: Sequence[VerifiedPair],
    camera: MappingCamera,
    read: Callable[[Any], T],
    seed: int = 0,
) -> list[T]:
    """What `read` takes from each model of pycolmap's global mapper."""
    import pycolmap

    written = written_camera(camera)
    geometries = _relative_poses(keypoints, pairs, written, seed)
    pipeline = partial(pycolmap.GlobalPipeline, _options(seed))
    return run_pipeline(keypoints, geometries, written, pipeline, read)


def _relative_poses(
    keypoints: Sequence[Float[np.ndarray, "_ 2"]], pairs: Sequence[VerifiedPair], camera: Any, seed: int
) -> Iterator[tuple[VerifiedPair, Any]]:
    """Each pair's calibrated geometry, where enough matches support one."""
    import pycolmap

    options = pycolmap.TwoViewGeometryOptions()
    options.compute_relative_pose = True
    options.ransac.max_error, options.ransac.random_seed = _ESSENTIAL_PX, seed
    for pair in pairs:
        matches = pair.matches.astype(np.uint32)
        p, q = keypoints[pair.a], keypoints[pair.b]
        geometry = pycolmap.estimate_calibrated_two_view_geometry(camera, p, camera, q, matches, options)
        if len(geometry.inlier_matches) >= _FEWEST:
            yield pair, geometry


def _options(seed: int) -> Any:
    import pycolmap

    options = pycolmap.GlobalPipelineOptions()
    options.num_threads = options.mapper.num_threads = 1
    options.random_seed = options.mapper.random_seed = seed
    options.mapper.bundle_adjustment.refine_focal_length = False
    options.mapper.bundle_adjustment.ceres.use_gpu = options.mapper.global_positioning.use_gpu = False
    return options
