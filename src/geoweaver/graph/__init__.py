"""Which pairs of frames are worth matching: temporal, across chunks, long-range."""

from geoweaver.graph.retrieval import Candidates, RetrievalConfig, find_candidates
from geoweaver.graph.selection import SelectionConfig, select_edges
from geoweaver.graph.temporal import TemporalConfig, frame_chains, temporal_pairs
from geoweaver.graph.view_graph import GraphConfig, Verify, build_graph

__all__ = [
    "Candidates",
    "GraphConfig",
    "RetrievalConfig",
    "SelectionConfig",
    "TemporalConfig",
    "Verify",
    "build_graph",
    "find_candidates",
    "frame_chains",
    "select_edges",
    "temporal_pairs",
]
