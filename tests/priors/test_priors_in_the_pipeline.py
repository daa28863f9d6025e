"""From images to cameras with priors of all kinds, through the command line; graph and matches are shared."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from geoweaver.cli.main import main
from geoweaver.evaluation.scores import TrajectoryScores, score_trajectory
from geoweaver.formats.trajectory import read_trajectory
from geoweaver.geometry.camera import resize_intrinsics
from geoweaver.geometry.registration import umeyama
from geoweaver.models import GPM, build_gpm, save_gpm
from geoweaver.models.families import GPMConfig
from geoweaver.priors import write_saved
from geoweaver.synth.clips import Clip, ClipOptions, make_clip
from geoweaver.synth.plan import Light
from geoweaver.synth.quads import join
from geoweaver.synth.render import cast, render_depth
from geoweaver.synth.sequence import Output, frame_name, write_sequence
from geoweaver.synth.simulated_prior import simulate_chunk
from geoweaver.synth.simulated_sequence import PRESETS, simulate_scene
from geoweaver.synth.simulated_truth import SceneTruth, consecutive_chunks, scene_truth
from geoweaver.synth.solids import box, sheet
from geoweaver.synth.walls import wall
from geoweaver.synth.world import World
from geoweaver.weave import WeaveConfig, weave

pytestmark = pytest.mark.slow

FRAMES, CHUNK = 30, 12
SEED = 5
TINY = GPMConfig(64, 6, 2, 2, (2, 3, 4, 5), 16, (8, 16, 24, 32))


def room() -> World:
    walls = [wall("x", y, (-2.5, 2.5), 2.5, "brick", "plain", [], 0.1) for y in (-2.5, 2.5)]
    walls += [wall("y", x, (-2.5, 2.5), 2.5, "brick", "brick", [], 0.1) for x in (-2.5, 2.5)]
    block = box((0.9, -1.7, 0), (1.7, -0.9, 0.9), {"": "print", "+z": "poster:1"}, fit=False)
    angle = np.arange(8) * np.pi / 4
    ring = np.stack([1.1 * np.cos(angle), 1.1 * np.sin(angle), np.full(8, 1.4)], -1)
    return World(
        "room", 3, join(sheet((-2.5, -2.5), (2.5, 2.5), 0, "tiles"), *walls, block), {"walk": ring},
        Light(reach=0.5),
    )  # fmt: skip


def exact(clip: Clip) -> SceneTruth:
    small = (96, 72)
    lens = resize_intrinsics(clip.intrinsics[0], clip.size, small)
    return scene_truth(
        clip.cam_from_world, clip.intrinsics[0], clip.size, lambda o, d: cast(clip.world, o, d), small,
        lambda frame: render_depth(clip.world, clip.cam_from_world[frame], lens, small),
    )  # fmt: skip


@pytest.fixture(scope="module")
def clip() -> Clip:
    return make_clip(room(), ClipOptions(frames=FRAMES, size=(256, 192), laps=0.6))


@pytest.fixture(scope="module")
def folder(clip: Clip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rendered walk, its simulated prior as files, and a run with it."""
    folder = tmp_path_factory.mktemp("priors")
    write_sequence(clip, folder / "sequence", Output("jpg", depth="none"))
    truth = exact(clip)
    for chunk in consecutive_chunks(FRAMES, CHUNK):
        prior = simulate_chunk(truth, chunk, PRESETS["default"].prior, SEED).prior
        names = [f"{frame_name(f)}.jpg" for f in chunk.frames]
        write_saved(folder / "saved" / f"{chunk.index}.npz", names, prior)
    run(folder, f"saved:{folder / 'saved'}")
    return folder


def run(folder: Path, prior: str, *more: str) -> dict[str, Any]:
    """The command as users type it, always into the same run folder."""
    images, out = folder / "sequence" / "images", folder / "run"
    options = ["--chunk-size", str(CHUNK), "--workers", "1", *more]
    assert main(["reconstruct", str(images), "-o", str(out), "--prior", prior, *options]) == 0
    return json.loads((out / "run.json").read_text())


