"""A camera that hardly moved tells little about distances: a doubt about the whole run."""

import math

import numpy as np

from geoweaver.datatypes import Reconstruction
from geoweaver.export.tracks import Tracks
from geoweaver.geometry.directions import direction_scatter

_SLIGHT = math.radians(3.0)
"""Angle within which cameras see the usual point, below which distances are rough."""


def slight_motion(result: Reconstruction, tracks: Tracks, calibrated: bool) -> tuple[str, ...]:
    """A warning where the usual point is seen from nearly one direction only."""
    ray = tracks.position[tracks.point] - result.cam_from_world.centre[tracks.frame]
    scatter = direction_scatter(ray.numpy(), tracks.point.numpy(), len(tracks))
    # what is spread evenly over an angle scatters by its part of the root of twelve
    angle = 12**0.5 * float(np.median(scatter))
    if angle >= _SLIGHT:
        return ()
    guess = "" if calibrated else " and the focal is a guess, which --intrinsics would mend"
    return (
        f"the camera moved so little (points are seen within about {math.degrees(angle):.1f} degrees) that "
        f"distances are rough{guess}; film while walking sideways for better ones",
    )
