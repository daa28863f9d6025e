"""What each stage is worth: ATE and AUC@3 after Stage 1, 2 and 3 (`python -m benchmarks.ablation`).

Five simulated sequences of 300 to 1,000 frames with loops, three seeds, the prior at default and at hard.
"""

import argparse
import time
from typing import Any

import torch

from benchmarks.harness import print_table, saved_rows, write_results
from benchmarks.sigmas import in_sigmas
from benchmarks.stage_cameras import stage_cameras
from geoweaver.assembly.frame_problem import corrected_intrinsics
from geoweaver.evaluation.pose_auc import pair_errors_deg, pose_auc
from geoweaver.geometry import SE3
from geoweaver.geometry.grid import field_over_image
from geoweaver.geometry.registration import umeyama
from geoweaver.synth.simulated_sequence import RECIPES, Simulated, simulate_sequence
from geoweaver.weave import WeaveConfig, Woven, input_layouts, weave

LEAST_FRAMES = 300
"""Shortened sequences keep at least so many frames."""
LEAST_CHUNK = 20
"""Frames under which a chunk, the rest at a sequence's end, says little about its scale."""

COLUMNS = (
    "sequence", "preset", "seed", "frames", "ate1", "ate2", "ate3", "ratio", "auc1", "auc2", "auc3",
    "scale_error", "path_scale_error", "wrong_edges", "wrong_kept", "right_lost", "trusted", "inside_centre",
    "inside_turn", "seconds",
)  # fmt: skip


def ate(estimate: SE3, truth: SE3) -> float:
    """RMSE of the camera centres after one similarity."""
    fit = umeyama(estimate.centre, truth.centre)
    return float((fit.act(estimate.centre) - truth.centre).square().sum(-1).mean().sqrt())


def auc3(estimate: SE3, truth: SE3) -> float:
    return pose_auc(pair_errors_deg(estimate, truth), 3.0)


def run_weave(simulated: Simulated, config: WeaveConfig, seed: int) -> Woven:
    frames = len(simulated.truth)
    group = torch.zeros(frames, dtype=torch.long)
    priors = simulated.priors
    return weave(
        simulated.observations,
        simulated.graph,
        simulated.matches,
        lambda k: priors[k],
        group,
        False,
        config,
        seed,
    )


def chunk_scale_errors(simulated: Simulated, woven: Woven) -> torch.Tensor:
    """Each chunk's median of final over true depth, relative to the sequence's one scale, minus 1."""
    truth, state = simulated.truth, woven.state
    scale = float(umeyama(state.cam_from_world.centre, truth.cam_from_world.centre).scale)
    observations, canonical = simulated.observations, woven.tables.canonical
    layout, units = woven.stage2.world_from_chunk, woven.tables.units
    ratio, owner = [], []
    for frame in range(0, len(truth), 5):
        observation = int(canonical[frame])
        chunk = int(observations.chunk[observation])
        prior = simulated.priors[chunk]
        depth = (
            prior.depth[int((prior.frame == frame).nonzero()[0])].double()
            / units[chunk]
            * layout.scale[chunk]
        )
        if state.depth_bend is not None:
            depth = depth * field_over_image(state.depth_bend[frame], *depth.shape).exp()
        final = (state.depth_scale[frame] * depth + state.depth_shift[frame]) * scale
        true = truth.depth_of(frame)
        good = (true > 0) & (depth > 0)
        ratio.append((final[good] / true[good]).median())
        owner.append(chunk)
    values, owners = torch.stack(ratio), torch.tensor(owner)
    return torch.stack([values[owners == k].median() for k in torch.unique(owners)]) - 1


def chunk_path_errors(woven: Woven, simulated: Simulated) -> torch.Tensor:
    """Scale of each chunk's stretch of the path against the truth, relative to the whole path's, minus 1."""
    estimate, truth = woven.state.cam_from_world.centre, simulated.truth.cam_from_world.centre
    whole = umeyama(estimate, truth).scale
    frames = [torch.tensor(chunk.frames) for chunk in simulated.chunks if len(chunk) >= LEAST_CHUNK]
    return torch.stack([umeyama(estimate[f], truth[f]).scale / whole for f in frames]) - 1


