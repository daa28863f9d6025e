"""The page on priors says what is: its writer works, and it names every prior."""

import re
from pathlib import Path

import torch
from stand_ins import featureless, make_scene

from geoweaver.datatypes import Chunk
from geoweaver.geometry.camera import intrinsic_matrix
from geoweaver.priors import PRIORS, SavedPrior

PAGE = (Path(__file__).parents[2] / "docs/priors.md").read_text()


def test_the_ten_line_writer_writes_what_is_read(tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "docs/priors.md", "exec"), names)
    scene, size = make_scene(1), (48, 32)
    centred = scene.intrinsics_at(size) - torch.tensor([0, 0, 0.5, 0.5])
    K = intrinsic_matrix(centred).expand(4, 3, 3).numpy()
    frames = scene.frames()
    names["save_chunk"](  # type: ignore[operator]
        tmp_path, 0, frames.names, scene.depth_at(size).numpy(), scene.doubt_at(size).exp().numpy(),
        scene.cam_from_world.inverse().matrix().numpy(), K,
    )  # fmt: skip
    chunk = Chunk(0, (0, 1, 2, 3))
    context = SavedPrior(tmp_path).prepare(frames, [chunk], featureless)
    (prior,) = SavedPrior(tmp_path).predict(chunk, context)
    assert torch.allclose(prior.intrinsics, scene.intrinsics_at(size).expand(4, 4))
    assert torch.allclose(prior.cam_from_chunk.matrix(), scene.cam_from_world.matrix())
    assert torch.allclose(prior.depth.double(), scene.depth_at(size), rtol=1e-5)


def test_every_prior_is_on_the_page() -> None:
    for name in PRIORS:
        assert f"`{name}" in PAGE, name
