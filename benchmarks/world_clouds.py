"""`python -m benchmarks.world_clouds`: from pixels to the fused cloud, against the worlds' exact surfaces.

Worlds are filmed and reconstructed as in `benchmarks.sequences`; with `--out` finished runs are read again.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.clouds import THRESHOLD, Filmed, scores, seen_by, true_cloud
from benchmarks.harness import print_table, saved_rows, write_results
from benchmarks.subjects import OTHERS, WORLDS, Subject, find_subjects
from geoweaver.engine import LocalEngine
from geoweaver.finished import load_run
from geoweaver.formats.ply import PlyCloud
from geoweaver.frames import FramesConfig
from geoweaver.fusion import FusionConfig, fuse_cloud
from geoweaver.geometry.registration import umeyama
from geoweaver.outputs import OutputConfig
from geoweaver.pipeline import Config, reconstruct
from geoweaver.results import FinishedRun
from geoweaver.synth.clips import clip_depth, make_clip
from geoweaver.synth.world import build_world

WORKERS = 2


def film(name: str) -> Filmed:
    """What can be seen of a world: exact depth of every frame, and its surfaces as a cloud."""
    world, seed, options = (WORLDS | OTHERS)[name]
    clip = make_clip(build_world(world, seed), options)
    depth = torch.stack([d.float() for d in clip_depth(clip, clip.size, WORKERS)])
    threshold = THRESHOLD * float(depth[depth > 0].median())
    truth = true_cloud(clip, depth, threshold / 2)
    return Filmed(clip, (), depth, truth, *seen_by(clip, depth, truth), threshold)


def aligned(cloud: PlyCloud, run: FinishedRun, filmed: Filmed) -> PlyCloud:
    """The cloud in the world's axes: one similarity, from the cameras."""
    fit = umeyama(run.result.cam_from_world.centre, filmed.clip.cam_from_world.centre)
    return replace(cloud, points=fit.act(cloud.points.double()).float())


def run_one(subject: Subject, out: Path) -> dict[str, Any]:
    """Reconstruct, fuse and score one world."""
    config = Config(frames=FramesConfig(intrinsics=subject.intrinsics), outputs=OutputConfig("cameras"))
    reconstruct(subject.input, out, config)
    run, filmed = load_run(out), film(subject.name)
    begun = time.perf_counter()
    cloud = fuse_cloud(
        run.frames, run.result, run.depths, FusionConfig(), LocalEngine(WORKERS), graph=run.graph
    )
    seconds = time.perf_counter() - begun
    return {
        "world": subject.name, "frames": len(filmed.clip),
        **scores(filmed, aligned(cloud, run, filmed)), "seconds": seconds,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--out", type=Path, help="where the runs are; without it they are thrown away")
    options = parser.parse_args()
    rows = [r for r in saved_rows("world_clouds") if r["world"] not in options.worlds]
    with tempfile.TemporaryDirectory() as scratch:
        out = options.out or Path(scratch)
        for subject in find_subjects(options.worlds, out):
            rows.append(run_one(subject, out / subject.name))
            print_table(rows)
            write_results("world_clouds", rows)


if __name__ == "__main__":
    main()
