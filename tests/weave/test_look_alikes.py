"""Doors of one corridor look alike: what retrieval found has no say in the chain of neighbouring chunks."""

import torch

from geoweaver.assembly.links import Link, LinkConfig
from geoweaver.assembly.pairs import PairMatches, select_pairs
from geoweaver.assembly.sequential import initialise_chunks
from geoweaver.datatypes import EdgeKind
from geoweaver.matching import SamplingConfig
from geoweaver.synth.simulated_sequence import PRESETS
from geoweaver.weave import Tables, make_tables
from tests.weave.tiny import Tiny, tiny


def tables_of(case: Tiny) -> Tables:
    read, group = case.priors.__getitem__, torch.zeros(len(case.truth), dtype=torch.long)
    return make_tables(case.observations, case.graph, case.matches, read, group, SamplingConfig(), 0)


def first_link(matches: PairMatches, tables: Tables, kind: torch.Tensor) -> Link:
    _, links, _ = initialise_chunks(matches, tables.observations, kind, LinkConfig(), 0)
    assert links[0].verified
    return links[0]


def test_what_retrieval_found_has_no_say_in_the_chain() -> None:
    case = tiny(frames=22, chunk=12, laps=0.25, errors=PRESETS["exact"])
    tables = tables_of(case)
    # half of the pairs between the two chunks as if retrieval had brought them, at another place
    matches, kind = tables.crossing, case.graph.kind.clone()
    far = matches.edge[matches.edge >= 0].unique()[::2]
    kind[far] = int(EdgeKind.LONG_RANGE)
    claimed = torch.isin(matches.edge, far)
    matches.pixel_j[claimed[matches.pair_of_row]] += 60.0
    told = first_link(matches, tables, kind)
    alone = first_link(select_pairs(matches, ~claimed), tables, kind)
    assert claimed.any() and told.matches == alone.matches
    assert torch.equal(told.a_from_b.translation, alone.a_from_b.translation)
    assert torch.equal(told.a_from_b.rotation, alone.a_from_b.rotation)
