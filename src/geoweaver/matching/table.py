"""The table that the optimiser eats: matches read at chosen observations, weighed, judged and sampled."""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from geoweaver.datatypes import Correspondences, Matches, Observations
from geoweaver.matching.pair_blocks import PairSource, SampledRows
from geoweaver.matching.pairs import sorted_pairs
from geoweaver.matching.readings import ReadPrior
from geoweaver.matching.sampling_config import SamplingConfig
from geoweaver.matching.verdicts import SamplingReport, Verdicts, doubtful, relaxations, report


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
    source = PairSource(sorted_pairs(pairs), matches, observations, read, config, generator)
    nodes = (observations.chunk if connect == "chunks" else observations.frame)[source.pairs[:, 1:]]
    verdicts = Verdicts.empty(len(pairs), len(config.thresholds()))
    parts = _sound_rows(source, torch.arange(len(pairs)), verdicts, config)
    source.own_fit = doubtful(nodes, source.inside_chunk(), verdicts, config)
    parts += _sound_rows(source, source.own_fit.nonzero().flatten(), verdicts, config)
    step = relaxations(nodes, verdicts.sound(config), verdicts.support)
    thresholds = torch.tensor(config.thresholds(), dtype=torch.float64)
    for block in source.judged((step > 0).nonzero().flatten()):
        parts.append(block.sampled(thresholds[step[block.numbers]]))
    sizes = torch.zeros(len(pairs), dtype=torch.long)
    for part in parts:
        sizes[part.numbers] += part.kept
    summary = report(source.pairs, step, source.own_fit, sizes, verdicts, config)
    return _joined(parts, source.pairs, config), summary


def _sound_rows(
    source: PairSource, numbers: Int[Tensor, "q"], verdicts: Verdicts, config: SamplingConfig
) -> list[SampledRows]:
    """Judge pairs, and sample those that are worth keeping at the strict threshold."""
    parts = []
    for block in source.judged(numbers):
        sound = verdicts.judge(block.numbers, block.tallies, config)
        parts.append(block.sampled(torch.where(sound, config.thresholds()[0], -1.0).double()))
    return parts


def _joined(parts: list[SampledRows], pairs: Int[Tensor, "P 3"], config: SamplingConfig) -> Correspondences:
    """One table of many, sorted by pair."""
    pieces = sorted(
        ((number, part, stop - rows, stop) for part in parts for number, rows, stop in part.pieces()),
        key=lambda piece: piece[0],
    )
    rows = torch.tensor([stop - start for _, _, start, stop in pieces], dtype=torch.long)
    number = torch.tensor([piece[0] for piece in pieces], dtype=torch.long)
    edge, i, j = (column.repeat_interleave(rows) for column in pairs[number].unbind(-1))
    columns = [
        torch.from_numpy(
            np.concatenate([_NOTHING[n], *(part.columns[n][start:stop] for _, part, start, stop in pieces)])
        )
        for n in range(5)
    ]
    if config.weights == "uniform":
        columns[-1] = torch.ones_like(columns[-1])
    return Correspondences(edge, i, j, *columns)


_NOTHING = (*(np.zeros((0, 2)),) * 2, *(np.zeros(0),) * 3)
"""The columns of no row: two pixels, two depths, a weight."""
