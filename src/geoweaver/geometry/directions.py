"""From how many sides points are seen."""

import numpy as np
from jaxtyping import Float, Int


def direction_scatter(
    ray: Float[np.ndarray, "t 3"], point: Int[np.ndarray, "t"], count: int
) -> Float[np.ndarray, "p"]:
    """Standard deviation, in radians, of the directions of the rays to each of so many points."""
    unit = ray / np.maximum(np.linalg.norm(ray, axis=1, keepdims=True), 1e-12)
    mean = np.zeros((count, 3))
    np.add.at(mean, point, unit)
    seen = np.maximum(np.bincount(point, minlength=count), 1)
    # the length of the mean direction falls below one by half the variance of the angle
    return np.asarray(np.sqrt(np.maximum(2 - 2 * np.linalg.norm(mean, axis=1) / seen, 0)))
