"""Is a chunk's scale wrong because the solver stops short, or because the matches say so?

`python -m benchmarks.scale_floor`: the paper's Stage 3, whose depth is affine, once more from the true
cameras, focal and depth scales. Where both ways end at the same objective with the same errors, the minimum
itself lies beside the truth.
"""

import argparse
from dataclasses import replace
from typing import Any

import torch

from benchmarks.ablation import ate, chunk_path_errors, chunk_scale_errors, run_weave
from benchmarks.harness import print_table, write_results
from geoweaver.assembly.frame_problem import frame_problem
from geoweaver.assembly.frame_refinement import refine_frames
from geoweaver.datatypes import FrameState
from geoweaver.geometry import SE3
from geoweaver.synth.simulated_sequence import RECIPES, Simulated, simulate_sequence
from geoweaver.weave import WeaveConfig, Woven


def true_state(simulated: Simulated, woven: Woven) -> FrameState:
    """The truth in the weave's variables and its units of length."""
    truth, layout, units = simulated.truth, woven.stage2.world_from_chunk, woven.tables.units
    ratio = []
    for frame in range(len(truth)):
        chunk = int(simulated.observations.chunk[woven.tables.canonical[frame]])
        prior = simulated.priors[chunk]
        depth = prior.depth[int((prior.frame == frame).nonzero()[0])].double()
        true = truth.depth_of(frame)
        both = (true > 0) & (depth > 0)
        ratio.append((true[both] / (depth[both] / units[chunk] * layout.scale[chunk])).median())
    scale = torch.stack(ratio)
    unit, camera = scale.median(), truth.cam_from_world
    focal = (truth.intrinsics[:1, :2] - woven.setup.intrinsics[:1, :2]).expand_as(woven.state.focal_delta)
    cameras = SE3(camera.rotation, camera.translation / unit)
    return FrameState(cameras, scale / unit, torch.zeros_like(scale), focal.clone())


def affine_config() -> WeaveConfig:
    """The weave without its last phase, in which depth bends."""
    config = WeaveConfig()
    coarse, fine, _ = config.refinement.phases
    phases = (coarse, replace(fine, all_matches=True))
    return replace(config, refinement=replace(config.refinement, phases=phases))


def run_one(sequence: str, preset: str, seed: int, frames: int, per_edge: int) -> dict[str, Any]:
    """What the weave finds, and what Stage 3 makes of the truth."""
    simulated = simulate_sequence(sequence, frames, seed, preset, per_edge)
    config = affine_config()
    woven = run_weave(simulated, config, seed)
    refinement, start = config.refinement, true_state(simulated, woven)
    state, _ = refine_frames(woven.matches, woven.setup, start, refinement, refinement.phases[1:])
    problem = frame_problem(woven.matches, woven.setup, refinement, refinement.phases[-1])
    row: dict[str, Any] = {"sequence": sequence, "preset": preset, "seed": seed, "per_edge": per_edge}
    row["objective_at_truth"] = problem.loss(start)
    for name, ended in (("woven", woven), ("from_truth", replace(woven, state=state))):
        row |= {
            f"objective_{name}": problem.loss(ended.state),
            f"scale_error_{name}": float(chunk_scale_errors(simulated, ended).abs().max()),
            f"path_scale_error_{name}": float(chunk_path_errors(ended, simulated).abs().max()),
            f"ate_{name}": ate(ended.state.cam_from_world, simulated.truth.cam_from_world),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sequences", nargs="*", default=list(RECIPES))
    parser.add_argument("--preset", default="hard")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--per-edge", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for sequence in options.sequences:
        rows.append(run_one(sequence, options.preset, options.seed, options.frames, options.per_edge))
        print_table(rows[-1:])
        write_results("scale_floor", rows)


if __name__ == "__main__":
    main()
