"""Frames that the weave left out: non-keyframes and those the prior could not place, localised gap by gap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.assembly.tears import TearConfig, contradicted_alone, gather_evidence
from geoweaver.datatypes import EdgeKind, Frames, Matches, Reconstruction, ViewGraph
from geoweaver.engine import Engine
from geoweaver.errors import InputError
from geoweaver.frames import chains
from geoweaver.geometry import SE3
from geoweaver.localisation import (
    KnownPoints,
    Localised,
    known_points,
    localise,
    points_to_track,
    track_points,
)
from geoweaver.results import DepthSource, MatchSource
from geoweaver.store import Store, artifact_key, cached_noun, digest_of, restore

VERSION = 5
STAGE = "between"
MOST_PER_EDGE = 400
"""Matches of one edge that help to place a frame."""
MISPLACED = "its matches with its neighbours contradict the place that the points it sees tell"
GUESSED = "nothing tells its camera's focal: its place is as good as that guess"
OWN_SIGMA = 2.0
"""Errors of neighbouring points' depth are alike: the covariance of independent points is too small."""


@dataclass(frozen=True)
class Located:
    """Cameras found for some frames."""

    frame: Int[Tensor, "n"]
    cam_from_world: SE3
    sigma: Float[Tensor, "n 2"]
    inliers: Int[Tensor, "n"]
    points: Int[Tensor, "n"]
    believed: Bool[Tensor, "n"]
    firm: Bool[Tensor, "n"]
    """Placed by trusted keyframes alone."""

    def __len__(self) -> int:
        return len(self.frame)


@dataclass(frozen=True)
class Seen:
    """What a keyframe knows of a frame: pixels in the frame, and the places in the world that they show."""

    keyframe: int
    pixel: Float[Tensor, "p 2"]
    world: Float[Tensor, "p 3"]


@dataclass(frozen=True)
class Gap:
    """Frames of one chain between two placed ones (or before the first, or after the last)."""

    before: int | None
    frames: tuple[int, ...]
    after: int | None


def find_gaps(frames: Frames, seen: Sequence[int]) -> Iterator[Gap]:
    """Runs of readable frames that no prior saw."""
    placed, broken = set(seen), set(frames.broken)
    for chain in chains(frames):
        before: int | None = None
        run: list[int] = []
        for frame in chain:
            if frame not in placed:
                run += [frame] if frame not in broken else []
                continue
            if run:
                yield Gap(before, tuple(run), frame)
            before, run = frame, []
        if run:
            yield Gap(before, tuple(run), None)


def locate_rest(
    frames: Frames,
    result: Reconstruction,
    graph: ViewGraph,
    depths: DepthSource,
    matches: MatchSource,
    key: str,
    store: Store,
    engine: Engine,
) -> Reconstruction:
    """The reconstruction with every readable frame placed by what it sees, where that suffices."""
    gaps = list(find_gaps(frames, depths.frames))
    task = _LocateGap(frames, result, graph, depths, matches, key, store)
    places = list(engine.map(task, gaps, title="frames between"))
    guessed = of_guessed_focal(frames, depths.frames)
    for gap, (piece, kept) in zip(gaps, places, strict=True):
        artifact = store.load(STAGE, piece, kept)
        located = restore(Located, artifact.tensors, artifact.meta)
        result = with_located(result, gap, located, _matched_with(result, graph, gap, guessed))
    asked = torch.zeros(len(result), dtype=torch.bool)
    asked[[frame for gap in gaps for frame in gap.frames]] = True
    doubtful = (asked & guessed & result.trusted).nonzero().squeeze(1).tolist()
    result = replace(
        result, trusted=result.trusted & ~guessed, reason=result.reason | dict.fromkeys(doubtful, GUESSED)
    )
    return judged_by_matches(result, graph, matches, asked & result.trusted)


