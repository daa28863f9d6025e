"""Which pairs of frames are worth matching: temporal, across chunks, long-range."""

from geoweaver.graph.retrieval import Candidates, RetrievalConfig, find_candidates
from geoweaver.graph.selection import SelectionConfig, select_edges
from geoweaver.graph.temporal import TemporalConfig, camera_chains, temporal_pairs
from geoweaver.graph.view_graph import GraphConfig, Verify, build_graph

__all__ = [
    "Candidates",
    "GraphConfig",
    "RetrievalConfig",
    "SelectionConfig",
    "TemporalConfig",
    "Verify",
    "build_graph",
    "camera_chains",
    "find_candidates",
    "select_edges",
    "temporal_pairs",
]
