"""Local features: where they are, what they describe, what masks forbid."""

import math

import cv2
import numpy as np
import pytest
import torch

from geoweaver.datatypes import Features
from geoweaver.features import FeatureConfig, extract_features, no_features, root_sift


def picture(width: int = 240, height: int = 180, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (height // 6, width // 6, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def blob(x: float, y: float, sigma: float = 4.0) -> np.ndarray:
    """A bright spot whose centre is at (x, y) counted from the image's corner."""
    v, u = np.mgrid[:100, :120] + 0.5
    spot = 200 * np.exp(-((u - x) ** 2 + (v - y) ** 2) / (2 * sigma**2))
    return np.repeat(spot.astype(np.uint8)[..., None], 3, -1)


@pytest.mark.parametrize(("x", "y"), [(60.5, 50.5), (60.0, 50.0), (43.25, 61.75)])
def test_positions_count_from_the_corner(x: float, y: float) -> None:
    features = extract_features(blob(x, y))
    nearest = (features.keypoints - torch.tensor([x, y])).norm(dim=-1).min()
    assert nearest < 0.1


def test_scale_is_the_blobs() -> None:
    for sigma in (4.0, 8.0):
        features = extract_features(blob(60.5, 50.5, sigma))
        near = (features.keypoints - torch.tensor([60.5, 50.5])).norm(dim=-1) < 1
        assert features.scale[near].median().item() == pytest.approx(sigma, rel=0.25)


def test_orientation_turns_with_the_image() -> None:
    image = picture(201, 201)
    turned = np.ascontiguousarray(np.rot90(image, -1))  # clockwise on the screen: from +x towards +y
    one, two = extract_features(image), extract_features(turned)
    expected = torch.stack([201 - one.keypoints[:, 1], one.keypoints[:, 0]], -1)
    distance = torch.cdist(expected, two.keypoints)
    pairs = [(i, int(j)) for i, j in enumerate(distance.argmin(-1)) if distance[i, j] < 0.3]
    angles = [float(two.orientation[j] - one.orientation[i]) % (2 * math.pi) for i, j in pairs]
    assert len(angles) > 50
    assert np.median(angles) == pytest.approx(math.pi / 2, abs=0.05)


def test_strongest_first_and_no_more_than_asked() -> None:
    many, few = (
        extract_features(picture()),
        extract_features(picture(), config=FeatureConfig(max_features=50)),
    )
    assert len(few) == 50 < len(many)
    strong = {tuple(point) for point in many.keypoints[:80].tolist()}
    assert sum(tuple(point) in strong for point in few.keypoints.tolist()) >= 40


def test_masked_pixels_have_no_features() -> None:
    usable = np.zeros((180, 240), bool)
    usable[:, :120] = True
    features = extract_features(picture(), usable)
    assert len(features) > 20
    assert features.keypoints[:, 0].max() <= 120.5


def test_plain_image_has_none() -> None:
    features = extract_features(np.full((90, 120, 3), 128, np.uint8))
    assert len(features) == 0
    assert features.descriptors.shape == (0, 128)
    assert isinstance(no_features(), Features)


def test_shifted_views_match_by_descriptor() -> None:
    wide = picture(300, 180)
    one = extract_features(np.ascontiguousarray(wide[:, :240]))
    two = extract_features(np.ascontiguousarray(wide[:, 30:270]))
    similarity = one.descriptors.float() @ two.descriptors.float().T
    best = similarity.max(-1)
    mutual = similarity.argmax(0)[best.indices] == torch.arange(len(one))
    shift = one.keypoints[mutual] - two.keypoints[best.indices[mutual]]
    assert mutual.sum() > 100
    assert (shift - torch.tensor([30.0, 0.0])).norm(dim=-1).median() < 0.1


def test_root_sift_has_constant_length() -> None:
    raw = np.random.default_rng(0).random((20, 128), dtype=np.float32) * 100
    lengths = np.linalg.norm(root_sift(raw).astype(float), axis=-1)
    assert lengths == pytest.approx(np.full(20, 512), rel=0.01)
