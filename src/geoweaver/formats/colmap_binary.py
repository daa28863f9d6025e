"""Are COLMAP's binary files whole? Their counts are checked against their sizes before pycolmap sees them.

pycolmap believes any count it reads: a cut or damaged file makes it loop for minutes or fill the memory.
"""

import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

from geoweaver.errors import FormatError
from geoweaver.formats.files import place, read_bytes

EXPECTED = "a binary file of a COLMAP model"
_POINT2D, _TRACK_ELEMENT, _DATA_ID, _SENSOR, _POSE = 24, 8, 16, 8, 56
_IMAGE, _POINT3D, _FRAME = struct.Struct("<I7dI"), struct.Struct("<Q3d3BdQ"), struct.Struct("<II7dI")
_CAMERA, _RIG, _COUNT = struct.Struct("<IiQQ"), struct.Struct("<II"), struct.Struct("<Q")

Entry = Callable[[bytes, int], int]
"""Where the entry that begins at a position ends; raises struct.error or ValueError where it cannot."""


def check_binary(path: Path) -> None:
    """Refuse a cameras, images, points3D, rigs or frames file whose entries do not fill it exactly."""
    data = read_bytes(path, EXPECTED)
    entry_end, at, entry = _ENTRIES[path.stem], _COUNT.size, 0
    try:
        (count,) = _COUNT.unpack_from(data)
        for entry in range(count):  # noqa: B007 - the message below names it
            at = entry_end(data, at)
            if at > len(data):
                raise ValueError
    except (struct.error, ValueError):
        raise FormatError(
            f"{place(path)}: entry {entry} is cut off or damaged: copy the model again or write it anew"
        ) from None
    if at != len(data):
        raise FormatError(
            f"{place(path)}: {len(data) - at} bytes follow the last of {count} entries: write it anew"
        )


def _camera_end(data: bytes, at: int) -> int:
    model = _CAMERA.unpack_from(data, at)[1]
    sizes = _parameter_counts()
    if model not in sizes:
        raise ValueError
    return at + _CAMERA.size + 8 * sizes[model]


def _image_end(data: bytes, at: int) -> int:
    _IMAGE.unpack_from(data, at)
    name_end = data.index(b"\0", at + _IMAGE.size) + 1
    return name_end + _COUNT.size + _POINT2D * _count(data, name_end)


def _point3d_end(data: bytes, at: int) -> int:
    track = _POINT3D.unpack_from(data, at)[-1]
    return at + _POINT3D.size + _TRACK_ELEMENT * int(track)


def _frame_end(data: bytes, at: int) -> int:
    data_ids = _FRAME.unpack_from(data, at)[-1]
    return at + _FRAME.size + _DATA_ID * int(data_ids)


def _rig_end(data: bytes, at: int) -> int:
    sensors = int(_RIG.unpack_from(data, at)[1])
    at += _RIG.size + (_SENSOR if sensors else 0)
    for _ in range(1, sensors):
        at += _SENSOR + 1 + (_POSE if data[at + _SENSOR : at + _SENSOR + 1] == b"\1" else 0)
        if at > len(data):
            raise ValueError
    return at


def _count(data: bytes, at: int) -> int:
    return int(_COUNT.unpack_from(data, at)[0])


@cache
def _parameter_counts() -> dict[int, int]:
    """How many parameters each of the installed pycolmap's camera models has."""
    import pycolmap

    models = pycolmap.CameraModelId.__members__.values()
    valid = [model for model in models if int(model) >= 0]
    return {int(m): len(pycolmap.Camera.create_from_model_id(1, m, 1.0, 2, 2).params) for m in valid}


_ENTRIES: dict[str, Entry] = {
    "cameras": _camera_end,
    "images": _image_end,
    "points3D": _point3d_end,
    "frames": _frame_end,
    "rigs": _rig_end,
}
