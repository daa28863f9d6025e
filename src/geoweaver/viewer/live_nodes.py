"""One run's nodes in the viser scene: points in bands of confidence, path, cameras, the chosen camera.

A band is shown or hidden as a whole, so the confidence slider sends no point; new colours are sent without
the points, and a new point size is one number.
"""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.geometry.so3 import quaternion_from_matrix
from geoweaver.viewer.live_look import Look
from geoweaver.viewer.scene import Scene, SceneRun
from geoweaver.viewer.scene_cloud import spread_over
from geoweaver.viewer.scene_colours import GREY
from geoweaver.viewer.scene_place import RADIUS

BANDS = 20
"""Steps of the confidence slider."""
_FRUSTA = 150
"""Cameras drawn with their picture; the path shows the others."""
_CHOSEN = (255, 196, 0)


class RunNodes:
    """Handles of one run's nodes; every method sends only what changes."""

    def __init__(self, server: Any, scene: Scene, index: int, look: Look) -> None:
        self.scene, self.run, self.index = scene, scene.runs[index], index
        self.point_size, self.camera_size = fitting_sizes(scene.runs[0])
        self.root = server.scene.add_frame(f"/run{index}", show_axes=False)
        self.bands = self._add_bands(server, look)
        self.path = self._add_path(server, look)
        self.frusta = self._add_frusta(server, look)
        self.chosen = self._add_frustum(server, "chosen", look.frame, look, 1.6)
        self.reference = self._add_reference(server)
        self.show(look)

    def show(self, look: Look) -> None:
        """Which nodes are seen, and where the run stands."""
        self.root.visible = look.run_shown(self.index)
        self.root.position = (self.scene.width * self.index if look.side_by_side else 0.0, 0.0, 0.0)
        for k, (band, _) in self.bands.items():
            band.visible = look.points and k >= round(look.confidence * BANDS)
        for node in (self.path, *self.frusta.values()):
            node.visible = look.cameras_shown
        self.chosen.visible = look.run == self.index and look.cameras_shown
        if self.reference is not None:
            self.reference.visible = look.reference

    def resize(self, look: Look) -> None:
        """Size of points and cameras."""
        for band, _ in self.bands.values():
            band.point_size = look.point_size * self.point_size
        for frustum in self.frusta.values():
            frustum.scale = look.camera_size * self.camera_size
        self.chosen.scale = 1.6 * look.camera_size * self.camera_size

    def recolour(self, look: Look) -> None:
        """Colours of points and cameras."""
        colours = self.run.point_colours(look.colour).numpy()
        for band, rows in self.bands.values():
            band.colors = colours[rows]
        cameras = self.run.frame_colours(look.colour)
        self.path.colors = _path_colours(cameras.numpy())
        for frame, frustum in self.frusta.items():
            frustum.color = _rgb(cameras[frame])

    def restage(self, look: Look) -> None:
        """Points and cameras as another stage left them."""
        stage = self.stage(look)
        points = self.run.stage_points(stage).numpy()
        for band, rows in self.bands.values():
            band.points = points[rows]
        self.path.points = _pairs(self.run.stages[stage].cam_from_view.centre.float().numpy())
        for frame, frustum in self.frusta.items():
            self._place(frustum, frame, stage)
        self.choose(look)

    def choose(self, look: Look) -> None:
        """Mark the camera that the frame slider is on."""
        frame = min(look.frame, len(self.run) - 1)
        self._place(self.chosen, frame, self.stage(look))
        self.chosen.visible = look.run == self.index and look.cameras_shown

    def cameras(self, look: Look) -> SE3:
        """Where every camera is now in the viewer's space, side-by-side offset included."""
        cameras = self.run.stages[self.stage(look)].cam_from_view
        offset = torch.tensor([float(x) for x in self.root.position], dtype=torch.float64)
        return SE3(cameras.rotation, cameras.translation - cameras.rotation @ offset)

    def stage(self, look: Look) -> int:
        """Runs may lack a stage: then their result is shown."""
        names = [stage.name for stage in self.run.stages]
        return names.index(look.stage) if look.stage in names else len(names) - 1

    def _add_bands(self, server: Any, look: Look) -> dict[int, tuple[Any, np.ndarray]]:
        """Points and their rows by band; a band that has none gets no node, which a browser would refuse."""
        points = self.run.stage_points(self.stage(look)).numpy()
        colours = self.run.point_colours(look.colour).numpy()
        band = (self.run.cloud.confidence.clamp(0, 1) * BANDS).long().clamp(max=BANDS - 1)
        precision, size = precision_of(points, self.point_size), look.point_size * self.point_size
        found = {k: (band == k).nonzero()[:, 0].numpy() for k in sorted(set(band.tolist()))}
        return {
            k: (
                server.scene.add_point_cloud(
                    f"/run{self.index}/points/{k}", points[rows], colours[rows], precision=precision,
                    point_size=size, point_shape="rounded", point_shading="flat",
                ),
                rows,
            )
            for k, rows in found.items()
        }  # fmt: skip

    def _add_path(self, server: Any, look: Look) -> Any:
        centres = self.run.stages[self.stage(look)].cam_from_view.centre.float().numpy()
        colours = _path_colours(self.run.frame_colours(look.colour).numpy())
        return server.scene.add_line_segments(
            f"/run{self.index}/path", _pairs(centres), colours, thickness=2.5, thickness_units="screen"
        )

    def _add_frusta(self, server: Any, look: Look) -> dict[int, Any]:
        frames = spread_over(tuple(range(len(self.run))), _FRUSTA)
        colours = self.run.frame_colours(look.colour)
        found = {frame: self._add_frustum(server, f"cameras/{frame}", frame, look) for frame in frames}
        for frame, frustum in found.items():
            frustum.color = _rgb(colours[frame])
        return found

    def _add_frustum(self, server: Any, name: str, frame: int, look: Look, factor: float = 1.0) -> Any:
        width, height = self.run.run.result.size
        focal = float(self.run.run.result.intrinsics[frame, 1])
        frustum = server.scene.add_camera_frustum(
            f"/run{self.index}/{name}",
            2 * math.atan(height / 2 / focal), width / height,
            scale=factor * look.camera_size * self.camera_size, color=_CHOSEN if name == "chosen" else GREY,
            thickness=3.0 if name == "chosen" else 1.5, thickness_units="screen",
            cast_shadow=False, receive_shadow=False,
        )  # fmt: skip
        self._place(frustum, frame, self.stage(look))
        return frustum

    def _place(self, frustum: Any, frame: int, stage: int) -> None:
        view_from_cam = self.run.stages[stage].cam_from_view[frame].inverse()
        frustum.wxyz = quaternion_from_matrix(view_from_cam.rotation).numpy()
        frustum.position = view_from_cam.translation.numpy()

    def _add_reference(self, server: Any) -> Any | None:
        """The reference beside each run, since runs may stand side by side."""
        if self.scene.reference is None or len(self.scene.reference) < 2:
            return None
        return server.scene.add_line_segments(
            f"/run{self.index}/reference", _pairs(self.scene.reference.float().numpy()), (20, 20, 20),
            thickness=2.5, thickness_units="screen",
        )  # fmt: skip


