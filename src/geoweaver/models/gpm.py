"""The Geometric Prior Model: depth, confidence and a camera for every view of a chunk (Eq. local_priors).

Letters in shapes: B scenes, S views, H W pixels, h w the ray map's grid.
"""

# mypy: no-warn-return-any, no-disallow-untyped-calls
# torch's modules and some of its methods are untyped.

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from geoweaver.errors import ConfigError, InputError
from geoweaver.models.camera_head import (
    CameraEncoder,
    MlpCameraHead,
    TransformerCameraHead,
    decode_cameras,
    encode_cameras,
    plausible_cameras,
)
from geoweaver.models.dpt_head import DenseOutput, DPTHead
from geoweaver.models.families import GPMConfig
from geoweaver.models.vit import ViT, check_size

IMAGE_MEAN = (0.485, 0.456, 0.406)
IMAGE_STD = (0.229, 0.224, 0.225)
"""Of RGB in [0, 1]: what the network's inputs are normalised with."""

_SKY = 0.3
"""Sky scores from here on count as sky."""
_METRIC_FOCAL = 300.0
"""Focal length in pixels at which the metric model's output is metres."""
_FARTHEST_SKY = 200.0
"""Metres."""


@dataclass(frozen=True)
class GPMOutput:
    """What the GPM says of each view; None where the model has no such output or was not asked for it."""

    depth: Float[Tensor, "B S H W"]
    """Along the optical axis, in the model's own unit."""
    confidence: Float[Tensor, "B S H W"] | None = None
    """At least 1, unbounded."""
    cam_from_world: Float[Tensor, "B S 3 4"] | None = None
    intrinsics: Float[Tensor, "B S 3 3"] | None = None
    """In pixels of the input size, (0, 0) being the image's corner."""
    pose_encoding: Float[Tensor, "B S 9"] | None = None
    sky: Float[Tensor, "B S H W"] | None = None
    ray: Float[Tensor, "B S h w 6"] | None = None
    ray_confidence: Float[Tensor, "B S h w"] | None = None


class GPM(nn.Module):
    """ViT encoder, dense head, camera head, under Depth Anything 3's names (Eq. local_priors)."""

    def __init__(self, config: GPMConfig) -> None:
        super().__init__()
        self.config = config
        self.precision: torch.dtype | None = None
        """Of the encoder; None: float32 on CPU, bfloat16 or float16 on GPU. The heads run in float32."""
        self.backbone = nn.ModuleDict({"pretrained": ViT(config.vit)})
        dim_in = config.dim if config.monocular else 2 * config.dim
        self.head = DPTHead(dim_in, config.features, config.out_channels, rays=not config.monocular)
        if config.camera_head == "mlp":
            self.cam_dec: nn.Module = MlpCameraHead(dim_in)
        elif config.camera_head == "transformer":
            self.cam_dec = TransformerCameraHead(dim_in, config.dim, config.heads)
        if config.pose_conditioning:
            self.cam_enc = CameraEncoder(config.dim)

    def forward(
        self,
        images: Float[Tensor, "B S 3 H W"],
        cam_from_world: Float[Tensor, "B S 3 4"] | None = None,
        intrinsics: Float[Tensor, "B S 3 3"] | None = None,
        *,
        rays: bool = False,
        reference_view: str = "saddle_balanced",
    ) -> GPMOutput:
        """Normalised images to geometry; known cameras (all views, see `normalise_cameras`) condition it."""
        check_size(images)
        size = (images.shape[-2], images.shape[-1])
        tokens = self._camera_tokens(cam_from_world, intrinsics, size)
        with encoder_precision(images.device, self.precision):
            taps = self.backbone["pretrained"](images, self.config.taps, tokens, reference_view)
        with torch.autocast(images.device.type, enabled=False):
            dense = self.head([tap.patches.flatten(0, 1).float() for tap in taps], size, rays)
            return self._output(dense, taps[-1].camera.float(), size)

    def _camera_tokens(
        self, cam_from_world: Tensor | None, intrinsics: Tensor | None, size: tuple[int, int]
    ) -> Tensor | None:
        if cam_from_world is None:
            return None
        if intrinsics is None:
            raise InputError("known cameras need intrinsics too: give both, or neither")
        if not self.config.pose_conditioning:
            raise ConfigError("this GPM has no camera encoder: it cannot use known cameras")
        encoding = encode_cameras(cam_from_world, intrinsics, size)
        return self.cam_enc(encoding.to(next(self.cam_enc.parameters()).dtype))

    def _output(self, dense: DenseOutput, camera: Tensor, size: tuple[int, int]) -> GPMOutput:
        views = camera.shape[:2]
        maps: dict[str, Any] = {
            key: None if value is None else value.unflatten(0, views) for key, value in vars(dense).items()
        }
        if maps["sky"] is not None:
            maps["depth"] = push_sky_back(maps["depth"], maps["sky"])
        if self.config.camera_head == "none":
            return GPMOutput(**maps)
        encoding = self.cam_dec(camera)
        cam_from_world, K = decode_cameras(encoding, size)
        return GPMOutput(**maps, cam_from_world=cam_from_world, intrinsics=K, pose_encoding=encoding)


