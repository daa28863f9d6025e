"""Random walks and their distorted copies, for every test of the scores."""

import torch

from geoweaver.datatypes import Trajectory
from geoweaver.geometry import SE3, Sim3, world_camera


def walk(frames, seed=0, step=0.3):
    """cam_from_world of a camera that strolls and looks around."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(frames, 6, generator=generator, dtype=torch.float64)
    turn = SE3.exp(torch.cat([torch.zeros(frames, 3, dtype=torch.float64), 0.2 * noise[:, 3:]], -1).cumsum(0))
    centre = (step * noise[:, :3]).cumsum(0)
    return SE3(turn.rotation, -(turn.rotation @ centre[..., None]).squeeze(-1))


def shaken(cameras, seed=1, position=0.05, angle=0.02):
    """The same cameras, each a little elsewhere and turned."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(len(cameras), 6, generator=generator, dtype=torch.float64)
    return SE3.exp(noise * torch.tensor([position] * 3 + [angle] * 3, dtype=torch.float64)) @ cameras


def similarity(seed=2, scale=0.37):
    generator = torch.Generator().manual_seed(seed)
    rigid = SE3.exp(torch.randn(6, generator=generator, dtype=torch.float64))
    return Sim3(torch.tensor(scale, dtype=torch.float64), rigid.rotation, 5 * rigid.translation)


def moved(cameras, transform):
    """The cameras of a world that a similarity has moved."""
    return world_camera(transform, cameras)


def trajectory(cameras, times=None, names=None, trusted=None, index=None):
    stamps = None if times is None else torch.as_tensor(times, dtype=torch.float64)
    index = torch.arange(len(cameras)) if index is None else torch.as_tensor(index)
    trust = None if trusted is None else torch.as_tensor(trusted)
    return Trajectory(cameras, index=index, names=names, timestamps=stamps, trusted=trust)
