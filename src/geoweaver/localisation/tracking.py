"""Points of a keyframe followed into a nearby frame: sparse optical flow, there and back."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

RETURN = 1.0
"""Pixels by which a point may miss itself on the way back."""
_WINDOW, _LEVELS = 21, 4


def track_points(
    one: UInt8[np.ndarray, "height width 3"],
    two: UInt8[np.ndarray, "height width 3"],
    pixel: Float[Tensor, "n 2"],
    guess: Float[Tensor, "n 2"] | None = None,
) -> tuple[Float[Tensor, "n 2"], Bool[Tensor, "n"]]:
    """Where the points are in the second image, and which of them came back to where they began."""
    import cv2

    if not len(pixel):
        return pixel, torch.zeros(0, dtype=torch.bool)
    cv2.setNumThreads(1)
    a, b = (cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) for image in (one, two))
    begin = _centred(pixel)
    start = _centred(guess if guess is not None else pixel)
    how: dict[str, Any] = {
        "winSize": (_WINDOW, _WINDOW),
        "maxLevel": _LEVELS,
        "flags": cv2.OPTFLOW_USE_INITIAL_FLOW,
    }
    there, seen, _ = cv2.calcOpticalFlowPyrLK(a, b, begin, start.copy(), **how)
    back, returned, _ = cv2.calcOpticalFlowPyrLK(b, a, there, begin.copy(), **how)
    miss = np.linalg.norm(back - begin, axis=1)
    inside = ((there >= 0) & (there <= np.array([b.shape[1] - 1, b.shape[0] - 1]))).all(1)
    good = (seen[:, 0] == 1) & (returned[:, 0] == 1) & (miss <= RETURN) & inside
    return torch.from_numpy(there).double() + 0.5, torch.from_numpy(good)


def _centred(pixel: Float[Tensor, "n 2"]) -> np.ndarray:
    """OpenCV counts from the first pixel's centre."""
    return np.ascontiguousarray((pixel - 0.5).numpy(), dtype=np.float32)
