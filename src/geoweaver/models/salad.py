"""SALAD: one descriptor per image, from DINOv2's patches shared out among clusters by optimal transport."""

# mypy: no-warn-return-any, no-disallow-untyped-calls
# torch's modules and some of its methods are untyped.

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from geoweaver.errors import InputError
from geoweaver.models.vit import PATCH, ViT, ViTConfig
from geoweaver.models.weights import load_strictly, read_state

_SINKHORN_ITERATIONS = 3
_HIDDEN = 512
_IGNORED = ("backbone.model.mask_token",)
"""DINOv2's token for masked training, which inference never uses."""


@dataclass(frozen=True)
class SaladConfig:
    """The published network's sizes."""

    vit: ViTConfig = field(default_factory=lambda: ViTConfig(768, 12, 12, norm_eps=1e-6))
    clusters: int = 64
    cluster_dim: int = 128
    token_dim: int = 256

    @property
    def descriptor_dim(self) -> int:
        return self.token_dim + self.clusters * self.cluster_dim


class SaladAggregator(nn.Module):
    """Features and token 0 of an image to its descriptor; layers are numbered as in the published weights."""

    def __init__(self, dim: int, clusters: int, cluster_dim: int, token_dim: int) -> None:
        super().__init__()
        self.token_features = nn.Sequential(nn.Linear(dim, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, token_dim))
        self.cluster_features = _per_patch(dim, cluster_dim)
        self.score = _per_patch(dim, clusters)
        self.dust_bin = nn.Parameter(torch.tensor(1.0))

    def forward(self, patches: Float[Tensor, "B C h w"], token: Float[Tensor, "B C"]) -> Float[Tensor, "B K"]:
        features = self.cluster_features(patches).flatten(2)
        assignment = transport(self.score(patches).flatten(2), self.dust_bin)
        clusters = F.normalize(features @ assignment.mT, dim=1)
        descriptor = torch.cat([F.normalize(self.token_features(token), dim=-1), clusters.flatten(1)], -1)
        return F.normalize(descriptor, dim=-1)


class Salad(nn.Module):
    """Normalised images to unit descriptors; similarity is their dot product."""

    def __init__(self, config: SaladConfig | None = None) -> None:
        super().__init__()
        self.config = config or SaladConfig()
        self.backbone = nn.ModuleDict({"model": ViT(self.config.vit)})
        sizes = (self.config.clusters, self.config.cluster_dim, self.config.token_dim)
        self.aggregator = SaladAggregator(self.config.vit.dim, *sizes)

    def forward(self, images: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B K"]:
        grid = (images.shape[-2] // PATCH, images.shape[-1] // PATCH)
        if grid[0] * grid[1] <= self.config.clusters:
            raise InputError(
                f"images of {images.shape[-1]} x {images.shape[-2]} pixels are too small for SALAD: "
                f"it needs more than {self.config.clusters} patches of {PATCH} x {PATCH}; 322 x 322 is usual"
            )
        vit = cast(ViT, self.backbone["model"])
        tokens = vit.tokens(images)
        patches = tokens[:, 1:].transpose(1, 2).unflatten(2, grid)
        return self.aggregator(patches, tokens[:, 0])


def _per_patch(dim: int, out: int) -> nn.Sequential:
    """The third place is dropout's, which holds no weights and matters in training only."""
    return nn.Sequential(nn.Conv2d(dim, _HIDDEN, 1), nn.Identity(), nn.ReLU(), nn.Conv2d(_HIDDEN, out, 1))


def transport(score: Float[Tensor, "B M P"], dust_bin: Float[Tensor, ""]) -> Float[Tensor, "B M P"]:
    """The share of each patch in each cluster (Sinkhorn): one patch per cluster, the rest to the dust bin."""
    clusters, patches = score.shape[1:]
    score = torch.cat([score, dust_bin.to(score.dtype).expand(len(score), 1, patches)], 1)
    row_mass = score.new_zeros(clusters + 1)
    row_mass[-1] = torch.tensor(patches - clusters, dtype=score.dtype).log()
    v = score.new_zeros(len(score), 1, patches)
    for _ in range(_SINKHORN_ITERATIONS):
        u = row_mass[:, None] - (score + v).logsumexp(2, keepdim=True)
        v = -(score + u).logsumexp(1, keepdim=True)
    return (score + u + v)[:, :-1].exp()


def load_salad(
    source: Path | Mapping[str, Tensor], config: SaladConfig | None = None, device: str = "cpu"
) -> Salad:
    """SALAD with the weights of `dino_salad.ckpt` or of a state dict with its key names.

    From a file on the device "meta" it has no numbers: what is damaged or another network is refused at once.
    """
    state = read_state(source, device) if isinstance(source, Path) else dict(source)
    with torch.device("meta"):
        network = Salad(config)
    kept = {key: value for key, value in state.items() if key not in _IGNORED}
    load_strictly(network, kept, f"{source}: SALAD" if isinstance(source, Path) else "SALAD")
    return network.eval()
