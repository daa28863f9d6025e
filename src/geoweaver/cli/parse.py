"""Options from the command line through tyro, its complaints boiled down to one line."""

import difflib
import io
import re
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import fields
from typing import Any, TypeVar

from geoweaver.errors import ConfigError

T = TypeVar("T")


def parse(options: type[T], program: str, arguments: Sequence[str]) -> T:
    """Fill a dataclass of options; prints the help and exits with 0 if that is asked for."""
    import tyro

    complaint = io.StringIO()
    try:
        with redirect_stderr(complaint):
            return tyro.cli(
                options, prog=program, args=list(arguments), config=(tyro.conf.FlagCreatePairsOff,)
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        box = complaint.getvalue()
        what = _unknown_option(options, arguments) or _missing(box) or _first_paragraph(box)
        raise ConfigError(f"{what} (see {program} --help)") from None


def _unknown_option(options: type[Any], arguments: Sequence[str]) -> str:
    """The first option that does not exist, and what was meant; tyro often complains of what follows it."""
    known = ["--help", *(f"--{field.name.replace('_', '-')}" for field in fields(options))]
    for argument in arguments:
        name = argument.split("=")[0]
        if name.startswith("--") and name.replace("_", "-") not in known:
            near = difflib.get_close_matches(name, known, n=1)
            return f"there is no option {name}" + (f": did you mean {near[0]}?" if near else "")
    return ""


def _missing(box: str) -> str:
    """What must be given and was not, by name: the box explains each at length."""
    lines = [line.strip("│| ") for line in box.splitlines()]
    if not any(line.startswith("Missing from") for line in lines):
        return ""
    names = [line for line in lines if re.fullmatch(r"[A-Z_.|]+|-.*[A-Z]", line)]
    return f"give {' and '.join(names)}" if names else ""


def _first_paragraph(box: str) -> str:
    """The words of tyro's boxed message up to its first rule, without the frame."""
    lines = [line.strip().strip("│|").strip() for line in box.splitlines()]
    inside = [line for line in lines if not line.startswith(("╭", "╰", "+"))]
    words: list[str] = []
    for line in inside:
        if words and not line.strip("─- "):
            break
        words.append(line)
    return " ".join(" ".join(words).split()).rstrip(".") or "the options cannot be understood"
