"""`python -m benchmarks.matching`: how right, how dense and how honest the classical matches are."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

from benchmarks.harness import print_table, write_results
from benchmarks.matching_scenes import Scene, walk_scene, world_scene
from geoweaver.matching.classical import ClassicalConfig, PairMatches, match_pair
from geoweaver.matching.classical_score import log_evidence

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """Match pairs whose true flow is known."""

    worlds: tuple[str, ...] = ("apartment", "street", "tabletop", "corridor")
    data: Path | None = Path(os.environ["GEOWEAVER_DATA"]) if "GEOWEAVER_DATA" in os.environ else None
    """Folder of recordings; the walk is left out where it is missing."""
    fit: bool = False
    """Fit the score's coefficients to the worlds again, leaving one out at a time, and print them."""
    pairs: bool = False
    """Print every pair."""


@dataclass(frozen=True)
class Judged:
    """One pair's matches and how wrong they are."""

    scene: str
    kind: str
    pair: tuple[int, int]
    matches: PairMatches
    error: Array
    """Pixels; NaN where the truth is unknown."""
    seen: int
    """Cells of the first image that the second sees too."""
    covered: int
    """Those with a match within two pixels."""
    milliseconds: float
    exact: float

    def row(self) -> dict[str, Any]:
        known = np.isfinite(self.error)
        error, score = self.error[known], self.matches.score[known]
        right = error < self.exact
        return {
            "matches": len(self.matches),
            "within 1 px": float((error < 1).mean()) if len(error) else np.nan,
            "within 2 px": float((error < 2).mean()) if len(error) else np.nan,
            "within 4 px": float((error < 4).mean()) if len(error) else np.nan,
            "weighted 1 px": float((score * (error < 1)).sum() / score.sum()) if len(error) else np.nan,
            "median px": float(np.median(error)) if len(error) else np.nan,
            "coverage": self.covered / self.seen if self.seen else np.nan,
            "AUC": auc(score, right),
            "Spearman": -float(spearmanr(score, error)[0]) if len(error) > 2 else np.nan,
        }


def judge(scene: Scene, kind: str, pair: tuple[int, int], config: ClassicalConfig) -> Judged:
    """Match a pair and compare with its true flow."""
    i, j = pair
    images, features = (scene.image(i), scene.image(j)), (scene.features(i), scene.features(j))
    start = time.process_time()
    found = match_pair(*images, *features, config)
    spent = 1000 * (time.process_time() - start)
    height, width = images[0].shape[:2]
    side = float(np.ceil(np.sqrt(height * width / config.max_matches)))
    x, y = torch.meshgrid(
        torch.arange(side / 2, width, side), torch.arange(side / 2, height, side), indexing="xy"
    )
    cells = torch.stack([x, y], -1).reshape(-1, 2).double()
    there, known, seen = scene.flow(i, j, torch.from_numpy(found.pixel_i))
    error = np.where(known, np.linalg.norm(there.numpy() - found.pixel_j, axis=1), np.nan)
    covered = int((seen.numpy() & (error < 2 * scene.exact)).sum())
    visible = int(scene.flow(i, j, cells)[2].sum())
    return Judged(scene.name, kind, pair, found, error, visible, covered, spent, scene.exact)


