"""What a user knows about lengths: a distance between two frames in metres, or a plain factor."""

from dataclasses import dataclass, replace

from geoweaver.datatypes import Frames, Reconstruction
from geoweaver.errors import ConfigError, DegenerateError


@dataclass(frozen=True)
class KnownScale:
    """Metres between the cameras of two frames; without frames a factor on the run's own unit."""

    length: float
    first: str | None = None
    second: str | None = None

    def found(self, frames: Frames) -> "KnownScale":
        """The same with the frames' whole names; refuses frames that are not there."""
        if self.first is None or self.second is None:
            return self
        first, second = (frames.names[_frame(text, frames)] for text in (self.first, self.second))
        if first == second:
            raise ConfigError(f"--known-distance: {self.first} and {self.second} are one frame: give two")
        return replace(self, first=first, second=second)

    def factor(self, result: Reconstruction) -> float:
        """What every length of the run is multiplied with, once its frames are found."""
        if self.first is None or self.second is None:
            return self.length
        ends = [result.names.index(name) for name in (self.first, self.second)]
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
    """From the command line: A,B,metres (frames by name, or index among all) or a factor."""
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


def _frame(text: str, frames: Frames) -> int:
    """A frame by its name, its file name without folder, or its index among all images of the input."""
    short = [name.rsplit("/", 1)[-1] for name in frames.names]
    for known in (list(frames.names), short):
        if known.count(text) == 1:
            return known.index(text)
    if text.isascii() and text.isdigit() and int(text) in frames.places:
        return frames.places.index(int(text))
    raise ConfigError(
        f"--known-distance: {text!r} is no frame that is used, or several: "
        f"give a name, or an index among all images such as {frames.places[0]} or {frames.places[-1]}"
    )
