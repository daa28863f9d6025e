"""The table that the optimiser eats: matches read at chosen observations, weighed, judged and sampled."""

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.datatypes import Correspondences, Matches, Observations
from geoweaver.matching.consistency import PairErrors, pair_errors
from geoweaver.matching.pairs import TIE, sorted_pairs
from geoweaver.matching.readings import Readings, ReadPrior
from geoweaver.matching.sampling import confident, consistent, gumbel_order, pair_rng, rows_per_pair
from geoweaver.matching.sampling_config import SamplingConfig
from geoweaver.matching.verdicts import SamplingReport, Verdicts, relaxations, report
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
    cap = rows_per_pair(source.available(), config)
    verdicts = Verdicts.empty(len(pairs), len(config.thresholds()))
    kept: dict[int, Correspondences] = {}
    for number, rows, errors in source.judged(range(len(pairs))):
        if verdicts.judge(number, errors, config):
            kept[number] = source.sampled(rows, errors, 0, cap)
    node = observations.chunk if connect == "chunks" else observations.frame
    step = relaxations(node[source.pairs[:, 1:]], verdicts.sound(config), verdicts.support)
    for number, rows, errors in source.judged((step > 0).nonzero().flatten().tolist()):
        kept[number] = source.sampled(rows, errors, int(step[number]), cap)
    sizes = torch.tensor([len(kept[n]) if n in kept else 0 for n in range(len(pairs))], dtype=torch.long)
    return _joined([kept[n] for n in sorted(kept)]), report(source.pairs, step, sizes, verdicts, config)


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
        self._matches = matches
        self._observations = observations
        self._config = config
        self._seed = int(torch.randint(2**62, (), generator=generator))
        self._start = torch.searchsorted(matches.edge, pairs[:, 0].contiguous())
        self._stop = torch.searchsorted(matches.edge, pairs[:, 0].contiguous(), right=True)
        self._readings = Readings(
            observations, read, config.normalisation, config.gamma_ceiling, config.cached_chunks
        )

    def available(self) -> Int[Tensor, "P"]:
        """How many rows each pair could give at most."""
        ties = self.pairs[:, 0] == TIE
        return torch.where(ties, self._config.max_per_pair, self._stop - self._start)

    def judged(self, numbers: Sequence[int]) -> Iterator[tuple[int, Correspondences, PairErrors]]:
        """Confident rows of pairs in sampling order with errors, chunk by chunk; empty pairs are skipped."""
        chunk = self._observations.chunk[self.pairs[:, 1:]].sort(-1).values.tolist()
        for number in sorted(numbers, key=lambda n: (chunk[n], n)):
            edge, i, j = self.pairs[number].tolist()
            rng = pair_rng(self._seed, edge, i, j)
            rows = self._rows(number)
            rows = rows[gumbel_order(rows.weight, rng)]
            rows = rows[confident(rows.weight, self._config)]
            if len(rows):
                errors = pair_errors(rows, self._observations, rng, self._config)
                yield number, rows, errors

    def sampled(self, rows: Correspondences, errors: PairErrors, step: int, cap: int) -> Correspondences:
        """The first rows that agree at a threshold step."""
        threshold = self._config.thresholds()[step]
        rows = rows[consistent(errors, threshold, self._config.lateral)][:cap]
        if self._config.weights == "kept":
            return rows
        return Correspondences(**{**vars(rows), "weight": torch.ones_like(rows.weight)})

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
    none, pixel, real = (
        torch.zeros(0, dtype=torch.long),
        torch.zeros(0, 2, dtype=torch.float64),
        torch.zeros(0, dtype=torch.float64),
    )
    parts = [Correspondences(none, none, none, pixel, pixel, real, real, real), *parts]
    columns = Correspondences.__dataclass_fields__
    return Correspondences(**{name: torch.cat([getattr(part, name) for part in parts]) for name in columns})
