"""Intrinsics given by the user: numbers, a COLMAP `cameras.txt` or model, or a transforms.json."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from geoweaver.errors import FormatError, InputError
from geoweaver.formats.colmap import find_colmap, read_colmap
from geoweaver.formats.files import data_lines, is_file, is_folder, number, place, quoted
from geoweaver.formats.names import match_names
from geoweaver.formats.nerfstudio import read_transforms
from geoweaver.geometry.distortion import Lens, lens_from_opencv, resize_lens

Size = tuple[int, int]
EXPECTED = "a COLMAP cameras.txt (CAMERA_ID MODEL WIDTH HEIGHT PARAMS...)"
_SAME_ASPECT = 0.01
_SAME_PARAMETERS = 0.005


@dataclass(frozen=True)
class Calibration:
    """Lenses, and which of them took which image or belongs to which sub-folder."""

    lenses: tuple[Lens, ...]
    by_name: dict[str, int]
    """Image name, as the file has it, to lens; empty where the file does not say."""
    where: str

    def by_image(self, images: Sequence[str]) -> dict[int, int]:
        """Lens of every image that the file names, by its place among the images."""
        lenses = tuple(self.by_name.values())
        return {i: lenses[row] for i, row in match_names(tuple(self.by_name), images).items()}

    def lens_of(self, name: str, told: int | None, folder_rank: int, folders: int) -> int:
        """The lens of an image: the one told by name, else the only one, else one per sub-folder in order."""
        if told is not None:
            return told
        if len(self.lenses) == 1:
            return 0
        if not self.by_name and len(self.lenses) == folders:
            return folder_rank
        raise InputError(
            f"{self.where} has {len(self.lenses)} cameras and none for {name}: "
            "give one camera, or one per sub-folder"
        )


def read_calibration(text: str, size: Size) -> Calibration:
    """From what the user wrote; numbers are for images of `size`."""
    path = Path(text)
    if is_folder(path):
        return _from_model(path)
    if is_file(path):
        return _from_json(path) if path.suffix.lower() == ".json" else _from_cameras_txt(path)
    if path.suffix.lower() in (".json", ".txt", ".bin"):
        raise InputError(f"{place(path)} does not exist, intrinsics were expected: check the path")
    return Calibration((_from_numbers(text, size),), {}, f"--intrinsics {text}")


def lens_at_size(lens: Lens, size: Size, where: str) -> Lens:
    """The lens for images of a size; another aspect means that it is not theirs."""
    if lens.size == size:
        return lens
    if abs(math.log((lens.size[0] / lens.size[1]) / (size[0] / size[1]))) > _SAME_ASPECT:
        theirs, ours = (f"{s[0]}x{s[1]}" for s in (lens.size, size))
        raise InputError(
            f"{where} is for images of {theirs}, these are {ours}: give intrinsics of the same shape"
        )
    return resize_lens(lens, size)


def _from_numbers(text: str, size: Size) -> Lens:
    """Typed values count from the first pixel's centre; `lens_from_opencv` converts."""
    try:
        values = tuple(float(token) for token in text.split(","))
    except ValueError:
        raise InputError(
            f"--intrinsics {quoted(text)} is neither a file nor numbers: "
            "give fx,fy,cx,cy[,k1,k2,p1,p2] or a file"
        ) from None
    lens = lens_from_opencv(values, size)
    if not (0 < values[2] < size[0] and 0 < values[3] < size[1]):
        raise InputError(
            f"--intrinsics: the principal point ({values[2]:g}, {values[3]:g}) lies outside the image of "
            f"{size[0]}x{size[1]}: give intrinsics in pixels of the original images"
        )
    return lens


def _from_cameras_txt(path: Path) -> Calibration:
    lenses = []
    for line, text in data_lines(path, EXPECTED):
        tokens = text.split()
        if len(tokens) < 5:
            raise FormatError(f"{place(path, line)}: {EXPECTED} was expected: correct the line")
        numbers = [number(path, line, token, "a value") for token in tokens[2:]]
        lens = Lens(tokens[1], tuple(numbers[2:]), (int(numbers[0]), int(numbers[1])))
        lenses.append(_checked(lens, place(path, line)))
    return Calibration(tuple(lenses), {}, place(path))


def _from_model(folder: Path) -> Calibration:
    found = find_colmap(folder)
    if found is None:
        raise InputError(
            f"{place(folder)} holds no COLMAP model: give cameras.txt, a model or transforms.json"
        )
    model = read_colmap(found)
    lenses = [_checked(camera.lens, place(found)) for camera in model.cameras]
    return _named(lenses, model.names, model.camera.tolist(), place(found))


def _from_json(path: Path) -> Calibration:
    scene = read_transforms(path)
    if not scene.cameras:
        raise FormatError(
            f"{place(path)} states no intrinsics (w, h, fl_x ...): add them or leave --intrinsics out"
        )
    lenses = [_checked(camera.lens, place(path)) for camera in scene.cameras]
    return _named(lenses, scene.file_paths, scene.camera.tolist(), place(path))


def _named(lenses: list[Lens], names: tuple[str, ...], rows: list[int], where: str) -> Calibration:
    """Lenses that hardly differ are one: a file may state a camera per image."""
    kept: list[Lens] = []
    row_of: list[int] = []
    for lens in lenses:
        known = next((i for i, other in enumerate(kept) if _alike(lens, other)), len(kept))
        kept += [lens] if known == len(kept) else []
        row_of.append(known)
    by_name = {}
    for name, row in zip(names, rows, strict=True):
        if row >= 0:
            by_name[name] = row_of[row]
    return Calibration(tuple(kept), by_name if len(kept) > 1 else {}, where)


def _alike(a: Lens, b: Lens) -> bool:
    if (a.model, a.size) != (b.model, b.size):
        return False
    pairs = zip(a.params, b.params, strict=True)
    return all(abs(x - y) <= _SAME_PARAMETERS * max(abs(x), 1) for x, y in pairs)


def _checked(lens: Lens, where: str) -> Lens:
    """The lens, or one line that says where an impossible one stands."""
    try:
        return resize_lens(lens, lens.size)
    except InputError as error:
        raise FormatError(f"{where}: {error}") from None
