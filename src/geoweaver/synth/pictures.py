"""Pictures that fill one surface once: posters, paintings, signs, book spines, rugs, screens, doors."""

import cv2
import numpy as np

from geoweaver.synth.noise import clouds, mixed, soft
from geoweaver.synth.quads import Array
from geoweaver.synth.textures import Rng

_WORDS = (
    "NORTH", "MARKET", "2 FOR 1", "OPEN", "MUSEUM", "CAFE", "JAZZ", "No. 47", "HARBOUR", "BREAD", "LINES",
    "RIVER",
    "SALE", "CINEMA", "EXPO 68", "GARDEN", "ATLAS", "VOL. 3", "HOTEL", "BOOKS", "PHOTO", "OPERA", "TEA",
    "SUMMER",
)  # fmt: skip
_DOORS = (
    (0.42, 0.27, 0.16),
    (0.6, 0.42, 0.26),
    (0.86, 0.84, 0.78),
    (0.25, 0.33, 0.42),
    (0.3, 0.4, 0.32),
    (0.5, 0.2, 0.17),
)
_FONTS = (
    cv2.FONT_HERSHEY_SIMPLEX,
    cv2.FONT_HERSHEY_DUPLEX,
    cv2.FONT_HERSHEY_TRIPLEX,
    cv2.FONT_HERSHEY_COMPLEX,
)


def _colour(rng: Rng, low: float = 0.05, high: float = 0.95) -> tuple[float, float, float]:
    """A random shade: its saturation is that of printed and painted things, not of neon."""
    hue = rng.standard_normal(3)
    hue = (hue - hue.mean()) / (np.abs(hue - hue.mean()).max() + 1e-9)
    r, g, b = np.clip(rng.uniform(low, high) * (1 + rng.uniform(0.03, 0.4) * hue), 0, 1)
    return float(r), float(g), float(b)


def _text(
    rng: Rng, image: Array, at: tuple[int, int], width: int, colour: tuple[float, float, float]
) -> None:
    """One word scaled to a width in pixels, drawn in place."""
    word, font = str(rng.choice(_WORDS)), int(rng.choice(_FONTS))
    (natural, _), _ = cv2.getTextSize(word, font, 1.0, 2)
    scale = width / natural
    stencil = np.zeros(image.shape[:2], np.uint8)  # OpenCV writes on bytes only
    cv2.putText(stencil, word, at, font, scale, 255, max(1, round(2.2 * scale)), cv2.LINE_AA)
    share = stencil[..., None] / 255
    image[:] = image * (1 - share) + np.asarray(colour) * share


