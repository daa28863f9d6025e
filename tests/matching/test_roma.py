"""RoMa's warps as matches: pixel convention, both ways, the cycle, weights, batches; against stand-ins."""

import pickle
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
import torch
from torch import Tensor

from geoweaver.datatypes import Camera, Frames, Matches
from geoweaver.errors import ConfigError, FormatError, InputError, MissingExtraError
from geoweaver.matching import roma as roma_module
from geoweaver.matching import roma_networks
from geoweaver.matching.protocol import Matcher, find_matcher
from geoweaver.matching.roma import RomaMatcher
from geoweaver.matching.roma_warp import Warp, WarpConfig, centres, sample_warp, to_pixels

SIZE = (200, 120)
SHIFT = torch.tensor([0.2, -0.1], dtype=torch.float64)
"""Image j shows what i shows, moved by this in [-1, 1]: 20 pixels right, 6 up."""


@dataclass(frozen=True)
class Shown:
    """Every frame is one grey; frame k says its number."""

    def read(self, frame: int) -> np.ndarray:
        return np.full((SIZE[1], SIZE[0], 3), frame, np.uint8)


def frames(count: int = 4, masks: Any = None, broken: tuple[int, ...] = ()) -> Frames:
    camera = Camera("PINHOLE", (100.0, 100.0, 100.0, 60.0), *SIZE)
    return Frames(
        tuple(f"{i}.png" for i in range(count)), torch.arange(count).double(), torch.zeros(count).long(),
        torch.ones(count).bool(), (camera,), SIZE, Shown(), masks, broken,
    )  # fmt: skip


def shifted(side: int = 40, certainty: float = 0.9) -> Warp:
    """The exact warp of a shift; certainty 0 where the other image does not show it, as RoMa says it."""
    grid = centres(side, side)
    there, back = grid + SHIFT, grid - SHIFT
    sure = [torch.where((w.abs() <= 1).all(-1), certainty, 0.0) for w in (there, back)]
    return Warp(there.clamp(-1, 1).float(), sure[0].float(), back.clamp(-1, 1).float(), sure[1].float())


class StandInRomatch:
    """`match` of a batch: both directions side by side, (b, H, 2 W, 4) and (b, H, 2 W)."""

    batches: list[int]
    fits: int = 99

    def __init__(self) -> None:
        type(self).batches = []

    def match(self, a: Tensor, b: Tensor, batched: bool, device: Any) -> tuple[Tensor, Tensor]:
        assert batched and a.shape == b.shape and a.shape[1:] == (3, 560, 560)
        if len(a) > self.fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        type(self).batches.append(len(a))
        warp, grid = shifted(), centres(40, 40).float()
        q = torch.cat([grid, warp.j_from_i], -1)
        s = torch.cat([warp.i_from_j, grid], -1)
        sure = torch.cat([warp.certainty_i, warp.certainty_j], 1)
        return torch.cat([q, s], 1).expand(len(a), -1, -1, -1), sure.expand(len(a), -1, -1)


