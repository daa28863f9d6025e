"""Pure tensors: Lie groups, cameras, registration. Knows nothing of videos."""

from geoweaver.geometry.lie import SE3, Sim3, world_camera

__all__ = ["SE3", "Sim3", "world_camera"]
