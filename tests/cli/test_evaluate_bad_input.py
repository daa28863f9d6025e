"""`geoweaver evaluate` on files that cannot be scored: one line that helps, exit code 2, no figures."""

import numpy as np
import pytest
from tum_walks import real_command, walk


def bad(name, content):
    def write(folder):
        path = folder / name
        path.write_bytes(content) if isinstance(content, bytes) else np.savetxt(path, content)
        return path

    return write


def edited(**changes):
    rows = walk()
    for place, value in changes.items():
        row, column = (int(part) for part in place.strip("_").split("_"))
        rows[row, column] = value
    return rows


def text(rows):
    return "\n".join(" ".join(map(repr, row)) for row in rows.tolist()).encode()


def folder(path):
    path = path / "empty"
    path.mkdir()
    return path


def zero_quaternion():
    rows = walk()
    rows[3, 4:] = 0
    return rows


BAD = {
    "truncated": (bad("truncated.tum", text(walk())[:-30]), "truncated.tum, line 20"),
    "text": (bad("text.tum", text(walk()).replace(b"3.0 ", b"three ", 1)), "'three'"),
    "nan": (bad("nan.tum", edited(_4_2=np.nan)), "line 5"),
    "infinite": (bad("infinite.tum", edited(_4_2=np.inf)), "line 5"),
    "zero quaternion": (bad("zero.tum", zero_quaternion()), "line 4"),
    "two frames": (bad("two.tum", walk()[:2]), "two.tum: only 2 common frames"),
    "no common times": (bad("late.tum", walk() + np.eye(8)[0] * 1e6), "one clock"),
    "binary": (bad("binary.tum", bytes(range(256)) * 20), "binary"),
    "jpeg": (bad("photo.tum", b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(1000)), "binary"),
    "empty file": (bad("empty.tum", b""), "no data"),
    "comments only": (bad("comments.tum", b"# nothing\n\n"), "no data"),
    "empty folder": (folder, "empty"),
    "no such file": (lambda path: path / "nowhere.tum", "does not exist"),
    "one place": (bad("still.tum", walk() * [1, 0, 0, 0, 1, 1, 1, 1]), "stand at one place"),
    "wrong columns": (bad("columns.tum", walk()[:, :5]), "5 columns"),
}


@pytest.mark.parametrize("side", ["estimate", "reference"])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_line_and_2(tmp_path, evaluate, reference, case, side):
    write, words = BAD[case]
    path = write(tmp_path)
    arguments = [path, reference] if side == "estimate" else [reference, path]
    result = evaluate(*arguments, "--json")
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert words.split(": ")[-1] in result.stderr
    assert path.name in result.stderr or side == "reference", "the message says where"


REAL = (
    "truncated",
    "text",
    "nan",
    "zero quaternion",
    "two frames",
    "no common times",
    "binary",
    "empty folder",
)


@pytest.mark.parametrize("case", REAL)
def test_bad_input_to_the_real_command(tmp_path, reference, case):
    result = real_command(BAD[case][0](tmp_path), reference)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and "Traceback" not in result.stderr


def test_a_bad_one_among_good_ones_is_named(evaluate, tmp_path, estimate, reference):
    result = evaluate(estimate, BAD["two frames"][0](tmp_path), reference)
    assert result.returncode == 2 and "two.tum" in result.stderr and result.stdout == ""


def test_an_unwritable_plot_is_said(evaluate, tmp_path, estimate, reference):
    result = evaluate(estimate, reference, "--plot", reference / "plot.png")
    assert (
        result.returncode == 2
        and result.stderr.count("\n") == 1
        and "plot.png cannot be written" in result.stderr
    )
