"""From a file's numbers to rigid transforms: small noise is removed, what is no rotation is refused."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float64

from geoweaver.errors import FormatError
from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import matrix_from_quaternion, nearest_rotation

NORM_TOLERANCE = 0.1
"""How far a quaternion's norm may be from 1: two printed decimals stay well inside."""
ROTATION_TOLERANCE = 1e-2
"""Largest entry of |R^T R - I| that still counts as rounding noise."""
FARTHEST = 1e15
"""Coordinates beyond this are no places: differences would lose every digit."""

Where = Callable[[int], str]
"""Says in words where row i of the data stands in its file."""


def from_quaternions(
    translation: Float64[np.ndarray, "n 3"], wxyz: Float64[np.ndarray, "n 4"], where: Where
) -> SE3:
    """Rigid transforms of translations and quaternions, w first."""
    _refuse_far(translation, where)
    norm = np.sqrt(np.square(np.clip(wxyz, -1e9, 1e9)).sum(1))
    for row in np.flatnonzero(~(np.abs(norm - 1) <= NORM_TOLERANCE))[:1]:
        raise FormatError(
            f"{where(int(row))}: the quaternion's norm is {norm[row]:.3g}, not 1: "
            "check the order of the columns or remove the entry"
        )
    return SE3(matrix_from_quaternion(torch.from_numpy(wxyz)), torch.from_numpy(translation.copy()))


def from_matrices(matrix: Float64[np.ndarray, "n r 4"], where: Where) -> SE3:
    """Rigid transforms of 3x4 or 4x4 matrices, each rotation replaced by the nearest proper one."""
    _refuse_far(matrix[:, :3, 3], where)
    R = np.clip(matrix[:, :3, :3], -1e9, 1e9)
    error = np.abs(R.transpose(0, 2, 1) @ R - np.eye(3)).max((1, 2))
    for row in np.flatnonzero(~((error <= ROTATION_TOLERANCE) & (np.linalg.det(R) > 0)))[:1]:
        raise FormatError(
            f"{where(int(row))}: the left 3x3 block is no rotation (determinant "
            f"{np.linalg.det(R[row]):.3g}, error {error[row]:.2g}): check the order of the numbers"
        )
    if matrix.shape[1] == 4:
        for row in np.flatnonzero(np.abs(matrix[:, 3] - [0, 0, 0, 1]).max(1) > 1e-6)[:1]:
            raise FormatError(
                f"{where(int(row))}: the matrix must end with the row 0 0 0 1: check how it was written"
            )
    return SE3(nearest_rotation(torch.from_numpy(R)), torch.from_numpy(matrix[:, :3, 3].copy()))


def _refuse_far(translation: Float64[np.ndarray, "n 3"], where: Where) -> None:
    for row in np.flatnonzero(~(np.abs(translation).max(1) < FARTHEST))[:1]:
        far = np.abs(translation[row]).max()
        raise FormatError(f"{where(int(row))}: a coordinate of {far:.3g} is out of range: check the entry")
