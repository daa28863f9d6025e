"""What a prior could not place, and why, in the user's words: for the end of a run, good or bad."""

from collections import Counter
from collections.abc import Mapping

from geoweaver.datatypes import Reconstruction
from geoweaver.errors import DegenerateError
from geoweaver.store import PriorStore


def require_pieces(priors: PriorStore) -> None:
    """Refuse to go on without a single placed frame, in the words of the prior that knows why."""
    if priors.places or not priors.reason:
        return
    said = Counter(priors.reason.values())
    words = "; ".join(words if len(said) == 1 else f"{words} ({n} keyframes)" for words, n in said.items())
    raise DegenerateError(f"the prior placed no frame at all: {words}")


def why_unplaced(reason: Mapping[int, str], result: Reconstruction) -> tuple[str, ...]:
    """One line for each reason of the prior's whose frames nothing else could place."""
    said = Counter(words for frame, words in sorted(reason.items()) if not bool(result.trusted[frame]))
    return tuple(
        f"{n} of {len(result)} frames are not trusted because the prior could not place them: {words}"
        for words, n in said.items()
    )
