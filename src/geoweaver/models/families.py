"""The sizes of the GPM: Depth Anything 3's published families, and how a user's own is described."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any

from geoweaver.errors import ConfigError
from geoweaver.models.vit import ViTConfig

CAMERA_HEADS = ("mlp", "transformer", "none")


@dataclass(frozen=True)
class GPMConfig:
    """One Geometric Prior Model; `alt_start` = -1 makes it monocular (depth and sky, no cameras)."""

    dim: int
    depth: int
    heads: int
    alt_start: int
    taps: tuple[int, ...]
    """Blocks of the ViT that the dense head reads, four of them."""
    features: int
    out_channels: tuple[int, ...]
    swiglu: bool = False
    camera_head: str = "mlp"
    """mlp (DA3's, what its checkpoints hold), transformer (the paper's, trained from scratch) or none."""
    pose_conditioning: bool = True
    """Whether there is an encoder of known cameras."""
    metric: bool = False
    """Monocular depth in metres for a focal length of 300 pixels."""

    def __post_init__(self) -> None:
        if len(self.taps) != 4 or len(self.out_channels) != 4:
            raise ConfigError("the GPM's taps and out_channels must have four entries each")
        if list(self.taps) != sorted(set(self.taps)) or not 0 <= self.taps[0] <= self.taps[-1] < self.depth:
            raise ConfigError(
                f"the GPM's taps {self.taps} must ascend and lie within its {self.depth} blocks"
            )
        if self.camera_head not in CAMERA_HEADS:
            raise ConfigError(
                f"unknown camera_head {self.camera_head!r}: choose one of {', '.join(CAMERA_HEADS)}"
            )

    @property
    def monocular(self) -> bool:
        """True where views do not see each other."""
        return self.alt_start == -1

    @property
    def vit(self) -> ViTConfig:
        return ViTConfig(self.dim, self.depth, self.heads, self.alt_start, self.swiglu)


_SMALL = GPMConfig(384, 12, 6, 4, (5, 7, 9, 11), 64, (48, 96, 192, 384))
_LARGE = GPMConfig(1024, 24, 16, 8, (11, 15, 19, 23), 256, (256, 512, 1024, 1024))
_MONO = replace(_LARGE, alt_start=-1, taps=(4, 11, 17, 23), camera_head="none", pose_conditioning=False)

NESTED = "da3nested-giant-large"
FAMILIES: dict[str, GPMConfig] = {
    "da3-small": _SMALL,
    "da3-base": GPMConfig(768, 12, 12, 4, (5, 7, 9, 11), 128, (96, 192, 384, 768)),
    "da3-large": _LARGE,
    "da3-giant": GPMConfig(1536, 40, 24, 13, (19, 27, 33, 39), 256, (256, 512, 1024, 1024), swiglu=True),
    "da3metric-large": replace(_MONO, metric=True),
    "da3mono-large": _MONO,
}
"""By the names in the checkpoints' config.json; `NESTED` joins da3-giant and da3metric-large."""


def family_name(name: str) -> str:
    """The family behind a checkpoint's name, whatever its case, organisation and version."""
    plain = name.rsplit("/", 1)[-1].lower().removesuffix("-1.1")
    if plain not in FAMILIES and plain != NESTED:
        raise ConfigError(f"unknown GPM family {name!r}: choose one of {', '.join([*FAMILIES, NESTED])}")
    return plain


def config_from_mapping(values: Mapping[str, Any]) -> GPMConfig:
    """A GPMConfig from plain keys; unknown and missing ones are named."""
    known = {field.name for field in fields(GPMConfig)}
    needed = {field.name for field in fields(GPMConfig) if field.default is MISSING}
    if unknown := set(values) - known:
        raise ConfigError(f"unknown keys in the GPM's config: {', '.join(sorted(map(str, unknown)))}")
    if missing := needed - set(values):
        raise ConfigError(f"the GPM's config lacks: {', '.join(sorted(missing))}")
    try:
        plain = {**values, "taps": tuple(values["taps"]), "out_channels": tuple(values["out_channels"])}
        numbers = [plain[k] for k in ("dim", "depth", "heads", "alt_start", "features")]
        numbers += [*plain["taps"], *plain["out_channels"]]
    except TypeError as error:
        raise ConfigError(f"the GPM's taps and out_channels must be lists of numbers: {error}") from error
    if not all(isinstance(number, int) for number in numbers) or plain["heads"] < 1 or plain["dim"] < 1:
        raise ConfigError("the GPM's sizes must be whole numbers, heads and dim positive")
    config = GPMConfig(**plain)
    if config.monocular and "camera_head" not in values:
        config = replace(config, camera_head="none", pose_conditioning=False)
    return config


def config_as_mapping(config: GPMConfig) -> dict[str, Any]:
    """Plain values for JSON; `config_from_mapping` reads them back."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(config).items()}
