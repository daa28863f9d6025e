"""lm against the paper's Adam on the same objective, from the same start (`python -m benchmarks.solver`).

CPU seconds and iterations that each needs for 50, 90 and 99 % of the best decrease that either reaches.
Adam gets the same compiled gradient, without the normal matrix, and a stopping window of 200 iterations.
Every chunk is in units of its median depth. Writes a plot of objective against seconds beside the JSON.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.ablation import ate
from benchmarks.harness import RESULTS, print_table, saved_rows, write_results
from geoweaver.assembly.chunk_alignment import (
    ChunkAlignmentConfig,
    align_chunks,
    chunk_problem,
    first_of_each,
)
from geoweaver.assembly.frame_problem import frame_problem
from geoweaver.assembly.frame_refinement import refine_frames
from geoweaver.assembly.frame_settings import FrameRefinementConfig
from geoweaver.assembly.frames_start import start_frames
from geoweaver.assembly.pairs import PairMatches, select_pairs
from geoweaver.assembly.sequential import initialise_chunks
from geoweaver.datatypes import ChunkLayout, StageReport
from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.matching import SamplingConfig
from geoweaver.synth.simulated_sequence import PRESETS, Simulated, sequence_truth, simulate_scene
from geoweaver.weave import Tables, WeaveConfig, make_tables

SHARES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Run:
    """One solver's way down: the full objective at each point in time."""

    seconds: list[float]
    losses: list[float]
    iterations: list[int]
    ate: float
    why: str


def simulated_tables(sequence: str, chunks: int, chunk_size: int, per_edge: int) -> tuple[Simulated, Tables]:
    frames = chunks * (chunk_size - 1) + 1
    simulated = simulate_scene(sequence_truth(sequence, frames), PRESETS["default"], 7, per_edge, chunk_size)
    priors = simulated.priors
    tables = make_tables(
        simulated.observations,
        simulated.graph,
        simulated.matches,
        lambda k: priors[k],
        torch.zeros(frames, dtype=torch.long),
        SamplingConfig(),
        0,
    )
    return simulated, tables


def right_pairs(simulated: Simulated, matches: PairMatches) -> PairMatches:
    """Loops as they are after judgement: this benchmark is about the solver alone."""
    wrong = (matches.edge >= 0) & simulated.wrong_edges[matches.edge.clamp(min=0)]
    return select_pairs(matches, ~wrong)


def drifted(layout: ChunkLayout) -> ChunkLayout:
    """A chain that drifts by 2 degrees, 3 % and 0.05 median depths per axis and chunk.

    From Stage 1 itself so little is left to gain that Adam at its rate never gets below the start.
    """
    generator = torch.Generator().manual_seed(3)
    sigma = torch.tensor([0.05] * 3 + [0.035] * 3 + [0.03], dtype=torch.float64)
    steps = Sim3.exp(sigma * torch.randn(len(layout), 7, generator=generator, dtype=torch.float64))
    world, moved = layout.world_from_chunk, [layout.world_from_chunk[0]]
    for k in range(1, len(layout)):
        moved.append(moved[-1] @ world[k - 1].inverse() @ world[k] @ steps[k])
    parts = (torch.stack([getattr(s, n) for s in moved]) for n in ("scale", "rotation", "translation"))
    return ChunkLayout(Sim3(*parts), layout.component)


def stage2_runs(simulated: Simulated, tables: Tables, adam_seconds: float) -> tuple[Run, Run, int]:
    local = tables.observations
    start, _, _ = initialise_chunks(tables.crossing, local, simulated.graph.kind, WeaveConfig().links, 0)
    start = drifted(start)
    matches = right_pairs(simulated, tables.crossing)
    config = ChunkAlignmentConfig()
    problem = chunk_problem(matches, local, first_of_each(start.component), config)
    truth, canonical = simulated.truth.cam_from_world, tables.canonical

    def cameras(layout: Any) -> SE3:
        return world_camera(layout[local.chunk[canonical]], local.cam_from_chunk[canonical])

    def solve(settings: ChunkAlignmentConfig, watch: Callable[[Any, float], None]) -> tuple[Any, StageReport]:
        layout, report = align_chunks(matches, local, start, settings, watch)
        return layout.world_from_chunk, report

    loss = problem.loss
    state = start.world_from_chunk
    by_lm = _measured(lambda w: solve(config, w), loss, state, lambda s: ate(cameras(s), truth))
    rule = replace(config.adam_rule, most=_affordable(lambda: problem.loss(state), adam_seconds, 5000))
    adam = replace(config, solver="adam", adam_rule=rule)
    by_adam = _measured(lambda w: solve(adam, w), None, state, lambda s: ate(cameras(s), truth))
    return by_lm, by_adam, matches.rows


def stage3_runs(simulated: Simulated, tables: Tables, adam_seconds: float) -> tuple[Run, Run, int]:
    local = tables.observations
    first, _, _ = initialise_chunks(tables.crossing, local, simulated.graph.kind, WeaveConfig().links, 0)
    layout, _ = align_chunks(right_pairs(simulated, tables.crossing), local, first, ChunkAlignmentConfig())
    group = torch.zeros(len(simulated.truth), dtype=torch.long)
    begin = start_frames(tables.frames, local, layout, tables.canonical, group, False)
    matches = right_pairs(simulated, begin.matches)
    config = FrameRefinementConfig()
    coarse = replace(config.phases[0], all_matches=True)
    config = replace(config, phases=(coarse,))
    problem = frame_problem(matches, begin.setup, config, coarse)
    truth = simulated.truth.cam_from_world

    def solve(
        settings: FrameRefinementConfig, watch: Callable[[Any, float], None]
    ) -> tuple[Any, StageReport]:
        state, reports = refine_frames(matches, begin.setup, begin.state, settings, watch=watch)
        return state, reports[-1]

    def error(state: Any) -> float:
        return ate(state.cam_from_world, truth)

    by_lm = _measured(lambda w: solve(config, w), problem.loss, begin.state, error)
    rule = replace(
        config.adam_rule, most=_affordable(lambda: problem.loss(begin.state), adam_seconds, 20_000)
    )
    adam = replace(config, solver="adam", adam_rule=rule)
    by_adam = _measured(lambda w: solve(adam, w), None, begin.state, error)
    return by_lm, by_adam, matches.rows


