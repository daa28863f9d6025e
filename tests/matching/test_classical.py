"""Classical matching on pairs whose true flow is a known map."""

import inspect
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from geoweaver.datatypes import Camera, Features, Frames
from geoweaver.errors import ConfigError
from geoweaver.features.sift import extract_features, no_features
from geoweaver.matching import classical, classical_pair, classical_warp, protocol, two_view
from geoweaver.matching.classical import ClassicalConfig, ClassicalMatcher, PairMatches, match_pair
from geoweaver.matching.protocol import Matcher, find_matcher

SIZE = (320, 200)


def texture(seed: int, width: int = 480, height: int = 360) -> np.ndarray:
    """Blobs of many sizes, as photos have."""
    rng, total = np.random.default_rng(seed), np.zeros((height, width, 3))
    for octave in range(1, 7):
        small = rng.standard_normal((height >> octave or 1, width >> octave or 1, 3))
        total += 1.3**octave * cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(128 + 22 * total, 0, 255).astype(np.uint8)


def seen(picture: np.ndarray, picture_from_view: np.ndarray, size: tuple[int, int] = SIZE) -> np.ndarray:
    """A view of a picture; the map is between corner-origin pixels."""
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    centred = np.linalg.inv(half) @ picture_from_view @ half
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return cv2.warpPerspective(picture, centred, size, flags=flags, borderMode=cv2.BORDER_REFLECT)


def move(x: float, y: float, angle: float = 0.0, zoom: float = 1.0, tilt: float = 0.0) -> np.ndarray:
    c, s = zoom * np.cos(angle), zoom * np.sin(angle)
    return np.array([[c, -s, x], [s, c, y], [tilt, 0, 1]])


