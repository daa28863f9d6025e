"""Exit codes and messages of the real command, run as users run it."""

import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import geoweaver
from geoweaver.cli import doctor
from geoweaver.cli import main as cli
from geoweaver.errors import InputError

GEOWEAVER = str(Path(sys.executable).with_name("geoweaver"))


def run(*arguments):
    return subprocess.run([GEOWEAVER, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_help_names_every_command():
    result = run("--help")
    assert result.returncode == 0 and not result.stderr
    assert all(name in result.stdout for name in cli.COMMANDS)


def test_version():
    assert run("--version").stdout.strip() == f"geoweaver {geoweaver.__version__}"


def test_help_is_quick_because_it_imports_nothing_heavy():
    code = (
        "import sys; from geoweaver.cli.main import main; main(['--help']); "
        "sys.exit(' '.join({'torch', 'numpy', 'tyro', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.strip() == ""


def test_help_of_a_command_does_without_torch():
    code = (
        "import sys; from geoweaver.cli.main import main\n"
        "try: main(['evaluate', '--help'])\n"
        "except SystemExit: sys.exit(' '.join({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ESTIMATE... REFERENCE" in result.stdout
    assert result.stderr.strip() == ""


def test_doctor_calls_the_viewer_ready_only_where_it_is(monkeypatch, capfd):
    monkeypatch.setattr(doctor, "_version", lambda package: "1.0")
    assert cli.main(["doctor"]) == 0
    assert capfd.readouterr().out.endswith("report, view\n")
    monkeypatch.setattr(doctor, "_version", lambda package: None if package == "viser" else "1.0")
    assert cli.main(["doctor"]) == 0
    assert capfd.readouterr().out.endswith("report\n")


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_has_help(name):
    result = run(name, "--help")
    assert result.returncode == 0 and not result.stderr
    assert f"usage: geoweaver {name}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evalute", "a", "b"], "did you mean evaluate?"),
        (["frobnicate"], "no command 'frobnicate'"),
        (["evaluate"], "an estimate and a reference"),
        (["evaluate", "a"], "an estimate and a reference"),
        (["evaluate", "a", "b", "--missing", "maybe"], "'maybe'"),
        (["evaluate", "a", "b", "--nonsense"], "no option --nonsense (see"),
        (["reconstruct", "--qualty", "high", "v.mp4", "-o", "out"], "--qualty: did you mean --quality?"),
        (["reconstruct", "v.mp4", "-o", "out", "--max_sise=480"], "--max_sise: did you mean --max-size?"),
        (["evaluate", "a", "b", "--max-time-diff", "soon"], "--max-time-diff"),
        (["evaluate", "a", "b", "--max-time-diff", "-1"], "--max-time-diff"),
        (["evaluate", "a", "b", "--max-time-diff", "nan"], "--max-time-diff"),
        (["evaluate", "a", "b", "--plot"], "--plot"),
        (["evaluate", "a", "b", "--plot", "drawing.doc"], ".png .pdf .svg"),
        (["evaluate", "a", "b", "--depth-unit", "0"], "--depth-unit"),
        (["evaluate", "a", "b", "--estimate-depth", "d"], "--estimate-depth"),
        (["evaluate", "a", "b", "c", "--depth", "d", "--estimate-depth", "d"], "--estimate-depth"),
        (["reconstruct", "v.mp4", "-o", "out", "--address", "host:1"], "add --engine ray"),
        (
            ["reconstruct", "v.mp4", "-o", "out", "--preset", "paper", "--quality", "high"],
            "--preset paper fixes",
        ),
    ],
)
def test_wrong_options_give_one_line_and_2(capfd, arguments, words):
    assert cli.main(arguments) == 2
    out, err = capfd.readouterr()
    assert not out
    assert err.count("\n") == 1 and err.startswith("geoweaver: ")
    assert words in err


