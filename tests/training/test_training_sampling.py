"""Which clips are drawn: by the stage's rule, the same again for the same step, broken ones passed over."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_training import noise_scene, noise_source, tiny_config

from geoweaver.errors import FormatError, InputError
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import lift, pixel_centres
from geoweaver.training.datasets.registry import Source
from geoweaver.training.datasets.scene import View
from geoweaver.training.fitting import fit_view
from geoweaver.training.prefetch import read_ahead
from geoweaver.training.sampling import (
    draw_frames,
    draw_scene,
    draw_size,
    draw_views,
    training_batch,
    validation_clip,
)
from geoweaver.training.settings import STAGES

SMALL = {"long_side": 42, "aspects": (2 / 3, 2 / 3)}


def test_stage_one_has_four_views_and_stage_two_two_to_sixteen() -> None:
    rng = np.random.default_rng(0)
    assert {draw_views(STAGES[1], rng) for _ in range(50)} == {4}
    assert {draw_views(STAGES[2], rng) for _ in range(500)} == set(range(2, 17))


@pytest.mark.parametrize("stage", [1, 2])
def test_a_device_never_gets_more_than_its_frames(stage: int) -> None:
    config, sources = replace(STAGES[stage], **SMALL), noise_source(frames=20)
    for step in range(8):
        clips, views = training_batch(sources, config, step).depth.shape[:2]
        assert clips == 16 // views and config.views[0] <= views <= config.views[1]


def test_sizes_are_whole_patches_of_the_wanted_range() -> None:
    rng = np.random.default_rng(0)
    sizes = {draw_size(STAGES[1], rng) for _ in range(400)}
    assert {w for w, _ in sizes} == {504}
    assert {h for _, h in sizes} == set(range(252, 505, 14))


def test_a_step_is_the_same_whenever_it_is_drawn_and_other_on_other_ranks() -> None:
    config, sources = replace(STAGES[2], **SMALL), noise_source(frames=20)
    a, b = training_batch(sources, config, 7, 1), training_batch(sources, config, 7, 1)
    assert all(torch.equal(x, y) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))
    other = training_batch(sources, config, 7, 0)
    assert other.images.shape == a.images.shape and not torch.equal(other.images, a.images)
    assert not torch.equal(
        validation_clip(sources, tiny_config(), 0).images, validation_clip(sources, tiny_config(), 1).images
    )


def test_sources_are_drawn_by_weight_and_scenes_alike() -> None:
    sources = [
        Source("rare", [noise_scene(4, "a")], 1.0),
        Source("often", [noise_scene(4, "b"), noise_scene(4, "c")], 3.0),
    ]
    rng = np.random.default_rng(0)
    count = Counter(draw_scene(sources, rng).name for _ in range(4000))
    assert count["a"] / 4000 == pytest.approx(0.25, abs=0.03)
    assert count["b"] / 4000 == pytest.approx(0.375, abs=0.03)


def test_frames_are_distinct_ordered_and_near_each_other() -> None:
    scene, rng = noise_scene(200), np.random.default_rng(0)
    for _ in range(50):
        frames = draw_frames(scene, 8, rng)
        assert len(set(frames)) == 8 and frames == sorted(frames) and frames[-1] - frames[0] <= 16


def test_broken_frames_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(frame: int) -> None:
        if frame % 4 == 0:
            raise FormatError(f"frame {frame} is broken")

    config = replace(STAGES[1], **SMALL, frames_per_device=4)
    batches = [training_batch(noise_source(refuse, frames=40), config, step) for step in range(6)]
    assert all(batch.depth.shape[1] == 4 for batch in batches)
    assert "is broken" in caplog.text


def test_data_that_cannot_serve_is_an_error_at_last() -> None:
    with pytest.raises(InputError, match="no scene with 4 views"):
        training_batch(noise_source(frames=3), replace(STAGES[1], **SMALL), 0)

    def refuse(frame: int) -> None:
        raise FormatError("nothing can be read")

    with pytest.raises(InputError, match="nothing can be read"):
        training_batch(noise_source(refuse), replace(STAGES[1], **SMALL), 0)


def test_the_first_view_is_the_world() -> None:
    batch = training_batch(noise_source(frames=9), tiny_config(), 3)
    assert torch.allclose(batch.cam_from_world[:, 0], torch.eye(3, 4).expand(2, 3, 4), atol=1e-6)
    assert float(batch.images.min()) >= 0 and float(batch.images.max()) <= 1


@given(st.integers(20, 60), st.integers(20, 60), st.floats(-4, 4), st.floats(-4, 4), st.sampled_from([1, 2]))
def test_cutting_and_resampling_keep_every_point_in_its_place(
    width: int, height: int, dx: float, dy: float, finer: int
) -> None:
    """A slanted plane stays that plane, and the principal point comes to the middle."""
    K = torch.tensor([50.0, 45.0, width / 2 + dx, height / 2 + dy], dtype=torch.float64)
    normal, offset = torch.tensor([0.2, -0.1, 1.0], dtype=torch.float64), 4.0
    wide, high = finer * width, finer * height
    pixel = pixel_centres(wide, high) / finer
    depth = offset / (lift(pixel, torch.ones(high, wide, dtype=torch.float64), K) @ normal)
    view = View(np.zeros((height, width, 3), np.uint8), depth, SE3.identity(), K)
    size = (28, 14)
    _, small, fitted = fit_view(view, size)
    error = (lift(pixel_centres(*size), small.double(), fitted) @ normal - offset).abs()
    # the nearest pixel's depth is off by half a pixel at most, on a plane of this slope
    assert float(error.max()) < 4.0 * 0.05
    assert float((fitted[2:] - torch.tensor([14.0, 7.0])).abs().max()) <= 1.5
    assert float(fitted[0] / fitted[1]) == pytest.approx(50 / 45, rel=0.12)


def test_a_principal_point_at_the_edge_is_refused() -> None:
    K = torch.tensor([50.0, 50.0, 1.0, 20.0], dtype=torch.float64)
    view = View(np.zeros((40, 40, 3), np.uint8), torch.ones(40, 40), SE3.identity(), K)
    with pytest.raises(FormatError, match="principal point"):
        fit_view(view, (28, 14))


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_reading_ahead_keeps_the_order_and_passes_errors_on(threads: int) -> None:
    assert list(read_ahead(lambda step: step**2, range(3, 12), threads)) == [s**2 for s in range(3, 12)]

    def read(step: int) -> int:
        if step == 2:
            raise InputError("two")
        return step

    batches = read_ahead(read, range(5), threads)
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(InputError, match="two"):
        next(batches)
