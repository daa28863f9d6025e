"""Where each pair's rows come from, block by block: the same rows however often and in whatever order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.datatypes import Matches, Observations
from geoweaver.geometry import SE3
from geoweaver.matching.consistency import FEWEST_FITTED, FITTED, GIVEN, TIED
from geoweaver.matching.pair_loops import choose_rows, judge_pairs, read_pairs
from geoweaver.matching.pairs import TIE
from geoweaver.matching.readings import Readings, ReadPrior
from geoweaver.matching.sampling import pair_rng, random_triples, rows_per_pair
from geoweaver.matching.sampling_config import SamplingConfig
from geoweaver.matching.verdicts import FINENESS, Tallies

_BLOCK_ROWS = 1_000_000
"""Matches judged at once: bounds the memory to about 200 MB."""


@dataclass(frozen=True)
class SampledRows:
    """Rows of some pairs, one pair after the other."""

    numbers: Int[Tensor, "q"]
    kept: Int[Tensor, "q"]
    """Rows of each pair."""
    columns: tuple[np.ndarray, ...]
    """Two pixels, two depths, the weight."""

    def pieces(self) -> Iterable[tuple[int, int, int]]:
        """Number, rows and last row's end of each pair."""
        return zip(self.numbers.tolist(), self.kept.tolist(), self.kept.cumsum(0).tolist(), strict=True)


@dataclass(frozen=True)
class JudgedBlock:
    """Some pairs' confident rows in sampling order, with the error that each is chosen by."""

    numbers: Int[Tensor, "q"]
    tallies: Tallies
    start: np.ndarray
    """First row of each pair, and one past the last."""
    count: np.ndarray
    """Rows of each pair that are confident: the first ones of its share."""
    selecting: np.ndarray
    rows: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Two depths and the weight, in sampling order."""
    source: np.ndarray
    """Where a row's pixels stand in the block."""
    pixels: tuple[np.ndarray, np.ndarray]
    cap: int

    def sampled(self, threshold: Float[Tensor, "q"]) -> SampledRows:
        """The first rows of each pair that agree at its threshold."""
        kept = np.zeros(len(self.count), np.int64)
        chosen = choose_rows(self.start, self.count, self.selecting, threshold.numpy(), self.cap, kept)
        pixels = tuple(pixel[self.source[chosen]] for pixel in self.pixels)
        columns = (*pixels, *(column[chosen] for column in self.rows))
        return SampledRows(self.numbers, torch.from_numpy(kept), columns)


