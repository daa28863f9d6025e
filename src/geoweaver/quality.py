"""Three ways to spend time: draft, normal, high; `python -m benchmarks.quality` measures what each costs."""

from dataclasses import replace
from typing import Literal

from geoweaver.pipeline import Config

Quality = Literal["draft", "normal", "high"]


def with_quality(config: Config, quality: Quality) -> Config:
    """Image size, features, keyframes and matches of a preset; a size that the user gave stays."""
    if quality == "normal":
        return config
    draft = quality == "draft"
    frames = replace(config.frames, megapixels=config.frames.megapixels * (0.5 if draft else 2.0))
    keyframes = replace(config.keyframes, step=config.keyframes.step * (1.5 if draft else 0.7))
    features = replace(config.features, max_features=1024 if draft else 4096)
    per_pair = config.weave.sampling.max_per_pair * (0.5 if draft else 2.0)
    sampling = replace(config.weave.sampling, max_per_pair=int(per_pair))
    fusion = replace(config.outputs.fusion, target=500_000 if draft else 4_000_000)
    return replace(
        config, frames=frames, keyframes=keyframes, features=features,
        weave=replace(config.weave, sampling=sampling), outputs=replace(config.outputs, fusion=fusion),
    )  # fmt: skip
