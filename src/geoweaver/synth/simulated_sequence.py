"""Whole rulers for the assembly: a walk through a synthetic world, its simulated prior, graph and matches."""

import math
import zlib
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Chunk, ChunkPrior, Matches, Observations, ViewGraph
from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.camera import resize_intrinsics
from geoweaver.synth.paths import default_path
from geoweaver.synth.render import cast, render_depth
from geoweaver.synth.simulated_graph import GraphChoice, simulate_graph
from geoweaver.synth.simulated_matches import MatchNoise, simulate_labelled_matches
from geoweaver.synth.simulated_prior import PriorNoise, simulate_chunk
from geoweaver.synth.simulated_truth import SceneTruth, consecutive_chunks, scene_truth
from geoweaver.synth.world import World, build_world

SIZE = (512, 288)
"""Image size that matches refer to: what the worlds are rendered at."""
DEPTH_SIZE = (192, 108)
"""Size of the prior's depth maps: 1,000 frames with confidence take 170 MB."""


@dataclass(frozen=True)
class Errors:
    """All that is wrong with a simulated sequence."""

    prior: PriorNoise = field(default_factory=PriorNoise.default)
    matches: MatchNoise = field(default_factory=MatchNoise.default)
    graph: GraphChoice = field(default_factory=GraphChoice)


PRESETS = {
    "exact": Errors(PriorNoise.exact(), MatchNoise.exact(), GraphChoice(wrong=0.0)),
    "default": Errors(),
    "hard": Errors(PriorNoise.hard(), MatchNoise.hard(), GraphChoice(wrong=0.3)),
}


@dataclass(frozen=True)
class Simulated:
    """What the assembly gets, and the truth to score it with."""

    truth: SceneTruth
    chunks: tuple[Chunk, ...]
    priors: tuple[ChunkPrior, ...]
    graph: ViewGraph
    matches: Matches
    wrong_edges: Bool[Tensor, "E"]
    label: Int[Tensor, "M"]
    """`MatchLabel` of each match."""
    world_from_chunk: Sim3
    """True layout: scales are the chunks' median scales."""

    @property
    def observations(self) -> Observations:
        """The index over all chunks, with intrinsics in pixels of the images that the matches refer to."""
        truth, priors = self.truth, self.priors
        cameras = [p.cam_from_chunk for p in priors]
        intrinsics = torch.cat([p.intrinsics for p in priors])
        return Observations(
            torch.cat([p.frame for p in priors]),
            torch.cat([torch.full_like(p.frame, k) for k, p in enumerate(priors)]),
            SE3(torch.cat([c.rotation for c in cameras]), torch.cat([c.translation for c in cameras])),
            resize_intrinsics(intrinsics, truth.depth_size, truth.size),
            torch.cat([_mean_confidence(p) for p in priors]),
            truth.size,
        )


@dataclass(frozen=True)
class Recipe:
    """A world, how often its round is made, in how many frames."""

    world: str
    frames: int
    laps: float
    rise: float = 0.0
    """Metres by which the camera rises and sinks along the way: a flight."""
    view: float = 65.0
    """Horizontal field of view in degrees."""


RECIPES: dict[str, Recipe] = {
    "apartment_walk": Recipe("apartment", 400, 1.5),
    "apartment_flight": Recipe("apartment", 1000, 2.3, rise=0.35, view=80.0),
    "corridor_loop": Recipe("corridor", 500, 1.4),
    "street_twice": Recipe("street", 700, 2.0),
    "tabletop_orbits": Recipe("tabletop", 300, 3.0),
}
"""Ways that come back to where they were, so that loops can be closed."""


def simulate_sequence(
    name: str, frames: int | None = None, seed: int = 0, preset: str = "default", per_edge: int = 500
) -> Simulated:
    """One of `RECIPES` with the errors of one of `PRESETS`."""
    if preset not in PRESETS:
        raise ConfigError(f"no preset is called {preset!r}: choose one of {', '.join(PRESETS)}")
    # each sequence has its own errors: the same seed must not bend all of them alike
    own = zlib.crc32(f"{name} {seed}".encode())
    return simulate_scene(sequence_truth(name, frames, seed), PRESETS[preset], own, per_edge)


def sequence_truth(
    name: str,
    frames: int | None = None,
    seed: int = 0,
    size: tuple[int, int] = SIZE,
    depth_size: tuple[int, int] = DEPTH_SIZE,
) -> SceneTruth:
    """Exact cameras and rays of one of `RECIPES`."""
    if name not in RECIPES:
        raise ConfigError(f"no sequence is called {name!r}: choose one of {', '.join(RECIPES)}")
    recipe = RECIPES[name]
    world = build_world(recipe.world, seed)
    path = _path(world, recipe, frames or recipe.frames, seed)
    focal = size[0] / 2 / math.tan(math.radians(recipe.view) / 2)
    intrinsics = torch.tensor([focal, focal, size[0] / 2, size[1] / 2], dtype=torch.float64)
    truth = scene_truth(path, intrinsics, size, lambda o, d: cast(world, o, d), depth_size)
    small = truth.depth_intrinsics[0]
    return replace(truth, depth_of=lambda frame: render_depth(world, path[frame], small, depth_size))


def _path(world: World, recipe: Recipe, frames: int, seed: int) -> SE3:
    """The world's own round, with the recipe's rise and fall on top."""
    path = default_path(world, frames, recipe.laps, seed)
    phase = torch.linspace(0, 2 * math.pi * recipe.laps, frames, dtype=torch.float64)
    up = recipe.rise * (3.3 * phase).sin()
    lifted = path.centre + torch.stack([0 * up, 0 * up, up], -1)
    return SE3(path.rotation, -(path.rotation @ lifted[..., None]).squeeze(-1))


def _mean_confidence(prior: ChunkPrior) -> Float[Tensor, "n"]:
    """Mean confidence of each frame's valid depth."""
    valid = prior.depth > 0
    return (prior.confidence * valid).sum((1, 2)).double() / valid.sum((1, 2)).clamp_min(1)


def simulate_scene(
    truth: SceneTruth, errors: Errors, seed: int = 0, per_edge: int = 500, chunk_size: int = 60
) -> Simulated:
    """Chunks that share one frame, their priors, the graph and its matches over any exact scene."""
    chunks = consecutive_chunks(len(truth), chunk_size)
    made = [simulate_chunk(truth, chunk, errors.prior, seed) for chunk in chunks]
    graph, wrong = simulate_graph(truth, chunks, errors.graph, seed)
    labelled = simulate_labelled_matches(truth, graph, errors.matches, seed, per_edge, wrong)
    layout = [m.world_from_chunk for m in made]
    return Simulated(
        truth, chunks, tuple(m.prior for m in made), graph, labelled.matches, wrong, labelled.label,
        Sim3(
            torch.stack([s.scale for s in layout]), torch.stack([s.rotation for s in layout]),
            torch.stack([s.translation for s in layout]),
        ),
    )  # fmt: skip
