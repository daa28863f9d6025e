"""From a video or a folder of images to frames, keyframes and chunks."""

from geoweaver.frames.images import UnreadableFrameError
from geoweaver.frames.opening import FramesConfig, open_frames

__all__ = ["FramesConfig", "UnreadableFrameError", "open_frames"]
