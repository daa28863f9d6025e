"""The same input gives the same bytes, on any number of threads."""

import numba
import pytest
import torch
from threadpoolctl import threadpool_limits

from geoweaver.weave import Woven
from tests.weave.tiny import tiny, woven


def fingerprint(result: Woven) -> list[bytes]:
    """All that leaves the weave except the clock."""
    state, table = result.state, result.tables.frames
    tensors = [
        state.cam_from_world.rotation, state.cam_from_world.translation, state.depth_scale, state.depth_shift,
        state.focal_delta, result.stage1.world_from_chunk.matrix(), result.stage2.world_from_chunk.matrix(),
        result.trust.sigma, table.pixel_i, table.depth_j, table.weight,
    ]  # fmt: skip
    objective = [torch.tensor(r.objective, dtype=torch.float64) for r in result.reports]
    return [t.contiguous().numpy().tobytes() for t in tensors + objective]


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core")
def test_the_same_bytes_twice_and_on_one_or_two_threads() -> None:
    case = tiny(frames=24, chunk=9, laps=0.28, per_edge=60)
    before, torch_before = numba.get_num_threads(), torch.get_num_threads()
    try:
        prints = []
        for threads in (1, 2, 2):
            numba.set_num_threads(threads)
            torch.set_num_threads(threads)
            with threadpool_limits(threads, "blas"):
                prints.append(fingerprint(woven(case)))
    finally:
        numba.set_num_threads(before)
        torch.set_num_threads(torch_before)
    assert prints[0] == prints[1] == prints[2]


def test_another_seed_samples_other_matches() -> None:
    case = tiny(frames=9, chunk=5, laps=0.1, per_edge=60)
    assert fingerprint(woven(case, seed=0)) != fingerprint(woven(case, seed=1))
