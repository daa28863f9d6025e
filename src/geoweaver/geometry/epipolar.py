"""Epipolar lines of two cameras, and how far matches lie from them; no depth is needed."""

import numpy as np
from jaxtyping import Bool, Float


def fundamental_matrix(
    rotation: Float[np.ndarray, "3 3"],
    translation: Float[np.ndarray, "3"],
    intrinsics_i: Float[np.ndarray, "4"],
    intrinsics_j: Float[np.ndarray, "4"],
) -> Float[np.ndarray, "3 3"]:
    """x_j^T F x_i = 0 in pixels, of cam_j_from_cam_i; only the direction of the translation counts."""
    x, y, z = translation / max(float(np.linalg.norm(translation)), 1e-300)
    across = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(_ray_of(intrinsics_j).T @ across @ rotation @ _ray_of(intrinsics_i))


def _ray_of(intrinsics: Float[np.ndarray, "4"]) -> Float[np.ndarray, "3 3"]:
    """The matrix from homogeneous pixels to rays."""
    fx, fy, cx, cy = intrinsics
    return np.array([[1 / fx, 0, -cx / fx], [0, 1 / fy, -cy / fy], [0, 0, 1]])


def epipolar_distance(
    fundamental: Float[np.ndarray, "3 3"],
    pixel_i: Float[np.ndarray, "n 2"],
    pixel_j: Float[np.ndarray, "n 2"],
) -> Float[np.ndarray, "n"]:
    """Sampson distance in pixels."""
    x_i, x_j = (np.concatenate([p, np.ones((len(p), 1))], 1) for p in (pixel_i, pixel_j))
    line_j, line_i = x_i @ fundamental.T, x_j @ fundamental
    slope = (line_j[:, :2] ** 2).sum(1) + (line_i[:, :2] ** 2).sum(1)
    return np.asarray(np.abs((x_j * line_j).sum(1)) / np.sqrt(np.maximum(slope, 1e-24)))


def epipolar_inliers(
    p: Float[np.ndarray, "m 2"], q: Float[np.ndarray, "m 2"], threshold: float
) -> Bool[np.ndarray, "m"]:
    """Matches near the lines of the geometry that fits them best; OpenCV starts from a fixed seed."""
    import cv2

    if len(p) < 8:
        return np.zeros(len(p), bool)
    try:
        _, inlier = cv2.findFundamentalMat(p, q, cv2.USAC_MAGSAC, threshold, 0.999, 2000)
    except cv2.error:
        # on one plane any of many matrices fits, and USAC's refinement may end up without one
        _, inlier = cv2.findFundamentalMat(p, q, cv2.FM_RANSAC, threshold, 0.999, 2000)
    return np.zeros(len(p), bool) if inlier is None else inlier.ravel() > 0


def calibrated_inliers(
    p: Float[np.ndarray, "m 2"],
    q: Float[np.ndarray, "m 2"],
    intrinsics_i: Float[np.ndarray, "4"],
    intrinsics_j: Float[np.ndarray, "4"],
    threshold: float,
) -> Bool[np.ndarray, "m"]:
    """As `epipolar_inliers`, of a motion between two known lenses.

    A free geometry also takes in what is matched one shelf higher; a motion does not.
    """
    import cv2

    if len(p) < 8:
        return np.zeros(len(p), bool)
    to_i, to_j = _ray_of(intrinsics_i), _ray_of(intrinsics_j)
    focal = float((intrinsics_i[:2].prod() * intrinsics_j[:2].prod()) ** 0.25)
    left, right = (focal * (x @ ray[:2, :2].T + ray[:2, 2]) for x, ray in ((p, to_i), (q, to_j)))
    try:
        E, _ = cv2.findEssentialMat(
            left, right, np.diag([focal, focal, 1.0]), cv2.USAC_ACCURATE, 0.999, threshold
        )
    except cv2.error:
        E = None
    if E is None or E.shape != (3, 3):
        return np.zeros(len(p), bool)
    return np.asarray(epipolar_distance(to_j.T @ E @ to_i, p, q) < threshold)
