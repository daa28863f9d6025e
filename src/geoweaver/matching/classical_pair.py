"""Dense matches of one pair of images from pixels and features alone: no depth, no cameras."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt8

from geoweaver.datatypes import Features
from geoweaver.matching.classical_config import ClassicalConfig
from geoweaver.matching.classical_flow import Flow, inside, residual_flow
from geoweaver.matching.classical_score import FITTED, TEXTURED, believe, gather_evidence, texture
from geoweaver.matching.classical_subpixel import settle
from geoweaver.matching.classical_warp import scaled_field, supported, warp_field
from geoweaver.matching.two_view import fit_fundamental, two_view_geometry

_FIT_ROWS, _FIT_TRIES = 400, 500
"""Flow matches that the pair's geometry is fitted to again, and hypotheses for it: most of them agree."""
_AT_HOME = 2.0
"""Pixels by which flow may miss its beginning on the way back and still be worth settling."""
Image = UInt8[np.ndarray, "H W 3"]
Grey = UInt8[np.ndarray, "H W"]
Mask = Bool[np.ndarray, "H W"]


@dataclass(frozen=True)
class PairMatches:
    """Matches of one pair in corner-origin pixels of its images, best first; none where it is rejected."""

    pixel_i: Float[np.ndarray, "n 2"]
    pixel_j: Float[np.ndarray, "n 2"]
    score: Float[np.ndarray, "n"]
    """Probability that the match is right to a pixel of the size it was searched at."""
    evidence: Float[np.ndarray, "n 6"]
    """What the score was made from (classical_score.EVIDENCE)."""

    def __len__(self) -> int:
        return len(self.score)


REJECTED = PairMatches(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0), np.zeros((0, 6)))


def match_pair(
    image_i: Image, image_j: UInt8[np.ndarray, "h w 3"],
    features_i: Features, features_j: Features,
    config: ClassicalConfig | None = None,
    mask_i: Mask | None = None, mask_j: Bool[np.ndarray, "h w"] | None = None,
) -> PairMatches:  # fmt: skip
    """Sub-pixel matches, one per cell of image i: flow on images aligned by verified features."""
    import cv2

    cv2.setNumThreads(1)
    config = config or ClassicalConfig()
    (grey_i, scale_i), (grey_j, scale_j) = (_shrunk(image, config.max_pixels) for image in (image_i, image_j))
    rough, kind = _align(features_i, features_j, scale_i, scale_j, grey_i, grey_j, config)
    flow = residual_flow(grey_i, grey_j, rough, config.wide_flow if kind == "wide" else config.near_flow)
    found = _select(flow, grey_i, grey_j, kind, config)
    pixel_i, pixel_j = (found.pixel_i + 0.5) / scale_i, (found.pixel_j + 0.5) / scale_j
    keep = _usable(mask_i, pixel_i) & _usable(mask_j, pixel_j) & (found.score >= config.min_score)
    if (keep & (found.score > 0.5)).sum() < config.min_matches:
        return REJECTED
    order = np.flatnonzero(keep)[np.argsort(-found.score[keep], kind="stable")]
    return PairMatches(pixel_i[order], pixel_j[order], found.score[order], found.evidence[order])


def _shrunk(image: Image, most: int) -> tuple[UInt8[np.ndarray, "h w"], Float[np.ndarray, "2"]]:
    """The grey image at working size, and how many of its pixels make one of the original's (x, y)."""
    import cv2

    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    height, width = grey.shape
    factor = min(1.0, (most / (width * height)) ** 0.5)
    if factor < 1:
        small = max(16, round(width * factor)), max(16, round(height * factor))
        grey = cv2.resize(grey, small, interpolation=cv2.INTER_AREA)
    return grey, np.array(grey.shape[::-1]) / np.array([width, height])


