"""What each stage left behind, for eyes: every frame's camera, and by how much the matches miss."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from geoweaver.assembly.frame_priors import FrameSetup
from geoweaver.assembly.frame_problem import frame_problem
from geoweaver.assembly.frames_start import interpolate_cameras, start_frames
from geoweaver.assembly.pairs import PairMatches, thin_pairs
from geoweaver.assembly.residuals import block_residuals
from geoweaver.datatypes import FrameState
from geoweaver.results import StageView
from geoweaver.weave import WeaveConfig, Woven

SAMPLE = 20_000
"""Matches whose errors are kept for the residual figure."""


def stage_views(woven: Woven, config: WeaveConfig) -> tuple[StageView, ...]:
    """Cameras and errors after Stages 1, 2 and 3, all on the matches that Stage 3 ended on."""
    tables, setup = woven.tables, woven.setup
    first = start_frames(
        tables.frames, tables.observations, woven.stage1, tables.canonical, setup.group, setup.calibrated
    )
    # a frame that no prior saw took no part in Stage 3: it goes with its neighbours
    moved = interpolate_cameras(woven.state.cam_from_world, tables.canonical >= 0)
    last = replace(woven.state, cam_from_world=moved)
    views = [_view("Stage 1", first.matches, first.setup, first.state, config)]
    views.append(_view("Stage 2", woven.matches, setup, woven.start, config))
    views.append(_view("Stage 3", woven.matches, setup, last, config))
    return tuple(views)


def _view(
    name: str, matches: PairMatches, setup: FrameSetup, state: FrameState, config: WeaveConfig
) -> StageView:
    few = thin_pairs(matches, max(1, SAMPLE // max(1, len(matches))))
    pixels, points = _errors(few, setup, state, config)
    return StageView(name, state.cam_from_world, pixels, points)


def _errors(
    matches: PairMatches, setup: FrameSetup, state: FrameState, config: WeaveConfig
) -> tuple[Float[Tensor, "n"], Float[Tensor, "m"]]:
    """Reprojection errors in pixels and relative 3D distances of all rows that have them."""
    if not matches.rows:
        return torch.zeros(0), torch.zeros(0)
    problem = frame_problem(matches, setup, config.refinement, config.refinement.phases[-1])
    flat, solid = block_residuals(
        problem.matches_at(state), problem.geometry(state), problem.objective, slice(0, matches.rows), False
    )
    pixels = torch.cat([r.norm()[r.active & r.usable] for r in flat])
    return pixels.float(), solid.norm()[solid.active & solid.usable].float()
