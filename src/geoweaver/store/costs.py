"""What the parts of a run have cost over all attempts that worked on it: kept beside the artifacts."""

import json
import logging
import math
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from geoweaver.store.keys import digest_of
from geoweaver.store.whole import disk_errors, whole_file

COSTS = "costs.json"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cost:
    """Of one part, or of what is done of it."""

    seconds: float = 0.0
    peak: int = 0
    """Most bytes that the process and its workers held together; 0 where the system does not tell."""
    largest: int = 0
    """Most bytes that one process held until then."""

    def __add__(self, later: "Cost") -> "Cost":
        peak, largest = max(self.peak, later.peak), max(self.largest, later.largest)
        return Cost(self.seconds + later.seconds, peak, largest)


class Costs:
    """Costs by key: a part that was made from something else has another key, and begins at nothing."""

    def __init__(self, folder: Path, settings: Any) -> None:
        self.path = folder / COSTS
        saved = _read(self.path)
        self._done, self._begun = saved["done"], saved["begun"]
        # what follows the parts so far: its own key is known only when it is done
        self._next = digest_of([settings])

    def finish(self, key: str, cost: Cost) -> Cost:
        """What a part cost in all; one that was done already has only been read again."""
        begun = self._begun.pop(self._next, None)
        self._next = digest_of([self._next, key])
        if key not in self._done or begun is not None:
            self._done.setdefault(key, (begun or Cost()) + cost)
            self._write(self._begun)
        return self._done[key]

    def note(self, cost: Cost) -> None:
        """What the part under way has cost up to now in this attempt, which may be killed at any moment."""
        so_far = self._begun.get(self._next, Cost()) + cost
        self._write({**self._begun, self._next: so_far})

    def _write(self, begun: dict[str, Cost]) -> None:
        parts = {"done": self._done, "begun": begun}
        rows = {part: {key: astuple(cost) for key, cost in costs.items()} for part, costs in parts.items()}
        with whole_file(self.path) as file:
            file.write(json.dumps(rows).encode())


def forget_costs(folder: Path) -> None:
    """As if nothing had ever been computed."""
    with disk_errors("clean", folder):
        (folder / COSTS).unlink(missing_ok=True)


def _read(path: Path) -> dict[str, dict[str, Cost]]:
    """What earlier attempts wrote; they may have been of another version."""
    try:
        saved = json.loads(path.read_text())
        return {part: {key: _cost(*row) for key, row in saved[part].items()} for part in ("done", "begun")}
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as damage:
        log.warning("%s cannot be read (%s): what earlier attempts took is not known", path, damage)
    return {"done": {}, "begun": {}}


def _cost(seconds: float, peak: int, largest: int) -> Cost:
    if not (math.isfinite(seconds) and min(seconds, peak, largest) >= 0):
        raise ValueError("a cost that nothing has")
    return Cost(float(seconds), int(peak), int(largest))
