"""`render`: procedural worlds filmed while the training goes on; nothing is written."""

from functools import lru_cache
from pathlib import Path

from geoweaver.errors import ConfigError
from geoweaver.synth.clips import Clip, ClipOptions, make_clip, render_frame
from geoweaver.synth.world import PLANS, build_world
from geoweaver.training.datasets.scene import Scene, View, window

FILM = ClipOptions(frames=300, size=(504, 378))
"""How the worlds are filmed."""
_PER_VIEW = 4.0


def open_rendered(which: Path) -> list[Scene]:
    """Worlds by name, `apartment` or `apartment/20`: so many of them, one per seed."""
    name, _, count = which.as_posix().partition("/")
    if name not in PLANS or not (count or "1").isdecimal() or int(count or "1") < 1:
        raise ConfigError(f"render:{which} names no worlds: give {' or '.join(PLANS)}, then /NUMBER of them")
    return [rendered_scene(name, seed, FILM) for seed in range(int(count or "1"))]


def rendered_scene(world: str, seed: int, film: ClipOptions) -> Scene:
    """The film of one world; it is built when first a view is asked for."""

    def read(frame: int) -> View:
        clip = _clip(world, seed, film)
        shown = render_frame(clip, frame)
        where = f"{world} {seed}, frame {frame}"
        return View(shown.rgb, shown.depth, clip.cam_from_world[frame], clip.intrinsics[frame], where)

    return Scene(f"{world} {seed}", film.frames, read, window(film.frames, _PER_VIEW))


@lru_cache(maxsize=8)
def _clip(world: str, seed: int, film: ClipOptions) -> Clip:
    return make_clip(build_world(world, seed), film)
