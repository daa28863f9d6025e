"""`python -m benchmarks.gpm`: seconds and peak memory of the GPM per chunk, each case in a fresh process."""

import multiprocessing
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass

import torch
import tyro

from benchmarks.harness import print_table, saved_rows, write_results

_REFERENCE = {("da3-small", 4): ("7.3-8.1", 0.84), ("da3-base", 4): ("16-20", 1.7)}
"""CPU seconds and GB of Depth Anything 3's own code, all branches, on two cores of an EPYC."""


@dataclass(frozen=True)
class Options:
    """Measure the GPM with random weights."""

    families: tuple[str, ...] = ("da3-small", "da3-base")
    views: tuple[int, ...] = (4, 60)
    height: int = 280
    width: int = 504
    rays: bool = False
    """Run the ray branch too."""
    threads: int = 2
    repeat: int = 1
    """Runs per case; the fastest counts."""


@dataclass(frozen=True)
class Row:
    """One case; CPU seconds are the reliable figure on a shared machine."""

    family: str
    views: int
    height: int
    width: int
    rays: bool
    threads: int
    seconds: float
    cpu_seconds: float
    encoder_cpu_seconds: float
    head_cpu_seconds: float
    peak_gb: float
    reference_cpu_seconds: str = ""
    reference_peak_gb: float | None = None


def measure(options: Options, family: str, views: int) -> Row:
    """Build, run, time; meant for a fresh process, whose peak memory is the case's own."""
    from geoweaver.models import GPM, build_gpm

    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    network = build_gpm(family).eval()
    assert isinstance(network, GPM), "the nested model is two of these"
    images = torch.randn(1, views, 3, options.height, options.width)
    marks: list[float] = []
    network.head.register_forward_pre_hook(lambda *_: marks.append(time.process_time()))
    best: tuple[float, ...] = ()
    for _ in range(options.repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        with torch.inference_mode():
            network(images, rays=options.rays)
        done = time.process_time()
        times = (done - cpu, time.perf_counter() - wall, marks[-1] - cpu, done - marks[-1])
        best = min(best or times, times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    total, seconds, encoder, head = (round(value, 2) for value in best)
    size = (options.height, options.width, options.rays, options.threads)
    reference = _REFERENCE.get((family, views), ("", None))
    return Row(family, views, *size, seconds, total, encoder, head, round(peak, 2), *reference)


def in_own_process(options: Options, family: str, views: int) -> Row:
    """Peak memory never falls within a process: each case gets a new one."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, options, family, views).result()


def main() -> None:
    """Measure the cases, print a table, write JSON after each: the long ones may be stopped."""
    options = tyro.cli(Options, config=(tyro.conf.FlagCreatePairsOff,))
    cases = [(family, views) for family in options.families for views in options.views]
    rows = [row for row in saved_rows("gpm") if (row["family"], row["views"]) not in cases]
    for family, views in cases:
        rows.append({**asdict(in_own_process(options, family, views)), "load": round(os.getloadavg()[0], 1)})
        print_table(rows[-1:])
        rows.sort(key=lambda row: (-len(row["family"]), row["family"], row["views"]))
        write_results("gpm", rows)


if __name__ == "__main__":
    main()
