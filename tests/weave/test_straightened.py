"""Lenses that are not as their models say: matches are straightened, depth is read where it was."""

import torch

from geoweaver.lens_field import LensFields
from geoweaver.matching import SamplingConfig
from geoweaver.synth.simulated_sequence import PRESETS
from geoweaver.weave import make_tables
from tests.weave.tiny import tiny


def test_matches_are_straightened_and_their_depth_stays() -> None:
    case = tiny(frames=22, chunk=12, laps=0.25, errors=PRESETS["exact"])
    group = torch.arange(len(case.truth)) % 2
    offset = torch.zeros(2, 2, 3, 4, dtype=torch.float64)
    # only the second camera's lens is off, everywhere alike
    offset[1, 0], offset[1, 1] = 0.4, -0.3
    lenses = LensFields(offset, case.observations.size)
    told = (case.observations, case.graph, case.matches, case.priors.__getitem__, group, SamplingConfig(), 0)
    plain, straight = make_tables(*told), make_tables(*told, lenses)
    moved = torch.tensor([0.4, -0.3], dtype=torch.float64)
    for here, there, observation in (
        (plain.frames.pixel_i, straight.frames.pixel_i, plain.frames.observation_i),
        (plain.frames.pixel_j, straight.frames.pixel_j, plain.frames.observation_j),
    ):
        second = group[case.observations.frame[observation]] == 1
        assert second.any() and not second.all()
        assert torch.equal(here[~second], there[~second])
        assert torch.allclose((here - there)[second].double(), moved, atol=1e-4)
    assert torch.equal(plain.frames.depth_i, straight.frames.depth_i)
    assert torch.equal(plain.crossing.depth_j, straight.crossing.depth_j)


def test_without_fields_nothing_changes() -> None:
    case = tiny(frames=22, chunk=12, laps=0.25, errors=PRESETS["exact"])
    group = torch.zeros(len(case.truth), dtype=torch.long)
    told = (case.observations, case.graph, case.matches, case.priors.__getitem__, group, SamplingConfig(), 0)
    none = LensFields(torch.zeros(1, 2, 3, 4, dtype=torch.float64), case.observations.size)
    plain, straight = make_tables(*told), make_tables(*told, none)
    assert torch.equal(plain.frames.pixel_i, straight.frames.pixel_i)
