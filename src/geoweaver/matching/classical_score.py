"""How much a flow match may be believed: evidence at each match, and the probability that it is right."""

import numpy as np
from jaxtyping import Float, UInt8

from geoweaver.geometry.epipolar import epipolar_distance
from geoweaver.matching.classical_flow import Flow, sample

_WINDOW = 9
"""Side of the patch that is compared, in pixels."""

EVIDENCE = ("return", "texture", "likeness", "difference", "epipolar", "bend")
"""Forward-backward error, square root of the structure tensor's least eigenvalue, correlation of patches,
their difference in grey levels, distance from the epipolar line, change of the flow across the patch."""

FITTED: dict[str, tuple[float, ...]] = {
    "near": (0.192, -0.643, 0.180, 0.361, -1.198, -1.235, -0.666),
    "wide": (0.023, -0.682, -0.061, 0.122, -0.655, -1.542, -0.806),
}
"""Intercept and weights of the logarithms, fitted to exact flow (benchmarks.matching --fit does it again)."""

TEXTURED, ALIKE = 4.0, 0.4
"""Texture above noise in grey levels per pixel, and the correlation that textured patches must reach."""


def texture(grey: UInt8[np.ndarray, "H W"]) -> Float[np.ndarray, "H W"]:
    """Square root of the structure tensor's least eigenvalue, in grey levels per pixel."""
    import cv2

    least = cv2.cornerMinEigenVal(cv2.GaussianBlur(grey, (0, 0), 0.8), 7, ksize=3)
    return np.asarray(255 * np.sqrt(np.maximum(least, 0)))


def gather_evidence(
    pixel: Float[np.ndarray, "n 2"],
    pixel_j: Float[np.ndarray, "n 2"],
    flow: Flow,
    grey_i: UInt8[np.ndarray, "H W"],
    textured: Float[np.ndarray, "H W"],
    fundamental: Float[np.ndarray, "3 3"],
) -> Float[np.ndarray, "n 6"]:
    """The evidence at each match, one column per name in EVIDENCE; positions count from pixel centres."""
    column, row = np.round(pixel).astype(int).T
    off = epipolar_distance(fundamental, pixel + 0.5, pixel_j + 0.5)
    alike, different = _compare(grey_i, flow, pixel)
    back, bend = flow.return_error(pixel), _bend(flow, pixel)
    return np.stack([back, textured[row, column], alike, different, off, bend], 1)


def log_evidence(evidence: Float[np.ndarray, "n 6"]) -> Float[np.ndarray, "n 7"]:
    """A column of ones and the evidence on scales on which its weight of proof is even."""
    back, rough, alike, different, off, bend = evidence.T
    logs = [np.log(back + 0.05), np.log(rough + 0.5), -np.log(1.02 - np.minimum(alike, 1))]
    logs += [np.log(different + 1), np.log(off + 0.1), np.log(bend + 0.1)]
    return np.stack([np.ones(len(back)), *logs], 1)


def believe(evidence: Float[np.ndarray, "n 6"], coefficients: tuple[float, ...]) -> Float[np.ndarray, "n"]:
    """The probability that a match is right to a pixel: logistic in the evidence's logarithms.

    Textured patches that do not look alike are no match, however well the flow comes back.
    """
    chance = 1 / (1 + np.exp(-(log_evidence(evidence) @ np.array(coefficients))))
    return np.where((evidence[:, 1] > TEXTURED) & (evidence[:, 2] < ALIKE), 0.0, chance)


def _offsets() -> Float[np.ndarray, "k 2"]:
    side = np.arange(_WINDOW) - _WINDOW // 2
    return np.stack(np.meshgrid(side, side), -1).reshape(-1, 2).astype(np.float64)


def _compare(
    grey_i: UInt8[np.ndarray, "H W"], flow: Flow, pixel: Float[np.ndarray, "n 2"]
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Correlation of the patches around each match, and how they differ once exposure is accounted for."""
    import cv2

    around = pixel[:, None] + _offsets()
    moved = around + sample(flow.forward, pixel)[:, None]
    patches = []
    for image, at in ((grey_i, around), (flow.aligned, moved)):
        patch = cv2.remap(image.astype(np.float32), at.astype(np.float32), None, cv2.INTER_LINEAR)
        patches.append(patch - patch.mean(1, keepdims=True))
    (a, b), count = patches, patches[0].shape[1]
    # a little noise on both sides: blank patches do not correlate
    aa, ab, bb = (a * a).sum(1) + count, (a * b).sum(1), (b * b).sum(1) + count
    gain = np.clip(ab / bb, 0.7, 1.4)
    different = np.sqrt(np.maximum(aa - 2 * gain * ab + gain * gain * bb, 0) / count)
    return (ab / np.sqrt(aa * bb)).astype(np.float64), different.astype(np.float64)


def _bend(flow: Flow, pixel: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "n"]:
    """Largest difference between a match's residual flow and that of its surroundings."""
    here = sample(flow.forward, pixel)
    steps = np.array([(5, 0), (-5, 0), (0, 5), (0, -5)], dtype=np.float64)
    return np.asarray(
        np.max([np.linalg.norm(sample(flow.forward, pixel + s) - here, axis=1) for s in steps], axis=0)
    )
