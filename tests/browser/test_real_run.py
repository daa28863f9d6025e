"""A run made by the real command, looked at in a real browser: its own report, and `geoweaver view`."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))
from small_sequence import OPTIONS, command, environment, geoweaver, write_small

from tests.browser.test_report_browser import CHROMIUM, FLAGS, FORMS, Tab

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("viser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt install chromium"),
]
NASTY = "<img src=x onerror=alert(1)> 'q' \"夜\" ночь"
SCENE = {"x": 0, "y": 150, "width": 560, "height": 500}
"""What the viewer's panel and its first message leave free of a desktop's window."""
PATIENCE = 60_000
"""Milliseconds: a busy machine draws slowly."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small recording under names that a page must not take for its own."""
    images = write_small(tmp_path_factory.mktemp("recording")) / "images"
    for image in sorted(images.iterdir()):
        image.rename(image.with_name(f"{image.stem} {NASTY}{image.suffix}"))
    out = tmp_path_factory.mktemp("runs") / "table"
    done = geoweaver("reconstruct", images, "-o", out, *OPTIONS)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


def open_tab(browser: Any, form: str) -> Tab:
    """A tab that remembers what it complained of and asked for."""
    tab = Tab(browser.new_context(**FORMS[form], reduced_motion="reduce").new_page())
    told = tab.complaints
    tab.page.on("console", lambda m: told.append(m.text) if m.type == "error" else None)
    tab.page.on("pageerror", lambda error: told.append(str(error)))
    tab.page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    tab.page.on("request", lambda r: tab.requests.append(r.url) if not r.url.startswith("data:") else None)
    return tab


@pytest.mark.parametrize("form", FORMS)
def test_the_report_of_a_run(run: Path, browser: Any, form: str) -> None:
    tab = open_tab(browser, form)
    page, report = tab.page, run / "report.html"
    page.goto(report.as_uri())
    tab.wait("GW.scene.ready")
    page.locator("#scene").scroll_into_view_if_needed()
    assert (np.abs(tab.pixels() - tab.pixels()[2, 2]) > 30).any(-1).mean() > 0.05, "nothing is drawn"
    assert tab.changed_by(lambda: tab.drag(80, 20)) > 0.02
    assert tab.changed_by(lambda: tab.choose("colour-by", "confidence")) > 0.01
    page.locator("#scrub").focus()
    page.keyboard.press("End")
    assert NASTY in page.locator("#picked-name").inner_text()
    assert tab.changed_by(lambda: page.locator("#look").click()) > 0.1
    page.context.close()
    assert tab.complaints == []
    assert tab.requests == [report.as_uri()]


@pytest.fixture
def address(run: Path) -> Iterator[str]:
    """Where `geoweaver view` serves the run."""
    serving = subprocess.Popen(
        command("view", run, "--port", "0"), env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert serving.stdout is not None
    yield serving.stdout.readline().split()[1]
    serving.terminate()
    serving.wait(30)


@pytest.mark.parametrize("form", FORMS)
def test_the_viewer_of_a_run(address: str, browser: Any, form: str) -> None:
    tab = open_tab(browser, form)
    page = tab.page
    page.goto(address)
    page.get_by_text("Fly through").wait_for(timeout=PATIENCE)
    if form == "desktop":
        before = _settled(page)
        page.mouse.move(250, 450)
        page.mouse.down()
        page.mouse.move(340, 410, steps=4)
        page.mouse.up()
        assert (_settled(page, unlike=before) != before).any(-1).mean() > 0.02
    box = page.get_by_role("textbox").nth(3)
    box.fill("5")
    box.press("Enter")
    page.get_by_text(f"frame_00005 {NASTY}").first.wait_for(timeout=PATIENCE)
    page.context.close()
    assert tab.complaints == []


def _settled(page: Any, unlike: np.ndarray | None = None) -> np.ndarray:
    """The scene's pixels once two looks in a row agree, and differ from what was there before."""
    last = np.zeros(0)
    for _ in range(PATIENCE // 300):
        png = np.frombuffer(page.screenshot(clip=SCENE), np.uint8)
        shown = cv2.imdecode(png, cv2.IMREAD_COLOR).astype(int)
        drawn = len(np.unique(shown.reshape(-1, 3), axis=0)) > 100
        changed = unlike is None or bool((shown != unlike).any())
        if drawn and changed and np.array_equal(last, shown):
            return shown
        last = shown
        page.wait_for_timeout(300)
    raise AssertionError("the scene does not come to rest")