def scores(folder: Path) -> TrajectoryScores:
    truth = read_trajectory(folder / "sequence" / "groundtruth.tum")
    return score_trajectory(read_trajectory(folder / "run"), truth, missing="ignore")


def shared_artifacts(folder: Path) -> dict[str, int]:
    work = folder / "run" / "work"
    files = [f for stage in ("graph", "matches") for f in (work / stage).rglob("*.safetensors")]
    return {str(f.relative_to(work)): f.stat().st_mtime_ns for f in files}


def test_saved_predictions_weave_as_well_as_with_simulated_matches(folder: Path, clip: Clip) -> None:
    truth = exact(clip)
    simulated = simulate_scene(truth, PRESETS["default"], SEED, per_edge=200, chunk_size=CHUNK)
    woven = weave(
        simulated.observations, simulated.graph, simulated.matches, lambda k: simulated.priors[k],
        torch.zeros(FRAMES, dtype=torch.long), False, WeaveConfig(), 0,
    )  # fmt: skip
    centre, wanted = woven.state.cam_from_world.centre, truth.cam_from_world.centre
    reference = float((umeyama(centre, wanted).act(centre) - wanted).square().sum(-1).mean().sqrt())
    summary = json.loads((folder / "run" / "run.json").read_text())
    assert summary["frames"]["trusted"] >= 0.9 * FRAMES
    # a metre across, thirty frames: once depth bends, real matches at 256 pixels are what is left, and those
    # are worse than simulated ones; affine depth erred by 0.019 with either
    assert scores(folder).ate < min(5 * reference, 0.018)


def test_random_weights_complete_and_nothing_of_it_is_trusted(folder: Path) -> None:
    before = shared_artifacts(folder)
    torch.manual_seed(0)
    save_gpm(GPM(TINY), folder / "checkpoint")
    summary = run(folder, f"gpm:{folder / 'checkpoint'}")
    assert summary["frames"]["total"] == FRAMES and summary["frames"]["trusted"] == 0
    reasons = [entry["reason"] for entry in summary["untrusted"]]
    assert len(reasons) == FRAMES and all("prior is not believed" in reason for reason in reasons)
    report = (folder / "run" / "report.html").read_text()
    assert "prior is not believed" in report
    assert "points lifted from the depth maps" in report, "nothing was fused"
    # there is nothing to plot: a peak at 0.01 pixels would be made up
    assert "miss by about" not in report and 'href="#residuals"' not in report
    assert before and shared_artifacts(folder) == before, "one graph and one set of matches for all priors"


def write_da3_small(folder: Path) -> Path:
    """Random weights laid out as on the model hub: prefixed names, the shared norm once, its own config."""
    torch.manual_seed(0)
    state = build_gpm("da3-small").state_dict()
    copies = [f"output_conv2_aux.{level}.2." for level in (1, 2, 3)]
    kept = {f"model.{k}": v.contiguous() for k, v in state.items() if not any(c in k for c in copies)}
    net = {"name": "vits", "out_layers": [5, 7, 9, 11], "cat_token": True}
    net |= dict.fromkeys(("alt_start", "qknorm_start", "rope_start"), 4)
    head = {"dim_in": 768, "output_dim": 2, "features": 64, "out_channels": [48, 96, 192, 384]}
    nodes = {"net": net, "head": head, "cam_enc": {"dim_out": 384}, "cam_dec": {"dim_in": 768}}
    folder.mkdir()
    safetensors.torch.save_file(kept, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_name": "da3-small", "config": nodes}))
    return folder


def test_a_checkpoint_as_on_the_hub_runs_whole_and_random_weights_are_not_trusted(tmp_path: Path) -> None:
    few = make_clip(room(), ClipOptions(frames=6, size=(256, 96), laps=0.12))
    write_sequence(few, tmp_path / "sequence", Output("jpg", depth="none"))
    prior = f"da3-small:{write_da3_small(tmp_path / 'DA3-SMALL')}"
    summary = run(tmp_path, prior, "--max-size", "256", "--outputs", "cameras")
    assert summary["frames"]["total"] == 6 and summary["frames"]["trusted"] == 0
    assert len(summary["untrusted"]) == 6 and all(entry["reason"] for entry in summary["untrusted"])
