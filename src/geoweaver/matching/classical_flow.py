"""Dense optical flow on pre-aligned images, both ways; positions count from the first pixel's centre."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from geoweaver.matching.classical_warp import Field

_ACROSS = 4.0
"""Pixels to either side over which a flow's shape is read: flow itself is not right to much less than one."""


@dataclass(frozen=True)
class FlowConfig:
    """How thoroughly flow is searched; what it costs goes with four to the power of -finest."""

    finest: int = 1
    """Octaves below the image's resolution at which the search ends."""
    stride: int = 4
    """Pixels between patches."""
    descents: int = 12
    """Gradient steps per patch."""
    refinements: int = 2
    """Variational iterations per octave."""
    returning: int = 1
    """As `finest`, for the way back at the finest: it only has to tell whether a pixel comes home."""


@dataclass(frozen=True)
class Flow:
    """Where pixels of i lie in j: a rough field, and the residual flow on j resampled by it."""

    rough: Field
    forward: Field
    backward: Field
    aligned: UInt8[np.ndarray, "H W"]
    """j as i would see it if the rough field were true."""

    def carry(self, pixel: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n 2"]:
        """Positions in j."""
        return sample(self.rough, pixel + sample(self.forward, pixel))

    def shape(self, pixel: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n 2 2"]:
        """How a position in j moves with the one in i, over a few pixels."""
        right, down = np.array([_ACROSS, 0.0]), np.array([0.0, _ACROSS])
        sides = [self.carry(pixel + way) - self.carry(pixel - way) for way in (right, down)]
        return np.stack(sides, -1) / (2 * _ACROSS)

    def return_error(self, pixel: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n"]:
        """How far from where it began a position ends after going there and back."""
        there = sample(self.forward, pixel)
        back = sample(self.backward, pixel + there)
        return np.asarray(np.linalg.norm(there + back, axis=1))


def residual_flow(
    grey_i: UInt8[np.ndarray, "H W"], grey_j: UInt8[np.ndarray, "h w"], rough: Field, config: FlowConfig
) -> Flow:
    """Flow between i and j after j was resampled by a rough field."""
    import cv2

    aligned = cv2.remap(grey_j, rough, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    there, back = _search(config), _search(replace(config, finest=max(config.finest, config.returning)))
    return Flow(rough, there.calc(grey_i, aligned, None), back.calc(aligned, grey_i, None), aligned)


def sample(values: Float[np.ndarray, "H W 2"], pixel: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n 2"]:
    """A field between its pixels."""
    import cv2

    # one column of points would exceed the largest side that remap accepts
    at = pixel.astype(np.float32).reshape(1, -1, 2)
    parts = [at[:, k : k + 16_384] for k in range(0, at.shape[1], 16_384)]
    read = [cv2.remap(values, p, None, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE) for p in parts]
    return np.concatenate(read, 1)[0].astype(np.float64) if read else np.zeros((0, 2))


def inside(pixel: Float[np.ndarray, "n 2"], size: tuple[int, int], margin: float) -> Bool[np.ndarray, "n"]:
    """Which positions lie in a (width, height) image, at least `margin` from its outermost pixels."""
    limit = np.array(size) - 1 - margin
    return np.asarray(((pixel >= margin) & (pixel <= limit)).all(1))


def _search(config: FlowConfig) -> Any:
    import cv2

    search: Any = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    search.setFinestScale(config.finest)
    search.setPatchStride(config.stride)
    search.setGradientDescentIterations(config.descents)
    search.setVariationalRefinementIterations(config.refinements)
    return search
