from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from tiny_world import built, tiny_world

from geoweaver.geometry.camera import lift, pixel_centres, project
from geoweaver.synth.contact_sheet import Options, main
from geoweaver.synth.materials import CATALOGUE
from geoweaver.synth.paths import default_path, looking
from geoweaver.synth.plan import Light
from geoweaver.synth.quads import from_corners, join
from geoweaver.synth.render import render, render_depth
from geoweaver.synth.solids import box
from geoweaver.synth.world import World

SIZE = (256, 144)
K = torch.tensor([185.0, 185.0, 128.0, 72.0], dtype=torch.float64)


@pytest.fixture(scope="module")
def world() -> World:
    return tiny_world()


@pytest.fixture(scope="module")
def tabletop() -> World:
    return built("tabletop")


def test_the_same_view_gives_the_same_bytes(world: World) -> None:
    camera = default_path(world, 10)[3]
    one, two = render(world, camera, K, SIZE), render(tiny_world(), camera, K, SIZE)
    assert np.array_equal(one.rgb, two.rgb)
    assert torch.equal(one.depth, two.depth)


def test_pictures_and_depth_only_agree_on_depth_and_validity(world: World) -> None:
    camera = default_path(world, 10)[0]
    shown = render(world, camera, K, SIZE)
    assert torch.equal(shown.depth, render_depth(world, camera, K, SIZE))
    assert torch.equal(shown.valid, shown.depth > 0)
    assert not shown.moving.any()
    assert not shown.valid.all()


def test_normals_are_those_of_the_depth(world: World) -> None:
    shown = render(world, default_path(world, 10)[4], K, SIZE)
    points = lift(pixel_centres(*SIZE), shown.depth, K)
    across, down = points[:-1, 1:] - points[:-1, :-1], points[1:, :-1] - points[:-1, :-1]
    from_depth = torch.nn.functional.normalize(torch.linalg.cross(down, across), dim=-1)
    normal = shown.normal[:-1, :-1]
    agree = (from_depth * normal).sum(-1) > 1 - 1e-6
    assert agree[shown.valid[:-1, :-1]].double().mean() > 0.93
    valid = shown.valid
    assert torch.allclose(shown.normal.norm(dim=-1)[valid], torch.ones((), dtype=torch.float64))
    assert (shown.normal[~valid] == 0).all()
    assert ((shown.normal * points).sum(-1)[valid] < 0).all(), "towards the camera"


def test_far_texture_fades_to_its_mean_instead_of_flickering() -> None:
    corners = np.array([[(-400, 500, 300), (400, 500, 300), (400, 500, -300), (-400, 500, -300)]], float)
    light = Light(sun=(0, 0, 0), sky=(1, 1, 1), bounce=(1, 1, 1))
    world = World("wall", 0, from_corners(corners, "brick"), {"walk": np.zeros((4, 3))}, light)
    zero = torch.zeros(1, dtype=torch.float64)
    camera = looking(torch.zeros(1, 3, dtype=torch.float64), zero + np.pi / 2, zero, zero)[0]
    rgb = render(world, camera, K, SIZE).rgb.astype(float)
    assert rgb[20:-20, 20:-20].std((0, 1)).max() < 4, "a brick covers a fiftieth of a pixel here"
    close = looking(torch.tensor([[0.0, 498.5, 0.0]], dtype=torch.float64), zero + np.pi / 2, zero, zero)[0]
    assert render(world, close, K, SIZE).rgb.astype(float).std((0, 1)).min() > 8


def test_silhouettes_are_smooth(world: World) -> None:
    """The grey levels along a wall's slanted top edge lie between sky and wall."""
    camera = default_path(world, 10)[0]
    shown = render(world, camera, K, SIZE)
    sky = ~shown.valid.numpy()
    edge = np.zeros_like(sky)
    edge[1:] |= sky[1:] != sky[:-1]
    levels = shown.rgb[edge].astype(float).mean(-1)
    assert edge.sum() > 30
    assert len(np.unique(levels)) > 15


@pytest.mark.parametrize("name", ["plain", "lacquer", "ceiling"])
def test_plain_materials_are_plain(name: str) -> None:
    picture = CATALOGUE[name].painter(np.random.default_rng(0), 256)
    assert picture.std((0, 1)).max() < 0.02


def test_features_abound_and_consecutive_frames_match_where_the_truth_says(tabletop: World) -> None:
    size = (512, 288)
    K = torch.tensor([370.0, 370.0, 256.0, 144.0], dtype=torch.float64)
    cameras = default_path(tabletop, 150)
    one, two = render(tabletop, cameras[7], K, size), render(tabletop, cameras[8], K, size)
    sift = cv2.SIFT_create()
    (a, da), (b, db) = (
        sift.detectAndCompute(cv2.cvtColor(r.rgb, cv2.COLOR_RGB2GRAY), None) for r in (one, two)
    )
    assert len(a) > 500 and len(b) > 500
    pairs = [m for m, n in cv2.BFMatcher().knnMatch(da, db, k=2) if m.distance < 0.75 * n.distance]
    assert len(pairs) > 250
    # OpenCV counts pixels from the first centre
    from_ = torch.tensor([a[m.queryIdx].pt for m in pairs], dtype=torch.float64) + 0.5
    to = torch.tensor([b[m.trainIdx].pt for m in pairs], dtype=torch.float64) + 0.5
    column, row = from_.long().clamp(min=0).unbind(-1)
    depth = one.depth[row.clamp(max=size[1] - 1), column.clamp(max=size[0] - 1)]
    points = cameras[7].inverse().act(lift(from_, depth, K))
    error = (project(cameras[8].act(points), K) - to).norm(dim=-1)
    assert error.median() < 0.35
    assert (error < 2).double().mean() > 0.85


@pytest.mark.parametrize("shift", [(0.0, 0.0), (0.013, 0.0), (0.007, -0.011)])
def test_a_bright_square_lies_where_its_middle_projects(shift: tuple[float, float]) -> None:
    """The first pixel's centre is (0.5, 0.5): a picture half a pixel off would show here."""
    x, z = shift
    wall = box((-5, 3, -5), (5, 3.1, 5), "dark")
    square = box((x - 0.1, 2.0, z - 0.1), (x + 0.1, 2.01, z + 0.1), "lacquer")
    light = Light(sun=(0, 0, 0), sky=(0.3, 0.3, 0.3), bounce=(0.3, 0.3, 0.3), reach=0.01)
    world = World("square", 0, join(wall, square), {"walk": np.zeros((4, 3))}, light)
    zero = torch.zeros(1, dtype=torch.float64)
    camera = looking(torch.zeros(1, 3, dtype=torch.float64), zero + np.pi / 2, zero, zero)[0]
    bright = (render(world, camera, K, SIZE).rgb.astype(float).mean(-1) / 255) ** 2
    bright = np.clip(bright - np.median(bright) * 1.5, 0, None)
    centres = pixel_centres(*SIZE).numpy()
    found = (centres * bright[..., None]).sum((0, 1)) / bright.sum()
    expected = project(camera.act(torch.tensor([x, 2.0, z], dtype=torch.float64)), K)
    assert found.tolist() == pytest.approx(expected.tolist(), abs=0.12)


@pytest.mark.slow
def test_the_contact_sheet_is_drawn(tmp_path: Path) -> None:
    main(Options(tmp_path / "docs" / "sheet.png", pictures=1, size=(64, 36)))
    assert cv2.imread(str(tmp_path / "docs" / "sheet.png")).shape[0] > 100
