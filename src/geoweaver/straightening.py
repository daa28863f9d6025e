"""Rectify the images of cameras whose bending nobody gave, once, before anything is made from them."""

import logging
from dataclasses import replace
from functools import partial

from geoweaver.datatypes import Camera, Frames
from geoweaver.engine import Engine
from geoweaver.features import FeatureConfig, FrameFeatures, compute_features, features_digest
from geoweaver.frames import FramesConfig, keep_pixels, rectify_frames
from geoweaver.priors.lens import LensConfig, LensVerdict, agree_on_lens, lens_windows
from geoweaver.priors.lens_residual import PINHOLES, agree_on_residual, residual_vote, residual_windows
from geoweaver.priors.lens_vote import lens_start, lens_vote
from geoweaver.store import Store, artifact_key, cached_noun

VERSION = 5
"""Goes up when the same windows say something else."""
STAGE = "lens"
_NOT_LOOKED_FOR = (
    "lens distortion is not looked for (too few keyframes, or --lens pinhole): images are taken as they are"
)
log = logging.getLogger(__name__)


def straighten(
    frames: Frames,
    options: FramesConfig,
    config: LensConfig,
    features: FeatureConfig,
    store: Store,
    engine: Engine,
) -> Frames:
    """The frames rectified by what windows of them agree on; the same frames where none need it."""
    groups = [g for g, camera in enumerate(frames.cameras) if not _bending_given(camera)]
    verdicts = {g: _verdict(frames, g, config, features, store, engine) for g in groups}
    found = {g: v.lens for g, v in verdicts.items() if v.lens is not None}
    for g, verdict in verdicts.items():
        log.info("camera %d: %s", g, verdict.note)
    if not found:
        return frames
    lenses = [found.get(g) or camera.lens for g, camera in enumerate(frames.cameras)]
    notes = tuple(f"camera {g}: {verdicts[g].note}" for g in found)
    return replace(rectify_frames(frames, lenses, options), notes=(*frames.notes, *notes))


def _bending_given(camera: Camera) -> bool:
    """Whether a calibration tells how the lens bends; a focal and a middle alone do not."""
    return camera.calibrated and camera.model not in PINHOLES


def _verdict(
    frames: Frames, group: int, config: LensConfig, options: FeatureConfig, store: Store, engine: Engine
) -> LensVerdict:
    """What a camera's windows agree on, kept in the store."""
    own = [i for i in range(len(frames)) if frames.keyframe[i] and frames.camera[i] == group]
    camera = frames.cameras[group]
    config = residual_windows(config) if camera.calibrated else config
    windows = lens_windows(own, config)
    if not windows:
        return LensVerdict(None, (), _NOT_LOOKED_FOR)
    rows = sorted({frame for window in windows for frame in window.frames})
    start = lens_start(camera, frames.size)
    inputs = [features_digest(FrameFeatures(frames, store, options), rows)]
    key = artifact_key(STAGE, VERSION, [config, camera, start, windows], inputs)

    def compute() -> LensVerdict:
        # images and features of the windows are those that later stages need, unless they are rectified
        features = compute_features(keep_pixels(frames, store, engine, rows), store, options, engine, rows)
        vote, agree = (residual_vote, agree_on_residual) if camera.calibrated else (lens_vote, agree_on_lens)
        votes = list(engine.map(partial(vote, start, features.read), windows, title=STAGE))
        return agree(camera, start, votes)

    return cached_noun(store, LensVerdict, STAGE, f"camera-{group:03}", key, compute)[0]
