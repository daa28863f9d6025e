"""What goes into a computation is in its key: nothing that was kept is used for another input."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from geoweaver.datatypes import Camera, Chunk, ChunkPrior, Features, Frames, ViewGraph
from geoweaver.engine import LocalEngine
from geoweaver.features import FrameFeatures, VladRetriever, no_features
from geoweaver.graph import GraphConfig
from geoweaver.lens_field import no_fields
from geoweaver.models import GPM, save_gpm
from geoweaver.models.families import GPMConfig
from geoweaver.pipeline import Config
from geoweaver.priors import find_prior
from geoweaver.priors.protocol import ReadFeatures
from geoweaver.stages import MatchShards, _identity, _named, chunk_priors, cut_chunks, view_graph
from geoweaver.store import PriorStore, Store, digest_of
from geoweaver.turns import Material, weave_key

COUNT = 8
CAMERA = Camera("PINHOLE", (50.0, 50.0, 32.0, 24.0), 64, 48, rectified=(50.0, 50.0, 32.0, 24.0))
FRAMES = Frames(
    names=tuple(f"{i}.png" for i in range(COUNT)),
    timestamps=torch.arange(COUNT, dtype=torch.float64),
    camera=torch.zeros(COUNT, dtype=torch.long),
    keyframe=torch.ones(COUNT, dtype=torch.bool),
    cameras=(CAMERA,),
    size=(64, 48),
    digests=tuple(f"digest{i}" for i in range(COUNT)),
)
GRAPH = ViewGraph(torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 1]))
OTHER = {
    "names": tuple(f"b{i}.png" for i in range(COUNT)),
    "timestamps": FRAMES.timestamps + 0.5,
    "camera": torch.tensor([0] * 4 + [1] * 4),
    "keyframe": torch.tensor([True] * 7 + [False]),
    "cameras": (replace(CAMERA, calibrated=True),),
    "size": (64, 50),
    "broken": (3,),
    "digests": tuple(f"other{i}" for i in range(COUNT)),
}


def key(store: Store, frames: Frames = FRAMES, graph: ViewGraph = GRAPH, **changed: Any) -> str:
    matches = changed.get("matches", (("shard-0", "a"),))
    priors = changed.get("priors", (("chunk-0", "b", 0),))
    shards = MatchShards(store, matches, (0,))
    config = changed.get("config", Config())
    material = Material(frames, graph, shards, PriorStore(store, "priors", priors))
    return weave_key(material, changed.get("lenses"), config.weave, config.seed)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "work")


@pytest.mark.parametrize("name", OTHER)
def test_the_weave_depends_on_everything_that_is_told_of_the_frames(store: Store, name: str) -> None:
    assert key(store, replace(FRAMES, **{name: OTHER[name]})) != key(store)


def test_the_weave_depends_on_its_other_inputs(store: Store) -> None:
    keys = [
        key(store),
        key(store, graph=replace(GRAPH, kind=torch.tensor([0, 2]))),
        key(store, graph=replace(GRAPH, edges=torch.tensor([[0, 1], [1, 3]]))),
        key(store, matches=(("shard-0", "c"),)),
        key(store, priors=(("chunk-0", "b", 1),)),
        key(store, lenses=no_fields(1, FRAMES.size)),
        key(store, config=Config(seed=1)),
    ]
    assert len(set(keys)) == len(keys)
    words, workers = replace(FRAMES, notes=("a word to the user",)), Config(workers=3)
    assert key(store, words, config=workers) == keys[0]


def features(store: Store, frames: Frames) -> FrameFeatures:
    """Of frames that show nothing, kept as if they had been computed."""

    class Nothing(FrameFeatures):
        def read(self, frame: int) -> Features:
            return no_features()

    return Nothing(frames, store)


def kept(store: Store, stage: str) -> set[str]:
    return {path.name for path in (store.folder / stage).glob("*")}


def test_ties_belong_to_the_places_of_their_frames(store: Store) -> None:
    """The same keyframes at other places among all frames."""
    later = replace(
        FRAMES,
        **{name: (getattr(FRAMES, name)[0], *getattr(FRAMES, name)) for name in ("names", "digests")},
        timestamps=torch.arange(COUNT + 1, dtype=torch.float64),
        camera=torch.zeros(COUNT + 1, dtype=torch.long),
        keyframe=torch.tensor([False] + [True] * COUNT),
    )
    for frames in (FRAMES, later):
        chunks = cut_chunks(frames, features(store, frames), store, LocalEngine(), 4, fixed=False)
        assert {f for chunk in chunks for f in chunk.frames} == set(frames.keyframe.nonzero()[:, 0].tolist())
    assert len(kept(store, "graph")) == 2


def test_the_graph_belongs_to_its_cameras(store: Store) -> None:
    chunks = (Chunk(0, (0, 1, 2, 3)), Chunk(1, (4, 5, 6, 7)))
    for camera in (FRAMES.camera, OTHER["camera"]):
        frames = replace(FRAMES, camera=camera, cameras=(CAMERA, CAMERA))
        view_graph(
            frames, features(store, frames), chunks, store, LocalEngine(), GraphConfig(), VladRetriever()
        )
    assert len(kept(store, "graph")) == 2


CHUNKS = (Chunk(0, (0, 1, 2, 3)), Chunk(1, (4, 5, 6, 7)))


class Nobody:
    """A prior that places nothing."""

    def prepare(
        self, frames: Frames, chunks: Sequence[Chunk], read_features: ReadFeatures, workers: int = 1
    ) -> None:
        return None

    def predict(self, chunk: Chunk, context: Any) -> list[ChunkPrior]:
        return []

    def identity(self) -> str:
        return "nobody"


def test_priors_belong_to_the_cameras_of_their_chunks(store: Store) -> None:
    chunks = (Chunk(0, (0, 1, 2, 3)), Chunk(1, (4, 5, 6, 7)))
    for camera in (FRAMES.camera, OTHER["camera"], FRAMES.camera):
        frames = replace(FRAMES, camera=camera, cameras=(CAMERA, CAMERA))
        chunk_priors(
            frames, features(store, frames), chunks, store, LocalEngine(), Nobody(), "nobody", workers=1
        )
    assert len(kept(store, "priors")) == 3, "the first chunk's camera did not change"


@dataclass(frozen=True)
class Agreed:
    """What the chunks of a prior share."""

    focal: float


class Learned(Nobody):
    """Learns once for all chunks."""

    learnt = Agreed

    def learn(self, frames: Frames, chunks: Sequence[Chunk], read: ReadFeatures, workers: int = 1) -> Agreed:
        return Agreed(50.0)

    def context(self, frames: Frames, read: ReadFeatures, learnt: Agreed) -> Agreed:
        return learnt


@pytest.mark.parametrize("prior", [Nobody(), Learned()])
def test_a_prior_that_knows_its_identity_is_the_same_in_another_folder(store: Store, prior: Nobody) -> None:
    for name in ("nobody:/here/weights", "nobody:/there/weights"):
        found = features(store, FRAMES)
        chunk_priors(FRAMES, found, CHUNKS, store, LocalEngine(), prior, name, workers=1)
    assert len(kept(store, "priors")) == len(CHUNKS) + isinstance(prior, Learned)


def test_a_prior_without_identity_is_what_its_name_says(store: Store) -> None:
    class Plain:
        prepare, predict = Nobody.prepare, Nobody.predict

    keys = [_named(prior, "own:/here") for prior in (Nobody(), Plain())]
    assert [key[0] for key in keys] == ["own", "own:/here"]


def predictions(folder: Path) -> Path:
    """What some model wrote down about the frames."""
    folder.mkdir()
    shape, eye = (COUNT, 3, 4), torch.eye(4, dtype=torch.float64).repeat(COUNT, 1, 1)
    np.savez(
        folder / "all.npz", name=np.array(FRAMES.names), depth=np.ones(shape, np.float32),
        cam_from_world=eye.numpy(), intrinsics=np.tile([4.0, 4.0, 2.0, 1.5], (COUNT, 1)),
    )  # fmt: skip
    return folder


def checkpoint(folder: Path) -> Path:
    torch.manual_seed(0)
    save_gpm(GPM(GPMConfig(64, 6, 2, 2, (2, 3, 4, 5), 16, (8, 16, 24, 32))), folder)
    return folder


@pytest.mark.parametrize(("kind", "made"), [("saved", predictions), ("gpm", checkpoint)])
def test_the_keys_of_priors_know_no_place(store: Store, tmp_path: Path, kind: str, made: Any) -> None:
    """The same files in another folder, the same known cameras in another file."""
    keys = []
    for place in (tmp_path / "here", tmp_path / "there"):
        place.mkdir()
        name = f"{kind}:{made(place / 'model')}"
        poses = place / "known.tum" if kind == "gpm" else None
        if poses is not None:
            poses.write_text("".join(f"{i} {i} 0 0 0 0 0 1\n" for i in range(COUNT)))
        prior = find_prior(name, poses=poses)
        context = prior.prepare(FRAMES, CHUNKS, features(store, FRAMES).read)
        keys.append(digest_of([_named(prior, name), _identity(context)]))
    assert keys[0] == keys[1]
