"""Local features of one image: SIFT through OpenCV, descriptors as RootSIFT bytes."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32, UInt8

from geoweaver.datatypes import Features


@dataclass(frozen=True)
class FeatureConfig:
    """How many local features a frame gets, and how faint they may be."""

    max_features: int = 2048
    """Per frame, the strongest ones."""
    contrast: float = 0.01
    """Faintest blob that counts (OpenCV's contrastThreshold); plain walls need it low."""


DEFAULTS = FeatureConfig()


def extract_features(
    image: UInt8[np.ndarray, "height width 3"],
    usable: Bool[np.ndarray, "height width"] | None = None,
    config: FeatureConfig = DEFAULTS,
) -> Features:
    """Features of a rectified image, strongest first; none where the mask forbids."""
    import cv2

    cv2.setNumThreads(1)
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    # without the precise upscale every keypoint is a quarter pixel off
    sift = cv2.SIFT.create(
        nfeatures=config.max_features, contrastThreshold=config.contrast, enable_precise_upscale=True
    )
    mask = None if usable is None else usable.astype(np.uint8)
    found, described = sift.detectAndCompute(grey, mask)
    if described is None or not found:
        return no_features()
    strongest = np.argsort([-point.response for point in found], kind="stable")[: config.max_features]
    chosen = [found[i] for i in strongest]
    return Features(
        # OpenCV counts from the first pixel's centre
        keypoints=torch.tensor([point.pt for point in chosen], dtype=torch.float32) + 0.5,
        descriptors=torch.from_numpy(root_sift(described[strongest])),
        scale=torch.tensor([point.size / 2 for point in chosen], dtype=torch.float32),
        orientation=torch.tensor([point.angle for point in chosen], dtype=torch.float32).deg2rad(),
    )


def no_features() -> Features:
    """Of a frame that shows nothing, or cannot be read."""
    none = torch.zeros(0)
    return Features(torch.zeros(0, 2), torch.zeros(0, 128, dtype=torch.uint8), none, none)


def root_sift(descriptors: Float32[np.ndarray, "n 128"]) -> UInt8[np.ndarray, "n 128"]:
    """Square root of the L1-normalised descriptor, times 512 as in COLMAP."""
    total = np.maximum(descriptors.sum(-1, keepdims=True), 1e-9)
    return np.asarray(np.minimum(np.sqrt(descriptors / total) * 512 + 0.5, 255), dtype=np.uint8)