def _affordable(evaluate: Callable[[], float], seconds: float, most: int) -> int:
    """Adam iterations that fit, an iteration costing about twice an evaluation of the loss."""
    evaluate()
    begun = time.process_time()
    evaluate()
    return int(min(most, max(30, seconds / (2 * (time.process_time() - begun)))))


def _measured(
    solve: Callable[[Callable[[Any, float], None]], tuple[Any, StageReport]],
    loss: Callable[[Any], float] | None,
    start: Any,
    error: Callable[[Any], float],
) -> Run:
    """A solver's trace of the full objective in CPU seconds: other work on the machine does not count."""
    begun = time.process_time()
    clock: list[float] = []
    states: list[Any] = []

    def watch(state: Any, _: float) -> None:
        clock.append(time.process_time() - begun)
        if loss is not None:
            states.append(state)

    state, report = solve(watch)
    if loss is None:  # Adam reports the full objective itself, once per call of watch
        return Run(clock, list(report.objective), list(range(len(clock))), error(state), report.why_stopped)
    losses = [loss(start)] + [loss(s) for s in states]
    return Run([0.0, *clock], losses, list(range(len(losses))), error(state), report.why_stopped)


def reached(run: Run, goal: float) -> tuple[float, int]:
    """Seconds and iterations to get down to a loss; infinite where it never does."""
    for seconds, loss, iteration in zip(run.seconds, run.losses, run.iterations, strict=True):
        if loss <= goal:
            return seconds, iteration
    return float("inf"), -1


def compare(name: str, by_lm: Run, by_adam: Run, rows: int, simulated: Simulated) -> dict[str, Any]:
    first, best = by_lm.losses[0], min(min(by_lm.losses), min(by_adam.losses))
    row: dict[str, Any] = {"problem": name, "matches": rows, "frames": len(simulated.truth)}
    for share in SHARES:
        goal = first - share * (first - best)
        (lm_s, lm_i), (adam_s, adam_i) = reached(by_lm, goal), reached(by_adam, goal)
        label = round(100 * share)
        row |= {
            f"lm_s{label}": lm_s,
            f"lm_i{label}": lm_i,
            f"adam_s{label}": adam_s,
            f"adam_i{label}": adam_i,
        }
        row[f"ratio{label}"] = (adam_s if adam_s < float("inf") else by_adam.seconds[-1]) / max(lm_s, 1e-9)
    return row | {
        "lm_loss": min(by_lm.losses), "adam_loss": min(by_adam.losses),
        "lm_ate": by_lm.ate, "adam_ate": by_adam.ate, "adam_seconds": by_adam.seconds[-1],
        "adam_iterations": len(by_adam.losses) - 1, "adam_why": by_adam.why,
        "lm_seconds": by_lm.seconds[-1],
    }  # fmt: skip


def plot(path: Path, runs: dict[str, tuple[Run, Run]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(runs), figsize=(4 * len(runs), 3.2), layout="constrained", squeeze=False
    )
    for axis, (name, (by_lm, by_adam)) in zip(axes[0], runs.items(), strict=True):
        axis.plot([max(s, 1e-3) for s in by_lm.seconds], by_lm.losses, "o-", ms=3, label="lm")
        axis.plot([max(s, 1e-3) for s in by_adam.seconds], by_adam.losses, "--", label="Adam")
        axis.set(xscale="log", xlabel="CPU seconds", title=name)
        axis.legend()
    axes[0][0].set_ylabel("objective")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--adam-seconds", type=float, default=240.0, help="time that Adam may take per problem"
    )
    parser.add_argument("--chunks", type=int, nargs="*", default=[12, 30, 100])
    parser.add_argument("--frames", type=int, nargs="*", default=[300, 1000])
    options = parser.parse_args()
    torch.set_num_threads(1)
    warm_up = simulated_tables("corridor_loop", 2, 12, 20)
    stage2_runs(*warm_up, 0.1)  # compiles
    problems: list[tuple[str, int]] = [("Stage 2", n) for n in options.chunks]
    problems += [("Stage 3", n) for n in options.frames]
    rows, runs = saved_rows("solver"), {}
    for stage, size in problems:
        small = stage == "Stage 2"
        chunks, chunk_size, per_edge = (size, 12, 100) if small else (size // 59 + 1, 60, 60)
        simulated, tables = simulated_tables("corridor_loop", chunks, chunk_size, per_edge)
        way = stage2_runs if small else stage3_runs
        lm_run, adam_run, count = way(simulated, tables, options.adam_seconds)
        name = f"{stage}, {size} {'chunks' if small else 'frames'}"
        rows = [r for r in rows if r["problem"] != name] + [compare(name, lm_run, adam_run, count, simulated)]
        runs[name] = (lm_run, adam_run)
        print_table(rows[-1:])
        write_results("solver", rows)
        plot(RESULTS / "solver.png", runs)


if __name__ == "__main__":
    main()
