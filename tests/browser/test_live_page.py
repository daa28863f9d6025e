"""The live viewer in a real browser with software WebGL: it draws, obeys, stays silent and stays at home."""

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "viewer"))
from live_runs import drifted, make_run

from geoweaver.formats.ply import read_ply
from geoweaver.geometry import Sim3
from geoweaver.viewer.live import LiveViewer, open_viewer
from geoweaver.viewer.scene import NamedRun, build_scene

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("viser")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt install chromium")
FLAGS = [
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
NASTY = "<script>alert(\"x\")</script> 'quote' ночь 夜 "
SECONDS = 60_000
"""Patience in milliseconds: a busy machine draws slowly."""


@dataclass
class Tab:
    """A page, and all that it complained of or asked for."""

    page: Any
    viewer: LiveViewer
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def pixels(self) -> np.ndarray:
        """The canvas left of the panel."""
        png = self.page.screenshot(clip={"x": 0, "y": 200, "width": 560, "height": 500})
        return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR).astype(int)

    def wait(self, done: Callable[[], bool]) -> None:
        for _ in range(SECONDS // 200):
            if done():
                return
            self.page.wait_for_timeout(200)
        raise AssertionError("it did not happen")

    def settled(self) -> np.ndarray:
        """Pixels once two looks in a row agree."""
        last = [self.pixels()]

        def still() -> bool:
            before, last[0] = last[0], self.pixels()
            return bool((before == last[0]).all())

        self.wait(still)
        return last[0]

    def changed_by(self, act: Callable[[], object]) -> float:
        """Share of pixels that an act changes."""
        before = self.settled()
        act()
        self.wait(lambda: bool((self.pixels() != before).any()))
        return float((self.settled() != before).any(-1).mean())

    def pick(self, control: str, option: str) -> None:
        self.page.get_by_role("combobox", name=control).click()
        self.page.get_by_role("option", name=option, exact=True).click()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveViewer]:
    run = make_run(tmp_path_factory.mktemp("run"), prefix=NASTY)
    runs = [NamedRun("plain", run, Sim3.identity()), NamedRun(NASTY, run, Sim3.identity())]
    served = open_viewer(port=0)
    served.show(build_scene(runs, drifted(run.result.cam_from_world, 0.4), most=30_000))
    yield served
    served.stop()


@pytest.fixture
def tab(browser: Any, viewer: LiveViewer, request: pytest.FixtureRequest) -> Iterator[Tab]:
    width, height = getattr(request, "param", (1100, 900))
    page = browser.new_page(viewport={"width": width, "height": height})
    opened = Tab(page, viewer)
    page.on("console", lambda m: opened.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: opened.errors.append(str(error)))
    page.on("dialog", lambda dialog: opened.errors.append(f"dialog: {dialog.message}") or dialog.dismiss())
    page.on("request", lambda r: opened.requests.append(r.url))
    page.on("websocket", lambda w: opened.requests.append(w.url))
    page.goto(viewer.url)
    page.get_by_text("Fly through").wait_for(timeout=SECONDS)
    opened.wait(lambda: len(np.unique(opened.pixels().reshape(-1, 3), axis=0)) > 200)
    yield opened
    page.close()
    assert opened.errors == []
    assert {urlsplit(url.removeprefix("blob:")).hostname for url in opened.requests} == {"127.0.0.1"}


def test_every_control_changes_the_picture_as_it_should(tab: Tab) -> None:
    panel = tab.viewer.panel
    assert panel is not None
    assert tab.changed_by(lambda: tab.pick("Colour by", "chunk")) > 0.05
    assert tab.changed_by(lambda: tab.pick("After", "Stage 1")) > 0.05
    tab.pick("After", "Result")
    tab.wait(lambda: panel.look.stage == "Result")
    shown = tab.settled()
    tab.page.get_by_label("Points").click()
    tab.wait(lambda: not panel.look.points)
    bare = tab.settled()
    white = [(picture.min(-1) > 250).mean() for picture in (shown, bare)]
    assert white[1] > white[0] + 0.1
    tab.page.get_by_label("Points").click()
    tab.pick("Colour by", "RGB")
    tab.wait(lambda: panel.look.points and panel.look.colour == "RGB")
    slider = tab.page.get_by_role("slider").first
    slider.focus()
    assert tab.changed_by(lambda: [slider.press("ArrowRight") for _ in range(16)]) > 0.02
    assert panel.look.confidence == pytest.approx(0.8)
    slider.press("Home")
    tab.wait(lambda: panel.look.confidence == 0)


