"""The table that the optimiser eats: matches read at chosen observations, weighed, judged and sampled."""

from collections.abc import Collection, Iterator
from typing import Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from geoweaver.datatypes import Correspondences, Matches, Observations
from geoweaver.matching.consistency import PairErrors, pair_errors
from geoweaver.matching.pairs import TIE, sorted_pairs
from geoweaver.matching.readings import Readings, ReadPrior
from geoweaver.matching.sampling import confident, gumbel_order, pair_rng, rows_per_pair
from geoweaver.matching.sampling_config import SamplingConfig
from geoweaver.matching.verdicts import SamplingReport, Verdicts, doubtful, relaxations, report
from geoweaver.matching.weights import match_weight


def build_table(
    pairs: Int[Tensor, "P 3"],
    matches: Matches,
    observations: Observations,
    read: ReadPrior,
    config: SamplingConfig,
    generator: torch.Generator,
    connect: Literal["chunks", "frames"] = "chunks",
) -> tuple[Correspondences, SamplingReport]:
    """Matches of each pair as rows with depth and weight, sorted by (edge, observation_i, observation_j).

    Within a pair the rows come in sampling order: the first k of them are a weighted sample of k.
    `connect` names what must not fall apart: weak pairs are relaxed where they hold these together.
    """
    source = _Source(sorted_pairs(pairs), matches, observations, read, config, generator)
    nodes = (observations.chunk if connect == "chunks" else observations.frame)[source.pairs[:, 1:]]
    verdicts = Verdicts.empty(len(pairs), len(config.thresholds()))
    kept = source.kept(verdicts, range(len(pairs)))
    source.own_fit = doubtful(nodes, source.inside_chunk(), verdicts, config)
    kept |= source.kept(verdicts, source.own_fit.nonzero().flatten().tolist())
    step = relaxations(nodes, verdicts.sound(config), verdicts.support)
    for number, rows, errors in source.judged((step > 0).nonzero().flatten().tolist()):
        kept[number] = source.sampled(rows, errors, int(step[number]))
    sizes = torch.tensor([len(kept[n]) if n in kept else 0 for n in range(len(pairs))], dtype=torch.long)
    summary = report(source.pairs, step, source.own_fit, sizes, verdicts, config)
    return _joined([kept[n] for n in sorted(kept)]), summary


class _Source:
    """Where each pair's rows come from: the same rows however often and in whatever order one asks."""

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
        self._readings = Readings(
            observations, read, config.normalisation, config.gamma_ceiling, config.cached_chunks
        )

    def kept(self, verdicts: Verdicts, numbers: Collection[int]) -> dict[int, Correspondences]:
        """Judge pairs, and sample those that are worth keeping at the strict threshold."""
        return {
            number: self.sampled(rows, errors, 0)
            for number, rows, errors in self.judged(numbers)
            if verdicts.judge(number, errors, self._config)
        }

    def judged(self, numbers: Collection[int]) -> Iterator[tuple[int, Correspondences, PairErrors]]:
        """Confident rows of pairs in sampling order with errors, chunk by chunk; empty pairs are skipped."""
        chunk = self._observations.chunk[self.pairs[:, 1:]].sort(-1).values.tolist()
        for number in sorted(numbers, key=lambda n: (chunk[n], n)):
            rng = pair_rng(self._seed, *self.pairs[number].tolist())
            rows = self._rows(number)
            order = gumbel_order(rows.weight, rng)
            rows = rows[order[confident(rows.weight[order], self._config)]]
            if len(rows):
                own_fit = bool(self.own_fit[number])
                yield number, rows, pair_errors(rows, self._observations, rng, self._config, own_fit)

    def sampled(self, rows: Correspondences, errors: PairErrors, step: int) -> Correspondences:
        """The first rows that agree at a threshold step."""
        agree = errors.selecting(self._config) <= self._config.thresholds()[step]
        rows = rows[agree.nonzero().squeeze(-1)[: self._cap]]
        if self._config.weights == "kept":
            return rows
        return Correspondences(**{**vars(rows), "weight": torch.ones_like(rows.weight)})

    def inside_chunk(self) -> Bool[Tensor, "P"]:
        """Pairs of one chunk's observations."""
        chunk = self._observations.chunk[self.pairs[:, 1:]]
        return chunk[:, 0] == chunk[:, 1]

    def _rows(self, number: int) -> Correspondences:
        """All of a pair's matches with what the prior says there; a tie has the depth map's own pixels."""
        edge, i, j = self.pairs[number].tolist()
        at = slice(int(self._start[number]), int(self._stop[number]))
        pixel_i, pixel_j = self._matches.pixel_i[at].double(), self._matches.pixel_j[at].double()
        score = self._matches.score[at]
        if edge == TIE:
            pixel_i = pixel_j = self._readings.grid(i, 2 * self._config.max_per_pair)
            score = torch.ones_like(pixel_i[:, 0])
        here, there = self._readings.at(i, pixel_i), self._readings.at(j, pixel_j)
        weight = match_weight(score, here.gamma, there.gamma, here.known, there.known)
        same = torch.ones(len(score), dtype=torch.long)
        return Correspondences(
            edge * same, i * same, j * same, pixel_i, pixel_j, here.depth, there.depth, weight
        )


def _joined(parts: list[Correspondences]) -> Correspondences:
    """One table of many, in their order."""
    none, real = torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.float64)
    pixel = real.reshape(0, 2)
    parts = [Correspondences(none, none, none, pixel, pixel, real, real, real), *parts]
    columns = Correspondences.__dataclass_fields__
    return Correspondences(**{name: torch.cat([getattr(part, name) for part in parts]) for name in columns})
