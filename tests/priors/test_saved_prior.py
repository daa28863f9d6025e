"""Saved predictions: whose frames they are, which piece goes with which chunk, and damaged files in words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stand_ins import Scene, featureless, make_scene

from geoweaver.datatypes import Chunk, ChunkPrior
from geoweaver.errors import ConfigError, FormatError, InputError
from geoweaver.priors import SavedPrior, find_prior
from geoweaver.priors.saved import share_out
from geoweaver.priors.saved_file import SavedFrame

SIZE = (24, 16)
SCENE = make_scene(4, views=8)


def arrays(rows: list[int] | int, scene: Scene = SCENE, **changes: Any) -> dict[str, Any]:
    """What a writer puts into a file; None leaves an array out."""
    names = np.array([Path(name).name for name in scene.frames().names])[rows]
    content = {
        "name": names,
        "depth": scene.depth_at(SIZE).numpy()[rows],
        "confidence": scene.doubt_at(SIZE).exp().numpy()[rows],
        "cam_from_world": scene.cam_from_world.matrix().numpy()[rows],
        "intrinsics": scene.intrinsics_at(SIZE).numpy(),
    } | changes
    return {key: value for key, value in content.items() if value is not None}


def told(folder: Path, *chunks: tuple[int, ...]) -> list[list[ChunkPrior]]:
    cut = [Chunk(k, frames) for k, frames in enumerate(chunks or (tuple(range(8)),))]
    prior = find_prior(f"saved:{folder}")
    context = prior.prepare(SCENE.frames(), cut, featureless)
    return [prior.predict(chunk, context) for chunk in cut]


def framed(priors: list[ChunkPrior]) -> list[list[int]]:
    return [prior.frame.tolist() for prior in priors]


def test_single_frames_share_one_world(tmp_path: Path) -> None:
    for k in range(8):
        np.savez(tmp_path / f"{k}.npz", **arrays(k))
    ((prior,),) = told(tmp_path)
    assert prior.frame.tolist() == list(range(8))
    assert torch.allclose(prior.cam_from_chunk.matrix(), SCENE.cam_from_world.matrix())
    assert torch.allclose(prior.depth.double(), SCENE.depth_at(SIZE), rtol=1e-5)


def test_a_long_piece_is_cut_at_the_chunks_borders(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", **arrays(list(range(8))))
    first, second = told(tmp_path, (0, 1, 2, 3, 4), (4, 5, 6, 7))
    assert framed(first) == [[0, 1, 2, 3, 4]] and framed(second) == [[4, 5, 6, 7]]


def test_a_models_own_chunks_stay_whole(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays([0, 1, 2, 3]))
    np.savez(tmp_path / "b.npz", **arrays([3, 4, 5, 6, 7]))
    first, second = told(tmp_path, (0, 1, 2, 3, 4), (4, 5, 6, 7))
    assert framed(first) == [[0, 1, 2, 3]] and framed(second) == [[3, 4, 5, 6, 7]]


def test_named_pieces_are_kept_apart(tmp_path: Path) -> None:
    for k in range(8):
        np.savez(tmp_path / f"{k}.npz", **arrays(k, piece="early" if k < 5 else "late"))
    ((one, other),) = told(tmp_path)
    assert framed([one, other]) == [[0, 1, 2, 3, 4], [5, 6, 7]]


def entries(*frames: int) -> tuple[SavedFrame, ...]:
    return tuple(SavedFrame(f, Path("x.npz"), f, "") for f in frames)


def test_overlapping_blocks_are_told_once_each() -> None:
    chunks = [Chunk(0, tuple(range(60))), Chunk(1, tuple(range(59, 118)))]
    blocks = [entries(*range(s, s + 60)) for s in (0, 30, 58)]
    shared = share_out(blocks, chunks)
    sizes = {k: sorted(len(p) for p in parts) for k, parts in shared.items()}
    assert sizes == {0: [60], 1: [60, 60]}
    assert {e.frame for parts in shared.values() for p in parts for e in p} == set(range(118))


def test_frames_of_no_chunk_are_left_out() -> None:
    assert share_out([entries(0, 1, 9)], [Chunk(0, (0, 1, 2))]) == {0: (entries(0, 1),)}
    assert share_out([], []) == {}


def test_matrices_and_other_poses_mean_the_same(tmp_path: Path) -> None:
    fx, fy, cx, cy = SCENE.intrinsics_at(SIZE).tolist()
    K = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    poses = SCENE.cam_from_world.inverse().matrix().numpy()[:, :3]
    np.savez(
        tmp_path / "a.npz", **arrays(list(range(8)), cam_from_world=None, world_from_cam=poses, intrinsics=K)
    )
    ((prior,),) = told(tmp_path)
    assert torch.allclose(prior.cam_from_chunk.matrix(), SCENE.cam_from_world.matrix())
    assert torch.allclose(prior.intrinsics, SCENE.intrinsics_at(SIZE).expand(8, 4))


def test_without_confidence_every_known_pixel_is_typical(tmp_path: Path) -> None:
    depth = SCENE.depth_at(SIZE).numpy()
    depth[:, 0] = 0
    np.savez(tmp_path / "a.npz", **arrays(list(range(8)), confidence=None, depth=depth))
    ((prior,),) = told(tmp_path)
    assert (prior.confidence[:, 0] == 0).all() and torch.allclose(prior.confidence[:, 1:], torch.tensor(0.5))


def test_a_wrong_camera_is_left_out(tmp_path: Path) -> None:
    cameras = SCENE.cam_from_world.matrix().numpy()
    cameras[3, 0, 0] = np.nan
    np.savez(tmp_path / "a.npz", **arrays(list(range(8)), cam_from_world=cameras))
    ((prior,),) = told(tmp_path)
    assert prior.frame.tolist() == [0, 1, 2, 4, 5, 6, 7]


BAD: dict[str, dict[str, Any]] = {
    "name": {"name": np.arange(8)},
    "depth": {"depth": np.ones((8, 4))},
    "confidence": {"confidence": np.ones((8, 3, 3))},
    "cam_from_world": {"cam_from_world": None},
    "intrinsics": {"intrinsics": np.ones(3)},
    "world_from_cam": {"world_from_cam": np.ones((8, 4, 4))},
}


@pytest.mark.parametrize("word", list(BAD))
def test_a_wrong_array_is_named(tmp_path: Path, word: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays(list(range(8)), **BAD[word]))
    with pytest.raises(FormatError, match=f"`{word}`") as caught:
        told(tmp_path)
    assert "\n" not in str(caught.value) and "a.npz" in str(caught.value)


def test_damaged_and_pickled_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **arrays(list(range(8))))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(FormatError, match=r"a\.npz"):
        told(tmp_path)
    np.savez(path, **arrays(list(range(8)), name=np.array([{"evil": 1}] * 8, dtype=object)))
    with pytest.raises(FormatError, match=r"a\.npz"):
        told(tmp_path)


def test_a_frame_twice_in_a_piece_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays(1))
    np.savez(tmp_path / "b.npz", **arrays(1))
    with pytest.raises(InputError, match="twice"):
        told(tmp_path)


def test_an_empty_or_foreign_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.npz"):
        told(tmp_path)
    np.savez(tmp_path / "a.npz", **arrays([0, 1], name=np.array(["x.png", "y.png"])))
    with pytest.raises(InputError, match=r"such as 'images/000\.png'"):
        told(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        find_prior("saved:/nowhere")
    with pytest.raises(ConfigError, match="saved:FOLDER"):
        find_prior("saved")


def test_new_content_is_a_new_identity(tmp_path: Path) -> None:
    def identity() -> Any:
        context = SavedPrior(tmp_path).prepare(SCENE.frames(), [Chunk(0, (0, 1, 2))], featureless)
        return context.identity()

    np.savez(tmp_path / "a.npz", **arrays([0, 1, 2]))
    before = identity()
    assert identity() == before
    np.savez(tmp_path / "a.npz", **arrays([0, 1, 2], confidence=None))
    assert identity() != before
