"""Intrinsics between transforms.json's fields and COLMAP's camera models."""

import math
from typing import Any

from geoweaver.datatypes import Camera
from geoweaver.errors import FormatError, InputError
from geoweaver.formats.files import quoted
from geoweaver.formats.json_document import finite_number

_PERSPECTIVE = ("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV")
_DISTORTION = ("k1", "k2", "p1", "p2", "k3", "k4")
_PARAMETERS = {
    "SIMPLE_PINHOLE": ("f", "cx", "cy"),
    "PINHOLE": ("fl_x", "fl_y", "cx", "cy"),
    "SIMPLE_RADIAL": ("f", "cx", "cy", "k1"),
    "RADIAL": ("f", "cx", "cy", "k1", "k2"),
    "OPENCV": ("fl_x", "fl_y", "cx", "cy", "k1", "k2", "p1", "p2"),
    "FULL_OPENCV": ("fl_x", "fl_y", "cx", "cy", "k1", "k2", "p1", "p2", "k3", "d4", "d5", "d6"),
    "OPENCV_FISHEYE": ("fl_x", "fl_y", "cx", "cy", "k1", "k2", "k3", "k4"),
}
_LARGEST_SIZE = 10_000_000


def camera_from_fields(fields: dict[str, Any], where: str) -> Camera | None:
    """The camera that a frame's fields describe; None without a size, a focal or a known model."""
    width, height = _size(fields, "w", where), _size(fields, "h", where)
    focal = _focal(fields, "x", width, where)
    model = _model(fields, where)
    if width is None or height is None or focal is None or model is None:
        return None
    known = {name: finite_number(fields.get(name, 0.0), name, where) for name in _DISTORTION}
    known["fl_x"] = focal
    known["fl_y"] = _focal(fields, "y", height, where) or focal
    known["cx"] = finite_number(fields.get("cx", width / 2), "cx", where)
    known["cy"] = finite_number(fields.get("cy", height / 2), "cy", where)
    model = _with_distortion(model, known, where)
    return Camera(model, tuple(known.get(name, 0.0) for name in _PARAMETERS[model]), width, height)


def fields_from_camera(camera: Camera) -> dict[str, Any]:
    """The fields that describe a camera; models that nerfstudio has no word for are refused."""
    if camera.model not in _PARAMETERS:
        raise InputError(
            f"transforms.json has no camera model {quoted(camera.model)}: export rectified (PINHOLE) images"
        )
    known = dict(zip(_PARAMETERS[camera.model], camera.params, strict=True))
    if any(known.pop(name, 0.0) for name in ("d4", "d5", "d6")):
        raise InputError(
            "transforms.json has no rational distortion: export rectified (PINHOLE) images instead"
        )
    if "f" in known:
        known["fl_x"] = known["fl_y"] = known.pop("f")
    distorted = camera.model not in ("PINHOLE", "SIMPLE_PINHOLE", "OPENCV_FISHEYE")
    model = "OPENCV" if distorted else camera.model.removeprefix("SIMPLE_")
    return {"camera_model": model, "w": camera.width, "h": camera.height, **known}


def _with_distortion(model: str, known: dict[str, float], where: str) -> str:
    """The smallest model of ours that holds a perspective camera's distortion."""
    if model == "OPENCV_FISHEYE":
        return model
    if known["k4"]:
        raise FormatError(f"{where}: k4 of a perspective camera is not supported: undistort the images first")
    if known["k3"]:
        return "FULL_OPENCV"
    distorted = any(known[name] for name in _DISTORTION)
    return "OPENCV" if distorted or model == "OPENCV" else "PINHOLE"


def _model(fields: dict[str, Any], where: str) -> str | None:
    stated = fields.get("camera_model")
    if stated is None:
        return "OPENCV_FISHEYE" if fields.get("is_fisheye") is True else "PINHOLE"
    if not isinstance(stated, str):
        raise FormatError(f"{where}: camera_model is {quoted(stated)}, a name was expected: correct it")
    return stated if stated in (*_PERSPECTIVE, "OPENCV_FISHEYE") else None


def _size(fields: dict[str, Any], name: str, where: str) -> int | None:
    if name not in fields:
        return None
    size = finite_number(fields[name], name, where)
    if size != int(size) or not 0 < size < _LARGEST_SIZE:
        raise FormatError(
            f"{where}: {name} is {quoted(size)}, a whole number of pixels was expected: correct it"
        )
    return int(size)


def _focal(fields: dict[str, Any], axis: str, size: int | None, where: str) -> float | None:
    """The stated focal length, or what the stated field of view means at the stated size."""
    name, angle_name = f"fl_{axis}", f"camera_angle_{axis}"
    if name in fields:
        focal = finite_number(fields[name], name, where)
        if focal <= 0:
            raise FormatError(f"{where}: {name} is {quoted(focal)}, it must be positive: correct it")
        return focal
    if angle_name not in fields or size is None:
        return None
    angle = finite_number(fields[angle_name], angle_name, where)
    if not 0 < angle < math.pi:
        raise FormatError(f"{where}: {angle_name} is {quoted(angle)}, it must lie in (0, pi): correct it")
    return 0.5 * size / math.tan(0.5 * angle)
