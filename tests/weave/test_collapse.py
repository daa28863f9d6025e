"""The scene must not be made cheaper by making it small (docs/decisions/0003)."""

from dataclasses import replace
from functools import cache

import torch

from geoweaver.assembly.chunk_alignment import ChunkAlignmentConfig, chunk_problem, first_of_each
from geoweaver.assembly.pairs import select_pairs
from geoweaver.assembly.sums import pair_sums
from geoweaver.geometry import Sim3
from geoweaver.synth.simulated_graph import GraphChoice
from geoweaver.synth.simulated_noise import MatchNoise
from geoweaver.synth.simulated_sequence import PRESETS
from geoweaver.weave import SamplingConfig, WeaveConfig, Woven, input_layouts
from tests.weave.tiny import Tiny, ate, tiny, woven

RING = GraphChoice(offsets=(1, 2), border=(1, 2), long_range=1, gap=20, spread=4, wrong=0.1)


@cache
def ring() -> tuple[Tiny, Woven]:
    """Ten chunks around the pillar, every third match wrong, without the tests that would remove them."""
    errors = replace(PRESETS["default"], matches=MatchNoise().with_outliers(0.35))
    case = tiny(frames=71, chunk=8, laps=1.15, errors=errors, choice=RING, per_edge=60)
    assert len(case.priors) == 10
    return case, woven(case, WeaveConfig(sampling=SamplingConfig(lateral=False)))


def relative_scales(layout: Sim3, truth: Sim3) -> torch.Tensor:
    ratio = layout.scale / truth.scale
    return ratio / ratio.median()


def test_chunk_scales_stay_near_the_truth_on_a_ring() -> None:
    case, result = ring()
    _, second = input_layouts(result)
    scales = relative_scales(second.world_from_chunk, case.world_from_chunk)
    assert (scales - 1).abs().max() < 0.05
    # what a frame's median depth is multiplied by: scale and shift alone may trade against each other
    state = result.state
    factor = state.depth_scale + state.depth_shift / result.setup.unit
    assert (factor - 1).abs().median() < 0.05
    assert factor.min() > 0.8 and factor.max() < 1.25
    assert (state.depth_scale.mean() - 1).abs() < 0.01
    assert (state.depth_scale - 1).abs().median() < 0.05 and state.depth_scale.max() < 2
    assert ate(result.state.cam_from_world, case.truth.cam_from_world) < 0.1


def test_shrinking_pays_in_the_literal_residual_and_not_in_ours() -> None:
    """All chunks but the held one at a hundredth of their size: what the 3D term says of the others."""
    _, result = ring()
    local, layout = result.tables.observations, result.stage2.world_from_chunk
    held = first_of_each(result.stage2.component)
    crossing = result.tables.crossing
    free = select_pairs(
        crossing, ~held[local.chunk[crossing.observation_i]] & ~held[local.chunk[crossing.observation_j]]
    )
    shrunk = Sim3(0.01 * layout.scale, layout.rotation, 0.01 * layout.translation)
    ratio = {}
    for residual in ("relative", "world"):
        problem = chunk_problem(free, local, held, ChunkAlignmentConfig(solver="adam", residual=residual))
        before, after = (
            float(pair_sums(free, problem.geometry(x), problem.objective, problem.norm, 0).points.sum())
            for x in (layout, shrunk)
        )
        ratio[residual] = after / before
    assert abs(ratio["relative"] - 1) < 1e-9
    assert ratio["world"] < 0.2
