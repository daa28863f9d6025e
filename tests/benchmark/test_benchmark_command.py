"""`geoweaver benchmark` as users run it: exit codes, one-line errors, what is printed; and once for real."""

import json
import shlex
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
from made_suites import StandIn, make_folder_scene, make_tanks

import geoweaver.benchmark
from geoweaver.benchmark import SUITES, Plan
from geoweaver.benchmark.plan import METHODS
from geoweaver.cli import benchmark, reconstruct
from geoweaver.cli.main import main
from geoweaver.cli.parse import parse
from geoweaver.synth.clips import ClipOptions, make_clip
from geoweaver.synth.sequence import Output, write_sequence
from geoweaver.synth.world import build_world


@pytest.fixture
def made(monkeypatch) -> StandIn:
    """The command, with a stand-in for the reconstruction."""
    stand_in = StandIn()
    told = partial(Plan, reconstruct=stand_in.reconstruct, load=stand_in.load)
    monkeypatch.setattr(geoweaver.benchmark, "Plan", told)
    return stand_in


def call(*arguments) -> int:
    return main(["benchmark", *map(str, arguments)])


def test_tables_are_printed_and_written(made, tmp_path, capfd):
    make_tanks(tmp_path / "data/Truck")
    assert call("tanks-and-temples", "--data", tmp_path / "data", "-o", tmp_path / "out", "--seed", 3) == 0
    out = capfd.readouterr().out
    assert out == (tmp_path / "out/results.md").read_text() and out.startswith("# Tanks and Temples\n")
    assert "Barn: not found: no images in Barn/" in out
    assert made.configs[0].seed == 3 and made.configs[0].outputs.write == "cameras"


def test_json_is_the_results_file(made, tmp_path, capfd):
    make_folder_scene(tmp_path / "data/walk")
    assert call("folder", "--data", tmp_path / "data", "-o", tmp_path / "out", "--json") == 0
    told = json.loads(capfd.readouterr().out)
    assert told == json.loads((tmp_path / "out/results.json").read_text())
    assert shlex.split(told["command"])[:3] == ["geoweaver", "benchmark", "folder"]
    assert [row["method"] for row in told["rows"]] == ["geoweaver", "stage-1", "stage-2", "stage-3"]


def test_a_failing_scene_is_told_by_the_exit_code_and_the_others_are_there(made, tmp_path, capfd):
    made.fails = ("b",)
    for name in ("a", "b"):
        make_folder_scene(tmp_path / "data" / name)
    code = call("folder", "--data", tmp_path / "data", "-o", tmp_path / "out", "--methods", "geoweaver")
    out, err = capfd.readouterr()
    assert code == 2 and "b, GeoWeaver: failed" in out
    assert err.splitlines()[-1].startswith("geoweaver: 1 of 2 scenes failed, the first is b (")
    rows = json.loads((tmp_path / "out/results.json").read_text())["rows"]
    assert [(row["scene"], row["status"]) for row in rows] == [("a", "done"), ("b", "failed")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["folder", "--data", "DATA/none", "-o", "OUT"], "is no folder: DIR/NAME/ with images/"),
        (["vkitti2", "--data", "DATA", "-o", "OUT"], "DIR/Scene01/clone/ with frames/rgb/Camera_0/"),
        (["tanks", "--data", "DATA", "-o", "OUT"], "'tanks'"),
        (["folder", "--data", "DATA", "-o", "OUT", "--scenes", "nope"], "choose from walk"),
        (["folder", "--data", "DATA", "-o", "OUT", "--methods", "magic"], "magic"),
        (["folder", "--data", "DATA", "-o", "OUT", "--methods"], "--methods"),
        (["folder", "--data", "DATA", "-o", "OUT", "--max-time-diff", "nan"], "--max-time-diff"),
        (["folder", "--data", "DATA", "-o", "OUT", "--depth-unit", "0"], "--depth-unit"),
        (["folder", "--data", "DATA", "-o", "OUT", "--qualty", "high"], "did you mean --quality?"),
        (["folder", "--data", "DATA", "-o", "OUT", "--address", "host:1"], "add --engine ray"),
        (["folder", "-o", "OUT"], "--data"),
    ],
)
def test_wrong_options_give_one_line_and_2(tmp_path, capfd, arguments, words):
    make_folder_scene(tmp_path / "data/walk")
    places = {"DATA": str(tmp_path / "data"), "OUT": str(tmp_path / "out")}
    said = [a.replace("DATA", places["DATA"]) if "DATA" in a else places.get(a, a) for a in arguments]
    assert call(*said) == 2
    out, err = capfd.readouterr()
    assert not out and err.count("\n") == 1 and words in err
    assert not (tmp_path / "out").exists()


