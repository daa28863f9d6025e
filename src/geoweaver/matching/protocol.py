"""What a matcher is, and the matchers there are."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from geoweaver.datatypes import Features, Frames, Matches
from geoweaver.errors import ConfigError
from geoweaver.matching.classical import ClassicalMatcher
from geoweaver.matching.roma import RomaMatcher, roma
from geoweaver.matching.xfeat import xfeat


@runtime_checkable
class Matcher(Protocol):
    """Finds where pixels of a frame lie in another; knows no depth: a prior must not confirm itself."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """Goes up when the same input gives other matches: part of the artifacts' keys."""

    def match(
        self,
        frames: Frames,
        read_features: Callable[[int], Features],
        edge_pairs: Sequence[tuple[int, int, int]],
    ) -> Matches:
        """Matches of (edge, frame_i, frame_j), sorted by edge; an edge without matches is rejected."""


MATCHERS: dict[str, Callable[[str | None], Matcher]] = {
    "classical": lambda path: ClassicalMatcher(),
    "roma": lambda path: roma("roma", path),
    "romav2": lambda path: roma("romav2", path),
    "xfeat": xfeat,
}
"""By the name that users give; the argument is what follows the colon in `--matcher NAME:PATH`."""


def find_matcher(name: str = "classical", path: str | None = None, *, device: str = "auto") -> Matcher:
    """A matcher by the name that users give it; the device is for those that are networks."""
    if name not in MATCHERS:
        raise ConfigError(f"there is no matcher {name!r}: choose one of {', '.join(MATCHERS)}")
    matcher = MATCHERS[name](path)
    return replace(matcher, device=device) if isinstance(matcher, RomaMatcher) else matcher
