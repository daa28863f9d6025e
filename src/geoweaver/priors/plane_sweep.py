"""Dense depth of every frame of a piece by sweeping planes through its own cameras, with a confidence."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int, UInt8

from geoweaver.engine import map_in_threads
from geoweaver.priors.plane_sweep_aggregate import aggregate, pick_planes, pull_to_prior
from geoweaver.priors.plane_sweep_consistency import calibrated, confidence_of, consistent_views
from geoweaver.priors.plane_sweep_cost import UNITS, cost_volume, in_steps
from geoweaver.priors.plane_sweep_finer import finer
from geoweaver.priors.plane_sweep_planes import Planes, fit_planes
from geoweaver.priors.plane_sweep_refine import both_looks, refine
from geoweaver.priors.plane_sweep_views import (
    CELL,
    WIDE_ANGLE,
    SweepViews,
    depth_planes,
    likely_planes,
    plane_homographies,
    project_points,
    source_views,
    sparse_prior,
)

Picture = Float[np.ndarray, "H W"]

_NOTHING = 1e-12
_SEEN = 0.75
"""Share of the planes that must be in view for a choice among them to mean something."""
_ALONE = 0.02
"""What a depth counts in the filling that no other view confirms."""
_SPARSE = 0.5
"""What a sparse point counts there."""
_REACHED = 1e-7
"""Weight of filled-in values below which nothing believable is near."""
_FILLED = 0.3
"""Confidence of a filled-in depth next to believable ones."""
_FIRST, _SECOND = (12.0, 0.03), (4.0, 0.015)
"""Reach in pixels and relative scatter of the planes laid through the sweep, and through refined depth."""
_KNOWN = 10.0
"""Information with which a pixel counts as much as the plane through its surroundings."""
_CONFIRMED = 0.5
"""Confidence of any refined depth that all other views confirm."""
_SKY = 1e-3
"""Planes from infinity at which the sky is kept, so that views can agree on it as on any surface."""
_TOLD = (1.0, 2.0)
"""Planes from infinity up to which nothing is a surface, and from which its confidence counts fully."""
_BLANK = 0.05
"""What a refined depth counts of which the images say nothing."""


@dataclass(frozen=True)
class SweepConfig:
    """Plane-sweep stereo, refined at nearly the working size."""

    pixels: int = 150_000
    """Pixels of a depth map: 474x316 for an image of 3:2, ..."""
    share: float = 0.65
    """... or this share of the working image's, where that is more."""
    swept: int = 97_200
    """Pixels at which planes are swept, before depth is refined at its full size."""
    planes: int = 64
    """Depths tried, evenly spaced in inverse depth."""
    sources: int = 6
    """Views that a frame is compared with."""
    wide: int = 4
    """Views from farther aside that refined depth is measured by once more; 0: none."""
    small_jump: int = 24
    """Price of one plane's difference between neighbours, in eighths of a census bit."""
    large_jump: int = 220
    """Price of any larger difference on a blank surface; an edge lowers it."""
    edge: float = 8.0
    """Difference in brightness that halves the price of a large jump."""
    sparse_weight: float = 12.0
    """How strongly sparse points pull the planes near them."""

    def map_size(self, image: tuple[int, int]) -> tuple[int, int]:
        """(width, height) of the depth maps of images of this size."""
        return depth_size(image, max(self.pixels, round(self.share * image[0] * image[1])))


@dataclass(frozen=True)
class FrameSweep:
    """One frame's depth before the views are compared."""

    depth: Picture
    margin: Picture
    """Gap to the second best depth, in census bits per path."""
    cost: Picture
    """Census bits that differ at the chosen depth."""
    seen: Picture
    """Share of the likely planes at which some source sees the pixel."""
    step: float
    """From plane to plane, in inverse depth."""


def depth_size(size: tuple[int, int], pixels: int) -> tuple[int, int]:
    """(width, height) with about so many pixels and the image's shape, never larger than the image."""
    factor = min(1.0, (pixels / (size[0] * size[1])) ** 0.5)
    return max(8, round(size[0] * factor)), max(8, round(size[1] * factor))


def shrink(picture: UInt8[np.ndarray, "H W 3"], size: tuple[int, int]) -> Float[np.ndarray, "h w"]:
    """Brightness at the size of the depth maps."""
    import cv2

    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))


