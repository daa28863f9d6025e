"""Matches of frames, and the table of correspondences that the optimiser eats."""

from geoweaver.matching.pairs import TIE, canonical_observation, chunk_pairs, frame_pairs
from geoweaver.matching.sampling_config import SamplingConfig
from geoweaver.matching.table import build_table
from geoweaver.matching.verdicts import SamplingReport

__all__ = [
    "TIE",
    "SamplingConfig",
    "SamplingReport",
    "build_table",
    "canonical_observation",
    "chunk_pairs",
    "frame_pairs",
]
