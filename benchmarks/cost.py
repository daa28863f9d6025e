"""How lm's cost grows with matches and with frames, and its peak memory (`python -m benchmarks.cost`).

An iteration is linearise (residuals, Jacobians, accumulation), solve, and one evaluation of the true
objective: of the fine phase, and of the last one, in which depth bends. The exponent is the slope of log
seconds over log size. Every row has a process of its own, so that its memory is its own.
"""

import argparse
import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.harness import print_table, write_results
from geoweaver.assembly.frame_priors import FrameSetup
from geoweaver.assembly.frame_problem import FrameProblem, frame_problem
from geoweaver.assembly.frame_settings import FrameRefinementConfig
from geoweaver.assembly.pairs import PairMatches
from geoweaver.datatypes import FrameState
from geoweaver.geometry import SE3
from geoweaver.geometry.camera import lift, project_with_depth

SIZE = (512, 288)
K = torch.tensor([400.0, 400.0, 256.0, 144.0], dtype=torch.float64)


FRAMES = (100, 300, 1000, 2500, 5000)
PHASES = {"fine": 1, "bending": 2}


def problem(
    frames: int, per_edge: int, phase: str = "fine", seed: int = 0
) -> tuple[FrameProblem, FrameState]:
    """A long chain, each frame tied to the 1st, 2nd, 4th and 8th after it: exact geometry plus noise."""
    g = torch.Generator().manual_seed(seed)
    step = torch.zeros(frames, 6, dtype=torch.float64)
    step[:, 0] = 0.05 * torch.arange(frames)
    step[:, 3:] = 0.05 * torch.randn(frames, 3, generator=g, dtype=torch.float64)
    cameras = SE3.exp(step)
    near = [(i, i + o) for i in range(frames) for o in (1, 2, 4, 8) if i + o < frames]
    pairs = torch.tensor(near)
    count = len(pairs)
    pixel_i = torch.rand(count, per_edge, 2, generator=g, dtype=torch.float64) * torch.tensor(SIZE)
    depth_i = 2 + 3 * torch.rand(count, per_edge, generator=g, dtype=torch.float64)
    move = cameras[pairs[:, 1]] @ cameras[pairs[:, 0]].inverse()
    pixel_j, depth_j = project_with_depth(move[:, None].act(lift(pixel_i, depth_i, K)), K)
    depth_j = depth_j * (1 + 0.02 * torch.randn(count, per_edge, generator=g, dtype=torch.float64))
    pixel_j = pixel_j + 0.5 * torch.randn(count, per_edge, 2, generator=g, dtype=torch.float64)
    start = torch.arange(count + 1) * per_edge
    matches = PairMatches(
        start, pairs[:, 0], pairs[:, 1], torch.arange(count),
        pixel_i.flatten(0, 1).float(), pixel_j.flatten(0, 1).float(),
        depth_i.flatten().float(), depth_j.flatten().float(), torch.ones(count * per_edge),
    )  # fmt: skip
    one, zero = torch.ones(frames, dtype=torch.float64), torch.zeros(frames, dtype=torch.float64)
    held = torch.arange(frames) == 0
    setup = FrameSetup(
        K.repeat(frames, 1),
        torch.zeros(frames, dtype=torch.long),
        False,
        3 * one,
        torch.arange(frames) // 59,
        held,
        torch.ones(frames, dtype=torch.bool),
        SIZE,
    )
    shaken = SE3.exp(0.002 * torch.randn(frames, 6, generator=g, dtype=torch.float64)) @ cameras
    config = FrameRefinementConfig()
    state = FrameState(shaken, one, zero, torch.zeros(1, 2, dtype=torch.float64))
    made = frame_problem(matches, setup, config, config.phases[PHASES[phase]])
    if made.bending is not None:
        flat = torch.zeros(frames, *made.bending.grid.nodes, dtype=torch.float64)
        state = replace(state, depth_bend=flat)
    return made, state


def measure(frames: int, per_edge: int, phase: str, repeats: int) -> dict[str, Any]:
    """One row; the first, tiny problem compiles."""
    torch.set_num_threads(1)
    small, begin = problem(20, 10, phase)
    small.step(begin, small.linearise(begin)[1], 1e-4)
    small.loss(begin)
    before = _peak_gb()
    made, state = problem(frames, per_edge, phase)
    made.loss(state)
    accumulate, solve, evaluate = [], [], []
    for _ in range(repeats):
        t0 = time.perf_counter()
        _, system = made.linearise(state)
        t1 = time.perf_counter()
        trial = made.step(state, system, 1e-4)
        t2 = time.perf_counter()
        made.loss(trial)
        t3 = time.perf_counter()
        accumulate.append(t1 - t0)
        solve.append(t2 - t1)
        evaluate.append(t3 - t2)
    best = [min(x) for x in (accumulate, solve, evaluate)]
    rows = made.matches.rows
    return {
        "phase": phase, "frames": frames, "edges": len(made.matches), "matches": rows,
        "accumulate_s": best[0], "solve_s": best[1], "evaluate_s": best[2],
        "iteration_s": sum(best), "million_matches_per_s": rows / best[0] / 1e6,
        "peak_rss_gb": _peak_gb(), "of_that_libraries_gb": before,
    }  # fmt: skip


def _peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def exponent(rows: list[dict[str, Any]], by: str) -> float:
    """Slope of log seconds per iteration over log size."""
    sizes = np.log([r[by] for r in rows])
    return float(np.polyfit(sizes, np.log([r["iteration_s"] for r in rows]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--matches", type=int, default=10_000_000, help="the largest number of matches")
    options = parser.parse_args()
    sizes = [n for n in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000) if n <= options.matches]
    sweeps = {"matches": [(300, n // 1185) for n in sizes], "frames": [(n, 50) for n in FRAMES]}
    rows: list[dict[str, Any]] = []
    exponents = {}
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as process:
        for phase in PHASES:
            for sweep, cases in sweeps.items():
                found = []
                for case in cases:
                    found.append(process.submit(measure, *case, phase, options.repeats).result())
                    print_table(found[-1:])
                rows += [{"sweep": sweep, **row} for row in found]
                exponents[f"{phase}, {sweep}"] = exponent(found[1:], sweep)
                write_results("cost", rows, exponents=exponents)
    print("exponents", exponents)


if __name__ == "__main__":
    main()
