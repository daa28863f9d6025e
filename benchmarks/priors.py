"""One sequence, one view graph, one set of image matches, several priors (`python -m benchmarks.priors`).

A walk through a synthetic world is rendered, its simulated prior (docs/simulated_prior.md) is written as
files, and `--prior saved:FOLDER` weaves them through the whole pipeline with matches found in the pixels. The
rows `simulated matches` are the same prior woven as `python -m benchmarks.ablation` does it.
"""

import argparse
import json
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.ablation import ate, auc3, run_weave
from benchmarks.harness import print_table, write_results
from geoweaver.datatypes import Reconstruction
from geoweaver.geometry import SE3
from geoweaver.pipeline import Config, reconstruct
from geoweaver.priors import write_saved
from geoweaver.synth.clips import Clip
from geoweaver.synth.sequence import Output, frame_name, write_sequence
from geoweaver.synth.simulated_prior import simulate_chunk
from geoweaver.synth.simulated_sequence import PRESETS, RECIPES, sequence_truth, simulate_scene
from geoweaver.synth.simulated_truth import SceneTruth, consecutive_chunks
from geoweaver.synth.world import build_world
from geoweaver.weave import WeaveConfig


def render(name: str, frames: int | None, seed: int, folder: Path, workers: int) -> SceneTruth:
    """Write the sequence's images, unless they are there, and give its truth."""
    truth = beginning(sequence_truth(name, seed=seed), frames)
    if not (folder / "sequence.json").exists():
        stamps = torch.arange(len(truth), dtype=torch.float64) / 10
        world = build_world(RECIPES[name].world, seed)
        clip = Clip(
            world,
            truth.cam_from_world,
            truth.intrinsics,
            truth.size,
            stamps,
            torch.ones_like(stamps),
            seed=seed,
        )
        write_sequence(clip, folder, Output(depth="none", workers=workers))
    return truth


def beginning(truth: SceneTruth, frames: int | None) -> SceneTruth:
    """The first frames of a sequence: the same steps, fewer of them."""
    return replace(truth, cam_from_world=truth.cam_from_world[:frames], intrinsics=truth.intrinsics[:frames])


def save_simulated(truth: SceneTruth, name: str, preset: str, seed: int, folder: Path) -> Path:
    """The simulated prior of each chunk as a file, with the very errors of the ablation."""
    folder.mkdir(parents=True, exist_ok=True)
    own = errors_seed(name, seed)
    for chunk in consecutive_chunks(len(truth)):
        path = folder / f"chunk_{chunk.index:03}.npz"
        if not path.exists():
            prior = simulate_chunk(truth, chunk, PRESETS[preset].prior, own).prior
            write_saved(path, [frame_name(f) for f in chunk.frames], prior)
    return folder


def errors_seed(name: str, seed: int) -> int:
    """As `simulate_sequence` has it: each sequence has its own errors."""
    return zlib.crc32(f"{name} {seed}".encode())


def run_prior(label: str, prior: str, images: Path, out: Path, truth: SE3, workers: int) -> dict[str, Any]:
    """A whole run in a folder that other priors share: graph and matches are found once."""
    before = _kept(out)
    result: Reconstruction = reconstruct(images, out, Config(prior=prior, workers=workers))
    after = _kept(out)
    run = json.loads((out / "run.json").read_text())
    seconds = {s["name"]: s["seconds"] for s in run["stages"]}
    cameras, trusted = result.cam_from_world, result.trusted
    few = int(trusted.sum()) < 3
    return {
        "prior": label, "frames": len(result), "trusted": int(trusted.sum()),
        "ate": ate(cameras, truth), "auc3": auc3(cameras, truth),
        "ate_trusted": None if few else ate(cameras[trusted], truth[trusted]),
        "rejected_edges": run["rejected_edges"], "reused": bool(before) and before == after,
        "seconds_matches": seconds.get("matches"), "seconds_prior": seconds.get("priors"),
        "seconds_weave": seconds.get("weave"), "seconds": run["seconds_total"],
    }  # fmt: skip


def _kept(out: Path) -> dict[str, int]:
    """The graph's and the matches' artifacts, with their times: unchanged where they were used again."""
    work = out / "work"
    files = [p for stage in ("graph", "matches") for p in sorted((work / stage).rglob("*")) if p.is_file()]
    return {str(p.relative_to(work)): p.stat().st_mtime_ns for p in files}


def ablation_row(truth: SceneTruth, name: str, preset: str, seed: int) -> dict[str, Any]:
    """The same prior with simulated matches, woven as the ablation does it."""
    simulated = simulate_scene(truth, PRESETS[preset], errors_seed(name, seed), per_edge=300)
    woven = run_weave(simulated, WeaveConfig(), seed)
    cameras, trusted = woven.state.cam_from_world, int(woven.trust.trusted.sum())
    return {
        "prior": f"simulated matches, {preset}", "frames": len(truth), "trusted": trusted,
        "ate": ate(cameras, truth.cam_from_world), "auc3": auc3(cameras, truth.cam_from_world),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequence", default="apartment_walk", choices=list(RECIPES))
    parser.add_argument("--frames", type=int, help="only the first so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--presets", nargs="*", default=["default", "hard"], choices=list(PRESETS))
    parser.add_argument("--priors", nargs="*", default=["sfm"], help="more priors, NAME or NAME:PATH")
    parser.add_argument("--no-ablation", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="where images and runs go; without it they are thrown away")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or Path(scratch)
        truth = render(options.sequence, options.frames, options.seed, out / "sequence", options.workers)
        rows: list[dict[str, Any]] = []
        named = {f"saved: simulated, {p}": p for p in options.presets}
        for label, preset in named.items():
            folder = save_simulated(truth, options.sequence, preset, options.seed, out / f"saved_{preset}")
            named[label] = f"saved:{folder}"
        named |= {p.partition(":")[0]: p for p in options.priors}
        for label, prior in named.items():
            images, cameras = out / "sequence" / "images", truth.cam_from_world
            rows.append(run_prior(label, prior, images, out / "run", cameras, options.workers))
            print_table(rows[-1:])
            write_results("priors", rows, sequence=options.sequence)
        if not options.no_ablation:
            rows += [ablation_row(truth, options.sequence, p, options.seed) for p in options.presets]
        print_table(rows)
        write_results("priors", rows, sequence=options.sequence)


if __name__ == "__main__":
    main()