@pytest.fixture
def stub(monkeypatch):
    """A command that does what the test says."""

    def install(action, **command):
        module = type("stub", (), {"Options": object, "run": staticmethod(lambda options: action())})
        monkeypatch.setitem(cli.COMMANDS, "stub", cli.Command("stub", "a stub", **command))
        monkeypatch.setattr(cli, "import_module", lambda name: module)
        monkeypatch.setattr(cli, "parse", lambda options, program, arguments: None)

    return install


def raising(error):
    def action():
        raise error

    return action


def test_a_user_error_is_one_line_even_if_its_text_is_not(stub, capfd):
    stub(raising(InputError("what\nwhere\nwhat to do")))
    assert cli.main(["stub"]) == 2
    assert capfd.readouterr().err == "geoweaver: what where what to do\n"


def test_a_bug_keeps_its_traceback(stub):
    stub(raising(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        cli.main(["stub"])


def test_warnings_of_the_mappers_solver_stay_out_of_the_log():
    code = "import geoweaver.cli.main as m; m.main([]); import pycolmap; print(pycolmap.logging.minloglevel)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "2"


LOGGED = """
import logging, sys
from geoweaver.cli.main import _log_to_stderr
from geoweaver.engine import stage_progress
_log_to_stderr()
with stage_progress("exports", None):
    logging.getLogger("geoweaver.export").info("colmap: 20 images")
logging.getLogger("geoweaver.export").info("and [bold]on")
"""


def test_a_line_of_the_log_stands_above_the_progress_not_in_it():
    reader, writer = pty.openpty()
    done = subprocess.run([sys.executable, "-c", LOGGED], stderr=writer, env=os.environ | {"TERM": "xterm"})
    os.close(writer)
    told = b""
    with suppress(OSError):  # a terminal that nobody holds any more
        while part := os.read(reader, 4096):
            told += part
    os.close(reader)
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", told.decode()))
    assert done.returncode == 0 and any(line.startswith("exports") for line in lines)
    assert "colmap: 20 images" in lines and "and [bold]on" in lines


def test_an_unforeseen_file_error_is_a_bug(stub):
    stub(raising(FileNotFoundError(2, "No such file or directory", "internal.json")))
    with pytest.raises(FileNotFoundError):
        cli.main(["stub"])


def test_a_full_disk_is_the_users_to_mend(stub, capfd):
    stub(raising(OSError(28, "No space left on device", "out/points.ply")))
    assert cli.main(["stub"]) == 2
    assert "out/points.ply: No space left on device" in capfd.readouterr().err


@pytest.mark.parametrize(("resumes", "words"), [(True, "go on from the last"), (False, "start again")])
def test_an_interrupt_says_how_to_go_on(stub, capfd, resumes, words):
    stub(raising(KeyboardInterrupt()), resumes=resumes)
    assert cli.main(["stub", "a b"]) == 130
    err = capfd.readouterr().err
    assert words in err and "geoweaver stub 'a b'" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("kind", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_real_interrupt_ends_with_its_number(tmp_path, kind, code, word):
    waiting = tmp_path / "waiting.tum"
    os.mkfifo(waiting)  # opening it for reading waits until somebody writes
    program = (
        "import sys, geoweaver.cli.main as cli; "
        "cli.parse = lambda *a: (print('here', flush=True), open(sys.argv[1])); "
        "sys.exit(cli.main(['evaluate']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(waiting)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "here\n"
    process.send_signal(kind)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.count("\n") == 1 and word in err


def test_a_closed_pipe_is_quiet():
    result = subprocess.run(
        f"set -o pipefail; {GEOWEAVER} --help | true", shell=True, executable="/bin/bash", capture_output=True
    )
    assert result.stderr == b""
    assert result.returncode in (0, 141)


def test_a_closed_pipe_ends_with_141(stub):
    read, write = os.pipe()
    os.close(read)
    code = "import sys; from geoweaver.cli.main import main; sys.exit(main(['--help']))"
    result = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (result.returncode, result.stderr) == (141, b"")
