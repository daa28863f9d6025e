"""Depth against depth: AbsRel and SqRel over a sequence's valid pixels, one frame in memory at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.errors import DegenerateError, InputError

DepthAlign = Literal["none", "median"]
"""none: the sequence's one scale; median: each frame by its medians' ratio, as for single images."""
_ASPECT_TOLERANCE = 0.05
"""Sizes rounded to a network's multiples stay inside; another crop of the image does not."""


@dataclass(frozen=True)
class DepthFrame:
    """Predicted and true depth of one frame's field of view; not positive or not finite = unknown."""

    predicted: Float[Tensor, "h w"]
    reference: Float[Tensor, "H W"]
    confidence: Float[Tensor, "h w"] | None = None
    name: str = ""


@dataclass(frozen=True)
class DepthScores:
    """Errors over all valid pixels of all frames together."""

    absrel: float
    sqrel: float
    """In the reference's units."""
    frames: int
    """Depth maps in which something could be compared."""
    coverage: float
    """Share of the reference's valid pixels for which there is a prediction."""
    absrel_confident: float | None
    """AbsRel over the more confident half of each frame's pixels; None without confidence."""

    def row(self) -> dict[str, float | int]:
        """The scores under their names in `geoweaver evaluate --json`."""
        row = {
            "absrel": self.absrel,
            "sqrel": self.sqrel,
            "depth_frames": self.frames,
            "depth_coverage": self.coverage,
        }
        sure = {} if self.absrel_confident is None else {"absrel_confident": self.absrel_confident}
        return row | sure


def score_depth(frames: Iterable[DepthFrame], scale: float = 1.0, align: DepthAlign = "none") -> DepthScores:
    """Pool the errors of all frames; `scale` is the sequence's one Sim(3) scale."""
    absolute = square = confident = 0.0
    pixels = truths = sure = used = count = 0
    for frame in frames:
        predicted, reference, confidence = _valid_pixels(frame)
        count += 1
        truths += int(_positive(frame.reference).sum())
        if not len(predicted):
            continue
        used += 1
        factor = float(np.median(reference) / np.median(predicted)) if align == "median" else scale
        error = (factor * predicted - reference).abs()
        absolute += float((error / reference).sum())
        square += float((error.square() / reference).sum())
        pixels += len(error)
        if confidence is not None:
            half = confidence >= np.median(confidence)
            confident += float((error / reference)[half].sum())
            sure += int(half.sum())
    if not pixels:
        raise DegenerateError(
            f"no pixel of {count} depth maps has both a reference and a prediction: check units and names"
        )
    sure_error = confident / sure if sure else None
    return DepthScores(absolute / pixels, square / pixels, used, pixels / truths, sure_error)


def at_size(image: Float[Tensor, "h w"], height: int, width: int, name: str = "") -> Float[Tensor, "H W"]:
    """The same view at another size: each pixel takes the value that its centre falls on."""
    h, w = image.shape
    if abs(w * height / (h * width) - 1) > _ASPECT_TOLERANCE:
        raise InputError(
            f"{name or 'a depth map'}: predicted depth is {w}x{h} but the reference {width}x{height}: "
            "they do not show the same field of view; give reference depth of the uncropped frames"
        )
    resized = torch.nn.functional.interpolate(image[None, None], (height, width), mode="nearest-exact")
    return resized[0, 0]


def _positive(depth: Float[Tensor, "h w"]) -> Bool[Tensor, "h w"]:
    return depth.isfinite() & (depth > 0)


def _valid_pixels(
    frame: DepthFrame,
) -> tuple[Float[Tensor, "p"], Float[Tensor, "p"], Float[Tensor, "p"] | None]:
    """Prediction, reference and confidence where both depths are known, in double precision."""
    height, width = frame.reference.shape
    predicted = at_size(frame.predicted.double(), height, width, frame.name)
    valid = _positive(frame.reference) & _positive(predicted)
    if frame.confidence is None:
        return predicted[valid], frame.reference.double()[valid], None
    confidence = at_size(frame.confidence.double(), height, width, frame.name)
    return predicted[valid], frame.reference.double()[valid], confidence[valid]
