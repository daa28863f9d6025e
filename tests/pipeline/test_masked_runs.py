"""Masks given to a run come out of it again."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_sequence import OPTIONS, geoweaver

from geoweaver.export import export_run
from geoweaver.finished import load_run

pytestmark = pytest.mark.slow


def test_masked_pixels_have_no_depth_and_masks_are_exported(small: Path, tmp_path: Path) -> None:
    masks = tmp_path / "masks"
    masks.mkdir()
    for image in sorted((small / "images").iterdir()):
        mask = np.full((144, 256), 255, np.uint8)
        mask[:40] = 0
        Image.fromarray(mask).save(masks / f"{image.stem}.png")
    out = tmp_path / "run"
    done = geoweaver("reconstruct", small / "images", "-o", out, *OPTIONS, "--masks", masks)
    assert done.returncode == 0, done.stderr
    run = load_run(out)
    depth = run.depths.read(run.depths.frames[2]).depth
    assert not (depth[: depth.shape[0] * 36 // 144] > 0).any() and (depth[depth.shape[0] // 2 :] > 0).any()
    assert run.frames.masks is not None and not run.frames.masks.read(3)[:20].any()
    assert "mask_path" in (out / "transforms.json").read_text()
    shutil.rmtree(masks)
    assert load_run(out).depths.frames


def test_alpha_masks_a_finished_run_and_what_is_exported_from_it(small: Path, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for path in sorted((small / "images").iterdir())[:8]:
        image = Image.open(path).convert("RGBA")
        alpha = np.full((144, 256), 255, np.uint8)
        alpha[:40] = 0
        image.putalpha(Image.fromarray(alpha))
        image.save(tmp_path / "images" / f"{path.stem}.png")
    out = tmp_path / "run"
    options = (*OPTIONS, "--outputs", "cameras")
    done = geoweaver("reconstruct", tmp_path / "images", "-o", out, *options)
    assert done.returncode == 0, done.stderr
    run = load_run(out)
    assert run.frames.masks is not None and not run.frames.masks.read(3)[:28].any()
    assert run.frames.masks.read(3)[32:].all()
    model = export_run(run, "colmap")
    exported = Image.open(sorted((model / "masks").rglob("*.png"))[0])
    mask = np.asarray(exported)
    assert exported.mode == "L"
    assert mask.shape == (144, 256) and not mask[:38].any() and (mask[42:] == 255).all()
    shutil.rmtree(tmp_path / "images")
    assert load_run(out).frames.masks is None, "without its images a run has no masks"
