"""A made-up walk as the rows of a TUM file, and the command that scores such files."""

import subprocess
import sys
from pathlib import Path

import numpy as np

GEOWEAVER = str(Path(sys.executable).with_name("geoweaver"))


def real_command(*arguments):
    command = [GEOWEAVER, "evaluate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def walk(frames=20, seed=0):
    """Rows of a TUM file."""
    rng = np.random.default_rng(seed)
    quaternion = np.array([0.0, 0, 0, 1]) + 0.1 * rng.normal(size=(frames, 4)).cumsum(0)
    quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
    centre = rng.normal(size=(frames, 3)).cumsum(0)
    return np.concatenate([np.arange(frames)[:, None], centre, quaternion], 1)


def save(path, rows):
    np.savetxt(path, rows)
    return path
