"""Which frames of a recording are used: a list, every n-th, the first so many."""

from itertools import chain
from pathlib import Path, PurePosixPath

from geoweaver.errors import ConfigError, FormatError
from geoweaver.formats.files import data_lines, place, quoted
from geoweaver.frames.source import Recording

EXPECTED = "a list of frames (one name or index per line)"


def choose_places(
    recording: Recording, listed: Path | None, stride: int, max_frames: int | None
) -> list[int]:
    """Places in the recording, in order; stride and limit hold within each physical camera."""
    if stride < 1:
        raise ConfigError(f"--stride is {stride}: give 1 or more")
    if max_frames is not None and max_frames < 2:
        raise ConfigError(f"--max-frames is {max_frames}: give 2 or more")
    places = range(len(recording)) if listed is None else sorted(set(read_frame_list(listed, recording)))
    chains: dict[str, list[int]] = {}
    for i in places:
        chains.setdefault(recording.folders[i], []).append(i)
    strided = [rows[::stride] for rows in chains.values()]
    if max_frames is not None:
        strided = _shared_out(strided, max_frames)
    return sorted(chain.from_iterable(strided))


def _shared_out(chains: list[list[int]], most: int) -> list[list[int]]:
    """The beginnings of all chains, about equally long, together no more than `most` places."""
    taken = [0] * len(chains)
    for _ in range(min(most, sum(map(len, chains)))):
        shortest = min((k for k, rows in enumerate(chains) if taken[k] < len(rows)), key=taken.__getitem__)
        taken[shortest] += 1
    return [rows[:count] for rows, count in zip(chains, taken, strict=True)]


def read_frame_list(path: Path, recording: Recording) -> list[int]:
    """Places of the listed frames: by name, by a name's last part where it is unique, or by index."""
    lookup: dict[str, list[int]] = {}
    for i, name in enumerate(recording.names):
        for key in dict.fromkeys((name, PurePosixPath(name).name, PurePosixPath(name).stem)):
            lookup.setdefault(key, []).append(i)
    return [_find(path, line, lookup, len(recording)) for line in data_lines(path, EXPECTED)]


def _find(path: Path, line: tuple[int, str], lookup: dict[str, list[int]], count: int) -> int:
    number, text = line
    found = lookup.get(text) or lookup.get(PurePosixPath(text).name, [])
    if len(found) == 1:
        return found[0]
    if not found and text.isascii() and text.isdigit() and int(text) < count:
        return int(text)
    why = f"names {len(found)} frames" if found else f"is no frame's name or index (0 to {count - 1})"
    raise FormatError(f"{place(path, number)}: {quoted(text)} {why}: correct the line")