def _lines(rng: Rng, image: Array, box: tuple[int, int, int, int], pitch: int, colour: float) -> None:
    """Text-like marks: rows of short strokes of random length inside (x0, y0, x1, y1)."""
    x0, y0, x1, y1 = box
    for y in range(y0, y1 - pitch // 2, pitch):
        x = x0
        while x < x1 - pitch:
            w = int(rng.integers(pitch // 3, 2 * pitch))
            image[y : y + max(1, pitch // 2), x : min(x + w, x1)] = colour * rng.uniform(0.6, 1.2)
            x += w + max(2, pitch // 3)


def landscape(rng: Rng, n: int) -> Array:
    """A painting: sky, ridges one behind the other, foreground strokes."""
    v = np.linspace(0, 1, n)[:, None]
    air = 0.06 * clouds(rng, n, 1.3, 2)[..., None]
    touch = 1 + 0.15 * clouds(rng, n, 0.9, 6)[..., None]
    hills = clouds(rng, n, 1.6, 2)
    image = mixed(_colour(rng, 0.4, 0.9), _colour(rng, 0.6, 1.0), v) + air
    for k in range(5):
        ridge = 0.35 + 0.13 * k + 0.09 * hills[k * n // 5]
        image = np.where((v > ridge)[..., None], np.asarray(_colour(rng, 0.1, 0.75)) * touch, image)
    return image


def abstract(rng: Rng, n: int) -> Array:
    """A painting: overlapping discs, bars and splashes."""
    image = np.ones((n, n, 3)) * _colour(rng, 0.5, 0.95)
    for _ in range(26):
        centre = tuple(int(c) for c in rng.integers(0, n, 2))
        size = int(rng.uniform(0.02, 0.2) ** 1.0 * n)
        if rng.uniform() < 0.5:
            cv2.circle(image, centre, size, _colour(rng), -1 if rng.uniform() < 0.6 else 3, cv2.LINE_AA)
        else:
            end = tuple(int(c) for c in rng.integers(0, n, 2))
            cv2.line(image, centre, end, _colour(rng), int(rng.integers(2, 14)), cv2.LINE_AA)
    return image * (1 + 0.05 * clouds(rng, n, 0.6, 8))[..., None]


def painting(rng: Rng, n: int) -> Array:
    """A framed painting of one kind or the other."""
    image = (landscape if rng.uniform() < 0.5 else abstract)(rng, n)
    return framed(image, _colour(rng, 0.1, 0.6), n // 18)


def framed(image: Array, colour: tuple[float, float, float], border: int) -> Array:
    """With a moulding around it."""
    out = image.copy()
    for k in range(border):
        shade = 0.7 + 0.5 * abs(np.sin(3 * k / border))
        cv2.rectangle(
            out, (k, k), (len(image) - 1 - k, len(image) - 1 - k), tuple(shade * c for c in colour), 1
        )
    return out


def poster(rng: Rng, n: int) -> Array:
    """A placard: headline, picture, columns of small print."""
    image = np.ones((n, n, 3)) * _colour(rng, 0.35, 0.98)
    ink = _colour(rng, 0.02, 0.3)
    _text(rng, image, (n // 10, n // 5), int(n * 0.7), ink)
    top, bottom = n // 4, int(n * 0.66)
    photo = (landscape if rng.uniform() < 0.5 else abstract)(rng, n)
    image[top:bottom, n // 14 : -n // 14] = photo[top:bottom, n // 14 : -n // 14]
    _lines(rng, image, (n // 14, int(n * 0.7), n // 2 - 8, n - n // 16), n // 36, 0.15)
    _lines(rng, image, (n // 2 + 8, int(n * 0.7), n - n // 14, n - n // 16), n // 36, 0.15)
    return image


def sign(rng: Rng, n: int) -> Array:
    """A shop's name over its width (stretched by the surface)."""
    ground = np.asarray(_colour(rng, 0.05, 0.6))
    ink = (0.95, 0.92, 0.8) if rng.uniform() < 0.7 else _colour(rng, 0.75, 1.0)
    image = np.ones((n // 4, n, 3)) * ground
    _text(rng, image, (n // 10, int(n * 0.18)), int(n * 0.36), ink)
    _text(rng, image, (int(n * 0.55), int(n * 0.18)), int(n * 0.36), ink)
    cv2.rectangle(image, (4, 4), (n - 5, n // 4 - 5), ink, 2)
    square = cv2.resize(image, (n, n), interpolation=cv2.INTER_AREA)
    return np.asarray(square * (1 + 0.04 * clouds(rng, n, 1))[..., None])


def spine(rng: Rng, n: int) -> Array:
    """The back of a book: bands and a title that runs down."""
    image = np.ones((n, n, 3)) * _colour(rng, 0.1, 0.85)
    for y in rng.uniform(0.05, 0.95, 3):
        cv2.line(image, (0, int(y * n)), (n, int(y * n)), _colour(rng), max(1, n // 40))
    turned = np.ascontiguousarray(np.rot90(image))
    _text(rng, turned, (n // 5, int(n * 0.66)), int(n * 0.6), _colour(rng, 0.6, 1.0))
    return np.rot90(turned, -1) * (1 + 0.06 * clouds(rng, n, 0.8, 3))[..., None]


def page(rng: Rng, n: int) -> Array:
    """A sheet of paper with a heading, print and sometimes a figure."""
    image = np.ones((n, n, 3)) * float(rng.uniform(0.82, 0.97))
    _text(rng, image, (n // 10, n // 6), int(n * 0.45), (0.1, 0.1, 0.15))
    _lines(rng, image, (n // 10, n // 5, n - n // 10, n - n // 10), n // 24, 0.25)
    if rng.uniform() < 0.5:
        y, x = rng.integers(n // 4, n // 2, 2)
        image[y : y + n // 3, x : x + n // 3] = abstract(rng, n)[: n // 3, : n // 3]
    return image


def board(rng: Rng, n: int) -> Array:
    """A cork board full of papers."""
    image = np.array([0.68, 0.5, 0.33]) * (1 + 0.12 * clouds(rng, n, 0.3, 20))[..., None]
    for _ in range(16):
        h, w = (rng.uniform(0.12, 0.26, 2) * n).astype(int)
        y, x = rng.integers(4, n - h - 4), rng.integers(4, n - w - 4)
        sheet = cv2.resize((page if rng.uniform() < 0.6 else poster)(rng, n // 2), (int(w), int(h)))
        image[y : y + h, x : x + w] = sheet * rng.uniform(0.85, 1.05, 3)
        cv2.circle(image, (int(x + w // 2), int(y + 4)), n // 100 + 1, _colour(rng), -1, cv2.LINE_AA)
    return framed(image, (0.45, 0.3, 0.18), n // 40)


def rug(rng: Rng, n: int) -> Array:
    """A carpet with borders and a mirrored ornament."""
    field = clouds(rng, n, 1.3, 3) + 0.3 * clouds(rng, n, 0.9, 12)
    mirrored = field + field[::-1] + field[:, ::-1] + field[::-1, ::-1]
    steps = np.digitize(mirrored, [-2.2, -0.8, 0.3, 1.2, 2.4])
    palette = np.array([_colour(rng, 0.15, 0.8) for _ in range(6)]) * [1.0, 0.75, 0.65]
    image = palette[steps]
    ring = np.minimum.outer(np.minimum(np.arange(n), np.arange(n)[::-1]), np.full(n, n))
    ring = np.minimum(ring, ring.T) / n
    zigzag = (np.arange(n)[:, None] + np.arange(n)[None, :]) // (n // 40) % 2
    image = np.where((ring < 0.12)[..., None], palette[1 + zigzag], image)
    image = np.where(((ring > 0.1) & (ring < 0.12))[..., None] | (ring < 0.025)[..., None], palette[0], image)
    return image * (1 + 0.1 * clouds(rng, n, 0.3, 20))[..., None]


def screen(rng: Rng, n: int) -> Array:
    """A monitor's window of text and pictures."""
    image = np.ones((n, n, 3)) * (0.12, 0.14, 0.18)
    image[n // 12 : -n // 12, n // 12 : n // 2] = landscape(rng, n)[n // 12 : -n // 12, n // 12 : n // 2]
    _lines(rng, image, (n // 2 + n // 20, n // 10, n - n // 12, n - n // 10), n // 26, 0.75)
    return framed(image, (0.06, 0.06, 0.07), n // 30)


def pane(rng: Rng, n: int) -> Array:
    """A window from outside: frame, crossbars, curtains or a dim room behind the glass."""
    v, u = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij")
    image = mixed(_colour(rng, 0.1, 0.25), _colour(rng, 0.3, 0.55), 1 - v + 0.15 * clouds(rng, n, 1.6))
    if rng.uniform() < 0.7:
        curtain = np.asarray(_colour(rng, 0.4, 0.85)) * (0.85 + 0.15 * np.sin(50 * u))[..., None]
        image = np.where((np.abs(u - 0.5) > rng.uniform(0.1, 0.4))[..., None], curtain, image)
    bar = (np.abs(u - 0.5) < 0.025) | (np.abs(v - rng.choice([0.35, 0.5])) < 0.018)
    frame = (np.minimum(np.minimum(u, 1 - u), np.minimum(v, 1 - v)) < 0.05) | bar
    return np.where(frame[..., None], np.asarray(_colour(rng, 0.55, 0.92)), image)


def door(rng: Rng, n: int) -> Array:
    """A panelled door with a handle and a number."""
    base = np.array(_DOORS[rng.integers(len(_DOORS))]) * rng.uniform(0.85, 1.1)
    image = np.ascontiguousarray(base * (1 + 0.06 * clouds(rng, n, 0.9, 6, 0.06).T)[..., None])
    for y0, y1 in ((0.08, 0.45), (0.52, 0.92)):
        for x0, x1 in ((0.14, 0.46), (0.54, 0.86)):
            a, b = (int(x0 * n), int(y0 * n)), (int(x1 * n), int(y1 * n))
            cv2.rectangle(image, a, b, tuple(float(c) for c in 0.6 * base), max(2, n // 60))
    cv2.circle(image, (int(0.92 * n), int(0.52 * n)), n // 30, (0.85, 0.75, 0.4), -1, cv2.LINE_AA)
    _text(rng, image, (int(0.36 * n), int(0.5 * n)), int(0.2 * n), (0.9, 0.85, 0.6))
    return image


def glaze(rng: Rng, n: int) -> Array:
    """Painted pottery: bands of ornament around a turned body."""
    image = np.ones((n, n, 3)) * (0.9, 0.87, 0.8)
    blue = np.array(_colour(rng, 0.1, 0.5))
    field = clouds(rng, n, 1.2, 5) + 0.4 * clouds(rng, n, 0.8, 20)
    image = mixed(image, blue, soft(field - 0.6, 6))
    for y in np.linspace(0.06, 0.94, 7):
        cv2.line(image, (0, int(y * n)), (n, int(y * n)), tuple(float(c) for c in blue * 0.7), n // 64)
        for x in range(0, n, n // 16):
            cv2.circle(image, (x, int((y + 0.03) * n)), n // 80, _colour(rng, 0.3, 0.8), -1, cv2.LINE_AA)
    return image