def judged_by_matches(
    result: Reconstruction, graph: ViewGraph, matches: MatchSource, asked: Bool[Tensor, "F"]
) -> Reconstruction:
    """Points of one neighbour may place a frame where its matches with the others contradict it."""
    rows = asked[graph.edges].any(1) & result.trusted[graph.edges].all(1)
    rows &= graph.kind != int(EdgeKind.LONG_RANGE)
    if not bool(rows.any()):
        return result
    found = [matches.read(int(edge)) for edge in rows.nonzero().squeeze(1)]
    number = torch.arange(len(found)).repeat_interleave(torch.tensor([len(m) for m in found]))
    pixel_i, pixel_j, score = (
        torch.cat([getattr(m, name) for m in found]) for name in ("pixel_i", "pixel_j", "score")
    )
    config, edges = TearConfig(), graph.edges[rows]
    table = Matches(number, pixel_i, pixel_j, score)
    evidence = gather_evidence(edges, table, result.cam_from_world, result.intrinsics, result.size, config)
    wrong = contradicted_alone(edges, evidence, asked, result.trusted, config)
    reason = dict.fromkeys(wrong.nonzero().squeeze(1).tolist(), MISPLACED)
    return replace(result, trusted=result.trusted & ~wrong, reason={**result.reason, **reason})


def of_guessed_focal(frames: Frames, placed: Sequence[int]) -> Bool[Tensor, "F"]:
    """Frames of cameras whose focal nobody told, and of which no prior placed a frame that would tell it."""
    known = set(frames.camera[list(placed)].tolist())
    known |= {g for g, camera in enumerate(frames.cameras) if camera.calibrated or camera.focal_hint}
    return ~torch.isin(frames.camera, torch.tensor(sorted(known), dtype=frames.camera.dtype))


def _matched_with(
    result: Reconstruction, graph: ViewGraph, gap: Gap, guessed: Bool[Tensor, "F"]
) -> list[int]:
    """Trusted frames that a gap's are matched with, where these have a focal to be placed by."""
    own = torch.tensor(gap.frames)
    others = torch.unique(graph.edges[torch.isin(graph.edges, own[~guessed[own]]).any(1)])
    return [int(f) for f in others[result.trusted[others]]]


def with_located(
    result: Reconstruction, gap: Gap, located: Located, matched: Sequence[int] = ()
) -> Reconstruction:
    """The same reconstruction with the believed cameras in place of the interpolated ones.

    `matched` are trusted frames of other cameras: where no frame of its own is placed, they are all there is.
    """
    ends = [f for f in (gap.before, gap.after) if f is not None] or list(matched)
    if not ends:
        return _without_ends(result, gap)
    rotation, translation = result.cam_from_world.rotation.clone(), result.cam_from_world.translation.clone()
    sigma, trusted, reason = result.sigma.clone(), result.trusted.clone(), dict(result.reason)
    sound = [f for f in ends if bool(result.trusted[f])]
    nearest = min((result.sigma[f] for f in sound or ends), key=lambda s: float(s[0]))
    for k, frame in enumerate(located.frame.tolist()):
        if not located.believed[k]:
            found, asked = int(located.inliers[k]), int(located.points[k])
            reason[frame] = f"only {found} of {asked} points agree on its place: the camera is interpolated"
            continue
        rotation[frame], translation[frame] = (
            located.cam_from_world.rotation[k],
            located.cam_from_world.translation[k],
        )
        firm = bool(located.firm[k]) and bool(sound)
        around = nearest if firm else torch.full_like(nearest, torch.inf)
        sigma[frame] = (around.square() + (OWN_SIGMA * located.sigma[k]).square()).sqrt()
        trusted[frame] = firm
        reason.pop(frame, None)
        if not firm:
            reason[frame] = "the keyframes that it was placed by are not trusted"
    return replace(
        result, cam_from_world=SE3(rotation, translation), sigma=sigma, trusted=trusted, reason=reason
    )


def _without_ends(result: Reconstruction, gap: Gap) -> Reconstruction:
    """No frame of this camera is placed: nothing says how sure a place among the others' would be."""
    words = "no frame of its camera could be placed: it stands beside the other cameras' frames"
    trusted = result.trusted.clone()
    trusted[list(gap.frames)] = False
    return replace(result, trusted=trusted, reason=result.reason | dict.fromkeys(gap.frames, words))


