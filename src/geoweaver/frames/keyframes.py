"""Keyframes: far enough apart to see parallax, near enough to overlap, and sharp among their neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from geoweaver.datatypes import Frames
from geoweaver.engine import Engine
from geoweaver.errors import ConfigError
from geoweaver.frames.motion import Motion, chains, measure_motion
from geoweaver.store import Store


@dataclass(frozen=True)
class KeyframeConfig:
    """Which frames carry the reconstruction; the others are placed between them."""

    mode: Literal["auto", "all"] = "auto"
    """auto: by parallax and sharpness (a folder of up to `all_up_to` images: all); all: every frame."""
    all_up_to: int = 400
    """Images of a folder that are all keyframes, ..."""
    redundant: float = 0.4
    """... unless more than this share of them hardly differs from another: a film cut into images."""
    step: float = 0.04
    """Image motion between keyframes, relative to the long side."""
    window: float = 0.35
    """Share of the step by which a keyframe may come early or late to be sharper."""
    max_gap: int = 15
    """Frames between keyframes at most, however little moves."""
    fewest: int = 40
    """The step is halved, down to `smallest_step`, until a chain has so many keyframes."""
    smallest_step: float = 0.01


DEFAULTS = KeyframeConfig()


def select_keyframes(
    frames: Frames,
    config: KeyframeConfig = DEFAULTS,
    *,
    video: bool | None = None,
    store: Store | None = None,
    engine: Engine | None = None,
) -> Frames:
    """The same frames with their keyframes marked; frames that turn out unreadable join the broken ones."""
    if not 0 < config.step <= 1 or not 0 <= config.window < 1 or config.max_gap < 1:
        raise ConfigError("keyframes need a step in (0, 1], a window in [0, 1) and a gap of at least 1")
    # frames of a video have no file names
    is_video = all("." not in name for name in frames.names) if video is None else video
    few = not is_video and len(frames) <= config.all_up_to
    if config.mode == "all" or (few and len(frames) <= config.fewest):
        return frames
    motion = measure_motion(frames, store, engine)
    keyframe = torch.zeros(len(frames), dtype=torch.bool)
    for chain in chains(frames):
        readable = [i for i in chain if not motion.sharpness[i].isnan()]
        keyframe[_enough_keyframes(motion, readable, config)] = True
    if few and int(keyframe.sum()) >= (1 - config.redundant) * len(frames):
        return frames
    broken = tuple(motion.sharpness.isnan().nonzero()[:, 0].tolist())
    return replace(frames, keyframe=keyframe, broken=broken)


def _enough_keyframes(motion: Motion, chain: Sequence[int], config: KeyframeConfig) -> list[int]:
    chosen = choose_keyframes(motion, chain, config)
    while len(chosen) < config.fewest and config.step > config.smallest_step:
        config = replace(config, step=config.step / 2)
        chosen = choose_keyframes(motion, chain, config)
    return chosen


def choose_keyframes(motion: Motion, chain: Sequence[int], config: KeyframeConfig = DEFAULTS) -> list[int]:
    """Walk along a chain: the sharpest frame about one step after the last keyframe is the next one."""
    if not chain:
        return []
    chosen = [0]
    while True:
        window = _window(motion, chain, chosen[-1], config)
        if not window:
            break
        chosen.append(max(window, key=lambda at: (float(motion.sharpness[chain[at]]), -at)))
    # the chain's end must not hang in the air
    if chosen[-1] < len(chain) - 1:
        chosen.append(len(chain) - 1)
    return [chain[at] for at in chosen]


def _window(motion: Motion, chain: Sequence[int], last: int, config: KeyframeConfig) -> list[int]:
    """Places on the chain where the next keyframe may be; none where the chain ends before one step."""
    moved = 0.0
    window: list[int] = []
    for at in range(last + 1, len(chain)):
        moved += min(float(motion.displacement[chain[at]]), config.step)
        late = moved > (1 + config.window) * config.step and window
        if late or at - last > config.max_gap:
            return window or [at - 1]
        if moved >= (1 - config.window) * config.step:
            window.append(at)
    return window if moved >= config.step else []
