"""`python -m geoweaver.synth.contact_sheet`: the worlds at a glance: pictures, depth, paths over plans."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from geoweaver.geometry import SE3
from geoweaver.synth.casting import cast
from geoweaver.synth.clips import ClipOptions, make_clip, render_frame
from geoweaver.synth.effects import develop
from geoweaver.synth.movers import bodies_at
from geoweaver.synth.quads import Array, Quads
from geoweaver.synth.tracing import colours, trace
from geoweaver.synth.world import PLANS, World, build_world

_CUT = {"corridor": 2.5, "street": 60.0}
"""Plans are drawn from this height down: below the ceiling indoors (2.4 m)."""


@dataclass(frozen=True)
class Options:
    """Draw the contact sheet."""

    out: Path = Path("docs/images/worlds.png")
    seed: int = 0
    pictures: int = 4
    size: tuple[int, int] = (384, 216)


def main(options: Options) -> None:
    """Render and write the sheet."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    columns = options.pictures + 2
    figure, axes = plt.subplots(
        len(PLANS), columns, figsize=(3.4 * columns, 2.05 * len(PLANS)), squeeze=False
    )
    for row, name in zip(axes, PLANS, strict=True):
        _draw_world(row, build_world(name, options.seed), options)
    figure.subplots_adjust(0.005, 0.005, 0.995, 0.965, 0.02, 0.11)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=78, pil_kwargs={"optimize": True})
    plt.close(figure)


def _draw_world(row: Any, world: World, options: Options) -> None:
    """Pictures along the path, the depth of the first, the plan."""
    clip = make_clip(
        world, ClipOptions(frames=240, size=options.size, laps=1.0, focal=0.66, seed=options.seed)
    )
    chosen = np.linspace(0, 240, options.pictures, endpoint=False).astype(int) + 8
    shown = [render_frame(clip, int(k)) for k in chosen]
    for axis, frame, k in zip(row, shown, chosen, strict=False):
        axis.imshow(frame.rgb)
        axis.set_title(f"{world.name}, frame {k}", fontsize=8, pad=2)
    depth = shown[0].depth.numpy()
    seen = np.where(depth > 0, np.log(np.maximum(depth, 1e-6)), np.nan)
    row[-2].imshow(seen, cmap="turbo_r")
    row[-2].set_title(f"depth, {depth[depth > 0].min():.1f} to {depth.max():.0f} m", fontsize=8, pad=2)
    _draw_plan(row[-1], world, clip.cam_from_world)
    for axis in row:
        axis.set_axis_off()


def _draw_plan(axis: Any, world: World, cam_from_world: SE3) -> None:
    """The floor plan with the path and where the camera looks."""
    centre = cam_from_world.centre.numpy()
    margin = 0.1 * np.ptp(centre[:, :2]) + 1.5
    low, high = centre.min(0)[:2] - margin, centre.max(0)[:2] + margin
    axis.imshow(
        _plan(world, low, high), extent=(low[0], high[0], low[1], high[1]), origin="lower", cmap="bone"
    )
    axis.plot(centre[:, 0], centre[:, 1], color="tab:red", lw=1.2)
    ahead = cam_from_world.rotation[::12, 2].numpy()
    axis.quiver(*centre[::12, :2].T, *ahead[:, :2].T, color="tab:orange", scale=28, width=0.006)
    axis.set_title(f"plan, {np.linalg.norm(np.diff(centre, axis=0), axis=-1).sum():.0f} m", fontsize=8, pad=2)


def _plan(world: World, low: Array, high: Array, across: int = 420) -> Array:
    """The world from above in its colours; indoors it is cut open below the ceiling, walls are black."""
    down = round(across * (high[1] - low[1]) / (high[0] - low[0]))
    x, y = np.meshgrid(np.linspace(low[0], high[0], across), np.linspace(low[1], high[1], down))
    cut = _CUT.get(world.name, 2.4)
    origins = np.stack([x, y, np.full_like(x, cut)], -1).reshape(-1, 3)
    way = np.broadcast_to([0.0, 0.0, -1.0], origins.shape).copy()
    step = (high[0] - low[0]) / across / cut
    bodies = bodies_at(world, None)
    linear = colours(
        bodies, trace(bodies, origins, way), origins, way, np.array([step, 0, 0]), np.array([0, step, 0])
    )
    rgb = develop(linear.reshape(down, across, 3), world.light.exposure, 0, np.random.default_rng(0))
    rgb[_above(world, origins, cut).reshape(down, across)] = 35
    return rgb


def _above(world: World, origins: Array, cut: float) -> Array:
    """True where something other than a ceiling reaches through the cut."""
    kept = ~np.char.startswith(world.quads.material.astype(str), "ceiling")
    parts = {f: getattr(world.quads, f)[kept] for f in Quads.__dataclass_fields__}
    start = torch.from_numpy(np.add(origins, [0.0, 0.0, 10.0]))
    way = torch.tensor([0.0, 0.0, -1.0], dtype=torch.float64).expand_as(start)
    t = cast(replace(world, quads=Quads(**parts)), start, way)
    return np.asarray(t.numpy() < 10)


if __name__ == "__main__":
    main(tyro.cli(Options))
