"""One compact descriptor per frame without any weights: VLAD with the sequence's own vocabulary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geoweaver.datatypes import Features
from geoweaver.features.frame_features import FrameFeatures, features_digest
from geoweaver.store import Store, artifact_key

STAGE = "descriptors"
VERSION = 1
STRONGEST = 1000
"""Features of a frame that speak for it: the faint ones come and go, and cost recall."""
Read = Callable[[int], Features]


@dataclass(frozen=True)
class DescriptorConfig:
    """Size of the vocabulary and of the descriptor."""

    words: int = 64
    """Visual words of the vocabulary."""
    dimensions: int = 512
    """Of the descriptor, after PCA; fewer where there are fewer frames."""
    sample: int = 60_000
    """Local features that the vocabulary is learnt from."""
    basis_frames: int = 1024
    """Frames that the PCA is learnt from."""
    iterations: int = 20
    """Of k-means."""
    seed: int = 0


DEFAULTS = DescriptorConfig()


def global_descriptors(
    read_features: Read, frames: Sequence[int], config: DescriptorConfig = DEFAULTS
) -> Float[Tensor, "F D"]:
    """Unit vectors, one row per listed frame: their dot product says how alike two frames are."""
    words = learn_words(read_features, frames, config)
    chosen = _spread(len(frames), config.basis_frames)
    raw = torch.stack([vlad(read_features(frames[i]), words) for i in chosen])
    mean, basis = _principal(raw, config.dimensions)
    rows = [(vlad(read_features(frame), words) - mean) @ basis for frame in frames]
    return torch.nn.functional.normalize(torch.stack(rows), dim=-1)


def cached_descriptors(
    features: FrameFeatures, frames: Sequence[int], config: DescriptorConfig = DEFAULTS
) -> Float[Tensor, "F D"]:
    """`global_descriptors`, kept in the store of the features."""
    store: Store = features.store
    key = artifact_key(STAGE, VERSION, config, [features_digest(features, frames)])
    artifact = store.cached(
        STAGE, "vlad", key, lambda: ({"vlad": global_descriptors(features.read, frames, config)}, {})
    )
    return artifact.tensors["vlad"]


def vlad(features: Features, words: Float[Tensor, "k 128"], strongest: int = STRONGEST) -> Float[Tensor, "d"]:
    """Residuals to the nearest words, summed per word, at unit length; signed roots against bursts."""
    total = torch.zeros_like(words)
    if len(features):
        local = _unit(features.descriptors[:strongest])
        word = _nearest(local, words)
        total.index_add_(0, word, local - words[word])
    total = torch.nn.functional.normalize(total, dim=-1).flatten()
    return torch.nn.functional.normalize(total.sign() * total.abs().sqrt(), dim=0)


def learn_words(
    read_features: Read, frames: Sequence[int], config: DescriptorConfig = DEFAULTS
) -> Float[Tensor, "k 128"]:
    """k-means over features of frames spread through the sequence; the same input gives the same words."""
    chosen = _spread(len(frames), 256)
    share = -(-config.sample // max(len(chosen), 1))
    generator = torch.Generator().manual_seed(config.seed)
    local = torch.cat(
        [_some(_unit(read_features(frames[i]).descriptors[:STRONGEST]), share, generator) for i in chosen]
    )
    if len(local) < config.words:
        # a sequence that shows nothing still gets a vocabulary, though one that tells nothing apart
        local = torch.cat([local, torch.rand(config.words, 128, generator=generator)])
    words = local[torch.randperm(len(local), generator=generator)[: config.words]].clone()
    for _ in range(config.iterations):
        word = _nearest(local, words)
        count = torch.bincount(word, minlength=len(words))
        total = torch.zeros_like(words).index_add_(0, word, local)
        words = torch.where(count[:, None] > 0, total / count.clamp(min=1)[:, None], words)
    return words


def _unit(descriptors: Tensor) -> Float[Tensor, "n 128"]:
    return torch.nn.functional.normalize(descriptors.float(), dim=-1)


def _nearest(local: Float[Tensor, "n 128"], words: Float[Tensor, "k 128"]) -> Int[Tensor, "n"]:
    """The nearest word of each feature; |a - b|^2 without the part that all words share."""
    return (words.square().sum(-1) - 2 * local @ words.T).argmin(-1)


def _some(local: Tensor, count: int, generator: torch.Generator) -> Tensor:
    return local[torch.randperm(len(local), generator=generator)[:count]]


def _spread(count: int, limit: int) -> list[int]:
    """At most `limit` of `count` places, evenly spread."""
    kept = min(count, limit)
    return [i * (count - 1) // max(kept - 1, 1) for i in range(kept)]


def _principal(raw: Float[Tensor, "n d"], dimensions: int) -> tuple[Float[Tensor, "d"], Float[Tensor, "d m"]]:
    """Mean and principal directions, not whitened: that would let the noise of short sequences speak."""
    mean = raw.mean(0)
    centred = (raw - mean).double()
    variance, vectors = torch.linalg.eigh(centred @ centred.T)
    kept = variance.flip(0)[:dimensions] > 1e-9 * variance[-1].clamp(min=1e-30)
    variance, vectors = variance.flip(0)[:dimensions][kept], vectors.flip(1)[:, :dimensions][:, kept]
    return mean, (centred.T @ vectors / variance.sqrt()).float()
