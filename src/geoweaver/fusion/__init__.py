"""One coloured point cloud from depth, confidence and cameras; and pictures of it."""

from geoweaver.fusion.config import FusionConfig
from geoweaver.fusion.fuse import fuse_cloud
from geoweaver.fusion.picture import SIDES, CloudView, camera_view, render_cloud, side_view
from geoweaver.geometry.upright import up_direction as mean_up

__all__ = [
    "SIDES",
    "CloudView",
    "FusionConfig",
    "camera_view",
    "fuse_cloud",
    "mean_up",
    "render_cloud",
    "side_view",
]