def _align(
    features_i: Features, features_j: Features,
    scale_i: Float[np.ndarray, "2"], scale_j: Float[np.ndarray, "2"],
    grey_i: Grey, grey_j: UInt8[np.ndarray, "h w"], config: ClassicalConfig,
) -> tuple[Float[np.ndarray, "H W 2"], str]:  # fmt: skip
    """Where i's pixels roughly lie in j, and whether the pair is near, wide, or known by nothing yet."""
    size_i = (grey_i.shape[1], grey_i.shape[0])
    geometry = two_view_geometry(features_i, features_j, config.two_view)
    if not len(geometry):
        return scaled_field(size_i, (grey_j.shape[1], grey_j.shape[0])), "blind"
    pixel_i, pixel_j = geometry.pixel_i * scale_i - 0.5, geometry.pixel_j * scale_j - 0.5
    together = supported(pixel_i, pixel_j)
    if together.sum() >= config.two_view.min_inliers // 2:
        pixel_i, pixel_j = pixel_i[together], pixel_j[together]
    moved = np.median(np.linalg.norm(pixel_j - pixel_i, axis=1))
    wide = moved > config.wide * np.hypot(*size_i)
    return warp_field(pixel_i, pixel_j, size_i), "wide" if wide else "near"


def _select(
    flow: Flow, grey_i: Grey, grey_j: UInt8[np.ndarray, "h w"], kind: str, config: ClassicalConfig
) -> PairMatches:
    """The best textured pixel of every cell with its place in j and its score, in working pixels."""
    textured = texture(grey_i)
    pixel = _cell_peaks(textured, config.max_matches)
    pixel_j, away = flow.carry(pixel), flow.return_error(pixel)
    at_home = away < _AT_HOME
    part = pixel[at_home]
    pixel_j[at_home] = settle(grey_i, grey_j, part, pixel_j[at_home], flow.shape(part))
    seen = inside(pixel_j, (grey_j.shape[1], grey_j.shape[0]), 1) & inside(
        pixel, (grey_i.shape[1], grey_i.shape[0]), 1
    )
    returning = seen & (away < 1)
    some = np.flatnonzero(returning)
    some = some[:: max(1, len(some) // _FIT_ROWS)]
    error = config.two_view.max_error
    fundamental, agree = fit_fundamental(pixel[some] + 0.5, pixel_j[some] + 0.5, error, _FIT_TRIES)
    if agree.sum() < max(config.two_view.min_inliers, 0.3 * len(some)):
        return REJECTED
    pixel, pixel_j = pixel[seen], pixel_j[seen]
    evidence = gather_evidence(pixel, pixel_j, flow, grey_i, textured, fundamental)
    if kind == "blind" and not _convincing(evidence, config):
        return REJECTED
    return PairMatches(
        pixel, pixel_j, believe(evidence, FITTED["wide" if kind == "wide" else "near"]), evidence
    )


def _convincing(evidence: Float[np.ndarray, "n 6"], config: ClassicalConfig) -> bool:
    """Whether flow alone shows that two images belong together: texture comes back and looks alike."""
    proof = evidence[evidence[:, 1] > TEXTURED]
    return len(proof) >= config.min_matches and bool(
        ((proof[:, 0] < 1) & (proof[:, 2] > 0.7)).mean() >= config.blind_share
    )


def _cell_peaks(textured: Float[np.ndarray, "H W"], most: int) -> Float[np.ndarray, "n 2"]:
    """The most textured pixel of each square cell; the cells are as small as `most` allows."""
    height, width = textured.shape
    side = max(2, int(np.ceil(np.sqrt(height * width / most))))
    rows, columns = height // side, width // side
    cells = textured[: rows * side, : columns * side].reshape(rows, side, columns, side)
    best = cells.transpose(0, 2, 1, 3).reshape(rows * columns, -1).argmax(1)
    row, column = np.divmod(np.arange(rows * columns), columns)
    return np.stack([column * side + best % side, row * side + best // side], 1).astype(np.float64)


def _usable(mask: Mask | None, pixel: Float[np.ndarray, "n 2"]) -> Bool[np.ndarray, "n"]:
    """Which positions the mask allows."""
    if mask is None:
        return np.ones(len(pixel), bool)
    column, row = np.floor(pixel).astype(int).T
    return np.asarray(mask[row.clip(0, mask.shape[0] - 1), column.clip(0, mask.shape[1] - 1)])
