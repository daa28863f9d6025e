"""`geoweaver models list | fetch NAME | verify PATH | info PATH`: published checkpoints and files of them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from geoweaver.errors import ConfigError

_Target = Annotated[str | None, arg(metavar="NAME|PATH", help_behavior_hint="")]


@dataclass(frozen=True)
class Options:
    """List, fetch and check the learned models' weights."""

    action: Positional[Literal["list", "fetch", "verify", "info"]]
    """list: what can be fetched; fetch: into the local cache; verify: load and check it; info: what it is."""
    target: Positional[_Target] = None
    """fetch: a name from the list; verify, info: a folder or a weight file."""
    revision: Annotated[str | None, arg(metavar="REV")] = None
    """Branch, tag or commit on the model hub."""
    accept_licence: bool = False
    """Say that you have read the licence of a checkpoint that is not free for every use."""
    offline: bool = False
    """Only look into the local cache."""
    json: bool = False
    """Print JSON."""


def run(options: Options) -> None:
    """Do what was asked, print what came of it."""
    if options.action == "list":
        _list(options)
        return
    if options.target is None:
        what = "a NAME (see geoweaver models list)" if options.action == "fetch" else "a PATH"
        raise ConfigError(f"geoweaver models {options.action} needs {what}")
    if options.action == "fetch":
        _fetch(options, options.target)
        return
    from geoweaver.models import hub

    look = hub.verify if options.action == "verify" else hub.info
    facts = look(Path(options.target))
    print(json.dumps(facts, indent=2) if options.json else _as_lines(facts))


def _list(options: Options) -> None:
    from geoweaver.models.hub import CATALOGUE

    rows = [
        {"name": e.name, "licence": e.licence, "source": e.repository or e.url, "note": e.note}
        for e in CATALOGUE.values()
    ]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        print(f"{row['name']:<{width}}  {row['licence']:<12}  {row['note']}")


def _fetch(options: Options, name: str) -> None:
    from geoweaver.models import hub

    entry = hub.find(name)
    if not options.json:
        print(f"{entry.name}: {entry.repository or entry.url}, licence {entry.licence}")
    path = hub.fetch(
        name, accept_licence=options.accept_licence, revision=options.revision, offline=options.offline
    )
    facts = {"name": entry.name, "licence": entry.licence, "path": str(path)}
    print(json.dumps(facts, indent=2) if options.json else f"in {path}")


def _as_lines(facts: dict[str, Any]) -> str:
    width = max(map(len, facts))
    return "\n".join(f"{key:<{width}}  {value}" for key, value in facts.items())
