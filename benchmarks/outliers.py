"""How many wrong matches and wrong long-range edges the weave bears (`python -m benchmarks.outliers`)."""

import argparse
from dataclasses import replace
from typing import Any

import torch

from benchmarks.ablation import ate, run_weave
from benchmarks.harness import print_table, write_results
from geoweaver.synth.simulated_graph import GraphChoice
from geoweaver.synth.simulated_sequence import Errors, sequence_truth, simulate_scene
from geoweaver.weave import WeaveConfig

CASES = [*((m, 0.0) for m in (0.2, 0.4, 0.6)), *((0.0, e) for e in (0.15, 0.3, 0.5)), (0.4, 0.3)]
"""Shares of wrong matches and of wrong long-range edges."""


def run_one(
    sequence: str, frames: int, per_edge: int, wrong_matches: float, wrong_edges: float, seed: int
) -> dict[str, Any]:
    errors = Errors(graph=GraphChoice(wrong=wrong_edges))
    errors = replace(errors, matches=errors.matches.with_outliers(wrong_matches))
    simulated = simulate_scene(sequence_truth(sequence, frames, seed), errors, seed + 11, per_edge)
    woven = run_weave(simulated, WeaveConfig(), seed)
    kept = torch.zeros(len(simulated.graph), dtype=torch.bool)
    kept[torch.unique(woven.matches.edge)] = True
    return {
        "sequence": sequence, "seed": seed, "wrong_matches": wrong_matches, "wrong_edges": wrong_edges,
        "ate": ate(woven.state.cam_from_world, simulated.truth.cam_from_world),
        "wrong_kept": int((kept & simulated.wrong_edges).sum()),
        "wrong_given": int(simulated.wrong_edges.sum()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument(
        "--per-edge", type=int, default=600, help="matches per pair; dense matchers give thousands"
    )
    parser.add_argument("--sequences", nargs="*", default=["apartment_walk", "corridor_loop"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for sequence in options.sequences:
        clean = run_one(sequence, options.frames, options.per_edge, 0.0, 0.0, 0)
        rows.append({**clean, "times_clean": 1.0})
        for matches, edges in CASES:
            row = run_one(sequence, options.frames, options.per_edge, matches, edges, 0)
            rows.append({**row, "times_clean": row["ate"] / clean["ate"]})
            print_table(rows[-1:])
            write_results("outliers", rows)
    print_table(rows)


if __name__ == "__main__":
    main()