def layout_scale_errors(woven: Woven, simulated: Simulated) -> torch.Tensor:
    """Stage 2's chunk scales against the true ones (chunk medians), their common factor taken out."""
    ratio = input_layouts(woven)[1].world_from_chunk.scale / simulated.world_from_chunk.scale
    return ratio / ratio.median() - 1


def run_one(
    sequence: str, preset: str, seed: int, per_edge: int, config: WeaveConfig, share: float = 1.0
) -> dict[str, Any]:
    frames = max(round(share * RECIPES[sequence].frames), min(LEAST_FRAMES, RECIPES[sequence].frames))
    simulated = simulate_sequence(sequence, frames, seed, preset, per_edge)
    truth = simulated.truth.cam_from_world
    begun = time.perf_counter()
    woven = run_weave(simulated, config, seed)
    seconds = time.perf_counter() - begun
    cameras = stage_cameras(simulated, woven)
    ates, aucs = [ate(c, truth) for c in cameras], [auc3(c, truth) for c in cameras]
    loops = simulated.graph.kind == 2
    kept = torch.zeros(len(loops), dtype=torch.bool)
    kept[torch.unique(woven.matches.edge)] = True
    wrong = simulated.wrong_edges
    centre, turn = in_sigmas(woven.state.cam_from_world, woven.trust.sigma, truth)
    focal = float(corrected_intrinsics(woven.setup, woven.state)[0, 0] / simulated.truth.intrinsics[0, 0] - 1)
    return {
        "sequence": sequence, "preset": preset, "seed": seed, "frames": len(truth),
        "per_edge": per_edge, "share": share,
        **{f"ate{k + 1}": a for k, a in enumerate(ates)}, "ratio": ates[0] / ates[2],
        **{f"auc{k + 1}": a for k, a in enumerate(aucs)},
        "scale_error": float(chunk_scale_errors(simulated, woven).abs().max()),
        "path_scale_error": float(chunk_path_errors(woven, simulated).abs().max()),
        "layout_scale_error": float(layout_scale_errors(woven, simulated).abs().max()),
        "focal_error": focal,
        "wrong_edges": int(wrong.sum()), "wrong_kept": int((kept & wrong).sum()),
        "right_lost": int((loops & ~wrong & ~kept).sum()), "trusted": int(woven.trust.trusted.sum()),
        "inside_centre": float((centre <= 1).double().mean()),
        "inside_turn": float((turn <= 1).double().mean()),
        "sigma_centre_q68": float(centre.quantile(0.68)), "sigma_turn_q68": float(turn.quantile(0.68)),
        "iterations": {r.name: r.iterations for r in woven.reports}, "seconds": seconds,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--per-edge", type=int, default=300)
    parser.add_argument(
        "--share", type=float, default=1.0, help="share of each sequence's frames, 300 at least"
    )
    parser.add_argument("--fresh", action="store_true", help="repeat rows that an earlier run has")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [] if options.fresh else saved_rows("ablation")
    asked = (options.per_edge, options.share)
    rows = [r for r in rows if (r.get("per_edge"), r.get("share")) == asked]
    done = {(r["sequence"], r["preset"], r["seed"]) for r in rows}
    for seed in range(options.seeds):
        for preset in ("default", "hard"):
            for sequence in RECIPES:
                if (sequence, preset, seed) not in done:
                    rows.append(
                        run_one(sequence, preset, seed, options.per_edge, WeaveConfig(), options.share)
                    )
                    _show(rows[-1:], COLUMNS)
                    write_results("ablation", rows, summary=summary(rows))
    _show(rows, COLUMNS)
    _show(summary(rows), ("sequence", "preset", "ate1", "ate2", "ate3", "auc1", "auc2", "auc3"))


def _show(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    print_table([{c: row[c] for c in columns} for row in rows])


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds."""
    out = []
    for preset in ("default", "hard"):
        for sequence in RECIPES:
            mine = [r for r in rows if r["sequence"] == sequence and r["preset"] == preset]
            if mine:
                keys = ("ate1", "ate2", "ate3", "auc1", "auc2", "auc3")
                means = {k: sum(r[k] for r in mine) / len(mine) for k in keys}
                out.append({"sequence": sequence, "preset": preset, **means})
    return out


if __name__ == "__main__":
    main()
