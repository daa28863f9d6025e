"""Depth exports: floats with confidence, 16-bit maps with a stated step, an index, no padding."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_runs import finished, first, write_pictures

from geoweaver.errors import DegenerateError
from geoweaver.evaluation.depth_files import depth_frames
from geoweaver.export import export_run
from geoweaver.export.depth_folder import write_depth_folder
from geoweaver.formats.depth import read_confidence, read_depth
from geoweaver.results import DepthMap


def index(folder):
    return json.loads((folder / "geoweaver.json").read_text())


def test_what_is_read_back_is_what_the_run_says(run, tmp_path):
    made = write_depth_folder(run, tmp_path / "depth")
    notes = index(tmp_path / "depth")
    assert [entry["frame"] for entry in notes["frames"]] == list(range(8))
    for entry in notes["frames"][::3]:
        truth = run.depths.read(entry["frame"])
        stored = read_depth(tmp_path / "depth" / entry["file"])
        assert (entry["height"], entry["width"]) == tuple(stored.shape)
        torch.testing.assert_close(stored, truth.depth)
        torch.testing.assert_close(read_confidence(tmp_path / "depth" / entry["file"]), truth.confidence)
        coarse = read_depth(tmp_path / "depth" / entry["png"], unit=99.0)
        known = truth.depth > 0
        assert ((coarse - truth.depth).abs()[known] <= 0.51 * made.unit).all() and not coarse[~known].any()
    assert notes["png_unit"] == made.unit == 0.001


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
def test_steps_follow_the_scene(run, tmp_path, scale):
    class Scaled:
        frames = (0, 1)

        def read(self, frame):
            truth = run.depths.read(frame)
            return DepthMap(scale * truth.depth, truth.confidence, truth.intrinsics)

    made = write_depth_folder(replace(run, depths=Scaled()), tmp_path / "depth")
    truth = scale * run.depths.read(0).depth
    coarse = read_depth(tmp_path / "depth/png/0000.png")
    assert ((coarse - truth).abs()[truth > 0] / truth.median()).max() < 0.002
    assert made.unit * 65535 >= truth.max()


def test_one_far_pixel_does_not_coarsen_all_others(run, tmp_path):
    class Far:
        frames = (0,)

        def read(self, frame):
            truth = run.depths.read(frame)
            depth = truth.depth.clone()
            depth[0, 0] = 1e6
            return DepthMap(depth, truth.confidence, truth.intrinsics)

    write_depth_folder(replace(run, depths=Far()), tmp_path / "depth")
    coarse, fine = (read_depth(tmp_path / "depth" / n) for n in ("png/0000.png", "0000.npz"))
    assert coarse[0, 0] == 0 and fine[0, 0] == 1e6
    assert ((coarse - fine).abs()[1:] / fine[1:].median()).max() < 0.002


def test_padding_is_cut_and_intrinsics_follow(clip, images, tmp_path):
    write_pictures(tmp_path / "in", images[:3], [f"left/{k}.png" for k in range(3)])
    write_pictures(
        tmp_path / "in", [im[:, 60:180].copy() for im in images[3:5]], ["right/0.png", "right/1.png"]
    )
    run = finished(first(clip, 5), tmp_path / "in", tmp_path / "run")
    export_run(run, "depth", tmp_path / "depth")
    entries = index(tmp_path / "depth")["frames"]
    assert [(e["width"], e["height"]) for e in entries] == [(120, 80)] * 3 + [(60, 80)] * 2
    assert [e["file"] for e in entries] == [
        "left__0.npz",
        "left__1.npz",
        "left__2.npz",
        "right__0.npz",
        "right__1.npz",
    ]
    assert entries[3]["intrinsics"][2] == pytest.approx(30)


def test_evaluation_reads_the_floats_and_their_confidence(run, tmp_path):
    write_depth_folder(run, tmp_path / "depth")
    pairs = list(depth_frames(tmp_path / "depth", tmp_path / "depth", 1.0))
    assert len(pairs) == 8 and pairs[0].confidence is not None
    np.testing.assert_allclose(pairs[0].predicted, pairs[0].reference)


def test_a_run_without_depth_says_so(run, tmp_path):
    class Nothing:
        frames = ()

        def read(self, frame):
            raise AssertionError

    with pytest.raises(DegenerateError, match="no depth"):
        write_depth_folder(replace(run, depths=Nothing()), tmp_path / "depth")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_on_the_disk_before_it_has_its_name(run, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(os, "sync", lambda: found.append({path.suffix for path in tmp_path.rglob("*.*")}))
    write_depth_folder(run, tmp_path / "depth", [0, 1])
    assert found == [{".tmp", ".npz", ".png", ".json"}]
    assert [path.name for path in tmp_path.iterdir()] == ["depth"]
