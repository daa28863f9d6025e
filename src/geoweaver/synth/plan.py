"""What a world's architect hands over: surfaces, routes, lamps."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from geoweaver.synth.quads import Quads


@dataclass(frozen=True, eq=False)
class Plan:
    """Surfaces and the rounds that cameras may take."""

    quads: Quads
    routes: dict[str, Float[np.ndarray, "p 3"]] = field(default_factory=dict)
