"""Geometric priors: depth, cameras and confidence of one chunk at a time."""

from geoweaver.priors.protocol import PriorModel, ReadFeatures
from geoweaver.priors.registry import PRIORS, find_prior
from geoweaver.priors.sfm import SfmConfig, SfmContext, SfmEstimate, SfmPrior

__all__ = [
    "PRIORS",
    "PriorModel",
    "ReadFeatures",
    "SfmConfig",
    "SfmContext",
    "SfmEstimate",
    "SfmPrior",
    "find_prior",
]
