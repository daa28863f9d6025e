"""The sequences of the benchmark: real recordings with references, rendered worlds with the truth, videos."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from geoweaver.datatypes import Trajectory
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.synth.clips import ClipOptions
from geoweaver.synth.effects import Effects

DRONE = "458.654,457.296,367.215,248.375,-0.28340811,0.07395907,0.00019359,1.76187114e-05"
PHONE = Effects(distortion=(0.06, -0.09, 0.0, 0.0, 0.0), noise=0.01, shutter=0.3)
WORLDS = {
    "apartment": ("apartment", 0, ClipOptions(frames=400, laps=1.5)),
    "street": ("street", 0, ClipOptions(frames=300, laps=1.2)),
    "tabletop": ("tabletop", 0, ClipOptions(frames=150, laps=1.5)),
    "corridor": ("corridor", 0, ClipOptions(frames=300, laps=1.3)),
}
"""World, seed and how it is filmed."""
OTHERS = {
    "corridor_other": ("corridor", 1, ClipOptions(frames=240, laps=1.2, focal=0.9)),
    "street_other": ("street", 2, ClipOptions(frames=240, laps=1.1, focal=0.6, exposure_swing=1.5)),
    "apartment_phone": (
        "apartment", 3, ClipOptions(frames=240, laps=1.2, effects=PHONE, exposure_swing=1.4, movers=True)
    ),
    "street_phone": ("street", 5, ClipOptions(frames=240, laps=1.2, effects=PHONE, movers=True)),
    "tabletop_phone": ("tabletop", 4, ClipOptions(frames=120, laps=1.1, effects=PHONE)),
    "apartment_fast": ("apartment", 6, ClipOptions(frames=120, laps=1.1)),
}  # fmt: skip
"""The same worlds built and filmed otherwise: bent lens, noise, motion blur, movers, fewer frames."""


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
        yield _rendered(name, scratch) if name in WORLDS | OTHERS else _recorded(name)


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
    from geoweaver.synth.clips import make_clip
    from geoweaver.synth.sequence import Output, write_sequence
    from geoweaver.synth.world import build_world

    folder = scratch / f"world_{name}"
    if not (folder / "sequence.json").exists():
        world, seed, options = (WORLDS | OTHERS)[name]
        clip = make_clip(build_world(world, seed), options)
        write_sequence(clip, folder, Output(depth_every=5, workers=2))
    truth = read_trajectory(folder / "groundtruth.tum")

    def true_depth(frame: int) -> Path | None:
        path = folder / "depth" / f"frame_{frame:05d}.npz"
        return path if path.exists() else None

    # depth of a bent lens lies on its bent pixels, ours on straightened ones
    bent = any((WORLDS | OTHERS)[name][2].effects.distortion)
    return Subject(name, folder / "images", truth, None, (lambda frame: None) if bent else true_depth)
