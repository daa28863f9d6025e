"""The sequences of the benchmark: real recordings with references, rendered worlds with the truth, videos."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from geoweaver.datatypes import Trajectory
from geoweaver.formats.trajectory import read_trajectory

DRONE = "458.654,457.296,367.215,248.375,-0.28340811,0.07395907,0.00019359,1.76187114e-05"
WORLDS = {"apartment": (400, 1.5), "street": (300, 1.2), "tabletop": (150, 1.5), "corridor": (300, 1.3)}
"""Frames and rounds of each rendered world."""


@dataclass(frozen=True)
class Subject:
    """One sequence, and what is known about it."""

    name: str
    input: Path
    truth: Trajectory | None = None
    intrinsics: str | None = None
    depth: Callable[[int], Path | None] = lambda frame: None
    """File of a frame's true depth, where there is one."""
    depth_unit: float = 1.0


def find_subjects(names: list[str], scratch: Path) -> Iterator[Subject]:
    """Subjects by name; rendered ones are made when their turn comes."""
    for name in names:
        yield _rendered(name, scratch) if name in WORLDS else _recorded(name)


def every_name() -> list[str]:
    """All sequences that this machine has."""
    return [*RECORDED, *WORLDS]


RECORDED = ["fox", "indoor_walk", "drone_room", "drone_room_uncalibrated", "street_loop",
            "street_loop_uncalibrated", "great_wall_vggt.mp4", "robot_unitree_da3.mp4"]  # fmt: skip


def _recorded(name: str) -> Subject:
    if "GEOWEAVER_DATA" not in os.environ:
        raise SystemExit("GEOWEAVER_DATA is not set: point it at the folder of real recordings")
    data = Path(os.environ["GEOWEAVER_DATA"])
    if name.endswith(".mp4"):
        return Subject(name, data / "videos" / name)
    folder = data / name.removesuffix("_uncalibrated")
    truth = read_trajectory(folder / ("transforms.json" if name == "fox" else "groundtruth.tum"))
    given = {"street_loop": "353.546,353.546,300.944,91.555", "drone_room": DRONE}.get(name)
    depth = folder / "depth"
    names = sorted(p.name for p in (folder / "images").iterdir())

    def true_depth(frame: int) -> Path | None:
        path = depth / f"{Path(names[frame]).stem}.png"
        return path if path.exists() else None

    return Subject(name, folder / "images", truth, given, true_depth, 0.001)


def _rendered(name: str, scratch: Path) -> Subject:
    from geoweaver.synth.clips import ClipOptions, make_clip
    from geoweaver.synth.sequence import Output, write_sequence
    from geoweaver.synth.world import build_world

    folder = scratch / f"world_{name}"
    if not (folder / "sequence.json").exists():
        frames, laps = WORLDS[name]
        clip = make_clip(build_world(name), ClipOptions(frames=frames, laps=laps))
        write_sequence(clip, folder, Output(depth_every=5, workers=2))
    truth = read_trajectory(folder / "groundtruth.tum")

    def true_depth(frame: int) -> Path | None:
        path = folder / "depth" / f"frame_{frame:05d}.npz"
        return path if path.exists() else None

    return Subject(name, folder / "images", truth, None, true_depth)
