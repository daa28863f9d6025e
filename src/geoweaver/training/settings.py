"""What a training is made of: the paper's numbers by default; docs/decisions/0027 on what it leaves open."""

from dataclasses import dataclass, field

from geoweaver.errors import ConfigError
from geoweaver.models.vit import PATCH

PAPER_DEVICES = 8
"""GPUs of the paper's training: what `frames_per_device` is multiplied by."""


@dataclass(frozen=True)
class LossWeights:
    """Weights of the terms; the paper names them and gives no values."""

    local: float = 1.0
    """lambda_local."""
    overall: float = 1.0
    """lambda_global."""
    camera: float = 0.1
    """lambda_cam."""
    translation: float = 100.0
    """lambda_trans."""
    alpha: float = 0.2
    """Of the logarithm that keeps confidence from vanishing."""
    huber: float = 0.1
    """Where the translation's penalty turns linear, the mean distance of the clip's points being 1."""


@dataclass(frozen=True)
class TrainConfig:
    """One stage of the training."""

    stage: int = 1
    views: tuple[int, int] = (4, 4)
    """Fewest and most frames of a clip."""
    iterations: int = 100_000
    frames_per_device: int = 16
    """At most so many images on one GPU and iteration; as many clips as fit."""
    encoder_rate: float = 1e-6
    """Learning rate of the shared encoder, the highest of its cosine."""
    head_rate: float = 1e-5
    """The same of all heads."""
    weight_decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.95)
    warmup: float = 0.05
    """Share of the iterations over which the rates rise before the cosine."""
    gradient_norm: float = 1.0
    """Longer gradients are shortened to this."""
    long_side: int = 504
    """Pixels."""
    aspects: tuple[float, float] = (0.5, 1.0)
    """Range of height over width, drawn anew for each batch."""
    loss: LossWeights = field(default_factory=LossWeights)
    seed: int = 0
    checkpoint_every: int = 1000
    validate_every: int = 1000
    validation_clips: int = 16
    log_every: int = 50
    recompute: bool = True
    """Compute the encoder's activations again in the backward pass: more time, far less memory."""

    def __post_init__(self) -> None:
        low, high = self.views
        if not 1 <= low <= high <= self.frames_per_device:
            raise ConfigError(
                f"clips of {low} to {high} views do not fit {self.frames_per_device} frames per device: "
                "give 1 <= fewest <= most <= frames per device"
            )
        if not 0 < self.aspects[0] <= self.aspects[1] <= 1 or self.long_side * self.aspects[0] < PATCH:
            raise ConfigError(
                f"images of {self.long_side} pixels and {self.aspects[0]:g} to {self.aspects[1]:g} as high "
                f"cannot be cut into patches of {PATCH}: give a longer side, aspects above 0 and up to 1"
            )
        if min(self.iterations, self.checkpoint_every, self.validate_every, self.log_every) < 1:
            raise ConfigError("iterations and intervals must be 1 at least")
        if min(self.encoder_rate, self.head_rate) < 0 or self.gradient_norm <= 0 or not 0 <= self.warmup < 1:
            raise ConfigError("learning rates below 0, a warm-up outside [0, 1) or no gradient norm: mend it")


FIXED_LENGTH = TrainConfig()
VARIABLE_LENGTH = TrainConfig(stage=2, views=(2, 16))
STAGES = {1: FIXED_LENGTH, 2: VARIABLE_LENGTH}
"""The paper's two stages."""
