import numpy as np
import pytest
import torch

from geoweaver.errors import DegenerateError, GeoWeaverError, InputError
from geoweaver.evaluation import score_depth
from geoweaver.evaluation.depth_files import depth_frames
from geoweaver.formats.depth import write_depth


def depth(value=2.0, height=6, width=8):
    ramp = torch.arange(height * width, dtype=torch.float64).reshape(height, width) / 100
    return value + ramp


def folder(path, **maps):
    for name, values in maps.items():
        write_depth(path / name.replace("__", "."), values)
    return path


def score(estimate, reference, unit=0.001, **options):
    return score_depth(depth_frames(estimate, reference, unit), **options)


def test_maps_are_paired_by_name_whatever_the_format(tmp_path):
    reference = folder(tmp_path / "truth", a__png=depth(1), b__npy=depth(2), c__npz=depth(3))
    estimate = folder(tmp_path / "run", c__png=2 * depth(3), a__npy=2 * depth(1), b__pfm=2 * depth(2))
    scores = score(estimate, reference, scale=0.5)
    assert scores.absrel < 1e-3
    assert scores.frames == 3 and scores.coverage == 1
    assert scores.absrel_confident is None


def test_or_by_number(tmp_path):
    reference = folder(tmp_path / "truth", depth_00003__png=depth(1), depth_00007__png=depth(2))
    estimate = folder(tmp_path / "run", f7__npy=depth(2), f3__npy=depth(1), f4__npy=depth(9))
    assert score(estimate, reference).absrel < 1e-3


def test_maps_that_the_estimate_lacks_lower_the_coverage_only(tmp_path):
    reference = folder(tmp_path / "truth", a__png=depth(1), b__png=depth(2))
    scores = score(folder(tmp_path / "run", a__npy=depth(1)), reference)
    assert scores.absrel < 1e-3
    assert scores.frames == 1 and scores.coverage == 0.5


def test_the_unit_of_a_png_that_states_none(tmp_path):
    from PIL import Image

    (tmp_path / "truth").mkdir()
    Image.fromarray(np.full((6, 8), 300, np.uint16)).save(tmp_path / "truth" / "a.png")
    estimate = folder(tmp_path / "run", a__npy=torch.full((6, 8), 3.0))
    assert score(estimate, tmp_path / "truth", unit=0.01).absrel < 1e-6
    assert score(estimate, tmp_path / "truth").absrel == pytest.approx(9)


def test_confidence_beside_the_depth(tmp_path):
    truth = torch.ones(4, 4)
    predicted, confidence = truth.clone(), truth.clone()
    predicted[:2], confidence[:2] = 2.0, 0.1
    write_depth(tmp_path / "run" / "a.npz", predicted, confidence=confidence)
    scores = score(tmp_path / "run", folder(tmp_path / "truth", a__npy=truth))
    assert scores.absrel == pytest.approx(0.5)
    assert scores.absrel_confident == pytest.approx(0)


def test_an_npz_without_confidence_has_none(tmp_path):
    estimate = folder(tmp_path / "run", a__npz=depth())
    assert score(estimate, folder(tmp_path / "truth", a__npy=depth())).absrel_confident is None


def test_nothing_in_common_is_said(tmp_path):
    with pytest.raises(DegenerateError, match="name or number"):
        score(folder(tmp_path / "run", a__npy=depth()), folder(tmp_path / "truth", b__npy=depth()))


def test_ambiguous_numbers_do_not_match(tmp_path):
    estimate = folder(tmp_path / "run", left_1__npy=depth(), right_1__npy=depth())
    with pytest.raises(DegenerateError, match="name or number"):
        score(estimate, folder(tmp_path / "truth", f1__npy=depth()))


def test_empty_and_missing_folders_are_said(tmp_path):
    (tmp_path / "empty").mkdir()
    truth = folder(tmp_path / "truth", a__npy=depth())
    with pytest.raises(InputError, match="empty holds no depth map"):
        score(tmp_path / "empty", truth)
    with pytest.raises(InputError, match="nowhere"):
        score(truth, tmp_path / "nowhere")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x89PNG\r\n", b"\x93NUMPY"])
@pytest.mark.parametrize("suffix", ["png", "npy", "npz"])
def test_damaged_maps_are_said(tmp_path, content, suffix):
    truth = folder(tmp_path / "truth", a__npy=depth())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f"a.{suffix}").write_bytes(content)
    with pytest.raises(GeoWeaverError):
        score(tmp_path / "run", truth)
