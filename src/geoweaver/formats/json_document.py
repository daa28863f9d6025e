"""JSON files: parsed once, then every value is asked for by what it must be."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from geoweaver.errors import FormatError
from geoweaver.formats.files import place, quoted, read_text, reason, write_text


def read_json(path: Path, expected: str) -> dict[str, Any]:
    """The file's top-level object."""
    text = read_text(path, expected)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        where = place(path, error.lineno)
        raise FormatError(
            f"{where}: not valid JSON ({error.msg}), {expected} was expected: correct it"
        ) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{place(path)}: not usable JSON ({reason(error)}), {expected} was expected"
        ) from None
    if not isinstance(document, dict):
        raise FormatError(f"{place(path)}: a JSON object was expected, {expected}; found {quoted(document)}")
    return document


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write an object whole or not at all; not-a-number is refused because JSON has no word for it."""
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def required_list(parent: dict[str, Any], key: str, where: str) -> list[Any]:
    """The list under a key."""
    value = parent.get(key)
    if not isinstance(value, list):
        raise FormatError(f"{where}: a list '{key}' was expected, found {quoted(value)}: correct the file")
    return value


def finite_number(value: Any, name: str, where: str) -> float:
    """A finite number, as float."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or abs(value) > 1e300 or not math.isfinite(value):
        raise FormatError(f"{where}: {name} is {quoted(value)}, a finite number was expected: correct it")
    return float(value)


def matrix(value: Any, name: str, where: str) -> Float64[np.ndarray, "4 4"]:
    """A 4x4 matrix; of a 3x4 one the last row is added."""
    rows = value if isinstance(value, list) else []
    if len(rows) not in (3, 4) or any(not isinstance(row, list) or len(row) != 4 for row in rows):
        raise FormatError(f"{where}: {name} is no 4x4 matrix (a list of 4 lists of 4 numbers): correct it")
    numbers = [[finite_number(entry, f"an entry of {name}", where) for entry in row] for row in rows]
    return np.array([*numbers, [0.0, 0.0, 0.0, 1.0]][:4], dtype=np.float64)
