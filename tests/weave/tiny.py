"""Short simulated walks with small chunks: seconds instead of minutes, and every part can be replaced."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geoweaver.datatypes import ChunkPrior, EdgeKind, Matches, Observations, ViewGraph
from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.camera import resize_intrinsics
from geoweaver.geometry.registration import umeyama
from geoweaver.synth.simulated_graph import GraphChoice, simulate_graph
from geoweaver.synth.simulated_matches import simulate_matches
from geoweaver.synth.simulated_prior import simulate_chunk
from geoweaver.synth.simulated_sequence import PRESETS, Errors
from geoweaver.synth.simulated_truth import SceneTruth, consecutive_chunks, scene_truth
from geoweaver.weave import WeaveConfig, Woven, weave
from tests.synth.pillar_room import FOCAL, SIZE, cast, room

NEAR_ONLY = GraphChoice(offsets=(1, 2, 4), border=(1, 3), long_range=0, wrong=0.0)


@dataclass(frozen=True)
class Tiny:
    """What the weave gets, and the truth."""

    truth: SceneTruth
    priors: tuple[ChunkPrior, ...]
    graph: ViewGraph
    matches: Matches
    wrong: Tensor
    world_from_chunk: Sim3

    @property
    def observations(self) -> Observations:
        priors, size = self.priors, self.truth.size
        cameras = [p.cam_from_chunk for p in priors]
        valid = [(p.depth > 0) & p.depth.isfinite() for p in priors]
        mean = [
            (p.confidence * v).sum((1, 2)) / v.sum((1, 2)).clamp(min=1)
            for p, v in zip(priors, valid, strict=True)
        ]
        return Observations(
            torch.cat([p.frame for p in priors]),
            torch.cat([torch.full_like(p.frame, k) for k, p in enumerate(priors)]),
            SE3(torch.cat([c.rotation for c in cameras]), torch.cat([c.translation for c in cameras])),
            resize_intrinsics(torch.cat([p.intrinsics for p in priors]), self.truth.depth_size, size),
            torch.cat(mean).double(),
            size,
        )

    def with_depth(self, change: "dict[int, Tensor]") -> "Tiny":
        """The same with some chunks' depth maps replaced."""
        priors = [replace(p, depth=change.get(k, p.depth)) for k, p in enumerate(self.priors)]
        return replace(self, priors=tuple(priors))

    def without_edges(self, drop: Tensor) -> "Tiny":
        """The same without some of the graph's edges and their matches."""
        number = torch.where(drop, -1, (~drop).cumsum(0) - 1)
        m = self.matches
        keep = ~drop[m.edge]
        matches = Matches(number[m.edge[keep]], m.pixel_i[keep], m.pixel_j[keep], m.score[keep])
        graph = ViewGraph(self.graph.edges[~drop], self.graph.kind[~drop])
        return replace(self, graph=graph, matches=matches, wrong=self.wrong[~drop])


def tiny(
    frames: int = 34,
    chunk: int = 12,
    laps: float = 0.4,
    errors: Errors = PRESETS["default"],
    choice: GraphChoice = NEAR_ONLY,
    per_edge: int = 120,
    seed: int = 0,
    truth: SceneTruth | None = None,
) -> Tiny:
    """A walk about a pillar in a room, in chunks that share one frame."""
    truth = truth or room(frames, laps, depth_size=(64, 36))
    chunks = consecutive_chunks(len(truth), chunk)
    made = [simulate_chunk(truth, c, errors.prior, seed) for c in chunks]
    graph, wrong = simulate_graph(truth, chunks, choice, seed)
    matches = simulate_matches(truth, graph, errors.matches, seed, per_edge, wrong)
    layout = [m.world_from_chunk for m in made]
    parts = (torch.stack([getattr(s, n) for s in layout]) for n in ("scale", "rotation", "translation"))
    return Tiny(truth, tuple(m.prior for m in made), graph, matches, wrong, Sim3(*parts))


def woven(case: Tiny, config: WeaveConfig | None = None, calibrated: bool = False, seed: int = 0) -> Woven:
    """The three stages on a tiny walk."""
    group = torch.zeros(len(case.truth), dtype=torch.long)
    read = case.priors.__getitem__
    config = config or WeaveConfig()
    return weave(case.observations, case.graph, case.matches, read, group, calibrated, config, seed)


def ate(estimate: SE3, truth: SE3) -> float:
    """RMSE of the camera centres after one similarity."""
    fit = umeyama(estimate.centre, truth.centre)
    return float((fit.act(estimate.centre) - truth.centre).square().sum(-1).mean().sqrt())


def assert_finite(result: Woven) -> None:
    """Nothing that is no number in anything that leaves the weave."""
    state = result.state
    numbers = {
        "rotation": state.cam_from_world.rotation, "translation": state.cam_from_world.translation,
        "depth scale": state.depth_scale, "depth shift": state.depth_shift, "focal": state.focal_delta,
        "intrinsics": result.setup.intrinsics, "sigma": result.trust.sigma,
        "Stage 1": result.stage1.world_from_chunk.matrix(),
        "Stage 2": result.stage2.world_from_chunk.matrix(),
    }  # fmt: skip
    for name, values in numbers.items():
        assert not values.isnan().any(), f"{name} has NaN"
        if name != "sigma":  # an undetermined camera's sigma is honestly infinite
            assert values.isfinite().all(), f"{name} is infinite"
    for report in result.reports:
        assert all(x == x for x in report.objective), f"{report.name}: NaN in the objective"


def long_range(graph: ViewGraph) -> Tensor:
    """Which edges are long-range."""
    return graph.kind == int(EdgeKind.LONG_RANGE)


def some_frames(prior: ChunkPrior, rows: list[int]) -> ChunkPrior:
    """A chunk that lost frames."""
    keep = torch.tensor(rows)
    return ChunkPrior(
        prior.frame[keep], prior.depth[keep], prior.confidence[keep], prior.cam_from_chunk[keep],
        prior.intrinsics[keep],
    )  # fmt: skip


def along(cam_from_world: SE3, **how: int) -> Tiny:
    """A walk of one's own through the same room."""
    k = torch.tensor([FOCAL, FOCAL, SIZE[0] / 2, SIZE[1] / 2], dtype=torch.float64)
    return tiny(truth=scene_truth(cam_from_world, k, SIZE, cast, (64, 36)), **how)
