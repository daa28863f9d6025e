"""Smooth closed curves through waypoints, by arc length."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from geoweaver.synth.quads import Array


def closed_curve(waypoints: Float[np.ndarray, "p 3"]) -> tuple[Callable[[Array], Array], float]:
    """The periodic spline through the waypoints as a function of arc length (n) -> (n 3), and its length."""
    from scipy.interpolate import CubicSpline

    closed = np.concatenate([waypoints, waypoints[:1]])
    step = np.linalg.norm(np.diff(closed, axis=0), axis=-1)
    knots = np.concatenate([[0], np.cumsum(np.sqrt(step))])  # centripetal: no loops at short steps
    spline = CubicSpline(knots, closed, bc_type="periodic")
    fine = np.linspace(0, knots[-1], 200 * len(waypoints))
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(spline(fine), axis=0), axis=-1))])
    total = float(length[-1])

    def position(s: Array) -> Array:
        return np.asarray(spline(np.interp(np.mod(s, total), length, fine)))

    return position, total
