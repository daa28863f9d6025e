"""The way from pixels to cameras and depth, one stage a line. Read `reconstruct` first."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from geoweaver.assembly.trust import TrustConfig
from geoweaver.between import VERSION as BETWEEN_VERSION
from geoweaver.between import locate_rest
from geoweaver.clock import Clock
from geoweaver.datatypes import Frames, Reconstruction
from geoweaver.engine import Engine, find_engine
from geoweaver.engine.local import available_cores
from geoweaver.errors import ConfigError, DegenerateError
from geoweaver.export.run_folder import RunRecord
from geoweaver.features import FeatureConfig, compute_features, find_retriever
from geoweaver.finished import PIECE, STAGE, RunDepths, RunMatches, SavedRun, rescale_run
from geoweaver.formats.files import place
from geoweaver.frames import FramesConfig, KeyframeConfig, keep_pixels, open_frames, select_keyframes
from geoweaver.frames.chunks import check_chunk_size
from geoweaver.graph import GraphConfig
from geoweaver.matching import SamplingConfig
from geoweaver.matching.protocol import find_matcher
from geoweaver.outputs import OutputConfig, forget_outputs, write_outputs
from geoweaver.priors import find_prior
from geoweaver.priors.lens import LensConfig
from geoweaver.scale import KnownScale
from geoweaver.stages import chunk_priors, cut_chunks, dense_matches, view_graph
from geoweaver.store import (
    NOT_IN_KEY,
    Costs,
    PriorStore,
    Store,
    artifact_key,
    cached_noun,
    forget_costs,
)
from geoweaver.straightening import straighten
from geoweaver.track_adjustment import PolishConfig
from geoweaver.turns import VERSION, Material, facts, weave_in_turns
from geoweaver.unplaced import require_pieces, why_unplaced
from geoweaver.weave import WeaveConfig

log = logging.getLogger(__name__)
MOST_NOTES = 5
"""Notes on the input that are logged; run.json has all of them."""


def _from_pixels() -> WeaveConfig:
    """The weave of real images: fewer matches, and sigmas measured on whole runs of rendered worlds."""
    # what real depth and matches have in common outlasts the regions in which simulated errors are alike
    return WeaveConfig(SamplingConfig(max_per_pair=2000), trust=TrustConfig(inflation=(7.0, 9.0)))


@dataclass(frozen=True)
class Config:
    """Settings of a whole run; each part is documented where it is used."""

    frames: FramesConfig = field(default_factory=FramesConfig)
    keyframes: KeyframeConfig = field(default_factory=KeyframeConfig)
    lens: LensConfig = field(default_factory=LensConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    graph: GraphConfig = field(default_factory=GraphConfig)
    weave: WeaveConfig = field(default_factory=_from_pixels)
    polish: PolishConfig = field(default_factory=PolishConfig)
    chunk_size: int = 60
    """Keyframes per chunk; neighbours share one."""
    fixed_stride: bool = False
    """The paper's chunks: borders stay where counting puts them."""
    prior: str = "sfm"
    """NAME or NAME:PATH of the geometric prior."""
    poses: Path | None = None
    """A trajectory file of known cameras, told to priors that take them."""
    matcher: str = "classical"
    """NAME or NAME:PATH of the matcher."""
    scale: KnownScale | None = None
    """What is known about lengths; without it the unit is the first chunk's median depth."""
    outputs: OutputConfig = field(default_factory=OutputConfig)
    retriever: str = "vlad"
    """NAME or NAME:PATH of what finds places seen before."""
    seed: int = 0
    """Same seed, same input: same bytes."""
    engine: str = field(default="local", metadata=NOT_IN_KEY)
    """local or ray."""
    workers: int = field(default=0, metadata=NOT_IN_KEY)
    """Processes; 0: one per core."""
    address: str | None = field(default=None, metadata=NOT_IN_KEY)
    """Of the Ray cluster."""
    device: str = field(default="auto", metadata=NOT_IN_KEY)
    """Where networks run: auto, cpu or cuda."""


