"""The entry point `geoweaver`: finds the command, runs it, and turns how it ended into an exit code.

0 done; 1 a bug (traceback); 2 the input or the options are wrong (one line); 130 interrupted (Ctrl-C);
141 whoever read the output went away; 143 asked to end (SIGTERM).
"""

import difflib
import errno
import io
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TextIO

from geoweaver import __version__
from geoweaver.cli.ending import Terminated, outlast_libraries, raised_when_terminated
from geoweaver.cli.parse import parse
from geoweaver.errors import ConfigError, GeoWeaverError


@dataclass(frozen=True)
class Command:
    """A file with a dataclass `Options` and a function `run(options)`; imported only when it is called."""

    module: str
    summary: str
    resumes: bool = False
    """True where the same command, run again, goes on from the last finished piece."""
    maps: bool = False
    """True where pycolmap works for it, which would answer signals in its own way."""


COMMANDS = {
    "reconstruct": Command(
        "geoweaver.cli.reconstruct", "cameras of a video or of a folder of images", resumes=True, maps=True
    ),
    "demo": Command(
        "geoweaver.cli.demo",
        "film a synthetic walk, reconstruct it from its pixels, score it",
        resumes=True,
        maps=True,
    ),
    "export": Command(
        "geoweaver.cli.export", "write a finished run for COLMAP, nerfstudio, gsplat and others", maps=True
    ),
    "evaluate": Command("geoweaver.cli.evaluate", "score trajectories (and depth) against a reference"),
    "benchmark": Command(
        "geoweaver.cli.benchmark",
        "reconstruct and score the paper's suites, or your own recordings with references",
        resumes=True,
        maps=True,
    ),
    "report": Command("geoweaver.cli.report", "write a run's report: one HTML file that works offline"),
    "view": Command(
        "geoweaver.cli.view", "look at runs in 3D in a browser, even while they are going on", maps=True
    ),
    "models": Command("geoweaver.cli.models", "list, fetch and check the weights of learned models"),
    "train": Command("geoweaver.cli.train", "train the geometric prior model on your own data", resumes=True),
    "doctor": Command("geoweaver.cli.doctor", "what is installed, what is missing for which feature"),
}
"""Every command, in the order of the help."""

_MACHINE_SAYS_NO = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE}
"""Refusals that no reader or writer foresaw, yet that the user can mend: rights, space, limits."""


_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "NUMBA_THREADING_LAYER": "workqueue"}
"""Idle threads must sleep, not spin: measured 1.5 s against 36 s for a small weave on a busy machine."""
_QUIET = {"GLOG_minloglevel": "2"}
"""Warnings of pycolmap's solver are for its authors; what they mean for a run is said by its stages."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; a bug keeps its traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for name, value in (_THREADS | _QUIET).items():
        os.environ.setdefault(name, value)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a file's name may hold letters that the terminal's encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with raised_when_terminated():
            _dispatch(arguments)
            sys.stdout.flush()
    except GeoWeaverError as error:
        return _complain(str(error), 2)
    except (KeyboardInterrupt, Terminated) as end:
        word, code = ("interrupted", 130) if isinstance(end, KeyboardInterrupt) else ("terminated", 143)
        return _complain(f"{word}: {_how_to_go_on(arguments)}", code)
    except BrokenPipeError:
        # what is still buffered must not be written to the closed pipe when the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in _MACHINE_SAYS_NO:
            raise
        return _complain(
            f"{error.filename or 'the output'}: {error.strerror}; check rights and free space", 2
        )
    return 0


def _dispatch(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
    elif arguments[0] == "--version":
        print(f"geoweaver {__version__}")
    else:
        command = _command(arguments[0])
        _log_to_stderr()
        module = import_module(command.module)
        options = parse(module.Options, f"geoweaver {arguments[0]}", arguments[1:])
        if command.maps:
            outlast_libraries()
        module.run(options)


def _command(name: str) -> Command:
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else "see geoweaver --help"
        raise ConfigError(f"there is no command {name!r}: {hint}")
    return COMMANDS[name]


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items())
    return (
        f"usage: geoweaver COMMAND ...\n\nLong-video 3D reconstruction.\n\ncommands:\n{commands}\n\n"
        "geoweaver COMMAND --help   what the command takes\ngeoweaver --version        which version this is"
    )


def _log_to_stderr() -> None:
    """Our own INFO lines, other libraries' warnings."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[_NowStderr()])
    logging.getLogger("geoweaver").setLevel(logging.INFO)


class _NowStderr(logging.StreamHandler[TextIO]):
    """Writes to what stderr is now: above a progress line that is being drawn, not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setStream(sys.stderr)
        super().emit(record)


def _how_to_go_on(arguments: list[str]) -> str:
    again = shlex.join(["geoweaver", *arguments])
    command = COMMANDS.get(arguments[0]) if arguments else None
    if command is not None and command.resumes:
        return f"go on from the last finished piece with the same command: {again}"
    return f"nothing was kept; start again with: {again}"


def _complain(message: str, code: int) -> int:
    """One line on stderr whatever the message holds."""
    print("geoweaver: " + " ".join(message.split("\n")), file=sys.stderr)
    return code