def test_a_wrong_prior_ends_at_once_and_is_one_line(tmp_path, capfd):
    for name in ("a", "b"):
        make_folder_scene(tmp_path / "data" / name)
    code = call("folder", "--data", tmp_path / "data", "-o", tmp_path / "out", "--prior", "nonsense")
    lines = [x for x in capfd.readouterr().err.splitlines() if x.startswith("geoweaver:")]
    assert code == 2 and len(lines) == 1 and "nonsense" in lines[0]


def test_the_command_line_names_every_suite_and_method():
    told = {field.name: field.type for field in fields(benchmark.Options)}
    (suite,) = [name for name in get_args(told["suite"]) if get_args(name)] or [told["suite"]]
    assert set(get_args(suite)) == set(SUITES)
    assert set(get_args(benchmark.Method)) == set(METHODS)


def test_shared_options_are_those_of_reconstruct():
    theirs = {field.name: field for field in fields(reconstruct.Options)}
    shared = [f for f in fields(benchmark.Options) if f.name in theirs and f.name not in ("out", "outputs")]
    assert len(shared) > 15
    for field in shared:
        assert (field.type, field.default) == (theirs[field.name].type, theirs[field.name].default), (
            field.name
        )


def test_the_stated_command_stands_for_the_same_options():
    words = (
        "vkitti2 --data d -o o --scenes Scene01 Scene02 --no-polish --calibrated --stride 2 --methods colmap"
    )
    options = parse(benchmark.Options, "geoweaver benchmark", words.split())
    again = shlex.split(benchmark._command(options))
    assert again[:2] == ["geoweaver", "benchmark"] and "--quality" not in again
    assert parse(benchmark.Options, "geoweaver benchmark", again[2:]) == options


@pytest.mark.slow
def test_a_recording_is_reconstructed_scored_and_not_computed_again(tmp_path, capfd):
    clip = make_clip(build_world("tabletop"), ClipOptions(frames=12, laps=0.14, size=(192, 108)))
    write_sequence(clip, tmp_path / "data/table", Output(depth_every=4))
    out = tmp_path / "out"
    arguments = ("folder", "--data", tmp_path / "data", "-o", out, "--workers", 1, "--json")
    assert call(*arguments, "--methods", *METHODS) == 0
    first = json.loads(capfd.readouterr().out)["rows"]
    assert [row["status"] for row in first] == ["done"] * 5
    way = float(clip.cam_from_world.centre.diff(dim=0).norm(dim=-1).sum())
    assert all(row["ate"] < 0.05 * way and row["auc30"] > 70 for row in first), first
    assert first[0]["absrel"] < 0.5 and first[0]["seconds"] > 1 and first[0]["peak_mib"] > 50
    assert main(["evaluate", str(out / "table"), str(tmp_path / "data/table/groundtruth.tum"), "--json"]) == 0
    judged = json.loads(capfd.readouterr().out)
    assert {name: first[0][name] for name in judged} == judged
    before = kept(out)
    assert call(*arguments, "--methods", *METHODS) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == first
    assert kept(out) == before, "nothing was computed again"


def kept(out: Path) -> dict[str, int]:
    files = [*out.rglob("*.safetensors"), *(out / "table/peers").rglob("*.bin")]
    assert files
    return {str(file): file.stat().st_mtime_ns for file in files}
