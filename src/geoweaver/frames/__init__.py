"""From a video or a folder of images to frames, keyframes and chunks."""

from geoweaver.frames.chunks import split_chunks, tie_strength_from_pairs
from geoweaver.frames.images import UnreadableFrameError
from geoweaver.frames.kept import keep_pixels
from geoweaver.frames.keyframes import KeyframeConfig, select_keyframes
from geoweaver.frames.motion import Motion, chains, frames_by, measure_motion
from geoweaver.frames.opening import FramesConfig, open_frames, rectify_frames

__all__ = [
    "FramesConfig",
    "KeyframeConfig",
    "Motion",
    "UnreadableFrameError",
    "chains",
    "frames_by",
    "keep_pixels",
    "measure_motion",
    "open_frames",
    "rectify_frames",
    "select_keyframes",
    "split_chunks",
    "tie_strength_from_pairs",
]
