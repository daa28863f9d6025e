"""A view graph over exact cameras: temporal, across chunk borders, true and wrong long-range pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.spatial import cKDTree
from torch import Tensor

from geoweaver.datatypes import Chunk, EdgeKind, ViewGraph
from geoweaver.errors import ConfigError
from geoweaver.geometry.camera import project_with_depth
from geoweaver.synth.simulated_truth import SceneTruth, in_image, seen_points, stream, visible

_GRID = (9, 5)
"""Probe pixels per frame (columns, rows): overlap to about a fiftieth."""
_BLOCK = 4096
"""Pairs probed at once: bounds the memory."""
_NEIGHBOURS = 64
"""Candidates per frame beyond its temporal neighbours."""


@dataclass(frozen=True)
class GraphChoice:
    """Which pairs of frames are matched; the number of edges is linear in the frames."""

    offsets: tuple[int, ...] = (1, 2, 4, 8)
    """Temporal neighbours: doubling offsets give each frame short and long baselines."""
    border: tuple[int, ...] = (1, 2, 4, 8)
    """Every frame so far before a chunk border is paired with every one so far after it:
    Stage 1's material."""
    long_range: int = 3
    """Most long-range partners that a frame chooses, as graph selection keeps."""
    gap: int = 30
    """Fewest frames between long-range partners: below it the temporal edges serve."""
    spread: int = 10
    """Fewest frames between two partners of one frame, so that they constrain differently."""
    overlap: float = 0.3
    """Least share of each view that the other sees (occlusion included): below it matchers find little."""
    wrong: float = 0.1
    """Share of the long-range edges that tie different places together;
    0 to 0.5 (retrieval errs about so often indoors)."""
    wrong_run: int = 4
    """Wrong pairs in a row (every second frame) with the same false story:
    aliasing places fool more than one frame."""

    def __post_init__(self) -> None:
        if not 0 <= self.wrong <= 0.5:
            raise ConfigError(f"GraphChoice: share {self.wrong} of wrong long-range edges: choose 0 to 0.5")


