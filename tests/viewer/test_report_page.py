"""The report as a file: complete, safe, small, and true to the run."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from geoweaver.datatypes import ViewGraph
from geoweaver.errors import InputError
from geoweaver.formats.ply import PlyCloud, write_ply
from geoweaver.viewer.report import report_page, write_report
from tests.viewer.report_runs import HOSTILE, made_run


class Reader(HTMLParser):
    """What a browser would see: elements, texts, and the data of the scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.data: dict = {}
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = dict(attrs).get("id", tag) if tag in ("script", "style") else ""

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, text):
        if self.inside == "data":
            self.data = json.loads(text)
        elif not self.inside:
            self.texts.append(text)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / 'a <img src=x onerror=alert(1)> & "b"'
    return report_page(made_run(folder, names=HOSTILE), scores={"ate": 0.0123, "frames": 36})


def test_names_stay_text(hostile):
    seen = Reader(hostile)
    assert len(seen.all("script")) == 5
    assert not [a for _, a in seen.elements if any(name.startswith("on") for name in a)]
    assert "<script>alert(1)" not in hostile and "onerror=alert(1)>" not in hostile
    assert seen.data["frames"]["names"][: len(HOSTILE)] == list(HOSTILE)
    text = "".join(seen.texts)
    assert all(name in text for name in HOSTILE)
    assert "the images have no <b>focal</b>" in text


def test_nothing_is_asked_of_the_network(hostile):
    without_data = re.sub(r"base64,[A-Za-z0-9+/=]+", "", hostile)
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+\.\w+[^\"'\s)]*", without_data)) - {
        "http://www.w3.org/2000/svg"
    }
    assert not addresses
    seen = Reader(hostile)
    for tag in ("img", "script", "link", "iframe", "source"):
        assert all(str(a.get("src", "data:")).startswith("data:") and "href" not in a for a in seen.all(tag))
    policy = next(a for a in seen.all("meta") if a.get("http-equiv"))
    assert "default-src 'none'" in policy["content"]


def test_every_picture_and_control_has_a_name(hostile):
    seen = Reader(hostile)
    assert all("alt" in a for a in seen.all("img"))
    for a in seen.all("canvas"):
        assert a.get("aria-label")
    bare = [
        a for name, a in seen.elements if name == "input" and a["type"] == "range" and not a.get("aria-label")
    ]
    assert not bare
    ids = [a["id"] for _, a in seen.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = [a["href"][1:] for a in seen.all("a")]
    assert set(links) <= set(ids)


def test_the_words_say_what_happened(hostile):
    text = " ".join(Reader(hostile).texts)
    for words in (
        "GeoWeaver reconstruction of walk <1>.mp4",
        "It took 2 min 8 s; the largest process held 812 MB of memory.",
        "36 frames, 36 keyframes in 3 chunks. 32 cameras are trusted; 4 keyframes are not.",
        "4 pairs of frames far apart in time were compared: 1 was rejected as false.",
        "only 17 % of its matches agree (frame 7; the others alike)",
        "Frames 7 to 9",
        "no matches with depth",
        "did not fit the rest and were left out: 4–18.",
        "weave.sampling.max_per_pair",
        "2 min 8 s in all, 812 MB of memory",
        "1,381 MiB",
        "0.0123",
    ):
        assert words in text, words


def large_cloud() -> PlyCloud:
    points = 5 * torch.randn(300_000, 3, generator=torch.Generator().manual_seed(0))
    return PlyCloud(points, (points.abs() * 40).clamp(0, 255).to(torch.uint8), None, torch.rand(300_000))


def test_a_thousand_frames_fit_into_ten_megabytes(tmp_path):
    run = made_run(tmp_path, frames=1000)
    write_report(run, tmp_path / "report.html", large_cloud())
    assert (tmp_path / "report.html").stat().st_size < 10_000_000
    seen = Reader((tmp_path / "report.html").read_text())
    assert 100_000 < seen.data["cloud"]["count"] <= 200_000
    assert 150 <= len(seen.data["pictures"]) <= 200


def test_the_cloud_of_the_run_folder_is_shown(tmp_path):
    run = made_run(tmp_path)
    seen = run.depths.points(3).float()
    write_ply(tmp_path / "points.ply", PlyCloud(seen, torch.full((len(seen), 3), 77, dtype=torch.uint8)))
    write_report(run, tmp_path / "report.html")
    cloud = Reader((tmp_path / "report.html").read_text()).data["cloud"]
    assert cloud["found"] == len(seen)
    assert set(base64.b64decode(cloud["rgb"])) == {77}
    frame = np.frombuffer(base64.b64decode(cloud["frame"]), "<i4")
    assert (frame >= 0).mean() > 0.8


def test_grass_and_noise_in_upright_images_do_not_swell_the_report(tmp_path):
    run = made_run(tmp_path, frames=1000)
    page = report_page(replace(run, frames=replace(run.frames, pixels=Noise())), large_cloud())
    seen = Reader(page).data
    assert 150 <= len(seen["pictures"]) <= 200 and seen["cloud"]["count"] > 100_000
    assert len(page.encode()) < 10_000_000


class Noise:
    """Pictures that no encoder can shorten."""

    def read(self, frame):
        return np.random.default_rng(frame).integers(0, 256, (160, 90, 3), dtype=np.uint8)


class Gone:
    """An input folder that was moved away."""

    def read(self, frame):
        raise InputError("the images are gone: give --input")


def test_a_run_whose_images_are_gone_still_has_a_report(tmp_path):
    run = made_run(tmp_path)
    page = report_page(replace(run, frames=replace(run.frames, pixels=Gone())))
    seen = Reader(page)
    assert seen.data["pictures"] == [] and seen.data["cloud"]["count"] > 1000
    assert "can no longer be read" in "".join(seen.texts)


def test_a_run_with_next_to_nothing(tmp_path):
    run = made_run(tmp_path, frames=4, doubted=(1, 2))
    none = torch.zeros(0, dtype=torch.long)
    bare = replace(
        run, graph=ViewGraph(none.reshape(0, 2), none), rejected=none.bool(), views=(), depths=NoDepth(),
        summary={}, result=replace(run.result, reports=()), chunk=torch.full((4,), -1),
    )  # fmt: skip
    seen = Reader(report_page(bare))
    assert seen.data["cloud"] is None and seen.data["charts"] == {}
    links = {a["href"][1:] for a in seen.all("a")}
    assert links <= {a.get("id") for _, a in seen.elements}
    assert "nothing closed a loop" in " ".join(seen.texts)


def test_a_stage_without_residuals_gets_no_peak(tmp_path):
    run = made_run(tmp_path)
    none = torch.zeros(0)
    first = replace(run, views=(replace(run.views[0], pixel_error=none), *run.views[1:]))
    text = " ".join(Reader(report_page(first)).texts)
    assert "Most often, matches miss by about – pixels after Stage 1" in text
    hollow = replace(run, views=tuple(replace(v, pixel_error=none, depth_error=none) for v in run.views))
    seen = Reader(report_page(hollow))
    assert not any("density" in name or "share" in name for name in seen.data["charts"])
    assert "residuals" not in {a["href"][1:] for a in seen.all("a")} and "no match has depth" in seen.texts


def test_an_empty_fused_cloud_is_not_called_one(tmp_path):
    text = " ".join(Reader(report_page(made_run(tmp_path), PlyCloud(torch.zeros(0, 3)))).texts)
    assert "lifted from the depth maps" in text and "of the fused cloud" not in text


class NoDepth:
    """A prior that saw nothing."""

    frames = ()

    def read(self, frame):
        raise AssertionError("there is no depth")
