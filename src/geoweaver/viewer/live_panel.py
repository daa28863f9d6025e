"""The side panel: every control, what it shows of the chosen frame, and what a change sends."""

import dataclasses
import threading
from typing import Any

import numpy as np

from geoweaver.viewer.live_flight import Flight, glide, look_through
from geoweaver.viewer.live_look import Look
from geoweaver.viewer.live_nodes import BANDS, RunNodes
from geoweaver.viewer.live_pictures import THUMBNAIL_WIDTH, describe_frame, frame_pictures
from geoweaver.viewer.live_saving import ply_bytes, save_view, shown_cloud
from geoweaver.viewer.scene import RESULT, Scene
from geoweaver.viewer.scene_cloud import frame_image
from geoweaver.viewer.scene_colours import COLOUR_CHOICES


class Panel:
    """The controls of a scene and the nodes that they steer."""

    def __init__(self, server: Any, scene: Scene) -> None:
        self.server, self.scene = server, scene
        self.look = Look()
        with server.atomic():
            self.nodes = [RunNodes(server, scene, k, self.look) for k in range(len(scene.runs))]
        self._changing, self._painting = threading.RLock(), threading.Lock()
        self._closed = threading.Event()
        self.flight = Flight()
        self._add_view_folder()
        self._add_frame_folder()
        self._add_saving_folder()
        self.paint()
        self._thumbnails = threading.Thread(target=self._load_thumbnails, daemon=True)
        self._thumbnails.start()

    def close(self) -> None:
        """End what runs in the background."""
        self._closed.set()
        self.flight.stop()
        self._thumbnails.join()

    def change(self, **settings: Any) -> None:
        """Set the look, and send what differs."""
        with self._changing, self.server.atomic():
            old, self.look = self.look, dataclasses.replace(self.look, **settings)
            changed = {f for f in settings if getattr(old, f) != getattr(self.look, f)}
            for nodes in self.nodes:
                if changed & {"stage"}:
                    nodes.restage(self.look)
                if changed & {"colour"}:
                    nodes.recolour(self.look)
                if changed & {"point_size", "camera_size"}:
                    nodes.resize(self.look)
                if changed & {"frame", "run"}:
                    nodes.choose(self.look)
                if changed - {"stage", "colour", "point_size", "camera_size", "frame"}:
                    nodes.show(self.look)
        if changed & {"frame", "run"}:
            self.paint()

    def paint(self) -> None:
        """Bring image, depth and words up to the chosen frame; a fast slider skips frames."""
        while self._painting.acquire(blocking=False):
            try:
                run, frame = self.look.run, self.look.frame
                scene_run = self.scene.runs[run]
                self._words.content = describe_frame(scene_run, frame)
                self._image.image, self._depth.image = frame_pictures(scene_run, frame)
            finally:
                self._painting.release()
            if (run, frame) == (self.look.run, self.look.frame):
                return

    def choose(self, run: int, frame: int) -> None:
        """Go to a frame of a run, the controls along with it."""
        if len(self.scene.runs) > 1:
            self._run.value = self._run.options[run]
        self._set_run(run)
        self._frame.value = frame

    def _set_run(self, run: int) -> None:
        last = len(self.scene.runs[run]) - 1
        self._frame.max = max(last, 1)
        self.change(run=run, frame=min(self.look.frame, last))

    def _add_view_folder(self) -> None:
        gui = self.server.gui
        stages = list(
            dict.fromkeys(s.name for run in self.scene.runs for s in run.stages if s.name != RESULT)
        )
        with gui.add_folder("View"):
            self._follow("colour", gui.add_dropdown("Colour by", COLOUR_CHOICES))
            self._follow("stage", gui.add_dropdown("After", (*stages, RESULT), initial_value=RESULT))
            hint = "Hide points that are less sure"
            self._follow(
                "confidence", gui.add_slider("Confidence ≥", 0.0, 1 - 1 / BANDS, 1 / BANDS, 0.0, hint=hint)
            )
            for field, label in (("point_size", "Point size"), ("camera_size", "Camera size")):
                self._follow(field, gui.add_slider(label, 0.2, 4.0, 0.1, 1.0))
            self._follow("points", gui.add_checkbox("Points", True))
            self._cameras_box = gui.add_checkbox("Cameras", True)
            self._follow("cameras", self._cameras_box)
            if self.scene.reference is not None:
                self._follow("reference", gui.add_checkbox("Reference", True))
        if len(self.scene.runs) > 1:
            self._add_run_folder()

    def _add_run_folder(self) -> None:
        gui = self.server.gui
        with gui.add_folder("Runs"):
            self._follow("side_by_side", gui.add_checkbox("Side by side", False))
            self._run = gui.add_dropdown("Frames of", _distinct([run.name for run in self.scene.runs]))
            self._run.on_update(lambda _: self._set_run(self._run.options.index(self._run.value)))
            boxes = [gui.add_checkbox(name, True) for name in self._run.options]

        def hide(_: Any) -> None:
            self.change(hidden=frozenset(k for k, box in enumerate(boxes) if not box.value))

        for box in boxes:
            box.on_update(hide)

    def _add_frame_folder(self) -> None:
        gui, blank = self.server.gui, np.zeros((9, 16, 3), np.uint8)
        with gui.add_folder("Frame"):
            self._frame = gui.add_slider("Frame", 0, max(len(self.scene.runs[0]) - 1, 1), 1, 0)
            self._play = gui.add_button("Fly through", hint="Move along the trajectory")
            self._speed = gui.add_slider("Frames/s", 1, 60, 1, 10)
            self._here = gui.add_button("Look from this camera")
            self._words = gui.add_html("")
            self._image = gui.add_image(blank, label="Image")
            self._depth = gui.add_image(blank, label="Depth (yellow is near)")
        self._frame.on_update(lambda _: self.change(frame=min(self._frame.value, len(self._chosen_run) - 1)))
        self._play.on_click(lambda event: self._toggle_flight(event.client))
        self._here.on_click(lambda event: self._look_from(event.client))
        for k, nodes in enumerate(self.nodes):
            for frame, frustum in nodes.frusta.items():
                frustum.on_click(lambda _, k=k, frame=frame: self.choose(k, frame))

    @property
    def _chosen_run(self) -> Any:
        return self.scene.runs[self.look.run]

    def _add_saving_folder(self) -> None:
        gui = self.server.gui
        with gui.add_folder("Save"):
            view = gui.add_button("Save view", hint="A PNG of what you see")
            points = gui.add_button(
                "Export PLY", hint="The points that are shown, coloured as they are shown"
            )
        view.on_click(lambda event: save_view(event.client))
        points.on_click(
            lambda event: event.client.send_file_download(
                "points.ply", ply_bytes(shown_cloud(self.scene, self.nodes, self.look)), save_immediately=True
            )
        )

    def _follow(self, field: str, control: Any) -> None:
        """A control that sets a field of the look."""
        control.on_update(lambda _: self.change(**{field: control.value}))

    def _cameras(self) -> Any:
        nodes = self.nodes[self.look.run]
        return nodes.cameras(self.look)

    def _look_from(self, client: Any) -> None:
        self._cameras_box.value = False  # or its own picture hangs before its eye
        centres, directions = glide(self._cameras(), smooth=0)
        look_through(client, centres[self.look.frame], directions[self.look.frame])

    def _toggle_flight(self, client: Any) -> None:
        if self.flight.flying:
            self.flight.stop()
            return
        last = len(self._chosen_run) - 1
        first = 0 if self.look.frame >= last else self.look.frame
        self._play.label = "Stop"
        self.change(flying=True)
        self.flight.start(client, self._cameras(), first, self._speed.value, self._arrive, self._end_flight)

    def _arrive(self, frame: int) -> None:
        self._frame.value = frame

    def _end_flight(self) -> None:
        self._play.label = "Fly through"
        self.change(flying=False)

    def _load_thumbnails(self) -> None:
        """Pictures come after the scene stands: reading a hundred takes a moment."""
        for nodes in self.nodes:
            for frame, frustum in nodes.frusta.items():
                if self._closed.is_set():
                    return
                frustum.image = frame_image(nodes.run.run, frame, THUMBNAIL_WIDTH)


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Names as a dropdown needs them: equal ones are numbered."""
    return tuple(f"{name} ({k + 1})" if names.count(name) > 1 else name for k, name in enumerate(names))
