"""How good the network is on clips that it does not learn from."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from geoweaver.errors import DegenerateError
from geoweaver.evaluation.depth import DepthFrame, score_depth
from geoweaver.models import GPM, GPMOutput
from geoweaver.training.batch import Batch
from geoweaver.training.datasets.registry import Source
from geoweaver.training.losses import front_loss
from geoweaver.training.sampling import validation_clip
from geoweaver.training.settings import TrainConfig

Predict = Callable[[Tensor], GPMOutput]


def validate(
    network: GPM, predict: Predict, sources: Sequence[Source], config: TrainConfig, device: torch.device
) -> dict[str, float]:
    """Mean loss over fixed clips, relative rotation error, and AbsRel of depth after median scaling."""
    network.eval()
    total = angle = 0.0
    frames: list[DepthFrame] = []
    with torch.no_grad():
        for number in range(config.validation_clips):
            clip = validation_clip(sources, config, number).to(device)
            output = predict(clip.images)
            losses = front_loss(output, clip, config.loss)
            total += float(losses.total)
            angle += float(losses.rotation)
            frames += depth_frames(output, clip)
    network.train()
    count = config.validation_clips
    scores = {"val_loss": total / count, "val_rotation_deg": angle / count * 57.29577951308232}
    try:
        return scores | {"val_absrel": score_depth(frames, align="median").absrel}
    except DegenerateError:
        return scores


def depth_frames(output: GPMOutput, truth: Batch) -> list[DepthFrame]:
    """Predicted beside true depth, view by view."""
    guessed, true = output.depth.flatten(0, 1).float().cpu(), truth.depth.flatten(0, 1).cpu()
    return [DepthFrame(a, b) for a, b in zip(guessed, true, strict=True)]
