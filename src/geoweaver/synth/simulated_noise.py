"""The knobs of the simulated prior and matches; sizes are relative to the scene or the image,
never metres."""

from dataclasses import dataclass, replace

from geoweaver.errors import ConfigError


@dataclass(frozen=True)
class PriorNoise:
    """How a simulated feed-forward model errs; every standard deviation and share may be 0."""

    gauge_scale: float = 0.3
    """Std of the log of a chunk's unit around "median depth = 1": networks normalise, but only roughly."""
    gauge_turn: float = 1.0
    """Largest turn of a chunk's axes as a share of pi; 1 = anything, so that no stage can lean on the
    first camera."""
    gauge_shift: float = 1.0
    """Std per axis of the chunk origin's distance from its first camera, in median depths."""
    scale_drift: float = 0.02
    """Std of the smooth log-scale curve along 60 frames, shared by depth and camera steps:
    a window's ends disagree by some per cent."""
    bend: float = 0.6
    """Std (degrees per axis) of the smooth turn along 60 frames; the path bends with it.
    Pose errors of good models are below a degree."""
    turn_jitter: float = 0.1
    """Std (degrees per axis) of each camera's own rotation error: about one pixel in 512 at 60 degrees of
    view."""
    shift_jitter: float = 0.003
    """Std per axis of each camera's own position error, in median depths of the chunk:
    below a video's step per frame."""
    stray_frames: float = 0.0
    """Share of frames whose camera is grossly wrong (5 degrees, 0.1 median depths per axis);
    rare inside a 60-frame window, hence 0."""
    focal_shared: float = 0.015
    """Std of the log-focal error common to all chunks of the sequence:
    what a shared focal correction is for."""
    focal_chunk: float = 0.01
    """Std of the log-focal error per chunk, on top: windows with little parallax leave the focal to taste."""
    focal_frame: float = 0.003
    """Std of the log-focal error per frame, on top: heads predict a field of view for every frame."""
    depth_scale: float = 0.015
    """Std of log a in a frame's affine depth error a d + b; models keep frames of one window within 1 to 2
    per cent."""
    depth_shift: float = 0.01
    """Std of b in the same, in median depths of the frame: affine-invariant training leaves some of it."""
    smooth: float = 0.02
    """Std of the low-frequency relative depth error: bulged walls and tilted floors,
    AbsRel of 2 to 4 per cent altogether."""
    smooth_cells: int = 6
    """Control points of that field along the image's width: bulges of about a sixth of the image."""
    smooth_frames: float = 8.0
    """Frames over which that field lives: a model repeats its error in the next frames."""
    fine: float = 0.004
    """Std of the white relative depth error per pixel: network depth is smooth."""
    flying: float = 0.3
    """Share of pixels beside a depth edge that hang between near and far: upsampling blurs about a pixel."""
    edge_ratio: float = 0.1
    """Relative depth step within 3 x 3 pixels that counts as an edge."""
    invalid: float = 0.02
    """Share of pixels without depth, in blobs: masks of glass, mirrors, people; sky has none anyway."""
    wrong_frames: float = 0.02
    """Share of frames whose whole depth is off by `wrong_size` with a confidence that does not know it."""
    wrong_regions: float = 0.05
    """Share of frames with a region (a seventh of the image) that is off by `wrong_size`,
    confident all the same."""
    wrong_size: float = 0.15
    """Largest log-depth error of those (half of it at least): a mirror, a poster,
    a far wall taken for a near one."""
    confidence_noise: float = 0.3
    """Std of the confidence's smooth error in its log: ranks neighbouring errors wrongly,
    large ones rarely."""

    @classmethod
    def default(cls) -> "PriorNoise":
        """A good model on an ordinary video."""
        return cls()

    @classmethod
    def hard(cls) -> "PriorNoise":
        """A mediocre model, or a good one far from its training data: two to four times every error."""
        return cls(
            scale_drift=0.06, bend=2.0, turn_jitter=0.3, shift_jitter=0.01, stray_frames=0.01,
            focal_shared=0.04, focal_chunk=0.03, focal_frame=0.01, depth_scale=0.04, depth_shift=0.03,
            smooth=0.05, fine=0.012, flying=0.6, invalid=0.08,
            wrong_frames=0.06, wrong_regions=0.15, wrong_size=0.3, confidence_noise=0.6,
        )  # fmt: skip

    @classmethod
    def exact(cls) -> "PriorNoise":
        """No error at all: only the chunk's gauge stays random."""
        return cls(
            scale_drift=0.0, bend=0.0, turn_jitter=0.0, shift_jitter=0.0, stray_frames=0.0,
            focal_shared=0.0, focal_chunk=0.0, focal_frame=0.0, depth_scale=0.0, depth_shift=0.0,
            smooth=0.0, fine=0.0, flying=0.0, invalid=0.0,
            wrong_frames=0.0, wrong_regions=0.0, wrong_size=0.0, confidence_noise=0.0,
        )  # fmt: skip


