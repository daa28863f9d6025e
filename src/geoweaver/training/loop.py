"""One stage of the training: draw, predict, compare, step; kept so that it can go on after any end."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from geoweaver.engine.progress import stage_progress
from geoweaver.errors import ConfigError, DegenerateError
from geoweaver.formats.files import write_text
from geoweaver.formats.json_document import write_json
from geoweaver.models import GPM, IMAGE_MEAN, IMAGE_STD, GPMOutput, save_gpm
from geoweaver.models.vit import ViT
from geoweaver.training.batch import Batch
from geoweaver.training.checkpoint import CHECKPOINT, identity, load_checkpoint, save_checkpoint
from geoweaver.training.datasets.registry import Source
from geoweaver.training.losses import Losses, front_loss
from geoweaver.training.optimiser import freeze_untrained, make_optimiser, set_rates
from geoweaver.training.prefetch import read_ahead
from geoweaver.training.processes import Processes, start_processes
from geoweaver.training.sampling import training_batch
from geoweaver.training.settings import TrainConfig
from geoweaver.training.stopping import StopRequest, stop_requests
from geoweaver.training.validation import validate

log = logging.getLogger(__name__)

LOG = "log.jsonl"
SETTINGS = "training.json"
_MOST_SKIPPED = 100
"""Iterations in a row whose gradient may be not finite."""


@dataclass(frozen=True)
class Data:
    """What is learnt from, and what the network is tested on."""

    sources: Sequence[Source]
    held_out: Sequence[Source] = ()
    threads: int = 0
    """That read ahead."""


@dataclass
class Training:
    """A training that is going on."""

    network: GPM
    model: Any
    """The network as it is called: itself, or wrapped for several processes."""
    optimiser: torch.optim.AdamW
    config: TrainConfig
    processes: Processes
    out: Path
    who: dict[str, Any]
    step: int = 0
    """Iterations done."""
    skipped: int = 0
    saved: int = -1
    notes: list[dict[str, Any]] = field(default_factory=list)


def train(
    network: GPM, data: Data, out: Path, config: TrainConfig, processes: Processes | None = None,
    start: str = "",
) -> dict[str, Any]:  # fmt: skip
    """Train into a folder that `--prior gpm:FOLDER` loads; goes on where the folder holds a part of the same.

    `start` names the weights that the training began with. Returns the last line of the log.
    """
    training = _begin(network, data, out, config, processes or start_processes("cpu", 1), start)
    steps = range(training.step, config.iterations)
    with stop_requests() as stop, stage_progress(f"stage {config.stage}", len(steps)) as advance:
        for batch in _batches(data, training, steps):
            losses = _iterate(training, batch)
            training.step += 1
            advance(1)
            _note(training, losses, data)
            if training.step % config.checkpoint_every == 0 or training.step == config.iterations:
                _save(training)
            if _stops(stop, training):
                _save(training)
                stop.answer()
    if training.saved < 0:
        _save(training)
    return training.notes[-1] if training.notes else {"step": training.step}


def _begin(
    network: GPM, data: Data, out: Path, config: TrainConfig, processes: Processes, start: str
) -> Training:
    if network.config.camera_head == "none" or network.config.monocular:
        raise ConfigError("a monocular GPM has no cameras and cannot be trained: choose one of several views")
    encoder = network.backbone["pretrained"]
    assert isinstance(encoder, ViT)
    encoder.recompute = config.recompute
    network.precision = training_precision(processes.device)
    network.to(processes.device).train()
    freeze_untrained(network)
    optimiser = make_optimiser(network, config)
    who = identity(config, tuple(s.name for s in data.sources), start, processes.count)
    training = Training(network, network, optimiser, config, processes, out, who)
    if (out / CHECKPOINT).exists():
        training.step = load_checkpoint(out / CHECKPOINT, network, optimiser, who)
        log.info("going on at iteration %d of %d", training.step, config.iterations)
    training.model = processes.wrap(network)
    if processes.rank == 0:
        _open_folder(training)
    processes.barrier()
    return training


def training_precision(device: torch.device) -> torch.dtype:
    """Of the encoder: bfloat16 where the GPU has it; float16 would need its gradients rescaled."""
    halves = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.bfloat16 if halves else torch.float32


def _open_folder(training: Training) -> None:
    """Settings beside the result; lines of the log that a killed training wrote too many are cut off."""
    settings = json.loads(json.dumps(asdict(training.config)))
    write_json(training.out / SETTINGS, {**training.who, "config": settings})
    path = training.out / LOG
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [line for line in lines if line.endswith("}") and json.loads(line)["step"] <= training.step]
    write_text(path, "".join(f"{line}\n" for line in kept))
    training.notes = [json.loads(line) for line in kept]


def _batches(data: Data, training: Training, steps: range) -> Iterator[Batch]:
    rank = training.processes.rank
    return read_ahead(
        lambda step: training_batch(data.sources, training.config, step, rank), steps, data.threads
    )


def _iterate(training: Training, batch: Batch) -> Losses:
    """One step of the optimiser; a gradient that is not finite is left out."""
    config, optimiser = training.config, training.optimiser
    set_rates(optimiser, config, training.step)
    batch = batch.to(training.processes.device)
    optimiser.zero_grad(set_to_none=True)
    losses = front_loss(predict(training.model, batch.images), batch, config.loss)
    losses.total.backward()  # type: ignore[no-untyped-call]
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    norm = torch.nn.utils.clip_grad_norm_(parameters, config.gradient_norm)
    if bool(norm.isfinite()):
        optimiser.step()
        training.skipped = 0
    else:
        _skip(training)
    return losses


def _skip(training: Training) -> None:
    training.skipped += 1
    log.warning("iteration %d: the gradient is not finite, nothing is learnt from it", training.step + 1)
    if training.skipped >= _MOST_SKIPPED:
        raise DegenerateError(
            f"{_MOST_SKIPPED} iterations in a row had no finite gradient: lower the learning rates, "
            f"or go back to an earlier {CHECKPOINT}"
        )


def predict(model: Any, images: Tensor) -> GPMOutput:
    """The network on RGB in [0, 1]."""
    mean, std = (images.new_tensor(values)[:, None, None] for values in (IMAGE_MEAN, IMAGE_STD))
    output: GPMOutput = model((images - mean) / std)
    return output


def _note(training: Training, losses: Losses, data: Data) -> None:
    """A line in the log, and the test on held-out clips, where one is due."""
    config, step = training.config, training.step
    last = step == config.iterations
    due = bool(data.held_out) and (step % config.validate_every == 0 or last)
    if not (due or step % config.log_every == 0 or last or step == 1):
        return
    parts = torch.stack([value.detach() for value in vars(losses).values()])
    means = training.processes.average(parts).tolist()
    note: dict[str, Any] = {"step": step, **dict(zip(vars(losses), means, strict=True))}
    if training.processes.rank == 0:
        if due:
            score = validate(
                training.network, lambda images: predict(training.network, images), data.held_out, config,
                training.processes.device,
            )  # fmt: skip
            note |= score
        training.notes.append(note)
        with (training.out / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        log.info("%s", "  ".join(f"{k} {v:.4g}" if k != "step" else f"step {v}" for k, v in note.items()))
    if due:
        training.processes.barrier()


def _save(training: Training) -> None:
    """The state first, then the network as others load it."""
    if training.saved != training.step and training.processes.rank == 0:
        save_checkpoint(
            training.out / CHECKPOINT, training.network, training.optimiser, training.step, training.who
        )
        save_gpm(training.network, training.out)
    training.saved = training.step
    training.processes.barrier()


def _stops(stop: StopRequest, training: Training) -> bool:
    """With several processes all must agree, or some would wait for ever."""
    if training.processes.count == 1:
        return bool(stop)
    asked = torch.tensor(float(bool(stop)), device=training.processes.device)
    return bool(training.processes.average(asked) > 0)
