"""The ViT against the DINOv2 of `transformers`, with the same random weights."""

import re

import pytest
import torch
from torch import Tensor

from geoweaver.models.vit import ViT, ViTConfig

_RENAMED = [
    (r"^embeddings\.cls_token$", "cls_token"),
    (r"^embeddings\.position_embeddings$", "pos_embed"),
    (r"^embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."),
    (r"^encoder\.layer\.", "blocks."),
    (r"\.attention\.o_proj\.", ".attn.proj."),
    (r"\.layer_scale(\d)\.lambda1$", r".ls\1.gamma"),
    (r"\.mlp\.down_proj\.", ".mlp.w3."),
    (r"^layernorm\.", "norm."),
]
_STACKED = {
    ".attn.qkv.": [f".attention.{x}_proj." for x in "qkv"],
    ".mlp.w12.": [".mlp.gate_proj.", ".mlp.up_proj."],
}


def _as_ours(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Names changed, projections that we keep in one matrix stacked."""
    ours: dict[str, Tensor] = {}
    for key, value in state.items():
        for old, new in _RENAMED:
            key = re.sub(old, new, key)
        ours[key] = value
    for stacked, parts in _STACKED.items():
        for key in [k for k in ours if parts[0] in k]:
            ours[key.replace(parts[0], stacked)] = torch.cat(
                [ours.pop(key.replace(parts[0], p)) for p in parts]
            )
    del ours["embeddings.mask_token"]
    return ours


@pytest.mark.parametrize("swiglu", [False, True])
def test_agrees_at_three_sizes(swiglu: bool) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.Dinov2Config(
        hidden_size=96,
        num_hidden_layers=4,
        num_attention_heads=3,
        image_size=518,
        patch_size=14,
        use_swiglu_ffn=swiglu,
    )
    theirs = transformers.Dinov2Model(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    # That library resizes positions by size, not by DINOv2's scale factor: the offset is 0 here.
    ours = ViT(ViTConfig(96, 4, 3, swiglu=swiglu, norm_eps=1e-6, position_offset=0.0))
    ours.load_state_dict(_as_ours(theirs.state_dict()))
    for height, width in [(518, 518), (280, 504), (84, 56)]:
        images = torch.randn(1, 3, height, width)
        with torch.inference_mode():
            expected, found = theirs(images).last_hidden_state, ours.tokens(images)
        assert float((found - expected).abs().max() / expected.abs().max()) < 1e-4


def test_offset_of_positions_matters_a_little() -> None:
    torch.manual_seed(0)
    by_size, by_scale = (ViT(ViTConfig(32, 1, 2, position_offset=offset)) for offset in (0.0, 0.1))
    by_scale.load_state_dict(by_size.state_dict())
    images = torch.randn(1, 3, 70, 98)
    with torch.inference_mode():
        difference = (by_size.tokens(images) - by_scale.tokens(images)).abs().max()
    assert 0 < float(difference) < 1
