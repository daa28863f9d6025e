"""Geometric priors: depth, cameras and confidence of one chunk at a time."""

from geoweaver.priors.network import NetworkPrior
from geoweaver.priors.prediction import Prediction, as_priors
from geoweaver.priors.protocol import PriorModel, ReadFeatures
from geoweaver.priors.registry import PRIORS, find_prior
from geoweaver.priors.saved import SavedPrior, write_saved
from geoweaver.priors.sfm import SfmConfig, SfmContext, SfmEstimate, SfmPrior

__all__ = [
    "PRIORS",
    "NetworkPrior",
    "Prediction",
    "PriorModel",
    "ReadFeatures",
    "SavedPrior",
    "SfmConfig",
    "SfmContext",
    "SfmEstimate",
    "SfmPrior",
    "as_priors",
    "find_prior",
    "write_saved",
]
