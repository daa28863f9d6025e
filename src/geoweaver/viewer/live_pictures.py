"""The chosen frame in words and pictures, as the side panel shows them."""

import html

import cv2
import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.viewer.scene import SceneRun
from geoweaver.viewer.scene_cloud import frame_image
from geoweaver.viewer.scene_colours import ramp_colours

PICTURE_WIDTH = 480
THUMBNAIL_WIDTH = 96


def describe_frame(run: SceneRun, frame: int) -> str:
    """HTML in which every name is plain text, whatever it holds."""
    result, chunk = run.run.result, int(run.run.chunk[frame])
    trusted = bool(result.trusted[frame])
    reason = result.reason.get(frame, "the data do not support its camera")
    facts = [
        ("frame", f"{frame} of {len(run)}: {result.names[frame]}"),
        ("time", f"{float(result.timestamps[frame]):.3f}"),
        ("chunk", str(chunk) if chunk >= 0 else "none"),
        ("camera", "trusted" if trusted else f"not trusted: {reason}"),
    ]
    lines = [f"<div><b>{html.escape(key)}</b> {html.escape(value)}</div>" for key, value in facts]
    return f'<div style="padding:0 .75em;font-size:.85em;overflow-wrap:anywhere">{"".join(lines)}</div>'


def frame_pictures(
    run: SceneRun, frame: int
) -> tuple[UInt8[np.ndarray, "h w 3"], UInt8[np.ndarray, "h2 w2 3"]]:
    """A frame's image, and its depth from near (yellow) to far (blue), black where unknown."""
    image = frame_image(run.run, frame, PICTURE_WIDTH)
    if frame not in run.run.depths.frames:
        return image, np.zeros_like(image)
    depth, size = depth_picture(run.run.depths.read(frame).depth), (image.shape[1], image.shape[0])
    return image, np.asarray(cv2.resize(depth, size, interpolation=cv2.INTER_NEAREST), np.uint8)


def depth_picture(depth: Float[Tensor, "H W"]) -> UInt8[np.ndarray, "H W 3"]:
    """Inverse depth between its 2nd and 98th percentile."""
    valid = depth > 0
    if not bool(valid.any()):
        return np.zeros((*depth.shape, 3), np.uint8)
    nearness = 1 / depth[valid].double()
    low, high = (
        float(q)
        for q in torch.quantile(
            nearness[:: max(1, len(nearness) // 100_000)], torch.tensor([0.02, 0.98], dtype=torch.float64)
        )
    )
    picture = torch.zeros(*depth.shape, 3, dtype=torch.uint8)
    picture[valid] = ramp_colours((nearness - low) / max(high - low, 1e-12 * high))
    return picture.numpy()
