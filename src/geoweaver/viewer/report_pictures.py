"""Small pictures of chosen frames: image, depth and confidence side by side in one strip."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from geoweaver.errors import GeoWeaverError
from geoweaver.results import DepthMap, FinishedRun

WIDTH = 192
"""Of one of the three pictures; on a phone each fills a third of the screen."""
EVEN, UNTRUSTED = 150, 50
"""Frames shown at most: spread evenly over the sequence, and of those that are not trusted."""
_QUALITY = 62
_MOST_BYTES = 20_000
"""Of one strip: two hundred of them leave the report below 10 MB whatever was filmed."""


@dataclass(frozen=True)
class Strip:
    """One frame's pictures, as one WebP."""

    frame: int
    data: bytes
    width: int
    height: int
    has_depth: bool


def chosen_frames(run: FinishedRun, even: int = EVEN, untrusted: int = UNTRUSTED) -> list[int]:
    """Evenly spread frames that have depth, and evenly spread ones that are not trusted."""
    seen = sorted(run.depths.frames) or [f for f in range(len(run.frames)) if f not in run.frames.broken]
    doubted = (~run.result.trusted & run.frames.keyframe).nonzero()[:, 0].tolist()
    doubted = [f for f in doubted if f not in run.frames.broken]
    return sorted({*_spread(seen, even), *_spread(doubted, untrusted)})


def _spread(frames: list[int], most: int) -> list[int]:
    if len(frames) <= most:
        return frames
    return [frames[round(i * (len(frames) - 1) / (most - 1))] for i in range(most)]


def picture_strip(run: FinishedRun, frame: int) -> Strip | None:
    """The strip of a frame; None where its pixels can no longer be read."""
    picture = frame_pixels(run, frame)
    if picture is None:
        return None
    parts, has_depth = [picture], frame in set(run.depths.frames)
    if has_depth:
        shown = run.depths.read(frame)
        parts += [depth_picture(shown), _confidence(shown)]
    width = WIDTH
    data, height = _joined(parts, width)
    while len(data) > _MOST_BYTES and width > 1:
        # grass and noise in upright images take several times the usual room
        width = max(int(0.95 * width * (_MOST_BYTES / len(data)) ** 0.5), 1)
        data, height = _joined(parts, width)
    return Strip(frame, data, 3 * width, height, has_depth)


def _joined(parts: list[UInt8[np.ndarray, "_ _ 3"]], width: int) -> tuple[bytes, int]:
    """Pictures side by side as one WebP, stripes for those that are missing; and its height."""
    import cv2

    height = max(round(width * parts[0].shape[0] / parts[0].shape[1]), 1)
    shown = [cv2.resize(part, (width, height), interpolation=cv2.INTER_AREA) for part in parts]
    shown += (3 - len(shown)) * [_stripes(height, width)]
    strip = np.concatenate(shown, 1)[:, :, ::-1]
    return cv2.imencode(".webp", strip, [cv2.IMWRITE_WEBP_QUALITY, _QUALITY])[1].tobytes(), height


def frame_pixels(run: FinishedRun, frame: int) -> UInt8[np.ndarray, "H W 3"] | None:
    """A frame's image; the input of a run may have been moved since."""
    if run.frames.pixels is None:
        return None
    try:
        return run.frames.pixels.read(frame)
    except GeoWeaverError:
        return None


def depth_picture(shown: DepthMap) -> UInt8[np.ndarray, "H W 3"]:
    """Near is bright, far is dark, by inverse depth; striped where nothing is known."""
    known = shown.depth > 0
    inverse = torch.where(known, 1 / shown.depth.double().clamp(min=1e-12), 0.0)
    low, high = _limits(inverse[known])
    return _mapped((inverse - low) / max(high - low, 1e-12), known, "viridis")


def _confidence(shown: DepthMap) -> UInt8[np.ndarray, "H W 3"]:
    return _mapped(shown.confidence.double(), shown.depth > 0, "inferno")


def _limits(values: Tensor) -> tuple[float, float]:
    """All but the outermost two percent a side."""
    if not len(values):
        return 0.0, 1.0
    ordered = values.sort().values
    return float(ordered[int(0.02 * (len(values) - 1))]), float(ordered[int(0.98 * (len(values) - 1))])


def _mapped(share: Tensor, known: Tensor, name: str) -> UInt8[np.ndarray, "H W 3"]:
    import cv2

    palette = {"viridis": cv2.COLORMAP_VIRIDIS, "inferno": cv2.COLORMAP_INFERNO}[name]
    grey = (share.clamp(0, 1) * 255).round().to(torch.uint8).numpy()
    coloured: np.ndarray = cv2.applyColorMap(grey, palette)[:, :, ::-1].copy()
    unknown = ~known.numpy()
    coloured[unknown] = _stripes(*grey.shape)[unknown]
    return coloured


def _stripes(height: int, width: int) -> UInt8[np.ndarray, "H W 3"]:
    """Slanting grey stripes, a sixteenth of the height wide: no colour of a palette looks like that."""
    y, x = np.mgrid[:height, :width]
    light = (x + y) // max(height // 16, 1) % 2 == 0
    return np.repeat(np.where(light, 150, 120).astype(np.uint8)[:, :, None], 3, 2)
