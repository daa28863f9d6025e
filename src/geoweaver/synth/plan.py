"""What a world's architect hands over: surfaces, routes, light, and things that move."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from geoweaver.synth.quads import Quads

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Light:
    """Sun, sky, lamps and the light that rooms throw back; linear colours."""

    to_sun: Triple = (0.4, -0.5, 0.75)
    sun: Triple = (1.5, 1.4, 1.2)
    sky: Triple = (0.55, 0.65, 0.8)
    """Radiance of the open sky."""
    bounce: Triple = (0.3, 0.29, 0.27)
    """Radiance of surfaces far enough away from a point; near ones darken it."""
    reach: float = 0.6
    """Metres within which a surface darkens another one."""
    lamps: tuple[Triple, ...] = ()
    lamp: Triple = (1.0, 0.9, 0.75)
    haze: float = 1e9
    """Metres after which the air has swallowed two thirds of a surface's colour."""
    exposure: float = 1.0


@dataclass(frozen=True, eq=False)
class Mover:
    """A thing that runs along a closed round at a constant speed, its front (+x) ahead."""

    quads: Quads
    waypoints: Float[np.ndarray, "p 3"]
    speed: float = 1.2
    """Metres per second."""
    start: float = 0.0
    """Metres along the round at time 0."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Surfaces, the rounds that cameras may take, light and movers."""

    quads: Quads
    routes: dict[str, Float[np.ndarray, "p 3"]]
    light: Light = field(default_factory=Light)
    movers: tuple[Mover, ...] = ()
