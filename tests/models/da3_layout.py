"""Reference outputs of a tiny Depth Anything 3, and the published checkpoints' names and shapes."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

DATA = Path(__file__).parent / "data"
TINY = {
    "dim": 64,
    "depth": 10,
    "heads": 2,
    "alt_start": 2,
    "taps": [3, 5, 7, 9],
    "features": 16,
    "out_channels": [8, 16, 24, 32],
}

Shapes = dict[str, tuple[int, ...]]


def golden(name: str) -> dict[str, Tensor]:
    """All arrays of a committed reference file."""
    with np.load(DATA / name) as content:
        return {key: torch.from_numpy(content[key]) for key in content.files}


def tiny_state(prefix: str = "w/") -> dict[str, Tensor]:
    """The tiny network's weights by DA3's names."""
    return {k.removeprefix(prefix): v for k, v in golden("da3_tiny.npz").items() if k.startswith(prefix)}


def _linear(name: str, out: int, into: int) -> Shapes:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _norm(name: str, dim: int) -> Shapes:
    return {f"{name}.weight": (dim,), f"{name}.bias": (dim,)}


def _conv(name: str, out: int, into: int, side: int) -> Shapes:
    return {f"{name}.weight": (out, into, side, side), f"{name}.bias": (out,)}


def _block(name: str, dim: int, qk_dim: int, swiglu: bool) -> Shapes:
    found = _norm(f"{name}.norm1", dim) | _norm(f"{name}.norm2", dim)
    found |= _linear(f"{name}.attn.qkv", 3 * dim, dim) | _linear(f"{name}.attn.proj", dim, dim)
    found |= {f"{name}.ls1.gamma": (dim,), f"{name}.ls2.gamma": (dim,)}
    if qk_dim:
        found |= _norm(f"{name}.attn.q_norm", qk_dim) | _norm(f"{name}.attn.k_norm", qk_dim)
    if swiglu:
        return found | _linear(f"{name}.mlp.w12", 8192, dim) | _linear(f"{name}.mlp.w3", dim, 4096)
    return found | _linear(f"{name}.mlp.fc1", 4 * dim, dim) | _linear(f"{name}.mlp.fc2", dim, 4 * dim)


def backbone_shapes(dim: int, depth: int, start: int, swiglu: bool) -> Shapes:
    """The ViT's weights; `start` -1: no views see each other."""
    at = "backbone.pretrained"
    found: Shapes = {f"{at}.cls_token": (1, 1, dim), f"{at}.pos_embed": (1, 1370, dim)}
    if start >= 0:
        found[f"{at}.camera_token"] = (1, 2, dim)
    found |= _conv(f"{at}.patch_embed.proj", dim, 3, 14) | _norm(f"{at}.norm", dim)
    for i in range(depth):
        found |= _block(f"{at}.blocks.{i}", dim, 64 if 0 <= start <= i else 0, swiglu)
    return found


def _fusion(features: int, suffix: str) -> Shapes:
    found: Shapes = {}
    for level in (1, 2, 3, 4):
        at = f"head.scratch.refinenet{level}{suffix}"
        for unit in (1, 2):
            if (level, unit) != (4, 1):
                found |= _conv(f"{at}.resConfUnit{unit}.conv1", features, features, 3)
                found |= _conv(f"{at}.resConfUnit{unit}.conv2", features, features, 3)
        found |= _conv(f"{at}.out_conv", features, features, 1)
    return found


def head_shapes(dim_in: int, features: int, channels: tuple[int, int, int, int], rays: bool) -> Shapes:
    """The dense head's weights as files hold them: of the ray branch's shared norm, level 0 only."""
    f, half = features, features // 2
    found: Shapes = {}
    for i, c in enumerate(channels):
        found |= _conv(f"head.projects.{i}", c, dim_in, 1)
        found[f"head.scratch.layer{i + 1}_rn.weight"] = (f, c, 3, 3)
    for i, side in ((0, 4), (1, 2), (3, 3)):
        found |= _conv(f"head.resize_layers.{i}", channels[i], channels[i], side)
    found |= _fusion(f, "") | _conv("head.scratch.output_conv1", half, f, 3)
    found |= _conv("head.scratch.output_conv2.0", 32, half, 3)
    found |= _conv("head.scratch.output_conv2.2", 2 if rays else 1, 32, 1)
    if not rays:
        sky = "head.scratch.sky_output_conv2"
        return found | _conv(f"{sky}.0", 32, half, 3) | _conv(f"{sky}.2", 1, 32, 1)
    found |= _norm("head.norm", dim_in) | _fusion(f, "_aux")
    for level in range(4):
        for i, (out, into) in enumerate([(half, f), (f, half), (half, f), (f, half), (half, f)]):
            found |= _conv(f"head.scratch.output_conv1_aux.{level}.{i}", out, into, 3)
        found |= _conv(f"head.scratch.output_conv2_aux.{level}.0", 32, half, 3)
        found |= _conv(f"head.scratch.output_conv2_aux.{level}.5", 7, 32, 1)
    return found | _norm("head.scratch.output_conv2_aux.0.2", 32)


def camera_shapes(dim: int) -> Shapes:
    """The camera decoder's and the camera encoder's weights."""
    two = 2 * dim
    found = _linear("cam_dec.backbone.0", two, two) | _linear("cam_dec.backbone.2", two, two)
    found |= _linear("cam_dec.fc_t", 3, two) | _linear("cam_dec.fc_qvec", 4, two)
    found |= _linear("cam_dec.fc_fov.0", 2, two)
    found |= _linear("cam_enc.pose_branch.fc1", dim // 2, 9) | _linear(
        "cam_enc.pose_branch.fc2", dim, dim // 2
    )
    found |= _norm("cam_enc.token_norm", dim) | _norm("cam_enc.trunk_norm", dim)
    for i in range(4):
        found |= _block(f"cam_enc.trunk.{i}", dim, 0, swiglu=False)
    return found


def _any_view(
    dim: int, depth: int, start: int, f: int, c: tuple[int, int, int, int], swiglu: bool = False
) -> Shapes:
    return (
        backbone_shapes(dim, depth, start, swiglu)
        | head_shapes(2 * dim, f, c, rays=True)
        | camera_shapes(dim)
    )


_WIDE = (256, 512, 1024, 1024)
_MONO = backbone_shapes(1024, 24, -1, False) | head_shapes(1024, 256, _WIDE, rays=False)
_GIANT = _any_view(1536, 40, 13, 256, _WIDE, swiglu=True)
_SPLATS: Shapes = {"gs_head.scratch.output_conv2.2.weight": (38, 32, 1, 1), "gs_adapter.scale": (1,)}
PUBLISHED: dict[str, Shapes] = {
    "da3-small": _any_view(384, 12, 4, 64, (48, 96, 192, 384)),
    "da3-base": _any_view(768, 12, 4, 128, (96, 192, 384, 768)),
    "da3-large": _any_view(1024, 24, 8, 256, _WIDE),
    "da3-giant": _GIANT | _SPLATS,
    "da3metric-large": _MONO,
    "da3mono-large": _MONO,
    "da3nested-giant-large": {f"da3.{k}": v for k, v in (_GIANT | _SPLATS).items()}
    | {f"da3_metric.{k}": v for k, v in _MONO.items()},
}
"""Every family's file, without the leading `model.`."""


def meta_state(family: str, prefix: str = "model.") -> dict[str, Tensor]:
    """A family's state dict without memory behind it."""
    return {prefix + key: torch.empty(shape, device="meta") for key, shape in PUBLISHED[family].items()}
