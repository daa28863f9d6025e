"""The fly-through: a client's camera glides along the trajectory, level with the horizon."""

import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.geometry import SE3
from geoweaver.viewer.scene_place import RADIUS

_TICK = 1 / 25
"""Seconds between two positions: the browser shows no more."""
_AHEAD = 0.4 * RADIUS
"""How far before the camera its orbit's centre lies after the flight."""


def glide(cam_from_view: SE3, smooth: int) -> tuple[Float[Tensor, "F 3"], Float[Tensor, "F 3"]]:
    """Centres and viewing directions, averaged over `smooth` frames to either side."""
    directions = cam_from_view.rotation[:, 2]
    averaged = [_average(x, smooth) for x in (cam_from_view.centre, directions)]
    return averaged[0], averaged[1] / averaged[1].norm(dim=-1, keepdim=True).clamp(min=1e-9)


def _average(rows: Float[Tensor, "F 3"], reach: int) -> Float[Tensor, "F 3"]:
    index = torch.arange(len(rows))
    window = (index[:, None] + torch.arange(-reach, reach + 1)).clamp(0, len(rows) - 1)
    return rows[window].mean(1)


def look_through(client: Any, centre: Float[Tensor, "3"], direction: Float[Tensor, "3"]) -> None:
    """Put a client's camera there, up being up."""
    with client.atomic():
        client.camera.position = centre.numpy()
        client.camera.look_at = (centre + _AHEAD * direction).numpy()
        client.camera.up_direction = (0.0, 0.0, 1.0)


class Flight:
    """One fly-through at a time; starting again or stopping ends it."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @property
    def flying(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(
        self,
        client: Any,
        cam_from_view: SE3,
        first: int,
        frames_per_second: float,
        arrived: Callable[[int], None],
        ended: Callable[[], None],
    ) -> None:
        """Fly from a frame to the last one; `arrived` hears of each frame."""
        self.stop()
        self._stop = threading.Event()
        arguments = (self._stop, client, cam_from_view, first, frames_per_second, arrived, ended)
        self._thread = threading.Thread(target=_fly, args=arguments, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the flight where it is."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None


def _fly(
    stop: threading.Event,
    client: Any,
    cam_from_view: SE3,
    first: int,
    frames_per_second: float,
    arrived: Callable[[int], None],
    ended: Callable[[], None],
) -> None:
    centres, directions = glide(cam_from_view, smooth=3)
    last, begun, reached = len(centres) - 1, time.monotonic(), -1
    while not stop.is_set():
        at = min(first + (time.monotonic() - begun) * frames_per_second, last)
        low, share = int(at), at - int(at)
        high = min(low + 1, last)
        look_through(
            client,
            (1 - share) * centres[low] + share * centres[high],
            (1 - share) * directions[low] + share * directions[high],
        )
        if low != reached:
            arrived(reached := low)
        if at >= last:
            break
        stop.wait(_TICK)
    ended()
