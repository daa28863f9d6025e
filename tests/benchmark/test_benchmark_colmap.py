"""COLMAP's rows: the same frames, mapped once, and images that it leaves out count against it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_suites import FRAMES, StandIn, done, make_folder_scene, make_mip_nerf, make_tanks, path, run

from geoweaver.benchmark import Scene, colmap
from geoweaver.benchmark.colmap import Mapping
from geoweaver.errors import InputError
from geoweaver.formats.colmap import ColmapModel, read_colmap, write_colmap
from geoweaver.pipeline import Config


class SomeModel:
    """What pycolmap hands back: the scene's own model without its last images."""

    def __init__(self, model: ColmapModel, count: int) -> None:
        self.model, self.count = model, count

    def write_binary(self, folder: Path) -> None:
        kept = replace(
            self.model, names=self.model.names[: self.count], camera=self.model.camera[: self.count],
            cam_from_world=self.model.cam_from_world[: self.count],
        )  # fmt: skip
        write_colmap(folder, kept)


def test_images_that_colmap_does_not_register_fail_their_pairs(tmp_path, monkeypatch):
    data = tmp_path / "data"
    make_mip_nerf(data / "garden")
    calls = []

    def map_images(images, names, database, camera):
        calls.append((images.name, len(names), camera))
        return Mapping(2, 7.0, SomeModel(read_colmap(data / "garden/sparse/0"), 5))

    monkeypatch.setattr(colmap, "map_images", map_images)
    for _ in range(2):
        row = done(run(data, tmp_path / "out", StandIn(), "mip-nerf-360", methods=("colmap",)), "colmap")
    assert calls == [("images_4", FRAMES, None)], "mapped once, scored twice"
    assert (row["frames"], row["matched"], row["models"], row["seconds"]) == (FRAMES, 5, 2, 7.0)
    assert row["ate"] < 1e-9 and row["auc3"] == pytest.approx(100 * 5 * 4 / (FRAMES * (FRAMES - 1)))
    assert f"5 of {FRAMES}" in (tmp_path / "out/results.md").read_text()


def test_colmap_is_shown_the_same_frames_and_matched_by_their_places(tmp_path, monkeypatch):
    data = tmp_path / "data"
    folder = make_tanks(data / "Barn")
    model = make_mip_nerf(tmp_path / "other") / "sparse/0"

    def map_images(images, names, database, camera):
        assert list(names) == [f"{k:06}.jpg" for k in (1, 3, 5, 7)] and images == folder
        whole = read_colmap(model)
        rows = torch.tensor([0, 2, 4, 6])
        kept = replace(whole, names=tuple(names), camera=whole.camera[rows], cam_from_world=path()[rows])
        return Mapping(1, 1.0, SomeModel(kept, 4))

    monkeypatch.setattr(colmap, "map_images", map_images)
    config = replace(Config(), frames=replace(Config().frames, stride=2))
    rows = run(data, tmp_path / "out", StandIn(), "tanks-and-temples", config=config, methods=("colmap",))
    row = done(rows, "colmap")
    assert (row["frames"], row["matched"]) == (4, 4) and row["ate"] < 1e-9 and row["auc3"] > 100 - 1e-6


def test_colmap_without_a_model_is_a_row_with_its_reason(tmp_path, monkeypatch):
    make_folder_scene(tmp_path / "data/walk")
    monkeypatch.setattr(colmap, "map_images", lambda *arguments: Mapping(0, 1.0, None))
    rows = run(tmp_path / "data", tmp_path / "out", StandIn(), methods=("geoweaver", "colmap"))
    assert done(rows)["ate"] >= 0
    (failed,) = [row for row in rows if row["method"] == "colmap"]
    assert failed["status"] == "failed" and failed["reason"].startswith("COLMAP registered no image")


def test_colmap_takes_no_video(tmp_path):
    scene = Scene("film", tmp_path / "film.mp4", lambda: pytest.fail("not even looked at"))
    with pytest.raises(InputError, match="is a video"):
        colmap.colmap_row(scene, tmp_path, Config().frames, 0.01)
