"""The weave and the bundle adjustment after it, again while lenses prove not to be as their models say."""

from dataclasses import dataclass, replace

from geoweaver.clock import Clock
from geoweaver.datatypes import Frames, ViewGraph
from geoweaver.engine import stage_progress
from geoweaver.finished import SavedRun, save_run
from geoweaver.lens_field import LensFields, same_fields
from geoweaver.polishing import VERSION as POLISH_VERSION
from geoweaver.polishing import polish_run, worse
from geoweaver.stages import MatchShards, gather_observations
from geoweaver.store import PriorStore, Store, artifact_key, cached_noun, digest_of
from geoweaver.track_adjustment import PolishConfig
from geoweaver.weave import WeaveConfig, weave

TURNS = ("second", "third")
"""Of the stages, on matches that are straighter every time."""
VERSION = 14
"""Goes up when the weave makes something else of the same input."""


@dataclass(frozen=True)
class Material:
    """What the weave is made from."""

    frames: Frames
    graph: ViewGraph
    matches: MatchShards
    priors: PriorStore


def weave_in_turns(
    material: Material, config: WeaveConfig, polish: PolishConfig, seed: int, store: Store, clock: Clock
) -> tuple[SavedRun, str]:
    """Test-Time Adaptation and bundle adjustment, and the key of what is kept of them."""

    def turn(name: str, lenses: LensFields | None) -> tuple[SavedRun, str]:
        woven, key = _weave(material, lenses, config, seed, store)
        clock.lap(f"{name}weave", key)
        woven, key = _polish(material.frames, woven, key, config, polish, store)
        clock.lap(f"{name}polish", key)
        return woven, key

    best, key = turn("", None)
    for name in TURNS[: polish.again]:
        if best.lenses is None:
            break
        again, own = turn(f"{name} ", best.lenses)
        if worse(again, best):
            break
        settled = same_fields(again.lenses, best.lenses)
        best, key = again, own
        if settled:
            break
    return best, key


def weave_key(material: Material, lenses: LensFields | None, config: WeaveConfig, seed: int) -> str:
    """Changes with all that the kept run is made from."""
    graph, matches, priors = material.graph, material.matches.places, material.priors.places
    inputs = [digest_of(part) for part in (facts(material.frames), graph, matches, priors, lenses)]
    return artifact_key("weave", VERSION, [config, seed], inputs)


def facts(frames: Frames) -> Frames:
    """What a key holds of the frames: digests stand for pixels and masks."""
    return replace(frames, pixels=None, masks=None, notes=())


def _weave(
    material: Material, lenses: LensFields | None, config: WeaveConfig, seed: int, store: Store
) -> tuple[SavedRun, str]:
    """Stages 1 to 3, and what is kept of them."""
    frames, graph, matches, priors = material.frames, material.graph, material.matches, material.priors
    key = weave_key(material, lenses, config, seed)

    def compute() -> SavedRun:
        observations = gather_observations(priors, frames.size)
        calibrated = all(camera.calibrated for camera in frames.cameras)
        with stage_progress("weave", None):
            woven = weave(
                observations, graph, matches.load(), priors.read, frames.camera, calibrated,
                config, seed, lenses,
            )  # fmt: skip
        saved = save_run(frames, graph, woven, config, priors, matches.places, matches.first_edge)
        return replace(saved, lenses=lenses)

    return cached_noun(store, SavedRun, "weave", "run", key, compute)[0], key


def _polish(
    frames: Frames, woven: SavedRun, key: str, config: WeaveConfig, polish: PolishConfig, store: Store
) -> tuple[SavedRun, str]:
    """Bundle adjustment of tracks, after the last stage of the weave."""
    if config.stages < 3 or not polish.polish:
        return woven, key
    own = artifact_key("polish", POLISH_VERSION, [polish], [key])

    def compute() -> SavedRun:
        with stage_progress("polish", None):
            return polish_run(frames, woven, polish, store)

    return cached_noun(store, SavedRun, "polish", "run", own, compute)[0], own