class PairSource:
    """Reads, orders and judges pairs; a pair's rows depend on no other pair."""

    def __init__(
        self,
        pairs: Int[Tensor, "P 3"],
        matches: Matches,
        observations: Observations,
        read: ReadPrior,
        config: SamplingConfig,
        generator: torch.Generator,
    ) -> None:
        self.pairs = pairs
        self.own_fit = torch.zeros(len(pairs), dtype=torch.bool)
        """Pairs inside a chunk that are judged by their own fit, not by the prior's cameras."""
        self._matches = matches
        self._observations = observations
        self._config = config
        self._seed = int(torch.randint(2**62, (), generator=generator))
        self._start = torch.searchsorted(matches.edge, pairs[:, 0].contiguous())
        self._stop = torch.searchsorted(matches.edge, pairs[:, 0].contiguous(), right=True)
        ties = torch.full_like(self._start, config.max_per_pair)
        self._cap = rows_per_pair(torch.where(pairs[:, 0] == TIE, ties, self._stop - self._start), config)
        self._readings = Readings(observations, read, config.cached_chunks)

    def inside_chunk(self) -> Bool[Tensor, "P"]:
        """Pairs of one chunk's observations."""
        chunk = self._observations.chunk[self.pairs[:, 1:]]
        return chunk[:, 0] == chunk[:, 1]

    def judged(self, numbers: Int[Tensor, "q"]) -> Iterator[JudgedBlock]:
        """Pairs with their rows and errors, chunk by chunk."""
        for block in self._blocks(numbers.tolist()):
            yield self._judge(torch.tensor(block, dtype=torch.long))

    def _blocks(self, numbers: list[int]) -> Iterator[list[int]]:
        """Pairs of the same two chunks, not too many rows at once, along the order of the chunks."""
        chunks = self._observations.chunk[self.pairs[:, 1:]].tolist()
        size = (self._stop - self._start).tolist()
        block: list[int] = []
        rows = 0
        for number in sorted(numbers, key=lambda n: (sorted(chunks[n]), chunks[n], n)):
            if block and (chunks[number] != chunks[block[0]] or rows + size[number] > _BLOCK_ROWS):
                yield block
                block, rows = [], 0
            block.append(number)
            rows += size[number]
        if block:
            yield block

    def _judge(self, numbers: Int[Tensor, "q"]) -> JudgedBlock:
        """Read and judge pairs of the same two chunks."""
        c = self._config
        start, pixel_i, pixel_j, score = self._block_matches(numbers.tolist())
        rngs = [pair_rng(self._seed, *pair) for pair in self.pairs[numbers].tolist()]
        uniform = np.concatenate([rng.random(n) for rng, n in zip(rngs, np.diff(start), strict=True)])
        source, count = np.zeros(len(score), np.int64), np.zeros(len(numbers), np.int64)
        depth_i, depth_j, weight, selecting = (np.zeros(len(score)) for _ in range(4))
        (maps_i, row_i, quantiles_i), (maps_j, row_j, quantiles_j) = (
            self._side(self.pairs[numbers, column]) for column in (1, 2)
        )
        read_pairs(
            start, pixel_i, pixel_j, score, uniform, maps_i, maps_j, row_i, row_j, quantiles_i, quantiles_j,
            np.array(self._observations.size, np.float64), c.normalisation == "rank", c.gamma_ceiling,
            c.confidence, c.relative_to == "median", source, depth_i, depth_j, weight, count,
        )  # fmt: skip
        rows = depth_i, depth_j, weight
        tallies = Tallies.empty(len(numbers), c)
        self._compare(numbers, rngs, start, count, (pixel_i, pixel_j), source, rows, selecting, tallies)
        return JudgedBlock(
            numbers, tallies, start, count, selecting, rows, source, (pixel_i, pixel_j), self._cap
        )

    def _compare(
        self, numbers: Int[Tensor, "q"], rngs: list[np.random.Generator], start: np.ndarray,
        count: np.ndarray, pixels: tuple[np.ndarray, np.ndarray], source: np.ndarray,
        rows: tuple[np.ndarray, np.ndarray, np.ndarray], selecting: np.ndarray, tallies: Tallies,
    ) -> None:  # fmt: skip
        """Fill in each row's error and each pair's counts."""
        c, observations = self._config, self._observations
        i, j = self.pairs[numbers, 1], self.pairs[numbers, 2]
        how = self._judged_by(numbers)
        tallies.fitted.copy_(torch.from_numpy(how == FITTED))
        tallies.two_sided.copy_(torch.from_numpy(_two_sided(start, count, *rows[:2])))
        triples = self._triples(rngs, how, tallies.two_sided.tolist())
        local = SE3(
            observations.cam_from_chunk.rotation.double(), observations.cam_from_chunk.translation.double()
        )
        given = local[j] @ local[i].inverse()
        steps = np.array(c.thresholds())
        judge_pairs(
            start, count, *pixels, source, *rows, how, np.ones(len(how)),
            given.rotation.contiguous().numpy(), given.translation.contiguous().numpy(),
            observations.intrinsics[i].double().numpy(), observations.intrinsics[j].double().numpy(), triples,
            c.fit_rows, c.depth_consistency, float(np.hypot(*observations.size)) / 2, c.lateral, c.spread,
            steps, np.concatenate([steps / fineness for fineness in FINENESS]),
            selecting, tallies.agreeing.numpy(), tallies.found.numpy(), tallies.lucky.numpy(),
        )  # fmt: skip

    def _judged_by(self, numbers: Int[Tensor, "q"]) -> np.ndarray:
        given = self.inside_chunk()[numbers] & ~self.own_fit[numbers]
        how = torch.where(given, GIVEN, FITTED)
        return np.asarray(torch.where(self.pairs[numbers, 0] == TIE, TIED, how).numpy())

    def _triples(self, rngs: list[np.random.Generator], how: np.ndarray, two_sided: list[int]) -> np.ndarray:
        """Three random rows for each hypothesis of each pair that is fitted."""
        c = self._config
        triples = np.zeros((len(how), c.hypotheses, 3), np.int64)
        for n, rng in enumerate(rngs):
            if how[n] == FITTED and two_sided[n] >= FEWEST_FITTED:
                triples[n] = random_triples(rng, min(two_sided[n], c.fit_rows), c.hypotheses)
        return triples

    def _side(
        self, observation: Int[Tensor, "q"]
    ) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        """One side's maps, which of them each pair reads, and that frame's confidence quantiles."""
        chunk, members = int(self._observations.chunk[observation[0]]), observation.tolist()
        rows = np.array([self._readings.row(n) for n in members])
        quantiles = np.stack([self._readings.quantiles(n) for n in members])
        return self._readings.maps(chunk), rows, quantiles

    def _block_matches(self, numbers: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All matches of pairs, one after the other; a tie has the depth map's own pixels."""
        m = self._matches
        parts = []
        for number in numbers:
            at = slice(int(self._start[number]), int(self._stop[number]))
            part = m.pixel_i[at], m.pixel_j[at], m.score[at]
            if int(self.pairs[number, 0]) == TIE:
                grid = self._readings.grid(int(self.pairs[number, 1]), 2 * self._config.max_per_pair)
                part = grid, grid, torch.ones_like(grid[:, 0])
            parts.append(part)
        pixel_i, pixel_j, score = (
            torch.cat([column.double() for column in columns]).numpy() for columns in zip(*parts, strict=True)
        )
        start = np.cumsum([0, *(len(part[2]) for part in parts)])
        return start, pixel_i, pixel_j, score


def _two_sided(start: np.ndarray, count: np.ndarray, depth_i: np.ndarray, depth_j: np.ndarray) -> np.ndarray:
    """Rows of each pair with depth on both sides; what lies behind a pair's confident rows is 0."""
    both = np.concatenate([[0], np.cumsum((depth_i > 0) & (depth_j > 0))])
    return np.asarray(both[start[1:]] - both[start[:-1]])