class StandInRomav2:
    """A dictionary of warps and overlaps."""

    class Cfg:
        def __init__(self, **how: Any) -> None: ...

    def __init__(self, cfg: Any = None) -> None:
        self.bidirectional = False

    def apply_setting(self, setting: str) -> None:
        self.bidirectional = False

    def to(self, device: str) -> "StandInRomav2":
        return self

    def eval(self) -> "StandInRomav2":
        return self

    def match(self, a: Tensor, b: Tensor) -> dict[str, Tensor]:
        assert self.bidirectional and 0 <= float(a.min()) <= float(a.max()) <= 1
        warp, n = shifted(), len(a)
        warps = {"warp_AB": warp.j_from_i, "warp_BA": warp.i_from_j}
        overlaps = {"overlap_AB": warp.certainty_i, "overlap_BA": warp.certainty_j}
        told = {name: value.expand(n, -1, -1, -1) for name, value in warps.items()}
        return told | {name: value.expand(n, -1, -1)[..., None] for name, value in overlaps.items()}


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both packages, as stand-ins."""
    roma_module._loaded.cache_clear()
    romatch, romav2 = ModuleType("romatch"), ModuleType("romav2")
    romatch.__spec__ = romav2.__spec__ = None  # type: ignore[assignment]
    romatch.roma_outdoor = romatch.roma_indoor = lambda **how: StandInRomatch()  # type: ignore[attr-defined]
    romav2.RoMaV2 = StandInRomav2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "romatch", romatch)
    monkeypatch.setitem(sys.modules, "romav2", romav2)
    monkeypatch.setattr(roma_module, "find_spec", lambda name: sys.modules.get(name))


def matched(name: str, pairs: list[tuple[int, int, int]], shown: Frames | None = None) -> Matches:
    matcher = find_matcher(name)
    assert isinstance(matcher, Matcher)
    return pickle.loads(pickle.dumps(matcher)).match(shown or frames(), lambda frame: None, pairs)


@pytest.mark.parametrize("name", ["roma", "romav2"])
def test_a_shift_is_found_to_a_hundredth_of_a_pixel(name: str) -> None:
    found = matched(name, [(7, 0, 1), (3, 1, 2)])
    assert sorted(set(found.edge.tolist())) == [3, 7] and (found.edge.diff() >= 0).all()
    moved = found.pixel_j - found.pixel_i
    assert (moved - torch.tensor([20.0, -6.0])).abs().max() < 1e-2
    assert torch.allclose(found.score, torch.tensor(0.9).double(), atol=1e-6), "the raw certainty"
    for pixel in (found.pixel_i, found.pixel_j):
        assert (pixel >= 0).all() and (pixel <= torch.tensor(SIZE)).all()


def test_pixels_count_from_the_corner() -> None:
    corner, first = torch.tensor([[-1.0, -1.0]]).double(), centres(200, 120)[0, :1]
    assert torch.allclose(to_pixels(corner, SIZE), torch.zeros(1, 2).double())
    assert torch.allclose(to_pixels(first, SIZE), torch.full((1, 2), 0.5).double())


def test_both_directions_bring_matches() -> None:
    warp = shifted()
    one = replace(warp, certainty_j=torch.zeros_like(warp.certainty_j))
    both, alone = (sample(w, WarpConfig(max_matches=10**6)) for w in (warp, one))
    assert len(both) == 2 * len(alone) > 0


def sample(warp: Warp, config: WarpConfig | None = None, **masks: Any) -> Any:
    return sample_warp(warp, SIZE, SIZE, np.random.default_rng(0), config or WarpConfig(), **masks)


def test_a_warp_that_does_not_come_back_is_left_out() -> None:
    warp = shifted()
    bent = warp.i_from_j.clone()
    bent[:, :20, 0] += 0.3
    found = sample(replace(warp, i_from_j=bent))
    # the left half of j is where x_j < 100; a bilinear reading at the border may still come back
    assert len(found) and (found.pixel_j[:, 0] > 95).all()


def test_uncertain_pixels_and_invisible_pairs_are_left_out() -> None:
    assert len(sample(shifted(certainty=0.1))) == 0
    warp = shifted()
    few = torch.zeros_like(warp.certainty_i)
    few[:8, :8] = 0.9
    assert len(sample(replace(warp, certainty_i=few, certainty_j=torch.zeros_like(few)))) == 0
    assert len(sample(replace(warp, certainty_i=few), WarpConfig(min_visible=0.0))) > 0


def test_certain_pixels_are_sampled_more_often() -> None:
    warp = shifted()
    sure = warp.certainty_i.clone()
    sure[:, :20] *= 0.3
    found = sample(
        replace(warp, certainty_i=sure, certainty_j=torch.zeros_like(sure)), WarpConfig(max_matches=300)
    )
    left = int((found.pixel_i[:, 0] < 100).sum())
    assert len(found) == 300 and 30 < left < 130
    assert len(torch.unique(found.pixel_i, dim=0)) == 300, "without replacement"


def test_masks_and_broken_frames_are_honoured() -> None:
    @dataclass(frozen=True)
    class Right:
        def read(self, frame: int) -> np.ndarray:
            return np.broadcast_to(np.arange(SIZE[0]) >= 100, (SIZE[1], SIZE[0]))

    found = matched("roma", [(0, 0, 1), (1, 1, 2)], frames(masks=Right(), broken=(2,)))
    assert set(found.edge.tolist()) == {0}
    assert (found.pixel_i[:, 0] >= 100).all() and (found.pixel_j[:, 0] >= 100).all()


def test_the_same_pair_gives_the_same_bytes_alone_and_in_company() -> None:
    alone, together = matched("roma", [(5, 0, 1)]), matched("roma", [(4, 2, 3), (5, 0, 1)])
    mine = together.edge == 5
    assert torch.equal(alone.pixel_i, together.pixel_i[mine]) and torch.equal(
        alone.score, together.score[mine]
    )


def test_batches_shrink_until_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RomaMatcher, "_first_batch", lambda self: self.batch)
    monkeypatch.setattr(StandInRomatch, "fits", 3)
    pairs = [(e, e % 3, 3) for e in range(10)]
    found = RomaMatcher(batch=8).match(frames(), lambda frame: None, pairs)  # type: ignore[arg-type, return-value]
    assert StandInRomatch.batches == [2, 2, 2, 2, 2] and set(found.edge.tolist()) == set(range(10))
    roma_module._loaded.cache_clear()
    monkeypatch.setattr(StandInRomatch, "fits", 0)
    with pytest.raises(ConfigError, match="too little memory for one pair"):
        RomaMatcher().match(frames(), lambda frame: None, pairs)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("name", ["roma", "romav2", "xfeat"])
def test_a_missing_package_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from geoweaver.matching import xfeat as xfeat_module

    monkeypatch.setattr(roma_module, "find_spec", lambda package: None)
    monkeypatch.setattr(xfeat_module, "find_spec", lambda package: None)
    with pytest.raises(MissingExtraError, match=r"\[matchers\]"):
        find_matcher(name)


@pytest.mark.parametrize("name", ["roma", "romav2"])
def test_the_network_runs_where_it_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    cpu, cuda = (find_matcher(name, device=device) for device in ("cpu", "cuda"))
    assert isinstance(cpu, RomaMatcher) and isinstance(cuda, RomaMatcher)
    assert (cpu._device, cpu.most_workers) == ("cpu", None)
    assert (cuda._device, cuda.most_workers) == ("cuda", 1)


@pytest.mark.parametrize(
    ("device", "installed", "used"), [("cpu", True, False), ("cuda", False, False), ("cuda", True, True)]
)
def test_the_kernel_of_gpus_is_used_only_where_it_is(
    device: str, installed: bool, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    build = lambda **how: asked.append(how) or StandInRomatch()  # noqa: E731
    monkeypatch.setattr(sys.modules["romatch"], "roma_outdoor", build)
    monkeypatch.setattr(roma_networks, "find_spec", lambda name: object() if installed else None)
    roma_networks.load_romatch("", device)
    assert asked[0]["use_custom_corr"] is used


def test_romav2_does_without_its_kernel_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = ModuleType("romav2.local_correlation")
    inner.local_corr = object()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, inner.__name__, inner)
    roma_networks.load_romav2("", "cpu")
    assert inner.local_corr is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["roma", "romav2"])
def test_weights_that_cannot_be_fetched_are_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: Any, **__: Any) -> None:
        raise URLError("Name or service not known")

    monkeypatch.setattr(sys.modules["romatch"], "roma_outdoor", offline)
    monkeypatch.setattr(StandInRomav2, "__init__", offline)
    with pytest.raises(InputError, match=r"go online once.*--matcher classical"):
        matched(name, [(0, 0, 1)])


@pytest.mark.parametrize("name", ["roma", "romav2"])
def test_files_that_are_no_weights_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "noise.pth").write_bytes(bytes(range(1, 200)))
    with pytest.raises(FormatError, match="neither a safetensors nor a PyTorch"):
        find_matcher(name, str(tmp_path / "noise.pth"))
    torch.save({"weight": torch.zeros(3)}, tmp_path / "other.pth")
    network = torch.nn.Linear(2, 2)
    build = lambda weights, **how: network.load_state_dict(weights)  # noqa: E731
    monkeypatch.setattr(sys.modules["romatch"], "roma_outdoor", build)
    monkeypatch.setattr(StandInRomav2, "load_state_dict", lambda self, weights: build(weights), raising=False)
    matcher = find_matcher(name, str(tmp_path / "other.pth"))
    with pytest.raises(FormatError, match=rf"other\.pth: not weights of the matcher {name}: Missing key"):
        matcher.match(frames(), lambda frame: None, [(0, 0, 1)])  # type: ignore[arg-type, return-value]


def test_no_edges_no_matches() -> None:
    assert len(matched("roma", [])) == 0
