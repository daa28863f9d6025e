"""`python -m benchmarks.readme`: writes what was measured anew, from the results there are.

What a newcomer asks for goes into the readme's section "Measured", all else to docs/measured.md.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS
from benchmarks.readme_words import (
    ablation,
    exports,
    gpm,
    growth,
    matching,
    outliers,
    priors,
    quality,
    render,
    sequences,
    sfm_prior,
    sigmas,
    world_clouds,
)

README = Path(__file__).parents[1] / "README.md"
PAGE = Path(__file__).parents[1] / "docs" / "measured.md"

Words = Callable[[list[dict[str, Any]], dict[str, Any]], str]
FIRST: dict[str, tuple[str, Words]] = {
    "sequences": ("From pixels to cameras and depth", sequences),
    "world_clouds": ("Clouds", world_clouds),
    "quality": ("What quality costs", quality),
    "growth": ("How cost grows", growth),
    "exports": ("What COLMAP makes of the exports", exports),
}
"""In the readme."""
MORE: dict[str, tuple[str, Words]] = {
    "ablation": ("What each stage is worth", ablation),
    "sigmas": ("What a stated sigma holds", sigmas),
    "outliers": ("What wrong matches cost", outliers),
    "priors": ("Other priors", priors),
    "sfm_prior": ("The embedded prior", sfm_prior),
    "matching": ("The matcher", matching),
    "gpm": ("The GPM", gpm),
    "render": ("The worlds", render),
}
"""On the page of the documentation."""


def measured(sections: dict[str, tuple[str, Words]], folder: Path = RESULTS) -> str:
    """One part for each result that exists, with its command and file."""
    parts = ["Every figure is from the file named beside it, which also tells date and machine."]
    for name, (title, words) in sections.items():
        path = folder / f"{name}.json"
        if path.exists():
            document = json.loads(path.read_text())
            source = f"`{document['command']}`, benchmarks/results/{name}.json"
            parts.append(f"**{title}** ({source}). {words(document['rows'], document)}")
    return "\n\n".join(parts)


def written(text: str) -> str:
    """The readme with its section made anew."""
    fresh, count = re.subn(
        r"(?<=## Measured\n\n).*?(?=\n\n## Measured: )", lambda _: measured(FIRST), text, flags=re.DOTALL
    )
    assert count == 1, "the readme has lost its section"
    return fresh


def page() -> str:
    """The page of the documentation."""
    return f"# Measured\n\nWhat the readme has no room for. {measured(MORE)}\n"


def main() -> None:
    README.write_text(written(README.read_text()))
    PAGE.write_text(page())
    print(f"{README}, {PAGE}: measured figures written")


if __name__ == "__main__":
    main()
