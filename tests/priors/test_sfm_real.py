"""The sfm prior on a slice of a real recording with known cameras and depth."""

from pathlib import Path

import pytest
import torch

from geoweaver.datatypes import Chunk, Features
from geoweaver.features import extract_features
from geoweaver.formats.depth import depth_files, read_depth
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.frames.opening import open_frames
from geoweaver.geometry.camera import pixel_centres, sample_nearest
from geoweaver.geometry.registration import umeyama
from geoweaver.priors import SfmPrior


@pytest.mark.realdata
@pytest.mark.slow
def test_a_slice_of_a_walk(realdata: Path) -> None:
    folder = realdata / "indoor_walk"
    frames = open_frames(folder / "images")
    pixels = frames.pixels
    assert pixels is not None

    def read(frame: int) -> Features:
        return extract_features(pixels.read(frame))

    chunk = Chunk(0, tuple(range(60, 80)))
    prior = SfmPrior()
    found = prior.estimate(chunk, prior.prepare(frames, [chunk], read))
    piece = found.priors[0]
    assert len(piece) >= 18
    truth = read_trajectory(folder / "groundtruth.tum").cam_from_world[piece.frame].centre
    centre = piece.cam_from_chunk.centre
    error = (umeyama(centre, truth).act(centre) - truth).norm(dim=1)
    assert error.square().mean().sqrt() < 0.03

    maps = depth_files(folder / "depth")
    rows = [k for k, frame in enumerate(piece.frame.tolist()) if frame in maps]
    height, width = piece.depth.shape[1:]
    places = pixel_centres(width, height).reshape(-1, 2) * torch.tensor([540 / width, 360 / height])
    true = torch.stack([sample_nearest(read_depth(maps[int(piece.frame[k])]), places)[0] for k in rows])
    found_depth, sure = piece.depth[rows].flatten(1), piece.confidence[rows].flatten(1)
    both = (true > 0.05) & (found_depth > 0)
    assert both.sum() > 0.85 * (true > 0.05).sum()
    half = both & (sure >= sure[both].median())
    scale = (true[half] / found_depth[half]).median()
    relative = (found_depth * scale - true).abs() / true.clamp_min(1e-6)
    assert relative[half].mean() < 0.06 and relative[both].mean() < 0.15
