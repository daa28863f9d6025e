"""What a real camera adds to a perfect picture."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from geoweaver.errors import ConfigError
from geoweaver.geometry import SE3
from geoweaver.synth.quads import Array
from geoweaver.synth.rays import Distortion


@dataclass(frozen=True)
class Effects:
    """Lens, sensor and shutter; the defaults are a perfect pinhole camera."""

    distortion: Distortion = (0.0, 0.0, 0.0, 0.0, 0.0)
    """OpenCV's k1, k2, p1, p2, k3."""
    noise: float = 0.0
    """Standard deviation in grey levels at mid-grey; half of it in the dark (shot and read noise)."""
    exposure: float = 1.0
    """Gain on linear light."""
    shutter: float = 0.0
    """Share of the frame interval during which the shutter is open: motion blur."""
    blur_samples: int = 5
    """Sub-frames averaged for motion blur."""
    readout: float = 0.0
    """Share of the frame interval between the first and the last row: rolling shutter."""

    def __post_init__(self) -> None:
        if min(self.noise, self.shutter, self.readout) < 0 or self.exposure <= 0 or self.blur_samples < 1:
            raise ConfigError(
                f"noise {self.noise}, shutter {self.shutter}, readout {self.readout}, exposure "
                f"{self.exposure}, blur samples {self.blur_samples} cannot be rendered: "
                "give a positive exposure, one sample at least, and nothing below 0"
            )


PERFECT = Effects()


def pose_at(cam_from_world: SE3, motion: Float[Tensor, "6"], when: Float[Tensor, "*b"]) -> SE3:
    """The camera at a share of the frame interval after its stated time; `motion` is the interval's twist."""
    return SE3.exp(when[..., None] * motion) @ cam_from_world


def row_times(height: int, readout: float) -> Float[Tensor, "H"]:
    """When each row is taken, in shares of the frame interval; the middle row at the stated time."""
    return readout * ((torch.arange(height, dtype=torch.float64) + 0.5) / height - 0.5)


def exposure_times(effects: Effects) -> tuple[float, ...]:
    """The middles of the sub-frames of motion blur; a single one where the shutter is instant."""
    if effects.shutter == 0:
        return (0.0,)
    n = effects.blur_samples
    return tuple(effects.shutter * ((k + 0.5) / n - 0.5) for k in range(n))


def develop(
    linear: Array, exposure: float, noise: float, rng: np.random.Generator
) -> UInt8[np.ndarray, "H W 3"]:
    """Linear light to 8 bits: highlights roll off, gamma 2, then the sensor's noise."""
    x = exposure * linear
    display = 255 * np.sqrt(x * (1 + x / 4) / (1 + x) * 1.2)
    if noise > 0:
        sigma = noise * np.sqrt(0.25 + 0.75 * np.clip(display, 0, 255) / 128)
        display = display + sigma * rng.standard_normal(display.shape, dtype=np.float32)
    return np.clip(np.round(display), 0, 255).astype(np.uint8)