@dataclass(frozen=True)
class MatchNoise:
    """How a simulated dense matcher errs; pixels are those of an image 512 wide and are scaled to the
    actual one."""

    sigma: float = 0.5
    """Std (px per axis) of a good match: what dense matchers reach on textured surfaces."""
    correlated: float = 0.5
    """Share of that variance in a smooth field per edge: neighbouring matches err together and must not
    count as independent."""
    correlation: float = 32.0
    """Length (px) of that field: a dense matcher's coarse stride of 14 to 16 px, twice."""
    tail: float = 0.08
    """Share of matches with four times the noise: the heavier tail of weak texture and blur."""
    growth: float = 0.5
    """Relative growth of the noise per 30 degrees of parallax and per factor 2 of distance."""
    structured: float = 0.06
    """Mean share of an edge's matches in patches moved by one common wrong affine shift; 0 to 0.6."""
    repeated: float = 0.5
    """Share of those patches moved by the period of a repeated texture, the same for 30 frames on end:
    wrong, and agreeing with other edges."""
    unstructured: float = 0.04
    """Mean share of an edge's matches that end anywhere; 0 to 0.6."""
    occluded: float = 0.1
    """Share of points hidden in the second frame that are matched as if they could be seen:
    flow goes on behind edges."""
    honest: float = 0.7
    """Share of unstructured outliers whose score tells the error; structured ones have half of it."""
    score_noise: float = 0.7
    """Std of the score's logit."""
    wrong_turn: float = 8.0
    """Largest in-plane turn (degrees) of a wrong pair's borrowed overlap; its zoom is up to 15 per cent,
    its shift a tenth of the image."""
    wrong_strength: float = 0.3
    """Least share of `per_edge` matches that a wrong pair gets (at most all): some fakes are weak,
    some as dense as the truth."""

    def __post_init__(self) -> None:
        if min(self.structured, self.unstructured) < 0 or self.structured + self.unstructured > 0.6:
            raise ConfigError(
                f"MatchNoise: structured {self.structured} + unstructured {self.unstructured} outliers: "
                "choose shares of 0 or more that sum to at most 0.6"
            )

    @classmethod
    def default(cls) -> "MatchNoise":
        """A good dense matcher: a tenth of the matches is wrong."""
        return cls()

    @classmethod
    def hard(cls) -> "MatchNoise":
        """Weak texture and repetition: about a third of the matches is wrong,
        and the scores tell it badly."""
        return cls(
            sigma=1.0, tail=0.15, growth=1.0, structured=0.2, unstructured=0.12, occluded=0.3, honest=0.4,
            score_noise=1.2,
        )  # fmt: skip

    @classmethod
    def exact(cls) -> "MatchNoise":
        """Exact matches of visible points, and nothing else (wrong pairs stay wrong)."""
        return cls(
            sigma=0.0, tail=0.0, growth=0.0, structured=0.0, unstructured=0.0, occluded=0.0, score_noise=0.0
        )

    def with_outliers(self, share: float) -> "MatchNoise":
        """The same matcher with this share of wrong matches, three fifths of them structured."""
        return replace(self, structured=0.6 * share, unstructured=0.4 * share)
