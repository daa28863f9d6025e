"""Local features and frame descriptors: computed once per frame, used by whoever needs them."""

from geoweaver.features.frame_features import FrameFeatures, compute_features, features_digest
from geoweaver.features.retrieval import RETRIEVERS, Retriever, VladRetriever, find_retriever
from geoweaver.features.salad import SaladRetriever
from geoweaver.features.sift import FeatureConfig, extract_features, no_features, root_sift
from geoweaver.features.vlad import (
    DescriptorConfig,
    cached_descriptors,
    global_descriptors,
    learn_words,
    vlad,
)

__all__ = [
    "RETRIEVERS",
    "DescriptorConfig",
    "FeatureConfig",
    "FrameFeatures",
    "Retriever",
    "SaladRetriever",
    "VladRetriever",
    "cached_descriptors",
    "compute_features",
    "extract_features",
    "features_digest",
    "find_retriever",
    "global_descriptors",
    "learn_words",
    "no_features",
    "root_sift",
    "vlad",
]