def sweep_frame(
    views: SweepViews, images: Float[np.ndarray, "n h w"], frame: int, config: SweepConfig
) -> FrameSweep:
    """Depth of one frame from its best source views; all zero where nothing sees it from the side."""
    sources = source_views(views, frame, config.sources)
    height, width = images.shape[1:]
    if not len(sources):
        nothing = np.zeros((height, width), np.float32)
        return FrameSweep(nothing, nothing, nothing, nothing, 0.0)
    inverse = depth_planes(views, frame, config.planes)
    volume = np.empty((height, width, config.planes), np.int16)
    seen = np.empty((height, width), np.float32)
    homographies = plane_homographies(views, frame, sources, inverse)
    likely = likely_planes(views, frame, inverse)
    shown = in_steps(images[frame]), in_steps(images[sources])
    cost_volume(*shown, homographies, likely, volume, seen)
    prior, nearness = sparse_prior(views, frame, inverse)
    pull_to_prior(volume, prior, nearness, np.float32(config.sparse_weight), CELL)
    return _choose(volume, images[frame], seen, inverse, config)


def _choose(
    volume: np.ndarray, image: Picture, seen: Picture, inverse: Float[np.ndarray, "d"], config: SweepConfig
) -> FrameSweep:
    total = np.zeros_like(volume)
    aggregate(volume, image, config.small_jump, config.large_jump, config.edge, total)
    plane, margin, cost = (np.empty(image.shape, np.float32) for _ in range(3))
    pick_planes(total, plane, margin, cost, volume)
    step = float(inverse[1] - inverse[0])
    depth = np.where(seen > 0, 1 / (step * np.maximum(plane, _SKY)), 0).astype(np.float32)
    return FrameSweep(depth, margin / (8 * UNITS), cost / UNITS, seen, step)


@dataclass(frozen=True)
class RoughDepth:
    """One frame's planes at the size of the sweep."""

    planes: Planes
    confidence: Picture
    step: float
    """The sweep's."""


@dataclass(frozen=True)
class FrameDepth:
    """One frame's refined depth before the views are compared again."""

    depth: Picture
    information: Picture
    """What its own pixels say about it, see `Refined`."""
    confidence: Picture
    step: float
    """The sweep's."""


def sweep_piece(
    views: SweepViews, read: Callable[[int], UInt8[np.ndarray, "H W 3"]], config: SweepConfig
) -> tuple[Float[np.ndarray, "n H W"], Float[np.ndarray, "n H W"]]:
    """Depth and confidence of all frames of a piece; 0 where nothing is known."""
    swept = views.resized(depth_size(views.size, config.swept))
    shown = [read(k) for k in range(len(views))]
    small, images = (np.stack([shrink(picture, v.size) for picture in shown]) for v in (swept, views))
    sources = [source_views(swept, k, config.sources) for k in range(len(views))]
    sweeps = map_in_threads(lambda k: sweep_frame(swept, small, k, config), range(len(views)))
    raw = np.stack([s.depth for s in sweeps])
    wide = [source_views(views, k, config.wide, WIDE_ANGLE) for k in range(len(views))]

    def refined_frame(k: int) -> FrameDepth:
        # planes take more memory than depth: they are made one frame at a time
        rough = _rough(swept, raw, k, sources[k], sweeps[k], small[k])
        return _refined(views, k, (sources[k], wide[k]), rough, small[k], images)

    found = map_in_threads(refined_frame, range(len(views)))
    del sweeps, raw
    refined = np.stack([f.depth for f in found])
    ends = map_in_threads(
        lambda k: _settled(views, refined, k, sources[k], found[k], images[k]), range(len(views))
    )
    return np.stack([depth for depth, _ in ends]), np.stack([sure for _, sure in ends])


def anchor(views: SweepViews, frame: int, depth: Picture, confidence: Picture) -> tuple[Picture, Picture]:
    """Put the sparse points where nothing better is known, so that blank surfaces are filled from them."""
    depth, confidence = depth.copy(), confidence.astype(np.float32)
    pixel, z = project_points(views, frame, views.points[frame])
    planes = depth_planes(views, frame, 2) if (z > 0).any() else np.ones(2)
    inside = (z * planes[1] > 1) & (z * planes[0] < 1) & (pixel >= 0).all(1) & (pixel < views.size).all(1)
    x, y = pixel[inside].astype(np.int64).T
    better = confidence[y, x] < _SPARSE
    depth[y[better], x[better]] = z[inside][better]
    confidence[y[better], x[better]] = _SPARSE
    return depth, confidence


