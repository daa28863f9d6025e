"""The field of what a lens's model leaves, on made-up misses."""

import torch

from geoweaver.lens_field import NODES, no_fields

SIZE = (320, 180)


def observed(count: int = 60_000, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, 2, generator=generator, dtype=torch.float64) * torch.tensor(SIZE)


def bent(pixel: torch.Tensor) -> torch.Tensor:
    """What a lens does that no model told."""
    x, y = (pixel / torch.tensor(SIZE) * 2 - 1).unbind(-1)
    return torch.stack([0.2 * x * y, 0.1 * (x.square() - y)], -1)


def test_without_a_field_pixels_stay() -> None:
    pixel = observed(100)
    fields = no_fields(2, SIZE)
    assert torch.equal(fields.straight(pixel, torch.arange(100) % 2), pixel)
    assert fields.notes() == [] and fields.offset.shape == (2, 2, 7, NODES)


def test_a_smooth_field_is_found_under_noise_and_outliers() -> None:
    pixel, camera = observed(), torch.zeros(60_000, dtype=torch.long)
    generator = torch.Generator().manual_seed(1)
    noise = 0.2 * torch.randn(60_000, 2, generator=generator, dtype=torch.float64)
    noise[::10] += 5.0
    fields = no_fields(1, SIZE)
    for _ in range(4):
        shown = fields.straight(pixel + bent(pixel) + noise, camera)
        # points and cameras take up two thirds of what is left
        fields = fields.stepped(pixel, camera, (shown - pixel) / 3)
    left = fields.straight(pixel + bent(pixel), camera) - pixel
    assert left.norm(dim=-1).median() < 0.2 * bent(pixel).norm(dim=-1).median()
    assert len(fields.notes()) == 1


def test_each_camera_has_its_own_field() -> None:
    pixel, camera = observed(), torch.arange(60_000) % 2
    miss = torch.where(camera[:, None] == 1, bent(pixel), 0.0)
    fields = no_fields(2, SIZE).stepped(pixel, camera, miss)
    assert not fields.offset[0].any() and fields.offset[1].any()
    moved = fields.straight(pixel, camera) - pixel
    assert not moved[camera == 0].any() and moved[camera == 1].any()


def test_few_observations_and_misses_behind_a_camera_tell_nothing() -> None:
    pixel, camera = observed(200), torch.zeros(200, dtype=torch.long)
    assert not no_fields(1, SIZE).stepped(pixel, camera, bent(pixel)).offset.any()
    pixel, camera = observed(), torch.zeros(60_000, dtype=torch.long)
    miss = bent(pixel)
    whole = no_fields(1, SIZE).stepped(pixel, camera, miss).offset
    miss[::3] = torch.inf
    assert (no_fields(1, SIZE).stepped(pixel, camera, miss).offset - whole).abs().max() < 0.1


def test_pixels_beyond_the_border_follow_the_outermost_cells() -> None:
    pixel, camera = observed(), torch.zeros(60_000, dtype=torch.long)
    fields = no_fields(1, SIZE).stepped(pixel, camera, bent(pixel))
    outside = torch.tensor([[-5.0, -5.0], [SIZE[0] + 3.0, SIZE[1] + 3.0]], dtype=torch.float64)
    assert fields.straight(outside, torch.zeros(2, dtype=torch.long)).isfinite().all()
