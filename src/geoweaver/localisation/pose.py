"""One frame's camera from points whose place in the world is known: RANSAC, then refinement."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry import SE3

FEWEST = 24
"""Inliers below which a camera is not believed."""
SHARE = 0.4
"""Share of the points that must agree."""
MOST_ERROR = 0.006
"""An inlier's error at most, as a share of the image's long side."""


@dataclass(frozen=True)
class Localised:
    """A camera, how many points agree with it, and how well they fix it."""

    cam_from_world: SE3
    inliers: int
    points: int
    sigma: Float[Tensor, "2"]
    """Of the centre in world units and of the rotation in radians."""

    @property
    def believed(self) -> bool:
        """Whether enough of the points agree."""
        return self.inliers >= FEWEST and self.inliers >= SHARE * self.points


def localise(
    pixel: Float[Tensor, "n 2"],
    world: Float[Tensor, "n 3"],
    intrinsics: Float[Tensor, "4"],
    size: tuple[int, int],
    seed: int = 0,
) -> Localised | None:
    """The camera that sees the points at these pixels; None where they fix none."""
    import pycolmap

    if len(pixel) < FEWEST:
        return None
    camera = pycolmap.Camera(model="PINHOLE", width=size[0], height=size[1], params=intrinsics.tolist())
    estimation, refinement = (
        pycolmap.AbsolutePoseEstimationOptions(),
        pycolmap.AbsolutePoseRefinementOptions(),
    )
    estimation.ransac.max_error = MOST_ERROR * max(size)
    estimation.ransac.random_seed, estimation.ransac.max_num_trials = seed, 1000
    # unit lengths of the order of 1 keep the refinement's tolerances meaningful in any unit
    centre, unit = world.mean(0), float((world - world.mean(0)).norm(dim=1).median()) or 1.0
    found = pycolmap.estimate_and_refine_absolute_pose(
        pixel.numpy(), ((world - centre) / unit).numpy(), camera, estimation, refinement, True
    )
    if found is None:
        return None
    matrix = torch.from_numpy(np.array(found["cam_from_world"].matrix()))
    rotation = matrix[:, :3]
    translation = unit * matrix[:, 3] - rotation @ centre
    sigma = _sigma(np.asarray(found["covariance"]), unit)
    return Localised(SE3(rotation, translation), int(found["num_inliers"]), len(pixel), sigma)


def _sigma(covariance: Float[np.ndarray, "6 6"], unit: float) -> Float[Tensor, "2"]:
    """Root mean squares of centre and rotation from the covariance of (rotation, translation)."""
    turn, move = np.trace(covariance[:3, :3]), np.trace(covariance[3:, 3:])
    sigma = torch.tensor([unit * move**0.5, turn**0.5], dtype=torch.float64)
    return torch.nan_to_num(sigma, nan=torch.inf)
