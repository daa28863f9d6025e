"""One small walk, rendered once; runs over it are made per test."""

import pytest
from made_runs import finished, pictures, stated, walk, write_pictures

from geoweaver.frames import FramesConfig
from geoweaver.synth.effects import Effects

BENT = (-0.12, 0.03, 0.001, -0.001, 0.0)


@pytest.fixture(scope="session")
def clip():
    return walk()


@pytest.fixture(scope="session")
def images(clip):
    return pictures(clip)


@pytest.fixture(scope="session")
def run(clip, images, tmp_path_factory):
    """A folder of JPEGs, noisy matches, some of them wrong."""
    folder = tmp_path_factory.mktemp("plain")
    write_pictures(folder / "input", images, [f"{k:04}.jpg" for k in range(len(clip))])
    options = FramesConfig(intrinsics=stated(clip), max_size=160)
    return finished(clip, folder / "input", folder / "run", options, noise=0.2, wrong=0.05)


@pytest.fixture(scope="session")
def bent_run(tmp_path_factory):
    """A distorted lens, calibrated."""
    bent = walk(3, effects=Effects(distortion=BENT))
    folder = tmp_path_factory.mktemp("bent")
    write_pictures(folder / "input", pictures(bent), [f"{k}.png" for k in range(3)])
    options = FramesConfig(intrinsics=stated(bent), max_size=160)
    return finished(bent, folder / "input", folder / "run", options)