def simulate_graph(
    truth: SceneTruth, chunks: Sequence[Chunk], choice: GraphChoice, seed: int
) -> tuple[ViewGraph, Bool[Tensor, "E"]]:
    """The graph, sorted by frames, and which of its long-range edges are wrong."""
    near = _near_pairs(len(truth), chunks, choice)
    loops = covisible_pairs(truth, choice)
    wanted = round(choice.wrong / (1 - choice.wrong) * max(len(loops), len(truth) // 10))
    fakes = _wrong_pairs(truth, np.concatenate([near, loops]), wanted, choice, seed)
    edges = torch.from_numpy(np.concatenate([near, loops, fakes]))
    kind = torch.full((len(edges),), int(EdgeKind.LONG_RANGE))
    kind[: len(near)] = torch.where(
        _together(edges[: len(near)], chunks), EdgeKind.TEMPORAL, EdgeKind.CROSS_CHUNK
    )
    wrong = torch.arange(len(edges)) >= len(near) + len(loops)
    order = torch.argsort(edges[:, 0] * len(truth) + edges[:, 1])
    return ViewGraph(edges[order], kind[order]), wrong[order]


def _near_pairs(frames: int, chunks: Sequence[Chunk], choice: GraphChoice) -> np.ndarray:
    """Temporal pairs and pairs across each border, each once."""
    pairs = {(i, i + o) for o in choice.offsets for i in range(frames - o)}
    for left, right in pairwise(chunks):
        before = [left.frames[-1 - a] for a in choice.border if a < len(left)]
        after = [right.frames[b] for b in choice.border if b < len(right)]
        pairs |= {(min(i, j), max(i, j)) for i in before for j in after if i != j}
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def _together(edges: Int[Tensor, "E 2"], chunks: Sequence[Chunk]) -> Bool[Tensor, "E"]:
    """Which pairs lie in one chunk."""
    members = {(c.index, f) for c in chunks for f in c.frames}
    chunks_of: dict[int, list[int]] = {}
    for c, f in members:
        chunks_of.setdefault(f, []).append(c)
    return torch.tensor(
        [any((c, j) in members for c in chunks_of.get(i, [])) for i, j in edges.tolist()], dtype=torch.bool
    )


def covisible_pairs(truth: SceneTruth, choice: GraphChoice) -> Int[np.ndarray, "p 2"]:
    """True long-range pairs: each frame's best partners by mutual visible overlap, spread in time."""
    probe = _Probe(truth)
    candidates = probe.candidates(choice.gap)
    mutual = probe.overlap(candidates, occlusion=False)
    candidates = _best_per_frame(candidates, mutual, choice, 4 * choice.long_range, spread=1)
    mutual = probe.overlap(candidates, occlusion=True)
    return _best_per_frame(candidates, mutual, choice, choice.long_range, choice.spread)


def _best_per_frame(
    pairs: np.ndarray, overlap: np.ndarray, choice: GraphChoice, most: int, spread: int
) -> np.ndarray:
    """Pairs above the least overlap that one of their frames chooses: best first, partners `spread` apart."""
    chosen: dict[int, list[int]] = {}
    kept = set()
    order = np.argsort(-overlap, kind="stable")
    for i, j in pairs[order[overlap[order] >= choice.overlap]].tolist():
        for frame, partner in ((i, j), (j, i)):
            mine = chosen.setdefault(frame, [])
            if len(mine) < most and all(abs(partner - other) >= spread for other in mine):
                mine.append(partner)
                kept.add((i, j))
    return np.array(sorted(kept), dtype=np.int64).reshape(-1, 2)


def _wrong_pairs(
    truth: SceneTruth, taken: np.ndarray, wanted: int, choice: GraphChoice, seed: int
) -> np.ndarray:
    """Runs of pairs that see different places (or as different as the scene allows)."""
    steps = 2 * np.arange(choice.wrong_run)
    room = len(truth) - choice.gap - steps[-1]
    if wanted == 0 or room < 2:
        return np.zeros((0, 2), dtype=np.int64)
    rng = stream(seed, "wrong_pairs")
    first = rng.integers(0, room - 1, 16 * wanted)
    second = first + choice.gap + (rng.random(len(first)) * (room - first)).astype(np.int64)
    starts = np.unique(np.stack([first, second], -1), axis=0)
    starts = starts[rng.permutation(len(starts))[: 4 * wanted]]
    overlap = _Probe(truth).overlap(starts, occlusion=True)
    starts = starts[np.argsort(np.maximum(overlap, 0.05), kind="stable")]
    runs = (starts[:, None] + steps[None, :, None]).reshape(-1, 2)
    used = set(map(tuple, taken.tolist()))
    free = dict.fromkeys((i, j) for i, j in runs.tolist() if (i, j) not in used)
    return np.array(list(free)[:wanted], dtype=np.int64).reshape(-1, 2)


class _Probe:
    """A grid of points that each frame sees, to be looked at from other frames."""

    def __init__(self, truth: SceneTruth) -> None:
        self.truth = truth
        columns, rows = _GRID
        x = (torch.arange(columns) + 0.5) / columns * truth.size[0]
        y = (torch.arange(rows) + 0.5) / rows * truth.size[1]
        pixel = torch.cartesian_prod(x, y).double()
        frame = torch.arange(len(truth)).repeat_interleave(len(pixel))
        points, depth = seen_points(truth, frame, pixel.repeat(len(truth), 1))
        self.points = points.reshape(len(truth), -1, 3)
        self.solid = depth.reshape(len(truth), -1) > 0

    def candidates(self, gap: int) -> Int[np.ndarray, "p 2"]:
        """Pairs of frames that look at nearby places, a bounded number per frame."""
        middle = self.points.median(1).values.numpy()
        most = min(len(middle), 2 * gap + _NEIGHBOURS)
        _, near = cKDTree(middle).query(middle, k=most)
        i = np.repeat(np.arange(len(middle)), most)
        pairs = np.stack([i, near.reshape(-1)], -1)
        return np.unique(np.sort(pairs[np.abs(pairs[:, 0] - pairs[:, 1]) >= gap], axis=1), axis=0)

    def overlap(self, pairs: Int[np.ndarray, "p 2"], occlusion: bool) -> Float[np.ndarray, "p"]:
        """The smaller of the shares of each view that the other one sees."""
        edges = torch.from_numpy(pairs)
        both = [
            torch.minimum(self._seen_share(b, occlusion), self._seen_share(b.flip(-1), occlusion))
            for b in (edges[at : at + _BLOCK] for at in range(0, len(edges), _BLOCK))
        ]
        return torch.cat(both).numpy() if both else np.zeros(0)

    def _seen_share(self, pairs: Int[Tensor, "p 2"], occlusion: bool) -> Float[Tensor, "p"]:
        """Share of the first frame's probes that the second sees."""
        i, j = pairs.unbind(-1)
        camera, points = self.truth.cam_from_world[j], self.points[i]
        local = points @ camera.rotation.mT + camera.translation[:, None]
        pixel, z = project_with_depth(local, self.truth.intrinsics[j][:, None])
        inside = in_image(pixel.reshape(-1, 2), self.truth.size).reshape(z.shape) & (z > 0) & self.solid[i]
        if occlusion:
            inside[inside.clone()] = visible(
                self.truth, j[:, None].expand_as(inside)[inside], points[inside], tolerance=0.02
            )
        return inside.double().mean(-1)
