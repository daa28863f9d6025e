"""`geoweaver view`: a web page with the runs in 3D, served by viser to this machine alone unless asked."""

import contextlib
import html
import io
import socket
from typing import Any

import numpy as np

from geoweaver.errors import ConfigError, MissingExtraError
from geoweaver.viewer.live_panel import Panel
from geoweaver.viewer.scene import Scene
from geoweaver.viewer.scene_place import RADIUS

HOST, PORT = "127.0.0.1", 8080


class LiveViewer:
    """A served page; `show` replaces what is on it."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.panel: Panel | None = None

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        host = self.server.get_host()
        return f"http://{'localhost' if host in ('0.0.0.0', '::') else host}:{self.server.get_port()}"

    def show(self, scene: Scene) -> None:
        """Put a scene on the page of every client."""
        self.clear()
        self.panel = Panel(self.server, scene)
        position, target = _start_camera(scene)
        self.server.initial_camera.position = position
        self.server.initial_camera.look_at = target
        self.server.initial_camera.up = np.array([0.0, 0.0, 1.0])
        for client in self.server.get_clients().values():
            client.camera.position, client.camera.look_at = position, target

    def say(self, title: str, lines: list[str]) -> None:
        """Words instead of controls, each line as plain text whatever it holds."""
        self.clear()
        body = "".join(f"<div>{html.escape(line)}</div>" for line in lines)
        with self.server.gui.add_folder(title):
            self.server.gui.add_html(f'<div style="padding:0 .75em;overflow-wrap:anywhere">{body}</div>')

    def clear(self) -> None:
        """Empty the page."""
        if self.panel is not None:
            self.panel.close()
        self.panel = None
        self.server.scene.reset()
        self.server.gui.reset()
        _set_up(self.server)

    def stop(self) -> None:
        """Give the port free."""
        if self.panel is not None:
            self.panel.close()
        with contextlib.redirect_stdout(io.StringIO()):  # viser prints a farewell
            self.server.stop()


def open_viewer(host: str = HOST, port: int = PORT) -> LiveViewer:
    """Serve an empty page; port 0 takes any free one."""
    try:
        import viser
    except ImportError as error:
        raise MissingExtraError("viser", "viewer", "geoweaver view") from error
    _require_free(host, port)
    with contextlib.redirect_stdout(io.StringIO()):  # viser prints a banner
        server = viser.ViserServer(host=host, port=port, verbose=False)
    _set_up(server)
    return LiveViewer(server)


def _set_up(server: Any) -> None:
    # the share button would tunnel the scene through somebody's server
    server.gui.configure_theme(show_share_button=False, show_logo=False, brand_color=(0, 114, 178))
    server.gui.set_panel_label("GeoWeaver")
    server.scene.set_up_direction("+z")


def _require_free(host: str, port: int) -> None:
    """viser would quietly take the next port; a user who asked for this one should hear."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"--port {port} is no port: give a number from 1 to 65535, or 0 for any free one")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except socket.gaierror:
        raise ConfigError(f"--host {host} is no address of this machine: give 127.0.0.1 or 0.0.0.0") from None
    except OSError as error:
        raise ConfigError(
            f"port {port} of {host} cannot be used ({error.strerror}): close the other viewer, or choose "
            "another with --port N (0: any free one)"
        ) from None


def _start_camera(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Behind and above the first run's cameras, looking at what lies between them and the points."""
    run = scene.runs[0]
    cameras = run.stages[-1].cam_from_view
    points = run.stage_points(len(run.stages) - 1).double()
    middle = points.median(0).values if len(points) else cameras.centre.mean(0)
    target = ((cameras.centre.mean(0) + middle) / 2).numpy()
    forward = cameras.rotation[:, 2].mean(0).numpy() * np.array([1.0, 1.0, 0.0])
    length = float(np.linalg.norm(forward))
    along = forward / length if length > 0.1 else np.array([0.7071, 0.7071, 0.0])
    return target - 1.4 * RADIUS * along + np.array([0, 0, 1.2 * RADIUS]), target