def precision_of(points: Float[np.ndarray, "P 3"], point_size: float) -> str:
    """Half precision, half the bytes, where its steps vanish within a point; a long walk needs more."""
    reach = float(np.abs(points).max()) if len(points) else 0.0
    return "float16" if reach / 2048 < point_size / 2 else "float32"


def fitting_sizes(run: SceneRun) -> tuple[float, float]:
    """Point and camera size that suit a run, in the viewer's units."""
    centres = run.stages[-1].cam_from_view.centre
    length = float((centres[1:] - centres[:-1]).norm(dim=-1).sum())
    gap = length / max(min(len(run), _FRUSTA) - 1, 1)
    camera = min(max(0.6 * gap, 0.02 * RADIUS), 0.06 * RADIUS)
    # enough to close a surface of about the scene's extent
    point = 2.2 * RADIUS / math.sqrt(max(len(run.cloud), 1))
    return min(max(point, 0.001 * RADIUS), 0.02 * RADIUS), camera


def _pairs(rows: np.ndarray) -> np.ndarray:
    """Each row with its successor (n-1, 2, 3)."""
    return np.stack([rows[:-1], rows[1:]], 1)


def _path_colours(rgb: UInt8[np.ndarray, "n 3"]) -> UInt8[np.ndarray, "m 2 3"]:
    """As `_pairs`, in linear light: unlike all other colours, viser takes those of a line's ends for that."""
    share = rgb / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return _pairs((255 * light).round().astype(np.uint8))


def _rgb(colour: UInt8[Tensor, "3"]) -> tuple[int, int, int]:
    red, green, blue = (int(c) for c in colour)
    return red, green, blue
