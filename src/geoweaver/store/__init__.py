"""The workspace folder: one artifact per stage and piece, found by its key, written whole or not at all."""

from geoweaver.store.artifact import Artifact
from geoweaver.store.codec import decode_depth, encode_depth
from geoweaver.store.costs import Cost, Costs, forget_costs
from geoweaver.store.keys import NOT_IN_KEY, artifact_key, canonical, digest_of, file_digest, tensor_digest
from geoweaver.store.nouns import cached_noun, flatten, restore
from geoweaver.store.priors import PriorStore, cached_priors, flatten_priors, restore_prior
from geoweaver.store.whole import whole_file
from geoweaver.store.workspace import Flat, Store

__all__ = [
    "NOT_IN_KEY",
    "Artifact",
    "Cost",
    "Costs",
    "Flat",
    "PriorStore",
    "Store",
    "artifact_key",
    "cached_noun",
    "cached_priors",
    "canonical",
    "decode_depth",
    "digest_of",
    "encode_depth",
    "file_digest",
    "flatten",
    "flatten_priors",
    "forget_costs",
    "restore",
    "restore_prior",
    "tensor_digest",
    "whole_file",
]
