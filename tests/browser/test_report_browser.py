"""The report in a real browser with software WebGL: it draws, obeys, asks nobody for anything."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from geoweaver.viewer.report import write_report
from tests.viewer.report_runs import HOSTILE, made_run

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt install chromium")
FLAGS = [
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
FORMS = {
    "desktop": {"viewport": {"width": 1000, "height": 720}},
    "phone": {
        "viewport": {"width": 390, "height": 844}, "has_touch": True,
        "is_mobile": True,
    },
}  # fmt: skip
TINY_TEXTS = """[...document.querySelectorAll('main *')].filter(e => e.childNodes.length === 1
    && e.firstChild.nodeType === 3 && e.textContent.trim() && e.checkVisibility()
    && parseFloat(getComputedStyle(e).fontSize) < 12).map(e => e.textContent)"""
LEAST = 0.001
"""Share of a view's pixels that has to change before it counts."""


@dataclass
class Tab:
    """A page, and all that it complained of or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def pixels(self, what: str = "#scene") -> np.ndarray:
        png = np.frombuffer(self.page.locator(what).screenshot(), np.uint8)
        return cv2.imdecode(png, cv2.IMREAD_COLOR).astype(int)

    def greens(self) -> int:
        """Pixels in the colour of believed pairs, edges softened."""
        return int((np.abs(self.pixels() - np.array([0x5F, 0x80, 0x00])) < 48).all(-1).sum())

    def changed_by(self, act: Callable[[], object], what: str = "#scene") -> float:
        """Share of pixels that an act changes, once two looks in a row agree."""
        before = self.pixels(what)
        act()
        shown = before
        for _ in range(60):
            self.page.wait_for_timeout(60)
            last, shown = shown, self.pixels(what)
            if (last == shown).all() and (shown != before).any():
                break
        return float((np.abs(shown - before) > 8).any(-1).mean())

    def wait(self, condition: str) -> None:
        # the page's own policy forbids playwright's waiting, which evaluates strings inside it
        for _ in range(200):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"it did not happen: {condition}")

    def choose(self, name: str, value: str) -> None:
        self.page.locator(f'input[name="{name}"][value="{value}"] + span').click()

    def drag(self, dx: int, dy: int, button: str = "left") -> None:
        box = self.page.locator("#scene").bounding_box()
        x, y = box["x"] + 0.7 * box["width"], box["y"] + 0.3 * box["height"]
        self.page.mouse.move(x, y)
        self.page.mouse.down(button=button)
        self.page.mouse.move(x + dx, y + dy, steps=4)
        self.page.mouse.up(button=button)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "walk <b>about a \"pillar\" 'π' 夜"
    folder.mkdir()
    run = made_run(folder, names=HOSTILE)
    write_report(run, folder / "report.html", reference=run.result.cam_from_world.centre + 0.1)
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(params=list(FORMS))
def tab(request, browser, report):
    context = browser.new_context(**FORMS[request.param], reduced_motion="reduce", color_scheme="light")
    page = context.new_page()
    tab = Tab(page)
    page.on("console", lambda m: tab.complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (tab.complaints.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda r: tab.requests.append(r.url) if not r.url.startswith("data:") else None)
    page.goto(report.as_uri())
    tab.wait("GW.scene.ready")
    page.locator("#scene").scroll_into_view_if_needed()
    yield tab
    context.close()
    # names such as <script>alert(1)</script> are in this run
    ours = [c for c in tab.complaints if "GPU stall" not in c]
    assert not ours
    assert tab.requests == [report.as_uri()]


def test_the_scene_is_drawn_and_turns(tab):
    background = tab.pixels()[2, 2]
    assert (np.abs(tab.pixels() - background) > 30).any(-1).mean() > 0.1
    assert tab.changed_by(lambda: tab.drag(80, 20)) > 0.05
    assert tab.changed_by(lambda: tab.drag(60, 40, "right")) > 0.05
    assert tab.changed_by(lambda: tab.page.mouse.wheel(0, -300)) > 0.05


@pytest.mark.parametrize("tab", ["desktop"], indirect=True)
def test_the_keyboard_moves_the_view(tab):
    tab.page.locator("#scene").focus()
    start = tab.pixels()
    for key in ("ArrowLeft", "Shift+ArrowUp", "+", "-"):
        assert tab.changed_by(lambda key=key: tab.page.keyboard.press(key)) > 0.01, key
    tab.page.keyboard.press("0")
    tab.page.wait_for_timeout(400)
    assert (np.abs(tab.pixels() - start) > 8).any(-1).mean() < LEAST


# one form is enough where the screen's size changes nothing: software WebGL is slow
@pytest.mark.parametrize("tab", ["phone"], indirect=True)
def test_colours_and_layers_can_be_switched(tab):
    for value in ("chunk", "trust", "confidence", "rgb"):
        assert tab.changed_by(lambda value=value: tab.choose("colour-by", value)) > 0.03, value
    for box in ("show-cameras", "show-path", "show-points"):
        assert tab.changed_by(lambda box=box: tab.page.locator(f"#{box}").click()) > LEAST, box
    # three thin green lines are few pixels: their colour tells, not their share
    assert tab.greens() == 0
    tab.changed_by(lambda: tab.page.locator("#show-edges").click())
    assert tab.greens() > 0
    assert tab.changed_by(lambda: tab.page.locator("#show-points").click()) > 0.03
    slide = "(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }"
    for name, value in (("point-size", "4"), ("cut", "20")):
        assert tab.changed_by(lambda n=name, v=value: tab.page.locator(f"#{n}").evaluate(slide, v)) > 0.01, (
            name
        )


def test_a_frame_can_be_picked_and_looked_through(tab):
    page = tab.page
    assert page.locator("#picked-name").inner_text() == "18 · 000018.jpg"
    page.locator("#card-0").evaluate("e => e.click()")
    assert page.locator("#picked-name").inner_text() == f"0 · {HOSTILE[0]}"
    assert page.locator("#card-0").get_attribute("class") == "card picked"
    assert tab.changed_by(lambda: page.locator("#look").click()) > 0.2
    page.locator("#scrub").focus()
    page.keyboard.press("End")
    assert page.locator("#picked-name").inner_text().startswith("35 ")
    page.evaluate("GW.pick(20)")
    assert "not trusted: no matches with depth" in page.locator("#picked-words").inner_text()
    page.locator("#play").click()
    tab.wait("GW.picked() > 21")
    page.locator("#play").click()


@pytest.mark.parametrize("tab", ["phone"], indirect=True)
def test_the_cloud_can_be_seen_alone(tab):
    """Without its points the view is empty: no camera or path is left over it."""
    page = tab.page
    page.locator("#look").click()
    tab.changed_by(lambda: page.locator("#show-points").click())
    assert tab.pixels()[4:-4, 4:-4].std((0, 1)).max() == 0, "seen through a camera"
    assert tab.changed_by(lambda: page.locator("#reset-view").click()) > LEAST
    for box in ("show-cameras", "show-path"):
        tab.changed_by(lambda box=box: page.locator(f"#{box}").click())
    assert tab.pixels()[4:-4, 4:-4].std((0, 1)).max() == 0, "with cameras and path switched off"


def test_the_path_shows_what_is_asked_for(tab):
    plan = tab.page.locator("#plan")
    plan.scroll_into_view_if_needed()
    for box in ("plan-accepted", "plan-rejected", "plan-borders", "plan-stages", "plan-reference"):
        before = plan.inner_html()
        tab.page.locator(f"#{box}").click()
        assert plan.inner_html() != before, box
    area = plan.bounding_box()
    plan.click(position={"x": 0.97 * area["width"], "y": 0.5 * area["height"]})
    assert tab.page.evaluate("GW.picked()") != 18


def test_charts_and_matrix_are_drawn(tab):
    page = tab.page
    charts = page.locator("[data-chart]")
    assert charts.count() == 7
    for k in range(charts.count()):
        charts.nth(k).scroll_into_view_if_needed()
        assert charts.nth(k).locator("path.series").count() >= 1
        assert charts.nth(k).locator("path.series").first.get_attribute("d").count("L") >= 5
    chart = charts.nth(1)
    chart.locator("> svg").hover()
    assert "Stage 3" in chart.locator(".tip").inner_text()
    page.locator("#matrix").scroll_into_view_if_needed()
    assert len(np.unique(tab.pixels("#matrix").reshape(-1, 3), axis=0)) >= 4


@pytest.mark.parametrize(("middle", "span"), [(1.0, 0.002), (1.0, 0.01), (0.0, 3e-6), (150000.0, 40.0)])
def test_no_two_ticks_of_an_axis_say_the_same(tab, middle, span):
    labels = tab.page.evaluate(
        """([middle, span]) => {
            const host = document.querySelector('[data-chart="depth-scale"]');
            const spec = GW.data.charts["depth-scale"];
            spec.series[0].y = spec.series[0].y.map((_, i, all) => middle + span * (i / all.length - 0.5));
            spec.rule = middle;
            GW.charts.redraw(host);
            return [...host.querySelectorAll('svg text[text-anchor="end"]')].map(e => e.textContent);
        }""",
        [middle, span],
    )
    values = [float(label) for label in labels]
    assert len(values) >= 3 and len(set(values)) == len(values), labels
    assert np.allclose(np.diff(values), np.diff(values)[0]), "evenly spaced as they are drawn"


def test_the_gallery_obeys(tab):
    page = tab.page
    page.locator("#frames").scroll_into_view_if_needed()
    tab.choose("pictures-show", "depth")
    assert page.locator("#gallery").get_attribute("class") == "gallery show-depth"
    page.locator("#only-untrusted").click()
    assert page.locator(".card:visible").count() == 4
    names = page.locator(".card .name").all_text_contents()
    assert names[: len(HOSTILE)] == list(HOSTILE)


def test_it_fits_the_screen_and_has_two_themes(tab):
    page = tab.page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(TINY_TEXTS) == []
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert tab.changed_by(lambda: page.locator("#theme").click()) > 0.3
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.requests.pop()  # the reload


def test_on_paper_no_picture_is_left_in_a_scrolled_box(tab):
    hidden = "(e => e.scrollHeight > e.clientHeight + 1)(document.getElementById('gallery'))"
    assert tab.page.evaluate(hidden), "on a screen it scrolls"
    tab.page.emulate_media(media="print")
    assert not tab.page.evaluate(hidden)
    assert not tab.page.locator(".toolbar").first.is_visible()


def test_every_control_can_be_reached_with_the_keyboard(tab):
    page = tab.page
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.name"))
    assert {
        "theme",
        "colour-by",
        "show-points",
        "point-size",
        "cut",
        "scene",
        "play",
        "scrub",
        "look",
    } <= reached


def test_without_webgl_the_rest_still_works(browser, report):
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("HTMLCanvasElement.prototype.getContext = (get => function (kind, ...rest) "
                         "{ return kind === 'webgl2' ? null : get.call(this, kind, ...rest); })"
                         "(HTMLCanvasElement.prototype.getContext);")  # fmt: skip
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(report.as_uri())
    assert "WebGL 2" in page.locator("#scene-message").inner_text()
    page.locator("[data-chart] path.series").first.wait_for(state="attached")
    assert page.locator("#picked-name").inner_text() == "18 · 000018.jpg"
    context.close()
    assert not errors