def test_the_path_has_the_colour_of_its_cameras(tab: Tab) -> None:
    panel = tab.viewer.panel
    assert panel is not None
    nodes = [n for run in panel.nodes for n in (run.chosen, run.reference, *run.frusta.values())]
    panel.change(points=False)
    for node in nodes:
        node.visible = False
    try:
        tab.wait(lambda: (tab.pixels().min(-1) > 250).mean() > 0.98)
        shown = tab.settled().reshape(-1, 3)[:, ::-1]
        line = shown[shown.min(-1) < 30]
        # trusted and not trusted, but for the page's tone mapping
        wanted = np.array([[0x00, 0x72, 0xB2], [0xD5, 0x5E, 0x00]])
        away = np.abs(line[:, None] - wanted).max(-1).min(-1)
        assert len(line) > 100 and (away < 30).mean() > 0.9
    finally:
        panel.change(points=True, cameras=False)
        panel.change(cameras=True)
        for run in panel.nodes:
            run.show(panel.look)


def test_drag_scrub_and_fly_move_what_they_should(tab: Tab) -> None:
    panel = tab.viewer.panel
    assert panel is not None

    def drag() -> None:
        tab.page.mouse.move(200, 600)
        tab.page.mouse.down()
        tab.page.mouse.move(320, 560, steps=4)
        tab.page.mouse.up()

    assert tab.changed_by(drag) > 0.05
    box = tab.page.get_by_role("textbox").nth(3)
    box.fill("7")
    box.press("Enter")
    tab.wait(lambda: panel.look.frame == 7 and tab.page.get_by_text("frame_00007").count() > 0)
    assert tab.changed_by(lambda: tab.page.get_by_text("Look from this camera").click()) > 0.2
    tab.page.get_by_text("Fly through").click()
    tab.wait(lambda: panel.look.frame == 11 and not panel.flight.flying)
    tab.page.get_by_text("Fly through").wait_for(timeout=SECONDS)


def test_a_click_on_a_camera_shows_its_image_and_depth(tab: Tab) -> None:
    panel = tab.viewer.panel
    assert panel is not None
    panel.change(points=False, reference=False, camera_size=2.0, hidden=frozenset([1]))
    try:
        tab.settled()
        for x, y in _places_with_ink(tab.pixels()):
            tab.page.mouse.click(x, y + 200)
            tab.page.wait_for_timeout(700)
            if panel.look.frame != 0:
                break
        chosen = panel.look.frame
        assert chosen != 0
        tab.page.get_by_text(f"frame_{chosen:05d}").first.wait_for(timeout=SECONDS)
        assert tab.page.locator("img").count() >= 2
    finally:
        panel.change(points=True, reference=True, camera_size=1.0, hidden=frozenset())


def _places_with_ink(picture: np.ndarray) -> list[tuple[int, int]]:
    """Places in the midst of what is drawn, spread over the picture."""
    ink = cv2.erode((picture.min(-1) < 200).astype(np.uint8), np.ones((9, 9), np.uint8))
    rows = np.argwhere(ink)[:: max(1, int(ink.sum()) // 25)]
    return [(int(x), int(y)) for y, x in rows]


def test_names_are_shown_as_text(tab: Tab) -> None:
    assert tab.page.get_by_text('<script>alert("x")</script>').count() >= 2
    assert tab.page.get_by_text("ночь 夜").count() >= 2
    assert tab.page.locator("script", has_text="alert").count() == 0


def test_view_and_points_can_be_saved(tab: Tab, tmp_path: Path) -> None:
    with tab.page.expect_download(timeout=SECONDS) as download:
        tab.page.get_by_text("Save view").click()
    download.value.save_as(tmp_path / "view.png")
    picture = cv2.imread(str(tmp_path / "view.png"))
    assert picture.shape[:2] == (900, 1100) and len(np.unique(picture)) > 50
    with tab.page.expect_download(timeout=SECONDS) as download:
        tab.page.get_by_text("Export PLY").click()
    download.value.save_as(tmp_path / "points.ply")
    panel = tab.viewer.panel
    assert panel is not None
    assert len(read_ply(tmp_path / "points.ply")) == sum(len(run.cloud) for run in panel.scene.runs)


@pytest.mark.parametrize("tab", [(390, 844)], indirect=True)
def test_a_phone_shows_scene_and_controls(tab: Tab) -> None:
    assert tab.page.get_by_text("Colour by").is_visible()
    assert (tab.settled().min(-1) < 240).mean() > 0.05
    width = tab.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
