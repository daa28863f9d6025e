"""What each result says in the readme and on the page of measurements."""

from collections.abc import Sequence
from statistics import geometric_mean, median
from typing import Any

from benchmarks.subjects import OTHERS, WORLDS

RUNS = 30
"""Of the ablation: five sequences, two settings, three seeds."""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def ablation(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """Errors after each stage, and what else the runs tell."""
    lines = []
    for mean in document["summary"]:
        mine = [r for r in rows if (r["sequence"], r["preset"]) == (mean["sequence"], mean["preset"])]
        ates, aucs = ([mean[f"{name}{stage}"] for stage in (1, 2, 3)] for name in ("ate", "auc"))
        figures = [*(f"{x:.3f}" for x in ates), *(f"{x:.1f}" for x in aucs)]
        lines.append([mean["sequence"], mean["preset"], str(mine[0]["frames"]), str(len(mine)), *figures])
    heads = ["sequence", "prior", "frames", "seeds", *(f"ATE {k} (m)" for k in (1, 2, 3))]
    centre, turn = (sorted(100 * r[f"inside_{name}"] for r in rows) for name in ("centre", "turn"))
    scales = {
        preset: 100 * max((r["scale_error"] for r in rows if r["preset"] == preset), default=0.0)
        for preset in ("default", "hard")
    }
    wrong, kept, lost = (sum(r[n] for r in rows) for n in ("wrong_edges", "wrong_kept", "right_lost"))
    ratio = sum(r["ratio"] for r in rows) / len(rows)
    partly = f" {len(rows)} of {RUNS} runs are measured so far." if len(rows) < RUNS else ""
    return f"""Error of the cameras on simulated sequences with loops
after Stage 1, 2 and 3, mean over the seeds.{partly}

{table([*heads, *(f"AUC@3 {k} (%)" for k in (1, 2, 3))], lines)}

Stage 1's ATE is {ratio:.0f} times Stage 3's in the mean over the runs.
The worst chunk's scale is {scales["default"]:.1f} % off with the default prior,
{scales["hard"]:.1f} % with the hard one.
Of {wrong} wrong long-range edges {kept} were kept; {lost} right ones were lost.
One stated sigma holds {sum(centre) / len(rows):.0f} % of the centres
({centre[0]:.0f} to {centre[-1]:.0f} in single runs)
and {sum(turn) / len(rows):.0f} % of the rotations ({turn[0]:.0f} to {turn[-1]:.0f}); 68 would be right."""


def _number(value: Any, form: str = ".3g", factor: float = 1) -> str:
    return "" if value is None else f"{factor * value:{form}}"


def sequences(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """From pixels to scores, beside COLMAP."""
    return f"""No weights, two cores, the same settings for all.
ATE in metres (fox: scene units) on ALL frames after Stages 1, 2, 3 and in the end, AUC@3 in percent after
Stage 1 and in the end; frames between keyframes are interpolated after the stages and localised in the end.
AUC@3: how many pairs of cameras are right within up to 3 degrees; AbsRel: relative error of depth.
COLMAP may register a part only; its whole run on street_loop is of long ago (54.3 m, 3,121 s), and one on the
machine of these rows had used 49 CPU minutes when it was ended with 1,487 of 1,500 images placed.
Seconds are of whole runs without cloud and exports on two cores that did nothing else (but
street_loop_uncalibrated: of an earlier version, beside the test suite). Where a lens proves not to be as
its model says the stages run up to three times; the table has the last turn's.

{_sequence_table([r for r in rows if r["sequence"] not in OTHERS])}

The same worlds built from other seeds and filmed otherwise (benchmarks/subjects.py); no setting was chosen on
`other` and `fast`. `phone`: bent lens, noise, motion blur and, but for the table, things that move.
These rows are of before depth was bent, Stage 3 held scales and focals otherwise
(docs/decisions/0007-focal-priors.md) and matches settled below a pixel, on cores that other work shared;
apartment_fast, street_phone, corridor_other and street_other also of before rims of depth were taken away,
the last two also before lenses settled and Stage 3 judged wide edges.

{_sequence_table([r for r in rows if r["sequence"] in OTHERS])}

In the geometric mean over these {sum("ate" in r for r in rows)} sequences {_stage_gains(rows)}."""


def _stage_gains(rows: Sequence[dict[str, Any]]) -> str:
    """What each step leaves of the error before it."""
    steps = (("ate_1", "ate_2", "Stage 2", "Stage 1's"), ("ate_2", "ate_3", "Stage 3", "Stage 2's"),
             ("ate_3", "ate", "bundle adjustment", "Stage 3's"))  # fmt: skip
    said = []
    for before, after, who, whose in steps:
        ratios = [r[after] / r[before] for r in rows if r.get(before) and r.get(after)]
        worse = sum(x > 1 for x in ratios)
        said.append(f"{who} leaves {geometric_mean(ratios):.2f} of {whose} ATE ({worse} end higher)")
    return ", ".join(said)


def _sequence_table(rows: Sequence[dict[str, Any]]) -> str:
    heads = ["sequence", "frames", "trusted", "ATE 1", "ATE 2", "ATE 3", "ATE", "AUC@3 1", "AUC@3",
             "AbsRel (sure half)", "seconds", "COLMAP: frames", "ATE", "AUC@3", "seconds"]  # fmt: skip
    lines = []
    for r in rows:
        depth = (
            f"{_number(r.get('absrel'))} ({_number(r.get('absrel_confident'))})" if r.get("absrel") else ""
        )
        name = r["sequence"] + (", intrinsics given" if r["intrinsics"] == "given" else "")
        ours = [_number(r.get(k)) for k in ("ate_1", "ate_2", "ate_3", "ate")]
        auc = [_number(r.get(k), ".1f") for k in ("auc3_1", "auc3")]
        forms = (("frames", "d"), ("ate", ".3g"), ("auc3", ".1f"), ("seconds", ".0f"))
        peer = [_number(r.get(f"colmap_{k}"), form) for k, form in forms]
        lines.append([name, str(r["total"]), str(r["trusted"]), *ours, *auc, depth,
                      _number(r.get("seconds"), ".0f"), *peer])  # fmt: skip
    return table(heads, lines)


def quality(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """The presets side by side."""
    lines = []
    for r in rows:
        figures = [_number(r.get(k)) for k in ("ate", "auc3", "absrel", "absrel_confident")]
        cost = [f"{r['seconds']:.0f}", f"{r['peak_gb']:.2f}"]
        lines.append([r["sequence"], r["quality"], r["size"], str(r["keyframes"]), *cost, *figures])
    heads = ["sequence", "`--quality`", "pixels", "keyframes", "seconds", "GB", "ATE", "AUC@3", "AbsRel",
             "AbsRel, sure half"]  # fmt: skip
    return f"""Cameras and depth of the same frames, on cores that were shared at times; clouds
hold up to 0.5, 1.5 and 4 million points.

{table(heads, lines)}"""


def growth(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """Longer and longer parts of one recording."""
    heads = ["frames", "keyframes", "seconds", "per frame", "per keyframe", "times the shortest's", "GB"]
    lines = [
        [str(r["total"]), str(r["keyframes"]), f"{r['seconds']:.0f}", f"{r['s_per_frame']:.2f}",
         f"{r['s_per_keyframe']:.2f}", f"{r['times_shortest']:.2f}", f"{r['peak_gb']:.2f}"]
        for r in rows
    ]  # fmt: skip
    what = f"The beginning of {rows[0]['sequence']} and all of it; seconds on two quiet cores."
    return f"{what}\n\n{table(heads, lines)}"


def world_clouds(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """Fused clouds of whole runs against the exact surfaces."""
    keys = (
        "fscore", "precision", "recall", "complete3", "told3", "complete3_told", "fscore_all",
        "complete3_all",
    )  # fmt: skip
    heads = ["world", "frames", "points", "F", "precision", "recall", "complete", "can be told",
             "complete, of that", "F, all", "complete, all"]  # fmt: skip
    lines = []
    for r in rows:
        shares = [_number(r.get(k), ".0f", 100) + " %" for k in keys]
        lines.append([r["world"], str(r["frames"]), str(r["points"]), *shares])
    return f"""From pixels to the fused cloud, right within 2 % of the median depth;
complete: of what three views or more see. First within four median depths of some camera, then with all that
lies farther away. Can be told: the share of these surfaces that all their views together, each right within
0.3 pixels, place within that distance (one sigma); the others are seen from too far or from too few sides.

{table(heads, lines)}"""


def priors(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """Different priors, the same graph and matches."""
    heads = ["prior", "frames", "trusted", "ATE (m)", "AUC@3 (%)", "seconds: matches", "prior", "weave"]
    lines = []
    for r in rows:
        spent = [_number(r.get(f"seconds_{k}"), ".0f") for k in ("matches", "prior", "weave")]
        figures = [_number(r["ate"]), _number(r["auc3"], ".1f")]
        lines.append([r["prior"], str(r["frames"]), str(r["trusted"]), *figures, *spent])
    return f"""One walk through the apartment, one view graph and one set of image matches
for all of them; the rows `simulated matches` are the same priors in the ablation.

{table(heads, lines)}"""


def exports(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """What COLMAP makes of the exported folders."""
    lines = [
        [r["run"], str(r["images"]), str(r["points"]), f"{r['track_length']:.1f}", f"{r['error_px']:.2f}",
         f"{r['adjusted_px']:.2f}", f"{r['centre_sigmas']:.1f}, {r['rotation_sigmas']:.1f}",
         str(r["over_3_sigmas"])]
        for r in rows
    ]  # fmt: skip
    heads = ["run", "images", "points", "mean track", "error (px)", "after COLMAP's adjustment",
             "moved by up to (sigmas: centre, rotation)", "cameras beyond 3"]  # fmt: skip
    return f"""The COLMAP folders, adjusted by COLMAP with its defaults: how many of their stated
sigmas the cameras move.

{table(heads, lines)}"""


def sigmas(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """How many errors lie inside what is stated."""
    lines = [
        [r["sequence"], str(r["trusted"]), *(f"{100 * r[f'inside_{k}']:.0f} %" for k in ("centre", "turn")),
         *(f"{r[f'{k}_68']:.2f}" for k in ("centre", "turn"))]
        for r in rows
    ]  # fmt: skip
    heads = ["run", "cameras", "centres inside", "rotations inside", "68 % of centres within",
             "68 % of rotations within (sigmas)"]  # fmt: skip
    what = """Errors of whole runs from pixels over their stated sigmas; 68 % would be right."""
    return f"{what}\n\n{table(heads, lines)}"


def outliers(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """What wrong matches and wrong long-range edges cost."""
    lines = [
        [
            r["sequence"],
            f"{100 * r['wrong_matches']:.0f} %",
            f"{100 * r['wrong_edges']:.0f} %",
            f"{r['ate']:.4f}",
            f"{r['times_clean']:.2f}",
            f"{r['wrong_kept']} of {r['wrong_given']}",
        ]
        for r in rows
    ]
    heads = ["sequence", "wrong matches", "wrong long-range edges", "ATE (m)", "over clean", "wrong kept"]
    return f"""200-frame walks with the default prior, 600 matches a pair. Where matches are few, wrong
ones cost more: at 150 a pair the corridor's 0.008 m become 0.028 m with 40 % wrong, and sampling leaves 58.

{table(heads, lines)}"""


def sfm_prior(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """Chunks of the embedded prior by themselves, and what its confidence means."""
    lines = []
    for r in rows:
        depth = ["", "", "", ""]
        if r["absrel_all"] is not None:
            sure = [100 * right for said, right, _ in r["calibration"] if said > 0.8]
            unsure = [100 * right for said, right, _ in r["calibration"] if said < 0.3]
            depth = [f"{r['absrel_all']:.3f}", f"{r['absrel_half']:.3f}"]
            depth += [f"{max(sure, default=0):.0f} %", f"{min(unsure, default=0):.0f} %"]
        cost = [f"{r[f'cpu_{k}']:.2f}" for k in ("features", "sfm", "depth")]
        name = r["sequence"].removeprefix("world:")
        lines.append([name, f"{r['placed']} of {r['frames']}", f"{r['ate']:.4f}", *depth, *cost])
    heads = ["sequence", "placed", "ATE of pieces", "AbsRel", "sure half", "right where sure", "where unsure",
             "core seconds a frame: features", "cameras", "depth"]  # fmt: skip
    return f"""The first 60 frames, one chunk by itself. Right: within 5 % of the truth; sure: confidence
above 0.8, unsure: below 0.3. The whole curves: benchmarks/results/sfm_prior.png.

{table(heads, lines)}"""


def matching(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """The matcher by the distance of its frames."""
    shares = ("within 1 px", "within 4 px", "coverage")
    lines = [
        [
            r["kind"],
            f"{r['matches']:.0f}",
            "" if r["kind"] in ("unrelated", "+16") else f"{_middle(rows, r['kind']):.2f}",
            *(f"{100 * r[k]:.0f} %" for k in shares),
            f"{r['rejected']} of {r['pairs']}",
        ]
        for r in rows
        if r["scene"] == "all worlds"
    ]
    heads = ["frames apart", "matches", "median error (px)", *shares, "pairs rejected"]
    return f"""The classical matcher against exact flow in the four worlds;
the median error is the middle one of the worlds'.

{table(heads, lines)}"""


def _middle(rows: list[dict[str, Any]], kind: str) -> float:
    """Median over the worlds of their median errors: one pair that is wrong as a whole says nothing."""
    return float(median(r["median px"] for r in rows if r["kind"] == kind and r["scene"] in WORLDS))


def render(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    both, depth = ([r[k] for r in rows] for k in ("rgb_depth_cpu_ms", "depth_cpu_ms"))
    return (
        f"Rendering a {rows[0]['size']} frame: {min(both):.0f} to {max(both):.0f} ms of processor time\n"
        f"for picture and depth, {min(depth):.0f} to {max(depth):.0f} ms for depth alone."
    )


def gpm(rows: list[dict[str, Any]], document: dict[str, Any]) -> str:
    """Cost of one chunk, beside what the reference code took."""
    lines = []
    for r in rows:
        reference = [r["reference_cpu_seconds"], _number(r["reference_peak_gb"])]
        own = [f"{r['seconds']:.0f}", f"{r['cpu_seconds']:.1f}", f"{r['peak_gb']:.2f}"]
        lines.append([r["family"], str(r["views"]), *own, *reference])
    heads = ["network", "views", "seconds", "CPU seconds", "GB", "reference: CPU seconds", "GB"]
    size = f"{rows[0]['width']}x{rows[0]['height']}"
    return f"""One chunk at {size} on two cores that other work shared; CPU seconds compare.

{table(heads, lines)}"""