@dataclass(frozen=True)
class _LocateGap:
    """What a worker does with a gap."""

    frames: Frames
    result: Reconstruction
    graph: ViewGraph
    depths: DepthSource
    matches: MatchSource
    key: str
    store: Store

    def __call__(self, gap: Gap) -> tuple[str, str]:
        digests = [self.frames.digests[f] for f in gap.frames]
        key = artifact_key(STAGE, VERSION, None, [self.key, digest_of(gap), *digests])
        piece = f"gap-{gap.frames[0]:06}"
        cached_noun(self.store, Located, STAGE, piece, key, lambda: self._locate(gap))
        return piece, key

    def _locate(self, gap: Gap) -> Located:
        known: dict[int, list[Seen]] = {f: [] for f in gap.frames}
        for keyframe, order in ((gap.before, gap.frames), (gap.after, gap.frames[::-1])):
            if keyframe is not None:
                for frame, pixel, points in self._tracked(keyframe, order):
                    known[frame].append(Seen(keyframe, pixel, points.world))
        touched = torch.isin(self.graph.edges, torch.tensor(gap.frames)).any(1).nonzero().squeeze(1).tolist()
        placed = set(self.depths.frames) if touched else set()
        for edge in touched:
            for frame in set(self.graph.edges[edge].tolist()) & set(gap.frames):
                known[frame] += self._matched(edge, frame, placed)
        found = {f: self._camera(f, known[f]) for f in gap.frames}
        return _table({f: one for f, one in found.items() if one is not None})

    def _camera(self, frame: int, known: list[Seen]) -> tuple[Localised, bool] | None:
        """By what trusted keyframes know, else by all; and which of the two it was."""
        sound = [seen for seen in known if bool(self.result.trusted[seen.keyframe])]
        for some, firm in ((sound, True), (known, False)):
            if some:
                pixel, world = torch.cat([s.pixel for s in some]), torch.cat([s.world for s in some])
                found = localise(pixel, world, self.result.intrinsics[frame], self.frames.size, seed=frame)
                if found is not None and (found.believed or len(some) == len(known)):
                    return found, firm
        return None

    def _tracked(self, keyframe: int, order: Sequence[int]) -> Iterator[tuple[int, Tensor, KnownPoints]]:
        """The keyframe's points followed from frame to frame, always compared with the keyframe itself."""
        image = self._image(keyframe)
        if image is None:
            return
        usable = None if self.frames.masks is None else self.frames.masks.read(keyframe)
        camera = self.result.cam_from_world[keyframe]
        points = points_to_track(image, usable, self.depths.read(keyframe), camera)
        guess = points.pixel
        for frame in order:
            other = self._image(frame)
            if other is None:
                continue
            pixel, good = track_points(image, other, points.pixel, guess)
            points, guess = points[good], pixel[good]
            if not len(points):
                return
            yield frame, guess, points

    def _matched(self, edge: int, frame: int, placed: set[int]) -> list[Seen]:
        """Pixels of the frame matched with a placed keyframe, and their points' places."""
        i, j = self.graph.edges[edge].tolist()
        other = j if i == frame else i
        if other not in placed:
            return []
        found = self.matches.read(edge)
        there, here = (found.pixel_j, found.pixel_i) if i == frame else (found.pixel_i, found.pixel_j)
        step = max(1, len(found) // MOST_PER_EDGE)
        there, here = there[::step].double(), here[::step].double()
        points = known_points(
            there, self.frames.size, self.depths.read(other), self.result.cam_from_world[other]
        )
        return [Seen(other, here[points.row], points.world)]

    def _image(self, frame: int) -> np.ndarray | None:
        assert self.frames.pixels is not None
        try:
            return self.frames.pixels.read(frame)
        except InputError:
            return None


def _table(located: dict[int, tuple[Localised, bool]]) -> Located:
    found = {frame: one for frame, (one, _) in located.items()}
    cameras = [one.cam_from_world for one in found.values()]
    none = torch.zeros(0, 3, 3, dtype=torch.float64)
    rotation = torch.stack([c.rotation for c in cameras]) if cameras else none
    translation = torch.stack([c.translation for c in cameras]) if cameras else none[..., 0]
    sigma = torch.stack([one.sigma for one in found.values()]) if cameras else none[:, :2, 0]
    return Located(
        torch.tensor(list(found), dtype=torch.long),
        SE3(rotation, translation),
        sigma,
        torch.tensor([one.inliers for one in found.values()], dtype=torch.long),
        torch.tensor([one.points for one in found.values()], dtype=torch.long),
        torch.tensor([one.believed for one in found.values()], dtype=torch.bool),
        torch.tensor([firm for _, firm in located.values()], dtype=torch.bool),
    )