class NestedGPM(nn.Module):
    """The giant model for shape and cameras, the metric model for metres."""

    def __init__(self, any_view: GPMConfig, metric: GPMConfig) -> None:
        super().__init__()
        self.da3 = GPM(any_view)
        self.da3_metric = GPM(metric)

    def forward(
        self,
        images: Float[Tensor, "B S 3 H W"],
        cam_from_world: Float[Tensor, "B S 3 4"] | None = None,
        intrinsics: Float[Tensor, "B S 3 3"] | None = None,
        *,
        rays: bool = False,
        reference_view: str = "saddle_balanced",
    ) -> GPMOutput:
        """As the GPM's, in metres."""
        shape = self.da3(images, cam_from_world, intrinsics, rays=rays, reference_view=reference_view)
        metric = self.da3_metric(images)
        # A view without a believable focal length has no metres: 0 keeps it out of the scale.
        sound = plausible_cameras(shape.pose_encoding)[..., None, None]
        return in_metres(shape, metric_depth(metric.depth, shape.intrinsics) * sound, metric.sky)


def encoder_precision(device: torch.device, precision: torch.dtype | None) -> torch.autocast:
    """Autocast to the asked precision, or to what suits the device."""
    if precision is None:
        half = torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float16
        precision = half if device.type == "cuda" else torch.float32
    enabled = precision != torch.float32
    return torch.autocast(device.type, dtype=precision if enabled else torch.bfloat16, enabled=enabled)


def metric_depth(
    depth: Float[Tensor, "B S H W"], intrinsics: Float[Tensor, "B S 3 3"]
) -> Float[Tensor, "B S H W"]:
    """Metres from the metric model's output, which stands for a focal length of 300 pixels."""
    focal = (intrinsics[..., 0, 0] + intrinsics[..., 1, 1]) / 2
    return depth * (focal / _METRIC_FOCAL)[..., None, None]


def push_sky_back(depth: Float[Tensor, "B S H W"], sky: Float[Tensor, "B S H W"]) -> Float[Tensor, "B S H W"]:
    """Sky pixels get the 99 % quantile of the scene's other depths."""
    far = torch.stack([_far_depth(d, s < _SKY) for d, s in zip(depth, sky, strict=True)])
    return torch.where(sky < _SKY, depth, far[:, None, None, None])


def in_metres(
    output: GPMOutput, metric: Float[Tensor, "B S H W"], sky: Float[Tensor, "B S H W"]
) -> GPMOutput:
    """Depth and cameras scaled to agree with a metric depth; sky far away, with the least confidence."""
    assert output.confidence is not None and output.cam_from_world is not None
    ground = sky < _SKY
    scale = torch.stack(
        [_scale_to(*scene) for scene in zip(output.depth, output.confidence, metric, ground, strict=True)]
    )
    depth = output.depth * scale[:, None, None, None]
    far = torch.stack([_far_depth(d, g) for d, g in zip(depth, ground, strict=True)]).clamp_max(_FARTHEST_SKY)
    rotation, translation = output.cam_from_world.split([3, 1], -1)
    return replace(
        output,
        depth=torch.where(ground, depth, far[:, None, None, None]),
        confidence=torch.where(ground, output.confidence, 1.0),
        cam_from_world=torch.cat([rotation, translation * scale[:, None, None, None]], -1),
        sky=sky,
    )


def _far_depth(depth: Tensor, ground: Tensor) -> Tensor:
    """The 99 % quantile of the ground's depth (of all depth where there is no ground)."""
    values = depth[ground] if ground.any() else depth.flatten()
    # torch.quantile refuses more than 16 million values.
    return values.kthvalue(max(1, round(0.99 * len(values)))).values


def _scale_to(depth: Tensor, confidence: Tensor, metric: Tensor, ground: Tensor) -> Tensor:
    """The least-squares factor from depth to metric depth over the more confident half of the ground."""
    if not ground.any():
        return depth.new_ones(())
    use = ground & (confidence >= confidence[ground].median()) & (depth > 1e-3) & (metric > 1e-2)
    d, m = depth[use], metric[use]
    return (d * m).sum() / d.square().sum() if len(d) else depth.new_ones(())
