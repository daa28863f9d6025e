"""The header of a PLY file: encoding, elements and their properties."""

from dataclasses import dataclass
from pathlib import Path

from geoweaver.errors import FormatError
from geoweaver.formats.files import place, quoted

_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_KINDS = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4",
    "float": "f4", "double": "f8", "float32": "f4", "float64": "f8",
}  # fmt: skip
_LONGEST = 1 << 16
_MOST = 1 << 40


@dataclass(frozen=True)
class Element:
    """One kind of thing in the file, with numpy's names of its property types; a list has the kind ''."""

    name: str
    count: int
    names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Header:
    """Where the data begin, their byte order ('' for ascii), and the vertices with what is before them."""

    size: int
    order: str
    before: tuple[Element, ...]
    vertex: Element


def parse_header(path: Path, data: bytes) -> Header:
    """Read the header; what cannot be read with certainty is refused."""
    lines, size = _header_lines(path, data)
    order, elements = None, list[Element]()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words[:1] == ["format"] and len(words) == 3 and words[1] in _ORDERS:
            order = _ORDERS[words[1]]
        elif words[:1] == ["element"] and len(words) == 3:
            elements.append(Element(words[1], _count(path, number, words[2])))
        elif words[:1] == ["property"] and elements:
            elements[-1] = _with_property(path, number, elements[-1], words)
        elif words and words[0] not in ("ply", "comment", "obj_info"):
            raise FormatError(
                f"{place(path, number)}: {quoted(line)} is no PLY header line: write the file anew"
            )
    if order is None:
        raise FormatError(f"{place(path)}: the PLY header states no known format: write the file anew")
    return _header(path, size, order, elements)


def _header(path: Path, size: int, order: str, elements: list[Element]) -> Header:
    position = next((i for i, element in enumerate(elements) if element.name == "vertex"), None)
    if position is None or not elements[position].names:
        raise FormatError(f"{place(path)}: the PLY has no vertices with properties: give a point cloud")
    before, vertex = elements[:position], elements[position]
    if any("" in element.kinds for element in (*before, vertex)):
        raise FormatError(
            f"{place(path)}: lists in or before the vertices are not supported: save the points alone"
        )
    return Header(size, order, tuple(before), vertex)


def _header_lines(path: Path, data: bytes) -> tuple[list[str], int]:
    head = data[:_LONGEST]
    if not head.startswith((b"ply\n", b"ply\r")):
        raise FormatError(f"{place(path)} does not begin with 'ply': give a PLY point cloud")
    end = head.find(b"end_header")
    newline = head.find(b"\r" if b"\n" not in head[:5] else b"\n", end)
    if end < 0 or newline < 0:
        raise FormatError(f"{place(path)}: the PLY header does not end: copy the file again")
    text = head[:end].decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n"), newline + 1


def _count(path: Path, line: int, word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 15) or int(word) > _MOST:
        raise FormatError(
            f"{place(path, line)}: {quoted(word)} is no number of elements: write the file anew"
        )
    return int(word)


def _with_property(path: Path, line: int, element: Element, words: list[str]) -> Element:
    is_list = len(words) == 5 and words[1] == "list"
    if not is_list and (len(words) != 3 or words[1] not in _KINDS):
        shown = quoted(" ".join(words))
        raise FormatError(f"{place(path, line)}: {shown} is no property of a known type: write the file anew")
    if words[-1] in element.names:
        raise FormatError(
            f"{place(path, line)}: the property {quoted(words[-1])} appears twice: write the file anew"
        )
    kind = "" if is_list else _KINDS[words[1]]
    return Element(element.name, element.count, (*element.names, words[-1]), (*element.kinds, kind))
