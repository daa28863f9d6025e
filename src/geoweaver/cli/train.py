"""`geoweaver train --stage 1|2 --data NAME:PATH... --init FOLDER -o OUT`: the GPM's two-stage training."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import UseAppendAction, arg

from geoweaver.errors import ConfigError

if TYPE_CHECKING:
    from geoweaver.models import GPM
    from geoweaver.training.settings import TrainConfig


@dataclass(frozen=True)
class Options:
    """Train the Geometric Prior Model by the paper's two stages; the same command goes on after any end."""

    out: Annotated[Path, arg(aliases=["-o"])]
    """Folder of the trained model: what --prior gpm:FOLDER loads."""
    init: Annotated[Path, arg(metavar="FOLDER")]
    """Weights to start from: what `geoweaver models fetch` brings; for stage 2 the OUT of stage 1."""
    data: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME:PATH[@WEIGHT]")]
    """What to learn from, once or more: folder, render, scannet, hypersim, tartanair, blendedmvs,
    dynamicreplica."""
    stage: Literal[1, 2] = 1
    """1: clips of 4 views; 2: clips of 2 to 16 views."""
    held_out: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME:PATH")] = ()
    """What to test on from time to time, of the same kinds."""
    camera_head: Literal["keep", "mlp", "transformer"] = "keep"
    """transformer: the paper's head, begun anew where the weights hold another."""
    iterations: int = 100_000
    encoder_rate: float = 1e-6
    """Peak learning rate of the encoder."""
    head_rate: float = 1e-5
    """Peak learning rate of the heads."""
    frames_per_device: int = 16
    """Images on one GPU and iteration, and so the most views of a clip."""
    long_side: int = 504
    """Pixels of the images' long side."""
    checkpoint_every: int = 1000
    """Iterations between checkpoints."""
    validate_every: int = 1000
    """Iterations between tests."""
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    devices: int = 1
    """Processes, one per GPU; more than one needs the extra train."""
    loaders: int = 4
    """Threads that read ahead."""
    overwrite: bool = False
    """Begin anew although OUT holds a training."""


_GIVEN = (
    "iterations", "encoder_rate", "head_rate", "frames_per_device", "long_side", "checkpoint_every",
    "validate_every", "seed",
)  # fmt: skip
"""Options that are settings of the training."""


def run(options: Options) -> None:
    """Open, train, say where."""
    config = _config(options)
    from geoweaver.training.checkpoint import CHECKPOINT
    from geoweaver.training.datasets.registry import open_sources
    from geoweaver.training.loop import Data, train
    from geoweaver.training.processes import seed_everything, start_processes

    data = Data(
        open_sources(options.data),
        open_sources(options.held_out) if options.held_out else (),
        options.loaders,
    )
    seed_everything(options.seed)
    network, start = _network(options)
    processes = start_processes(options.device, options.devices)
    if options.overwrite and processes.rank == 0:
        (options.out / CHECKPOINT).unlink(missing_ok=True)
    processes.barrier()
    note = train(network, data, options.out, config, processes, start)
    if processes.rank == 0:
        print(f"stage {options.stage}: {note['step']} iterations, loss {note.get('total', float('nan')):.4g}")
        print(f"model:  {options.out.resolve()}")
        print(f"use it: geoweaver reconstruct INPUT -o RUN --prior gpm:{options.out}")


def _config(options: Options) -> "TrainConfig":
    from geoweaver.training.settings import STAGES

    paper = STAGES[options.stage]
    fewest, most = paper.views
    given: dict[str, Any] = {name: getattr(options, name) for name in _GIVEN}
    # a smaller GPU trains on shorter clips
    return replace(paper, views=(fewest, max(fewest, min(most, options.frames_per_device))), **given)


def _network(options: Options) -> "tuple[GPM, str]":
    """The network to begin with, and what names it."""
    from geoweaver.models import FAMILIES, GPM, load_gpm, load_gpm_folder
    from geoweaver.models.checkpoint import describe
    from geoweaver.models.weights import read_state, sha256

    config, weights = describe(options.init)
    known = FAMILIES.get(config) if isinstance(config, str) else config
    digest = sha256(weights)
    head = options.camera_head
    if head == "keep" or (known is not None and known.camera_head == head):
        network = load_gpm_folder(options.init)
    elif known is None:
        raise ConfigError(f"{options.init}: --camera-head needs a folder with config.json beside the weights")
    else:
        network = load_gpm(replace(known, camera_head=head), read_state(weights), fresh=("cam_dec.",))
    if not isinstance(network, GPM):
        raise ConfigError(f"{options.init}: the nested pair of models cannot be trained: choose a single one")
    return network, f"{digest} {head}"
