"""A view as the fusion sees it: its depth where it means something, its camera, its colours."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, UInt8

from geoweaver.datatypes import Frames, Reconstruction
from geoweaver.fusion.config import FusionConfig
from geoweaver.results import DepthSource


@dataclass(frozen=True)
class DepthView:
    """One frame's usable depth and its camera."""

    depth: Float[np.ndarray, "H W"]
    """0 where nothing usable is known."""
    confidence: Float[np.ndarray, "H W"]
    intrinsics: Float[np.ndarray, "4"]
    rotation: Float[np.ndarray, "3 3"]
    """Of cam_from_world."""
    translation: Float[np.ndarray, "3"]

    @property
    def centre(self) -> Float[np.ndarray, "3"]:
        return np.asarray(-self.rotation.T @ self.translation)


@dataclass(frozen=True)
class ViewReader:
    """Reads views frame by frame; picklable if its sources are."""

    frames: Frames
    result: Reconstruction
    depths: DepthSource
    config: FusionConfig
    bend: dict[int, Float[np.ndarray, "rows columns"]] = field(default_factory=dict)
    """Log factors on a coarse grid by frame: what bends a depth map into agreement with the others."""

    def contributing(self) -> list[int]:
        """Frames with depth and a trusted camera, in order."""
        broken = set(self.frames.broken)
        return [f for f in sorted(self.depths.frames) if bool(self.result.trusted[f]) and f not in broken]

    def read(self, frame: int) -> DepthView:
        """Depth without what is masked, doubtful, very far or not finite."""
        import cv2

        found = self.depths.read(frame)
        depth = np.array(found.depth.numpy(force=True), np.float32)
        confidence = np.array(found.confidence.numpy(force=True), np.float32)
        known = np.isfinite(depth) & (depth > 0) & (confidence >= self.config.least_confidence)
        known &= self._usable(frame, (depth.shape[1], depth.shape[0]))
        limit = self.config.far * np.median(depth[known]) if known.any() else 0.0
        known &= depth <= limit
        depth[~known], confidence[~known] = 0, 0
        if frame in self.bend:
            size = (depth.shape[1], depth.shape[0])
            depth *= np.exp(cv2.resize(self.bend[frame], size, interpolation=cv2.INTER_LINEAR))
        camera = self.result.cam_from_world[frame]
        intrinsics, rotation, translation = (
            np.array(t.numpy(force=True), np.float64)
            for t in (found.intrinsics, camera.rotation, camera.translation)
        )
        return DepthView(depth, confidence, intrinsics, rotation, translation)

    def read_colours(self, frame: int, size: tuple[int, int]) -> UInt8[np.ndarray, "H W 3"]:
        """The image at the size (width, height) of the depth map; grey where there are no images."""
        import cv2

        if self.frames.pixels is None:
            return np.full((size[1], size[0], 3), 128, np.uint8)
        image = np.ascontiguousarray(self.frames.pixels.read(frame))
        return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))

    def _usable(self, frame: int, size: tuple[int, int]) -> np.ndarray:
        """Pixels of the depth map that the mask leaves whole."""
        import cv2

        if self.frames.masks is None:
            return np.ones((size[1], size[0]), bool)
        mask = self.frames.masks.read(frame).astype(np.float32)
        return np.asarray(cv2.resize(mask, size, interpolation=cv2.INTER_AREA) > 0.999)
