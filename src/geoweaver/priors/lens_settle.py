"""A window's camera settles together with all that it shows, and says how well it is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from geoweaver.priors.sfm_mapping import CAMERA

_ROUNDS = 3
_REPROJECTION_PX = 2.0
_ANGLE_DEG = 1.0
"""Points that miss by more, or are seen from one direction only, do not vote."""

_CORRELATED = 1e-9
"""Smallest eigenvalue of the correlations below which two parameters cannot be told apart."""


@dataclass(frozen=True)
class Settled:
    """A camera's parameters, and the covariance of the free ones for keypoints that err by a pixel."""

    params: tuple[float, ...]
    covariance: tuple[float, ...]
    """Row by row; empty where the free parameters cannot all be told."""


def settle(model: Any, camera_model: str, params: list[float], *, focal: bool, middle: bool) -> Settled:
    """Adjust a model with its bending free, its focal and its principal point where asked for."""
    import pycolmap

    camera = model.cameras[CAMERA]
    camera.model, camera.params = camera_model, params
    for k in range(_ROUNDS):
        # the principal point moves last: it would follow what the other parameters have not settled yet
        _adjuster(model, focal, middle and k > 0).solve()
        pycolmap.ObservationManager(model).filter_all_points3D(_REPROJECTION_PX, _ANGLE_DEG)
    adjuster = _adjuster(model, focal, middle)
    adjuster.solve()
    covariance = _covariance(model, adjuster)
    return Settled(tuple(map(float, camera.params)), tuple(map(float, covariance.ravel())))


def _adjuster(model: Any, focal: bool, middle: bool) -> Any:
    """All cameras and points of a model and its lens, in a problem of pycolmap's."""
    import pycolmap

    options = pycolmap.BundleAdjustmentOptions()
    options.refine_focal_length, options.refine_principal_point = focal, middle
    options.refine_extra_params, options.print_summary = True, False
    options.ceres.solver_options.num_threads = 1
    config = pycolmap.BundleAdjustmentConfig()
    for image in model.reg_image_ids():
        config.add_image(image)
    config.fix_gauge(pycolmap.BundleAdjustmentGauge.TWO_CAMS_FROM_WORLD)
    return pycolmap.create_default_ceres_bundle_adjuster(options, config, model)


def _covariance(model: Any, adjuster: Any) -> np.ndarray:
    import pycolmap

    found = pycolmap.estimate_ba_covariance(pycolmap.BACovarianceOptions(), model, adjuster)
    matrix = None if found is None else found.get_other_params_cov(model.cameras[CAMERA].params)
    return np.asarray(matrix) if matrix is not None and _tells_all(np.asarray(matrix)) else np.zeros(0)


def _tells_all(covariance: np.ndarray) -> bool:
    """Whether no combination of the parameters is left free, nor any known exactly."""
    variance = np.diag(covariance)
    if not np.isfinite(covariance).all() or not (variance > 0).all():
        return False
    correlation = covariance / np.sqrt(variance[:, None] * variance)
    return bool(np.linalg.eigvalsh(correlation)[0] > _CORRELATED)