def reconstruct(input: Path, out: Path, config: Config, overwrite: bool = False) -> Reconstruction:
    """Cameras of every frame of a video or a folder of images; a killed run goes on where it stopped."""
    # a wrong option, name or a missing package shows now, not after an hour
    _check(config)
    prior = find_prior(config.prior, poses=config.poses, device=config.device)
    matcher = find_matcher(*_named(config.matcher), device=config.device)
    retriever = find_retriever(config.retriever, device=config.device)
    engine = _engine(config)
    with (
        Clock() as clock,
        _opened(input, out, config, overwrite) as (frames, store),
        clock.kept_in(Costs(store.folder, config)),
        _named_in_errors(input),
    ):
        frames = select_keyframes(frames, config.keyframes, store=store, engine=engine)
        clock.lap("frames", [facts(frames), config.keyframes])
        frames = straighten(frames, config.frames, config.lens, config.features, store, engine)
        clock.lap("lens", [facts(frames), config.lens, config.features], frames.notes)
        frames = keep_pixels(frames, store, engine)
        features = compute_features(frames, store, config.features, engine)
        seen = [features.key(frame) for frame in frames.keyframe.nonzero()[:, 0].tolist()]
        clock.lap("features", seen)
        chunks = cut_chunks(frames, features, store, engine, config.chunk_size, config.fixed_stride)
        graph = view_graph(frames, features, chunks, store, engine, config.graph, retriever)
        clock.lap("graph", [seen, chunks, graph, config.graph, retriever])
        matches = dense_matches(frames, features, graph, store, _engine(config, matcher), matcher)
        clock.lap("matches", matches.places)
        crew, workers = _engine(config, prior), _workers(config, prior)
        priors = chunk_priors(frames, features, chunks, store, crew, prior, config.prior, workers)
        clock.lap("priors", [_named(config.prior)[0], priors.places], priors.notes)
        require_pieces(priors)
        made_from = Material(frames, graph, matches, priors)
        woven, key = weave_in_turns(made_from, config.weave, config.polish, config.seed, store, clock)
        saved, key = _complete(frames, woven, key, config, store, engine)
        clock.lap("frames between", key)
        settings = replace(config, frames=config.frames.found_from_anywhere())
        unplaced, masked = why_unplaced(priors.reason, saved.result), frames.masks is not None
        record = RunRecord(input, settings, key, saved, clock, masked, frames.lost, unplaced)
        write_outputs(out, record, config.outputs, store, engine)
    return saved.result


def _check(config: Config) -> None:
    """Options that no stage could work with."""
    check_chunk_size(config.chunk_size)
    if config.workers < 0:
        raise ConfigError(f"--workers is {config.workers}: give a number of processes, or 0 for one per core")
    if config.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: PyTorch finds no GPU here: use --device auto or cpu")


@contextmanager
def _opened(input: Path, out: Path, config: Config, overwrite: bool) -> Iterator[tuple[Frames, Store]]:
    """The input's frames, then the run's workspace: an input that is wrong touches no folder."""
    frames = open_frames(input, config.frames)
    if config.scale is not None:
        config.scale.found(frames)
    _tell(frames)
    _warn_of_strangers(out)
    with Store.open(out / "work") as store:
        if overwrite:
            forget_outputs(out)
            store.clear()
            forget_costs(store.folder)
        yield frames, store


@contextmanager
def _named_in_errors(input: Path) -> Iterator[None]:
    """Data that do not determine the cameras are somebody's recording: say which."""
    try:
        yield
    except DegenerateError as error:
        raise DegenerateError(f"{place(input)}: {error}") from error


def _warn_of_strangers(out: Path) -> None:
    """A folder that is no run's, and not empty, was perhaps given by mistake."""
    if out.is_dir() and any(out.iterdir()) and not (out / "work").exists():
        log.warning("%s holds other files: they stay, the run's come beside them", out)


def _tell(frames: Frames) -> None:
    """What there is to know about the input, some lines of it."""
    for line in frames.lost:
        log.warning("%s", line)
    others = [line for line in frames.notes if line not in frames.lost]
    for line in others[:MOST_NOTES]:
        log.info("%s", line)
    if len(others) > MOST_NOTES:
        log.info("and %d more notes on the input, in run.json", len(others) - MOST_NOTES)


def _engine(config: Config, part: object = None) -> Engine:
    """The engine as asked for, with as many workers as a part allows."""
    return find_engine(config.engine, _workers(config, part), config.address)


def _workers(config: Config, part: object = None) -> int:
    """As many as asked for; fewer where a part says so: two networks do not fit on one GPU."""
    workers = config.workers or available_cores()
    most = getattr(part, "most_workers", None)
    return workers if most is None else min(workers, most)


def _complete(
    frames: Frames, woven: SavedRun, key: str, config: Config, store: Store, engine: Engine
) -> tuple[SavedRun, str]:
    """The frames that the weave left out, each placed by what it sees; lengths in metres where known."""
    depths = RunDepths(woven, PriorStore(store, "priors", woven.priors))
    matches = RunMatches(woven, store)
    scale = None if config.scale is None else config.scale.found(frames)

    def compute() -> SavedRun:
        result = locate_rest(frames, woven.result, woven.graph, depths, matches, key, store, engine)
        whole = replace(woven, result=result)
        return whole if scale is None else rescale_run(whole, scale.factor(result))

    final = artifact_key(STAGE, VERSION, [BETWEEN_VERSION, scale], [key])
    return cached_noun(store, SavedRun, STAGE, PIECE, final, compute)[0], final


def _named(text: str) -> tuple[str, str | None]:
    """NAME[:PATH]."""
    name, _, path = text.partition(":")
    return name, path or None