def summary(judged: list[Judged]) -> list[dict[str, Any]]:
    """One row per scene and kind, and one per kind over the worlds: means over the matched pairs."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for one in judged:
        groups.setdefault((one.scene, one.kind), []).append(one)
        if one.exact == 1:
            groups.setdefault(("all worlds", one.kind), []).append(one)
    return [_means(scene, kind, group) for (scene, kind), group in groups.items()]


def _means(scene: str, kind: str, group: list[Judged]) -> dict[str, Any]:
    matched = [one.row() for one in group if len(one.matches)]
    names = group[0].row()
    means = {name: _mean(row[name] for row in matched) for name in names}
    spent = round(_mean(one.milliseconds for one in group), 1)
    head = {"scene": scene, "kind": kind, "pairs": len(group), "rejected": len(group) - len(matched)}
    figures = {name: round(mean, 3) if np.isfinite(mean) else None for name, mean in means.items()}
    return {**head, **figures, "CPU ms": spent}


def _mean(values: Iterable[float]) -> float:
    kept = [v for v in values if np.isfinite(v)]
    return float(np.mean(kept)) if kept else float("nan")


def auc(score: Array, right: NDArray[np.bool_]) -> float:
    """Chance that a right match scores above a wrong one."""
    good, bad = int(right.sum()), int((~right).sum())
    if not good or not bad:
        return float("nan")
    return float((rankdata(score)[right].sum() - good * (good + 1) / 2) / (good * bad))


def logistic(columns: Array, right: Array) -> Array:
    """Coefficients of a logistic regression, by Newton's method with a little shrinkage."""
    coefficients = np.zeros(columns.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-columns @ coefficients))
        gradient = columns.T @ (p - right) + coefficients
        curvature = (columns * (p * (1 - p))[:, None]).T @ columns + np.eye(len(coefficients))
        coefficients = coefficients - np.linalg.solve(curvature, gradient)
    return coefficients


def fit(scenes: list[Scene]) -> None:
    """Coefficients for near and for wide pairs, and how they do on the world that they were not fitted to."""
    for label, wide in (("near", 9.0), ("wide", 1e-6)):
        config = replace(ClassicalConfig(), min_score=0.0, min_matches=1, wide=wide)
        judged = [judge(s, k, p, config) for s in scenes for k, pairs in s.pairs.items() for p in pairs]
        for left_out in [*(s.name for s in scenes), ""]:
            train, test = _rows(judged, left_out, False), _rows(judged, left_out, True)
            coefficients = logistic(train[0], train[1])
            score = 1 / (1 + np.exp(-test[0] @ coefficients))
            share = f"AUC there {auc(score, test[1] > 0):.3f}" if left_out else f"of {len(train[1])} matches"
            print(label, "without", left_out or "none", np.round(coefficients, 3).tolist(), share, flush=True)


def _rows(judged: list[Judged], left_out: str, only: bool) -> tuple[Array, Array]:
    chosen = [one for one in judged if (one.scene == left_out) == only]
    evidence = np.concatenate([np.zeros((0, 7)), *(log_evidence(one.matches.evidence) for one in chosen)])
    error = np.concatenate([np.zeros(0), *(one.error for one in chosen)])
    known = np.isfinite(error)
    return evidence[known], (error[known] < 1).astype(np.float64)


def calibration(judged: list[Judged]) -> list[dict[str, Any]]:
    """How often matches of a score are right to a pixel, on the worlds."""
    exact = [one for one in judged if one.exact == 1 and len(one.matches)]
    score = np.concatenate([one.matches.score for one in exact])
    error = np.concatenate([one.error for one in exact])
    known = np.isfinite(error)
    score, right = score[known], error[known] < 1
    bins = np.minimum((score * 10).astype(int), 9)
    return [
        {
            "scene": "calibration",
            "kind": f"score {b / 10:.1f}-{b / 10 + 0.1:.1f}",
            "matches": int((bins == b).sum()),
            "mean score": round(float(score[bins == b].mean()), 3),
            "within 1 px": round(float(right[bins == b].mean()), 3),
        }
        for b in range(10)
        if (bins == b).any()
    ]


def main() -> None:
    """Match, judge, print a table, write JSON."""
    torch.set_num_threads(1)
    options = tyro.cli(Options, config=(tyro.conf.FlagCreatePairsOff,))
    scenes = [world_scene(name) for name in options.worlds]
    if options.fit:
        fit(scenes)
        return
    if options.data is not None and (options.data / "indoor_walk").is_dir():
        scenes.append(walk_scene(options.data / "indoor_walk"))
    judged = [
        judge(s, k, p, ClassicalConfig()) for s in scenes for k, pairs in s.pairs.items() for p in pairs
    ]
    if options.pairs:
        print_table([{"scene": o.scene, "pair": o.pair, "seen": o.seen, **o.row()} for o in judged])
    rows, honest = summary(judged), calibration(judged)
    print_table(rows)
    print_table(honest)
    write_results("matching", [*rows, *honest])


if __name__ == "__main__":
    main()
