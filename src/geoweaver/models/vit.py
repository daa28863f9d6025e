"""The Vision Transformer: DINOv2's, and on request every second block from `alt_start` on looks across views.

Module names are those of the public checkpoints, so that weights load by name.
Letters in shapes: B scenes, S views, N tokens of a view (token 0, then patches row by row), D channels.
"""

# mypy: no-warn-return-any, no-disallow-untyped-calls
# torch's modules and some of its methods are untyped.

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from geoweaver.errors import ConfigError, InputError
from geoweaver.models.transformer import Block, Rope, initialise_linear, rotary_table

PATCH = 14
"""Side of a patch in pixels."""
_TRAINED_GRID = 37
"""Patches along one side of the image (518 pixels) that the position embeddings were made for."""


@dataclass(frozen=True)
class ViTConfig:
    """Size and flavour of one Vision Transformer."""

    dim: int
    depth: int
    heads: int
    alt_start: int = -1
    """First block with query-key norm and rotary positions; odd ones from here on see all views; -1: none."""
    swiglu: bool = False
    norm_eps: float = 1e-5
    """Epsilon of the last norm: 1e-5 in DA3, 1e-6 in DINOv2."""
    position_offset: float = 0.1
    """Added to the patch grid when position embeddings are resized, as DINOv2 does; 0 resizes by size."""

    def __post_init__(self) -> None:
        if self.dim % self.heads:
            raise ConfigError(f"the ViT's dim {self.dim} is not a multiple of its {self.heads} heads")

    def is_global(self, block: int) -> bool:
        """True where a block attends over the tokens of all views."""
        return self.alt_start != -1 and block >= self.alt_start and block % 2 == 1


@dataclass(frozen=True)
class Tap:
    """What the heads read behind one block."""

    patches: Float[Tensor, "B S P C"]
    """Channels: D, or 2D where local and global features are concatenated."""
    camera: Float[Tensor, "B S C"]
    """Token 0, not normalised."""