def _rough(
    views: SweepViews,
    raw: Float[np.ndarray, "n H W"],
    frame: int,
    sources: Int[np.ndarray, "s"],
    sweep: FrameSweep,
    image: Picture,
) -> RoughDepth:
    """Lay planes through what other views confirm, over unknown pixels too."""
    if not len(sources):
        nothing = np.zeros_like(image)
        return RoughDepth(Planes(nothing, nothing, nothing, nothing), nothing, 0.0)
    agree, visible, fused = consistent_views(views, raw, frame, sources, 1 / sweep.step)
    # where only some planes are in view, the best of those is a choice without alternatives
    judged = (raw[frame] > 0) & (sweep.seen >= _SEEN)
    sure = np.where(judged, confidence_of(agree, visible, sweep.margin, sweep.cost), 0)
    anchored, weight = anchor(views, frame, fused, np.where(agree >= 1, sure, _ALONE * sure))
    planes = fit_planes(_inverted(anchored), weight**2, image, *_FIRST, sweep.step)
    reach = np.clip(1 + np.log10(np.maximum(planes.weight, _REACHED)) / 7, 0.1, 1)
    alone = _FILLED * reach + 0.75 * np.minimum(sure, 0.55)
    return RoughDepth(planes, np.where(judged & (agree >= 2), sure, alone), sweep.step)


def _refined(
    views: SweepViews,
    frame: int,
    sources: tuple[Int[np.ndarray, "s"], Int[np.ndarray, "farther"]],
    rough: RoughDepth,
    small: Float[np.ndarray, "h w"],
    images: Float[np.ndarray, "n H W"],
) -> FrameDepth:
    """Fit the images to the planes at the full size of the depth maps, then to views from farther aside."""
    follow = finer(small, images[frame])
    planes = follow.planes(rough.planes)
    refined = refine(views, images, frame, sources[0], planes, rough.step)
    if len(sources[1]):
        start = replace(planes, inverse=refined.inverse)
        refined = both_looks(refined, refine(views, images, frame, sources[1], start, rough.step))
    depth = np.where(planes.weight > _REACHED, _inverted(refined.inverse), 0).astype(np.float32)
    confidence = np.where(depth > 0, follow(rough.confidence), 0).astype(np.float32)
    return FrameDepth(depth, refined.information, confidence, rough.step)


def _settled(
    views: SweepViews,
    refined: Float[np.ndarray, "n H W"],
    frame: int,
    sources: Int[np.ndarray, "s"],
    found: FrameDepth,
    image: Picture,
) -> tuple[Picture, Picture]:
    """Compare refined views; where a pixel says little of itself, its surroundings decide."""
    step = max(found.step, _NOTHING)
    agree, visible, fused = consistent_views(views, refined, frame, sources, 1 / step)
    share = agree / np.maximum(visible, 1)
    own = found.information / (1 + found.information) + _BLANK
    weight = found.confidence * np.where(agree >= 2, 1.0, 0.1) * share * own
    inverse = _inverted(fused)
    planes = fit_planes(inverse, weight, image, *_SECOND, step)
    known = found.information / (_KNOWN + found.information)
    mixed = np.where(planes.inverse > 0, known * inverse + (1 - known) * planes.inverse, inverse)
    mixed = np.where(fused > 0, mixed, 0)
    # filled-in depth on which refined views agree is more often right than not
    confirmed = np.where(agree >= 2, _CONFIRMED * share, 0)
    confidence = np.maximum(found.confidence * (0.3 + 0.7 * share), confirmed)
    told = np.clip((mixed / step - _TOLD[0]) / (_TOLD[1] - _TOLD[0]), 0, 1)
    depth = np.where(told > 0, _inverted(mixed), 0).astype(np.float32)
    return depth, np.where(depth > 0, told * calibrated(confidence), 0).astype(np.float32)


def _inverted(values: Picture) -> Picture:
    """One over depth or inverse depth, 0 where unknown."""
    return np.asarray(np.where(values > 0, 1 / np.maximum(values, _NOTHING), 0))
