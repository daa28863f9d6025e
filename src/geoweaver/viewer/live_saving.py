"""What leaves the viewer: the view as a picture, the shown points as a PLY."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from geoweaver.formats.ply import PlyCloud, write_ply
from geoweaver.viewer.live_look import Look
from geoweaver.viewer.live_nodes import BANDS, RunNodes
from geoweaver.viewer.scene import Scene

_RENDER_SECONDS = 30.0
"""A browser tab in the background draws nothing: better to say so than to wait for ever."""


def save_view(client: Any) -> None:
    """Send the client a PNG of what it sees."""
    import cv2

    camera = client.camera
    shown = client.get_render(
        camera.image_height, camera.image_width, transport_format="png", timeout=_RENDER_SECONDS
    )
    _, data = cv2.imencode(".png", _on_white(shown)[..., ::-1])
    client.send_file_download("view.png", data.tobytes(), save_immediately=True)


def _on_white(picture: np.ndarray) -> np.ndarray:
    if picture.shape[-1] == 3:
        return picture
    alpha = picture[..., 3:].astype(np.float64) / 255
    return (picture[..., :3] * alpha + 255 * (1 - alpha)).round().astype(np.uint8)


def shown_cloud(scene: Scene, nodes: list[RunNodes], look: Look) -> PlyCloud:
    """Every point that is seen, coloured as it is seen, in the common world's units."""
    parts = []
    for run in nodes:
        if not (look.points and look.run_shown(run.index)):
            continue
        cloud = run.run.cloud
        keep = cloud.confidence.clamp(0, 1) * BANDS >= round(look.confidence * BANDS)
        points = scene.common_from_view.act(run.run.stage_points(run.stage(look))[keep].double())
        parts.append((points.float(), run.run.point_colours(look.colour)[keep], cloud.confidence[keep]))
    empty = (torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.uint8), torch.zeros(0))
    points, colours, confidence = (torch.cat(column) for column in zip(empty, *parts, strict=True))
    return PlyCloud(points, colours=colours, confidence=confidence)


def ply_bytes(cloud: PlyCloud) -> bytes:
    """The file as it would lie on disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.ply"
        write_ply(path, cloud)
        return path.read_bytes()