class ViT(nn.Module):
    """Patches to tokens to features; see `forward` for many views and `tokens` for plain DINOv2."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.recompute = False
        """Trade time for memory in training: the backward pass computes activations again."""
        dim = config.dim
        self.cls_token = nn.Parameter(torch.empty(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.empty(1, _TRAINED_GRID**2 + 1, dim))
        if config.alt_start != -1:
            self.camera_token = nn.Parameter(torch.empty(1, 2, dim))
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, dim, PATCH, stride=PATCH)})
        rotary = [config.alt_start != -1 and i >= config.alt_start for i in range(config.depth)]
        self.blocks = nn.ModuleList(
            Block(dim, config.heads, rotary=rotary[i], swiglu=config.swiglu) for i in range(config.depth)
        )
        self.norm = nn.LayerNorm(dim, eps=config.norm_eps)
        for parameter in (self.cls_token, self.pos_embed, getattr(self, "camera_token", None)):
            if parameter is not None:
                nn.init.trunc_normal_(parameter, std=0.02)
        self.apply(initialise_linear)

    def tokens(self, images: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B N D"]:
        """All tokens after the last norm, each image on its own (DINOv2)."""
        x = self._embed(images)
        for block in self.blocks:
            x = self._run(block, x, None)
        return self.norm(x)

    def forward(
        self,
        images: Float[Tensor, "B S 3 H W"],
        taps: tuple[int, ...],
        camera_tokens: Float[Tensor, "B S D"] | None = None,
        reference_view: str = "saddle_balanced",
    ) -> list[Tap]:
        """Features behind the tapped blocks; `camera_tokens` are those of known cameras."""
        scenes, views = images.shape[:2]
        alt_start = self.config.alt_start
        x = local = self._embed(images.flatten(0, 1)).unflatten(0, (scenes, views))
        ropes = self._ropes(images)
        order: Tensor | None = None
        found = []
        for i, block in enumerate(self.blocks[: max(taps) + 1]):
            if i == alt_start - 1 and views >= 3 and camera_tokens is None:
                order = reference_order(x[:, :, 0], reference_view)
                x, local = take_views(x, order), take_views(local, order)
            if i == alt_start:
                x = self._with_camera_tokens(x, camera_tokens)
            if self.config.is_global(i):
                x = self._run(block, x.flatten(1, 2), ropes[1]).unflatten(1, (views, -1))
            else:
                x = local = self._run(block, x.flatten(0, 1), ropes[0]).unflatten(0, (scenes, views))
            if i in taps:
                tap = self._tap(x, local)
                found.append(tap if order is None else restore_views(tap, order))
        return found

    def _embed(self, images: Float[Tensor, "V 3 H W"]) -> Float[Tensor, "V N D"]:
        """Patches as tokens, token 0 in front, positions added."""
        check_size(images)
        rows, columns = images.shape[-2] // PATCH, images.shape[-1] // PATCH
        patches = self.patch_embed["proj"](images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(images), -1, -1), patches], 1)
        return x + self._positions(rows, columns)

    def _positions(self, rows: int, columns: int) -> Tensor:
        """Position embeddings at another grid size, in float32."""
        if rows == columns == _TRAINED_GRID:
            return self.pos_embed
        grid = self.pos_embed[:, 1:].float().unflatten(1, (_TRAINED_GRID, _TRAINED_GRID)).permute(0, 3, 1, 2)
        offset = self.config.position_offset
        # The scale factor itself, not the size it leads to, drives DINOv2's sampling.
        target: dict[str, Any] = {
            "scale_factor": ((rows + offset) / _TRAINED_GRID, (columns + offset) / _TRAINED_GRID)
        }
        if offset == 0:
            target = {"size": (rows, columns)}
        grid = F.interpolate(grid, mode="bicubic", **target)
        return torch.cat([self.pos_embed[:, :1].float(), grid.flatten(2).transpose(1, 2)], 1)

    def _ropes(self, images: Tensor) -> tuple[Rope | None, Rope | None]:
        """Rotary tables of per-view blocks and of blocks across views, where every patch stands at (1, 1)."""
        if self.config.alt_start == -1:
            return None, None
        views, height, width = images.shape[1], images.shape[-2] // PATCH, images.shape[-1] // PATCH
        row, column = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        patches = torch.stack([row, column], -1).flatten(0, 1) + 1
        origin = torch.zeros(1, 2, dtype=torch.long)
        channels = self.config.dim // self.config.heads
        per_view = torch.cat([origin, patches])
        across = torch.cat([origin, torch.ones_like(patches)]).repeat(views, 1)
        return rotary_table(per_view.to(images.device), channels), rotary_table(
            across.to(images.device), channels
        )

    def _with_camera_tokens(self, x: Tensor, camera_tokens: Tensor | None) -> Tensor:
        """Token 0 of each view overwritten: one learned token for the first view, another for all others."""
        if camera_tokens is None:
            learned = torch.cat(
                [self.camera_token[:, :1], self.camera_token[:, 1:].expand(-1, x.shape[1] - 1, -1)], 1
            )
            camera_tokens = learned.expand(len(x), -1, -1)
        return torch.cat([camera_tokens[:, :, None].to(x.dtype), x[:, :, 1:]], 2)

    def _tap(self, x: Tensor, local: Tensor) -> Tap:
        """With alternating blocks the latest per-view features, not normalised, precede the global ones."""
        normed = self.norm(x[:, :, 1:])
        if self.config.alt_start == -1:
            return Tap(normed, x[:, :, 0])
        return Tap(torch.cat([local[:, :, 1:], normed], -1), torch.cat([local[:, :, 0], x[:, :, 0]], -1))

    def _run(self, block: nn.Module, x: Tensor, rope: Rope | None) -> Tensor:
        if self.recompute and torch.is_grad_enabled():
            return checkpoint(block, x, rope, use_reentrant=False)
        return block(x, rope)


def check_size(images: Float[Tensor, "*b 3 H W"]) -> None:
    """Both sides must be positive multiples of the patch."""
    height, width = images.shape[-2:]
    if height % PATCH or width % PATCH or not height or not width:
        fit = [max(PATCH, round(side / PATCH) * PATCH) for side in (width, height)]
        raise InputError(
            f"images of {width} x {height} pixels do not fit the network: "
            f"both sides must be multiples of {PATCH}; resize to {fit[0]} x {fit[1]}"
        )


def reference_order(token: Float[Tensor, "B S D"], strategy: str) -> Int[Tensor, "B S"]:
    """The views with the chosen reference moved to the front, the others in their order."""
    scenes, views = token.shape[:2]
    choose = {
        "first": lambda: token.new_zeros(scenes, dtype=torch.long),
        "middle": lambda: token.new_full((scenes,), views // 2, dtype=torch.long),
        "saddle_balanced": lambda: _most_average_view(token.float()),
        "saddle_sim_range": lambda: _widest_similarity_view(token.float()),
    }
    if strategy not in choose:
        raise ConfigError(f"unknown reference view strategy {strategy!r}: choose one of {', '.join(choose)}")
    reference = choose[strategy]()[:, None]
    index = torch.arange(views, device=token.device).expand(scenes, -1)
    # A stable sort by "is not the reference" moves it to the front and keeps the rest in order.
    return torch.where(index == reference, -1, index).argsort(1)


def _similarity(token: Tensor) -> Tensor:
    """Cosines between the views' tokens, zero on the diagonal."""
    unit = F.normalize(token, dim=-1)
    return unit @ unit.mT - torch.eye(token.shape[1], device=token.device)


def _most_average_view(token: Tensor) -> Tensor:
    """The view whose similarity, length and spread are nearest to the middle of their ranges."""
    length = token.norm(dim=-1)
    unit = token / length.clamp_min(1e-12)[..., None]
    measures = torch.stack([_similarity(token).sum(-1) / (token.shape[1] - 1), length, unit.var(-1)])
    low, high = measures.amin(-1, keepdim=True), measures.amax(-1, keepdim=True)
    return ((measures - low) / (high - low + 1e-8) - 0.5).abs().sum(0).argmin(-1)


def _widest_similarity_view(token: Tensor) -> Tensor:
    """The view whose similarities to the others span the widest range."""
    similarity = _similarity(token)
    return (similarity.amax(-1) - similarity.amin(-1)).argmax(-1)


def take_views(x: Tensor, order: Int[Tensor, "B S"]) -> Tensor:
    """Views rearranged, scene by scene."""
    return x[torch.arange(len(x), device=x.device)[:, None], order]


def restore_views(tap: Tap, order: Int[Tensor, "B S"]) -> Tap:
    """A tap with its views back in the caller's order."""
    inverse = order.argsort(1)
    return Tap(take_views(tap.patches, inverse), take_views(tap.camera, inverse))
