"""What a user knows about lengths: a distance between two frames in metres, or a plain factor."""

from collections.abc import Sequence
from dataclasses import dataclass

from geoweaver.datatypes import Reconstruction
from geoweaver.errors import ConfigError, DegenerateError


@dataclass(frozen=True)
class KnownScale:
    """Metres between the cameras of two frames; without frames a factor on the run's own unit."""

    length: float
    first: str | None = None
    second: str | None = None

    def check(self, names: Sequence[str]) -> None:
        """Refuse frames that are not there, before anything is computed."""
        if self.first is None or self.second is None:
            return
        if _frame(self.first, names) == _frame(self.second, names):
            raise ConfigError(f"--known-distance: {self.first} and {self.second} are one frame: give two")

    def factor(self, result: Reconstruction) -> float:
        """What every length of the run is multiplied with."""
        if self.first is None or self.second is None:
            return self.length
        ends = [_frame(name, result.names) for name in (self.first, self.second)]
        for frame, name in zip(ends, (self.first, self.second), strict=True):
            if not bool(result.trusted[frame]):
                raise DegenerateError(
                    f"--known-distance: the camera of {name} is not trusted: choose another"
                )
        one, two = (result.cam_from_world[frame].centre for frame in ends)
        distance = float((one - two).norm())
        if distance <= 3 * float(result.sigma[ends].max(0).values[0]):
            raise DegenerateError(
                f"--known-distance: the cameras of {self.first} and {self.second} stand too close together: "
                "choose two that are farther apart"
            )
        return self.length / distance


def parse_scale(known_distance: str | None, factor: float | None) -> KnownScale | None:
    """From the command line: A,B,metres (frames by name or index) or a factor."""
    if known_distance is not None and factor is not None:
        raise ConfigError("--known-distance and --scale both fix the unit: give one of them")
    if factor is not None:
        return KnownScale(_positive(str(factor), "--scale"))
    if known_distance is None:
        return None
    parts = known_distance.rsplit(",", 2)
    if len(parts) != 3:
        raise ConfigError(f"--known-distance is {known_distance!r}: give two frames and metres, as A,B,1.25")
    return KnownScale(_positive(parts[2], "--known-distance"), parts[0].strip(), parts[1].strip())


def _positive(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ConfigError(f"{option}: {text!r} is no length: give a number above 0")
    return value


def _frame(name: str, names: Sequence[str]) -> int:
    """A frame by its name, its file name without folder, or its place."""
    short = [n.rsplit("/", 1)[-1] for n in names]
    for known in (list(names), short):
        if known.count(name) == 1:
            return known.index(name)
    if name.isdigit() and int(name) < len(names):
        return int(name)
    raise ConfigError(
        f"--known-distance: there is no frame {name!r}: give names or places 0 to {len(names) - 1}"
    )
