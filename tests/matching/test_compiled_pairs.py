"""The compiled sampling is the plain one: same rows, same order, errors and weights to 1e-9, any thread."""

from dataclasses import replace

import numba
import numpy as np
import pytest
import torch
from box_room import Room, generator, make_graph, make_matches, make_room, walk
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_pairs import PairErrors, pair_errors, pair_rows
from plain_similarity import plain_umeyama

from geoweaver.datatypes import Matches, ViewGraph
from geoweaver.matching import SamplingConfig, build_table, canonical_observation, chunk_pairs, frame_pairs
from geoweaver.matching.pair_blocks import JudgedBlock, PairSource
from geoweaver.matching.pairs import TIE
from geoweaver.matching.umeyama import nearest_rotation, umeyama
from geoweaver.matching.verdicts import FINENESS

EDGES = [(0, 1), (1, 3), (2, 4), (2, 5), (3, 4), (3, 5), (0, 6)]


def noisy_room() -> tuple[Room, ViewGraph, Matches]:
    """Two chunks, depth with holes and noise, matches of which a third is wrong and some leave the image."""
    room = make_room(walk(7), [[0, 1, 2, 3], [3, 4, 5, 6]], noise=0.03)
    holes = room.priors[1].depth.clone()
    holes[:, :, 70:] = torch.nan
    holes[2, :20] = 0
    room = room.with_prior(1, depth=holes)
    graph = make_graph(EDGES)
    matches, _ = make_matches(room, graph, count=700, wrong=dict.fromkeys(range(len(EDGES)), 0.35))
    pixel = matches.pixel_j.clone()
    pixel[::50] -= 90
    return room, graph, replace(matches, pixel_j=pixel)


CONFIGS = {
    "default": SamplingConfig(),
    "paper": SamplingConfig(lateral=False),
    "rank": SamplingConfig(normalisation="rank", relative_to="max", confidence=0.1),
    "own fit": SamplingConfig(fit_rows=100, spread=2.0),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_errors_and_counts_are_the_plain_ones(name: str) -> None:
    room, graph, matches = noisy_room()
    config, observations = CONFIGS[name], room.observations
    canonical = canonical_observation(observations)
    pairs = torch.cat([chunk_pairs(graph, observations), frame_pairs(graph, observations, canonical)])
    source = PairSource(pairs, matches, observations, room.read, config, generator())
    source.own_fit[:] = source.inside_chunk() & (name == "own fit")
    seen = 0
    for block in source.judged(torch.arange(len(pairs))):
        for n in range(len(block.numbers)):
            seen += compare_pair(block, n, source, room, config)
    assert seen == len(pairs)


def compare_pair(block: JudgedBlock, n: int, source: PairSource, room: Room, config: SamplingConfig) -> bool:
    pair = tuple(source.pairs[block.numbers[n]].tolist())
    whole = slice(block.start[n], block.start[n + 1])
    columns = [torch.from_numpy(pixel[whole]) for pixel in block.pixels]
    score = source._matches.score[source._matches.edge == pair[0]]
    score = torch.ones(len(columns[0])) if pair[0] == TIE else score
    rows, rng = pair_rows(pair, (*columns, score), room.observations, room.priors, config, source._seed)
    own_fit = bool(source.own_fit[block.numbers[n]])
    errors = pair_errors(rows, room.observations, rng, config, own_fit)
    at = slice(block.start[n], block.start[n] + block.count[n])
    assert torch.equal(torch.from_numpy(block.pixels[0][block.source[at]]), rows.pixel_i), pair
    for mine, plain in zip(block.rows, (rows.depth_i, rows.depth_j, rows.weight), strict=True):
        np.testing.assert_allclose(mine[at], plain, rtol=1e-9, atol=0)
    np.testing.assert_allclose(block.selecting[at], errors.selecting(config), rtol=1e-7, atol=1e-9)
    assert_counts(block, n, errors, config)
    return True


def assert_counts(block: JudgedBlock, n: int, errors: PairErrors, config: SamplingConfig) -> None:
    tallies, steps = block.tallies, torch.tensor(config.thresholds(), dtype=torch.float64)
    finer = torch.cat([steps / fineness for fineness in FINENESS])
    assert tallies.agreeing[n].tolist() == (errors.selecting(config)[:, None] <= steps).sum(0).tolist()
    two_sided = errors.worst()[~errors.one_sided]
    assert tallies.found[n].tolist() == (two_sided[:, None] <= finer).sum(0).tolist()
    assert tallies.lucky[n].tolist() == (errors.chance[:, None] <= finer).sum(0).tolist()
    assert int(tallies.two_sided[n]) == len(errors.chance)


def test_the_number_of_threads_changes_no_byte() -> None:
    room, graph, matches = noisy_room()
    before, tables = numba.get_num_threads(), []
    for threads in {1, before}:
        numba.set_num_threads(threads)
        pairs = chunk_pairs(graph, room.observations)
        table, _ = build_table(
            pairs, matches, room.observations, room.read, SamplingConfig(), generator(), "chunks"
        )
        tables.append(table)
    numba.set_num_threads(before)
    for name in vars(tables[0]):
        assert torch.equal(getattr(tables[0], name), getattr(tables[-1], name)), name


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(3, 40), st.sampled_from([1e-6, 1.0, 1e6]))
def test_the_closed_form_is_that_of_a_library(seed: int, count: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    source, target = rng.normal(size=(2, count, 3)) * np.array([1.0, unit])[:, None, None]
    weight = rng.random(count)
    plain = plain_umeyama(*(torch.from_numpy(x) for x in (source, target, weight)))
    scale, rotation, translation = umeyama(source, target, weight)
    assert scale == pytest.approx(float(plain.scale), rel=1e-9)
    np.testing.assert_allclose(rotation, plain.rotation, atol=1e-9)
    np.testing.assert_allclose(translation, plain.translation, atol=1e-9 * unit)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_flat_matrix_still_gives_a_rotation(rank: int) -> None:
    rng = np.random.default_rng(rank)
    matrix = np.asarray(rng.normal(size=(3, rank)) @ rng.normal(size=(rank, 3)))
    rotation, trace = nearest_rotation(matrix)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1)
    assert trace == pytest.approx(np.linalg.svd(matrix)[1].sum(), abs=1e-12)