def errors(found: PairMatches, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Signed errors of matches between two views of one picture."""
    map_ = np.linalg.inv(j) @ i
    there = np.concatenate([found.pixel_i, np.ones((len(found), 1))], 1) @ map_.T
    return found.pixel_j - there[:, :2] / there[:, 2:]


def matched(
    a: np.ndarray, b: np.ndarray, config: ClassicalConfig | None = None, **masks: np.ndarray
) -> PairMatches:
    return match_pair(a, b, extract_features(a), extract_features(b), config, **masks)


HERE, THERE = move(60, 50), move(67.3, 46.6)
PICTURE = texture(1)


def test_small_motion_is_found_to_a_tenth_of_a_pixel_without_bias() -> None:
    found = matched(seen(PICTURE, HERE), seen(PICTURE, THERE))
    error = errors(found, HERE, THERE)
    assert len(found) > 1000
    assert np.median(np.linalg.norm(error, axis=1)) < 0.1
    assert np.abs(np.median(error, axis=0)).max() < 0.04, "half a pixel would show here"


def test_turned_zoomed_and_tilted_views_are_matched() -> None:
    wide = move(150, 20, angle=0.5, zoom=1.25, tilt=4e-4)
    found = matched(seen(PICTURE, HERE), seen(PICTURE, wide))
    error = np.linalg.norm(errors(found, HERE, wide), axis=1)
    assert len(found) > 500
    assert (error < 1).mean() > 0.95


def test_exposure_does_not_matter() -> None:
    brighter = np.clip(1.25 * seen(PICTURE, THERE).astype(float) + 10, 0, 255).astype(np.uint8)
    error = errors(found := matched(seen(PICTURE, HERE), brighter), HERE, THERE)
    assert len(found) > 800
    assert np.median(np.linalg.norm(error, axis=1)) < 0.15


def test_large_images_are_matched_small_and_answered_in_their_own_pixels() -> None:
    config = replace(ClassicalConfig(), max_pixels=SIZE[0] * SIZE[1] // 2)
    found = matched(seen(PICTURE, HERE), seen(PICTURE, THERE), config)
    error = errors(found, HERE, THERE)
    assert len(found) > 500
    assert np.median(np.linalg.norm(error, axis=1)) < 0.25
    assert np.abs(np.median(error, axis=0)).max() < 0.08


def test_views_of_different_sizes() -> None:
    half = move(67.3, 46.6, zoom=2.0)
    found = matched(seen(PICTURE, HERE), seen(PICTURE, half, (160, 100)))
    error = np.linalg.norm(errors(found, HERE, half), axis=1)
    assert len(found) > 300
    assert np.median(error) < 0.3


@pytest.mark.parametrize("other", [texture(2, *SIZE), np.full((SIZE[1], SIZE[0], 3), 90, np.uint8)])
def test_unrelated_and_blank_images_are_rejected(other: np.ndarray) -> None:
    assert len(matched(seen(PICTURE, HERE), other)) == 0
    assert len(matched(other, seen(PICTURE, HERE))) == 0


def test_without_features_flow_alone_serves_neighbours_and_no_others() -> None:
    a, b, none = seen(PICTURE, HERE), seen(PICTURE, THERE), no_features()
    found = match_pair(a, b, none, none)
    assert len(found) > 500
    assert np.median(np.linalg.norm(errors(found, HERE, THERE), axis=1)) < 0.2
    assert len(match_pair(a, texture(2, *SIZE), none, none)) == 0


def test_what_is_hidden_in_one_view_scores_low() -> None:
    a, b = seen(PICTURE, HERE), seen(PICTURE, THERE)
    b[60:140, 100:220] = texture(3, 120, 80)
    found = matched(a, b)
    wrong = np.linalg.norm(errors(found, HERE, THERE), axis=1) > 1
    x, y = (found.pixel_i + np.array([60 - 67.3, 50 - 46.6])).T
    hidden = (x > 108) & (x < 212) & (y > 68) & (y < 132)
    everywhere = matched(a, seen(PICTURE, THERE))
    assert hidden.sum() < 0.3 * 104 * 64 / (SIZE[0] * SIZE[1]) * len(everywhere)
    assert found.score[~wrong].mean() > 0.9
    assert not wrong.any() or found.score[wrong].mean() < 0.7


def test_masks_are_kept_out_of_both_images() -> None:
    a, b = seen(PICTURE, HERE), seen(PICTURE, THERE)
    left, top = np.ones(a.shape[:2], bool), np.ones(a.shape[:2], bool)
    left[:, :100], top[:80] = False, False
    found = matched(a, b, mask_i=left, mask_j=top)
    assert len(found) > 200
    assert found.pixel_i[:, 0].min() >= 100 and found.pixel_j[:, 1].min() >= 80


def test_matches_are_spread_one_per_cell_and_best_first() -> None:
    config = replace(ClassicalConfig(), max_matches=400)
    found = matched(seen(PICTURE, HERE), seen(PICTURE, THERE), config)
    side = int(np.ceil(np.sqrt(SIZE[0] * SIZE[1] / 400)))
    cells = {(int(x // side), int(y // side)) for x, y in found.pixel_i}
    assert len(cells) == len(found) <= 400
    assert (np.diff(found.score) <= 0).all()
    assert ((found.score >= config.min_score) & (found.score <= 1)).all()


def test_the_same_bytes_twice() -> None:
    wide = move(150, 20, angle=0.5, zoom=1.25)
    a, b = seen(PICTURE, HERE), seen(PICTURE, wide)
    one, two = matched(a, b), matched(a, b)
    assert one.pixel_j.tobytes() == two.pixel_j.tobytes() and one.score.tobytes() == two.score.tobytes()


def test_no_depth_can_reach_the_matches() -> None:
    """What a prior says of depth or cameras is no argument, so that a wrong prior cannot confirm itself."""
    for function in (match_pair, ClassicalMatcher.match, Matcher.match):
        for name, parameter in inspect.signature(function).parameters.items():
            words = f"{name} {parameter.annotation}".lower()
            assert not any(word in words for word in ("depth", "prior", "observation", "intrinsic", "pose"))
    for module in (classical, classical_pair, classical_warp, protocol, two_view):
        assert not {"ChunkPrior", "Observations", "Correspondences", "FrameState"} & set(vars(module))


class Pictures:
    """Frames made of pictures in memory."""

    def __init__(self, *pictures: np.ndarray) -> None:
        self.pictures = pictures

    def read(self, frame: int) -> np.ndarray:
        return self.pictures[frame]


def frames_of(*pictures: np.ndarray, broken: tuple[int, ...] = ()) -> Frames:
    n = len(pictures)
    return Frames(
        tuple(f"{k}.png" for k in range(n)), torch.arange(n).double(), torch.zeros(n, dtype=torch.long),
        torch.ones(n, dtype=torch.bool), (Camera("PINHOLE", (300.0, 300.0, 160.0, 100.0), *SIZE),), SIZE,
        Pictures(*pictures), broken=broken,
    )  # fmt: skip


def test_the_matcher_gives_one_table_sorted_by_edge_and_drops_what_fails() -> None:
    views = [seen(PICTURE, HERE), seen(PICTURE, THERE), texture(2, *SIZE), seen(PICTURE, move(70, 50))]
    frames = frames_of(*views, broken=(3,))

    def read(frame: int) -> Features:
        return extract_features(views[frame])

    found = ClassicalMatcher().match(frames, read, [(7, 0, 1), (2, 0, 2), (4, 1, 0), (9, 0, 3)])
    assert found.edge.unique().tolist() == [4, 7]
    assert (found.edge.diff() >= 0).all()
    assert found.pixel_i.dtype == torch.float64
    alone = matched(views[0], views[1])
    assert np.array_equal(found.pixel_j[found.edge == 7].numpy(), alone.pixel_j)
    assert len(ClassicalMatcher().match(frames, read, [])) == 0


def test_matchers_are_found_by_name() -> None:
    assert isinstance(find_matcher("classical"), Matcher)
    with pytest.raises(ConfigError, match="choose one of classical"):
        find_matcher("telepathy")


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="max_matches"):
        ClassicalConfig(max_matches=0)
    with pytest.raises(ConfigError, match="min_score"):
        ClassicalConfig(min_score=1.0)
