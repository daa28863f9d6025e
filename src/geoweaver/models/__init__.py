"""Networks, tensors in and out: the Geometric Prior Model and SALAD, loading the published weights."""

from geoweaver.models.camera_head import normalise_cameras, plausible_cameras
from geoweaver.models.checkpoint import build_gpm, load_gpm, load_gpm_folder, save_gpm
from geoweaver.models.families import FAMILIES, GPMConfig
from geoweaver.models.gpm import GPM, IMAGE_MEAN, IMAGE_STD, GPMOutput, NestedGPM, metric_depth
from geoweaver.models.salad import Salad, SaladConfig, load_salad

__all__ = [
    "FAMILIES",
    "GPM",
    "IMAGE_MEAN",
    "IMAGE_STD",
    "GPMConfig",
    "GPMOutput",
    "NestedGPM",
    "Salad",
    "SaladConfig",
    "build_gpm",
    "load_gpm",
    "load_gpm_folder",
    "load_salad",
    "metric_depth",
    "normalise_cameras",
    "plausible_cameras",
    "save_gpm",
]
