import numpy as np
import pytest
import torch
from PIL import Image
from scored_walks import moved, shaken, similarity, trajectory, walk

from geoweaver.errors import InputError
from geoweaver.evaluation import score_trajectory
from geoweaver.evaluation.plot import Entry, ground_axes, plot_trajectories


def entries(reference, *labels):
    estimates = [moved(shaken(reference.cam_from_world, seed), similarity()) for seed in range(len(labels))]
    return [
        Entry(label, score_trajectory(trajectory(estimate, times=reference.timestamps), reference))
        for label, estimate in zip(labels, estimates, strict=True)
    ]


def timed_walk():
    return trajectory(walk(40), times=[float(i) for i in range(40)])


def test_each_estimate_gets_its_colour(tmp_path):
    reference = timed_walk()
    plot_trajectories(tmp_path / "plot.png", reference, entries(reference, "one", "two"))
    pixels = np.asarray(Image.open(tmp_path / "plot.png").convert("RGB")).reshape(-1, 3)
    colours = {tuple(c) for c in np.unique(pixels, axis=0).tolist()}
    assert {(0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)} <= colours
    assert (0x00, 0x9E, 0x73) not in colours


@pytest.mark.parametrize("label", ["a$b$c_{", "_hidden", "<script>", "résumé 漢字".encode().decode()])
def test_strange_names_are_text(tmp_path, label):
    reference = timed_walk()
    plot_trajectories(tmp_path / "plot.svg", reference, entries(reference, label))
    assert "<script>" not in (tmp_path / "plot.svg").read_text()


def test_frames_that_are_missing_leave_a_gap(tmp_path):
    reference = timed_walk()
    part = trajectory(walk(40)[::3], times=[float(i) for i in range(0, 40, 3)])
    plot_trajectories(tmp_path / "plot.pdf", reference, [Entry("part", score_trajectory(part, reference))])
    assert (tmp_path / "plot.pdf").stat().st_size > 1000


def test_the_view_is_along_the_least_extent():
    flat = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    flat *= torch.tensor([1.0, 20, 5])
    axes = ground_axes(flat).abs()
    assert axes[0, 1] > 0.99 and axes[1, 2] > 0.99


def test_missing_folders_are_made(tmp_path):
    reference = timed_walk()
    plot_trajectories(tmp_path / "new" / "folder" / "plot.PNG", reference, entries(reference, "one"))
    assert (tmp_path / "new" / "folder" / "plot.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["plot.xyz", "plot", "file/plot.png"])
def test_what_cannot_be_written_is_said(tmp_path, name):
    reference = timed_walk()
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError) as caught:
        plot_trajectories(tmp_path / name, reference, entries(reference, "one"))
    assert "\n" not in str(caught.value)
