"""`python -m benchmarks.render`: frames per second of the synthetic worlds, with pictures and depth alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import tyro

from benchmarks.harness import print_table, write_results
from geoweaver.synth.clips import Clip, ClipOptions, make_clip, render_frame
from geoweaver.synth.render import render_depth
from geoweaver.synth.world import PLANS, build_world, world_looks


@dataclass(frozen=True)
class Options:
    """Measure on one core; CPU seconds are the reliable figure on a shared machine."""

    worlds: tuple[str, ...] = tuple(PLANS)
    size: tuple[int, int] = (512, 288)
    frames: int = 24
    """Frames measured per world, spread over a round."""


def measure(name: str, options: Options) -> dict[str, Any]:
    """One world: seconds to build it and its looks, frames per second by the clock and by CPU time."""
    _, build_cpu, world = _timed(lambda: build_world(name))
    clip = make_clip(world, ClipOptions(frames=options.frames, size=options.size, laps=1.0))
    _, looks_cpu, _ = _timed(lambda: world_looks(world))
    render_frame(clip, 0)  # compiled kernels are loaded before the clock starts
    rgb_wall, rgb_cpu, _ = _timed(lambda: [render_frame(clip, k) for k in range(len(clip))])
    depth_wall, depth_cpu, _ = _timed(lambda: [_depth(clip, k) for k in range(len(clip))])
    n = len(clip)
    return {
        "world": name, "size": f"{options.size[0]}x{options.size[1]}", "surfaces": len(world.quads),
        "build_s": round(build_cpu, 2), "looks_s": round(looks_cpu, 2),
        "rgb_depth_fps": round(n / rgb_wall, 1), "rgb_depth_cpu_ms": round(1000 * rgb_cpu / n, 1),
        "depth_fps": round(n / depth_wall, 1), "depth_cpu_ms": round(1000 * depth_cpu / n, 1),
    }  # fmt: skip


def _depth(clip: Clip, frame: int) -> torch.Tensor:
    return render_depth(clip.world, clip.cam_from_world[frame], clip.intrinsics[frame], clip.size)


def _timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def main(options: Options) -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    rows = [measure(name, options) for name in options.worlds]
    print_table(rows)
    print(f"written to {write_results('render', rows)}")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
