"""Frames that the weave did not place: each against the depth of the keyframes near it."""

from geoweaver.localisation.known_points import KnownPoints, known_points, points_to_track
from geoweaver.localisation.pose import Localised, localise
from geoweaver.localisation.tracking import track_points

__all__ = ["KnownPoints", "Localised", "known_points", "localise", "points_to_track", "track_points"]
