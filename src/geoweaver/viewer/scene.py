"""What the viewer shows of runs: cameras of every stage and points, brought into the viewer's own space."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Float32, UInt8
from torch import Tensor

from geoweaver.geometry import SE3, Sim3, world_camera
from geoweaver.geometry.upright import up_direction
from geoweaver.results import FinishedRun
from geoweaver.viewer.scene_cloud import MOST_POINTS, SceneCloud, run_cloud
from geoweaver.viewer.scene_colours import ColourBy, chunk_colours, ramp_colours, trust_colours
from geoweaver.viewer.scene_place import similarity, view_from_world

RESULT = "Result"


@dataclass(frozen=True)
class NamedRun:
    """A run, what to call it, and how it lies in the common world (identity where it is alone)."""

    name: str
    run: FinishedRun
    common_from_run: Sim3


@dataclass(frozen=True)
class SceneStage:
    """Cameras after a stage, in the viewer's space: stages differ by a similarity, which is taken out."""

    name: str
    cam_from_view: SE3


@dataclass(frozen=True)
class SceneRun:
    """One run in the viewer's space."""

    name: str
    run: FinishedRun
    cloud: SceneCloud
    view_from_run: Sim3
    stages: tuple[SceneStage, ...]
    """After Stage 1, 2, 3, and the result last."""

    def __len__(self) -> int:
        return len(self.run.result)

    def stage_points(self, stage: int) -> Float32[Tensor, "P 3"]:
        """The points where their frames' cameras stood after a stage, in the viewer's space."""
        final = self.view_from_run.act(self.cloud.points.double())
        if stage == len(self.stages) - 1:
            return final.float()
        known = self.cloud.frame >= 0
        frame = self.cloud.frame[known]
        now, then = self.stages[-1].cam_from_view, self.stages[stage].cam_from_view
        moved = final.clone()
        moved[known] = (then.inverse() @ now)[frame].act(final[known])
        return moved.float()

    def point_colours(self, by: ColourBy) -> UInt8[Tensor, "P 3"]:
        """Every point's colour."""
        if by == "RGB":
            return self.cloud.colours
        if by == "confidence":
            return ramp_colours(self.cloud.confidence)
        known = self.cloud.frame >= 0
        colours = self.frame_colours(by)[self.cloud.frame.clamp(min=0)]
        colours[~known] = 128
        return colours

    def frame_colours(self, by: ColourBy) -> UInt8[Tensor, "F 3"]:
        """Every camera's colour; RGB: by trust, since a camera has no colour of its own."""
        if by == "chunk":
            return chunk_colours(self.run.chunk)
        if by == "confidence":
            return ramp_colours(self.frame_confidence)
        return trust_colours(self.run.result.trusted, torch.ones(len(self), dtype=torch.bool))

    @cached_property
    def frame_confidence(self) -> Float[Tensor, "F"]:
        """Mean confidence of the points that a frame saw; 0 where it saw none."""
        known = self.cloud.frame >= 0
        frame, confidence = self.cloud.frame[known], self.cloud.confidence[known].double()
        total = torch.zeros(len(self), dtype=torch.float64).index_add(0, frame, confidence)
        return total / torch.bincount(frame, minlength=len(self)).clamp(min=1)


@dataclass(frozen=True)
class Scene:
    """All that is shown at once."""

    runs: tuple[SceneRun, ...]
    reference: Float[Tensor, "n 3"] | None
    """Centres of a reference trajectory in the viewer's space."""
    common_from_view: Sim3

    @cached_property
    def width(self) -> float:
        """How far apart runs stand side by side."""
        last = [run.stage_points(len(run.stages) - 1)[:, 0] for run in self.runs]
        cameras = [run.stages[-1].cam_from_view.centre[:, 0].float() for run in self.runs]
        spans = [(x.quantile(0.02), x.quantile(0.98)) for x in map(_some, [*last, *cameras]) if len(x)]
        return 1.1 * max([1.0, *(float(high - low) for low, high in spans)])


def _some(values: Tensor) -> Tensor:
    """A part that torch's quantile takes."""
    return values[:: max(1, len(values) // 100_000)]


def build_scene(runs: list[NamedRun], reference: SE3 | None = None, most: int = MOST_POINTS) -> Scene:
    """Runs, and a reference where there is one, in one space; the reference is in the common world."""
    clouds = [run_cloud(named.run, most // len(runs)) for named in runs]
    first = _in_common(runs[0])
    cameras = first if reference is None else reference
    points = runs[0].common_from_run.act(_some(clouds[0].points).double())
    view_from_common = view_from_world(cameras, points, up_direction(first, runs[0].run.result.trusted))
    return Scene(
        tuple(_scene_run(named, cloud, view_from_common) for named, cloud in zip(runs, clouds, strict=True)),
        None if reference is None else view_from_common.act(reference.centre),
        view_from_common.inverse(),
    )


def _in_common(named: NamedRun) -> SE3:
    return world_camera(named.common_from_run, named.run.result.cam_from_world)


def _scene_run(named: NamedRun, cloud: SceneCloud, view_from_common: Sim3) -> SceneRun:
    view_from_run = view_from_common @ named.common_from_run
    result = named.run.result.cam_from_world
    views = [
        (view.name, similarity(view.cam_from_world, result), view.cam_from_world) for view in named.run.views
    ]
    views.append((RESULT, Sim3.identity(), result))
    stages = tuple(
        SceneStage(name, world_camera(view_from_run @ run_from_stage, cameras))
        for name, run_from_stage, cameras in views
    )
    return SceneRun(named.name, named.run, cloud, view_from_run, stages)
