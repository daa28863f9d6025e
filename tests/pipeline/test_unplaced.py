"""What the prior could not place reaches the user, also where the run fails and where it goes on."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from geoweaver.clock import Clock
from geoweaver.datatypes import Camera, Chunk, Frames, Reconstruction, ViewGraph
from geoweaver.engine import LocalEngine
from geoweaver.errors import DegenerateError
from geoweaver.export.run_folder import RunRecord, run_json
from geoweaver.features import FeatureConfig, FrameFeatures
from geoweaver.geometry import SE3
from geoweaver.stages import chunk_priors
from geoweaver.store import PriorStore, Store
from geoweaver.unplaced import require_pieces, why_unplaced

TURNED = "the camera only turned on the spot: depth needs steps to the side"


class Turned:
    """A prior that places nothing and says why; it must be asked once only."""

    def __init__(self) -> None:
        self.asked = 0

    def prepare(self, frames, chunks, read_features, workers=1):
        return SimpleNamespace(notes=("camera 0: a guess",), identity=lambda: "")

    def predict(self, chunk, context):
        raise AssertionError("it can say more")

    def estimate(self, chunk, context):
        self.asked += 1
        return SimpleNamespace(priors=[], reason=dict.fromkeys(chunk.frames, TURNED), notes=("a note",))

    def identity(self) -> str:
        return "turned"


def test_a_resumed_run_says_the_same(tmp_path: Path) -> None:
    prior, both = Turned(), torch.ones(2)
    camera = Camera("PINHOLE", (4.0, 4.0, 2.0, 2.0), 4, 4)
    frames = Frames(
        ("a", "b"), both.double(), 0 * both.long(), both > 0, (camera,), (4, 4), digests=("x", "y")
    )
    for _ in range(2):
        with Store.open(tmp_path) as store:
            features, chunks = FrameFeatures(frames, store, FeatureConfig()), [Chunk(0, (0, 1))]
            found = chunk_priors(frames, features, chunks, store, LocalEngine(1), prior, "turned", 1)
        assert found.reason == {0: TURNED, 1: TURNED} and found.notes == ("camera 0: a guess", "a note")
        with pytest.raises(DegenerateError, match="turned on the spot"):
            require_pieces(found)
    assert prior.asked == 1


def test_nothing_placed_for_several_reasons(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        said = PriorStore(store, "priors", (), {0: "dark", 1: TURNED, 2: TURNED})
        with pytest.raises(DegenerateError, match=r"dark \(1 keyframes\); the camera .* \(2 keyframes\)$"):
            require_pieces(said)
        require_pieces(PriorStore(store, "priors", ()))
        require_pieces(PriorStore(store, "priors", (("c", "k", 0),), {0: "dark"}))


def test_frames_left_out_are_a_warning_of_the_run() -> None:
    trusted = torch.tensor([True, False, False])
    eye = SE3(torch.eye(3).expand(3, 3, 3).double(), torch.zeros(3, 3).double())
    result = Reconstruction(
        ("a", "b", "c"), torch.arange(3).double(), eye, torch.ones(3, 4).double(), (4, 4), trusted,
        torch.ones(3, 2).double(), {1: "x", 2: "y"},
    )  # fmt: skip
    told = why_unplaced({0: TURNED, 1: TURNED}, result)
    assert told == (f"1 of 3 frames are not trusted because the prior could not place them: {TURNED}",)
    none = torch.zeros(0, 2, dtype=torch.long)
    saved = SimpleNamespace(
        keyframe=trusted, result=result, graph=ViewGraph(none, none[:, 0]), rejected=none[:, 0] > 0
    )
    record = RunRecord(Path("in"), {}, "key", saved, Clock(), unplaced=told)
    assert run_json(record)["warnings"] == list(told)
