"""`python -m benchmarks.gpm`: seconds and peak memory of the GPM per chunk, each case in a fresh process."""

import json
import multiprocessing
import os
import platform
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import tyro

_RESULTS = Path(__file__).parent / "results" / "gpm.json"
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
    out: Path = _RESULTS


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


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    load = round(os.getloadavg()[0], 1)
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "load": load,
    }


def main() -> None:
    """Measure the cases, print a table, write JSON."""
    options = tyro.cli(Options, config=(tyro.conf.FlagCreatePairsOff,))
    command = " ".join(["python", "-m", "benchmarks.gpm", *sys.argv[1:]])
    host = machine()
    print("family       views  seconds   CPU s  encoder   head  peak GB  reference CPU s, GB")
    rows = []
    for family in options.families:
        for views in options.views:
            row = in_own_process(options, family, views)
            rows.append(asdict(row))
            figures = (
                f"{row.seconds:>9}{row.cpu_seconds:>8}{row.encoder_cpu_seconds:>9}{row.head_cpu_seconds:>7}"
            )
            reference = f"{row.reference_cpu_seconds or '-'}, {row.reference_peak_gb or '-'}"
            print(f"{family:<12}{views:>6}{figures}{row.peak_gb:>9}  {reference}", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    content = {"command": command, "date": date, "machine": host, "rows": rows}
    options.out.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
