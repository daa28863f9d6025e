"""Stage 3's objective and its linear system: each frame's pose and affine depth, each camera's focal."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geoweaver.assembly.bend import Bending, BendSums, bend_grid, bent_matches
from geoweaver.assembly.blocks import BlockSystem, Coarse, unique_pairs
from geoweaver.assembly.frame_priors import (
    FrameSetup,
    bend_penalty,
    bend_stiffness,
    beside_chunk,
    focal_stiffness,
    group_focal,
    group_frames,
)
from geoweaver.assembly.frame_settings import FrameRefinementConfig, Phase
from geoweaver.assembly.hidden import Coupling, hide
from geoweaver.assembly.pairs import (
    Normalisation,
    Objective,
    PairGeometry,
    PairMatches,
    global_normalisation,
    view_centred_normalisation,
)
from geoweaver.assembly.sums import pair_sums, residual_median
from geoweaver.datatypes import FrameState
from geoweaver.geometry import SE3, Sim3
from geoweaver.geometry.so3 import hat

SMALLEST_SCALE = 0.05
"""a_i stays above this: a depth map is never turned inside out."""


@dataclass(frozen=True)
class FrameProblem:
    """The objective as a function of Stage 3's variables (Eq. final_objective)."""

    matches: PairMatches
    """Pairs of frames: observation_i and observation_j are frame numbers here."""
    setup: FrameSetup
    objective: Objective
    norm: Normalisation
    config: FrameRefinementConfig
    bending: Bending | None = None
    """How depth may bend; None: it is affine."""

    @property
    def intrinsics(self) -> Tensor:
        return self.setup.intrinsics

    @property
    def calibrated(self) -> bool:
        return self.setup.calibrated

    @property
    def parameters(self) -> int:
        return 11 if self.setup.calibrated else 15

    def geometry(self, state: FrameState) -> PairGeometry:
        """cam_j_from_cam_i of every pair, with its corrected cameras and depths."""
        i, j = self.matches.observation_i, self.matches.observation_j
        K = corrected_intrinsics(self.setup, state)
        z = Sim3.from_se3(state.cam_from_world[j] @ state.cam_from_world[i].inverse())
        a, b = state.depth_scale, state.depth_shift
        return PairGeometry(z, K[i], K[j], torch.stack([a[i], b[i], a[j], b[j]], -1))

    def matches_at(self, state: FrameState) -> PairMatches:
        """The matches with their depth as the state bends it."""
        return bent_matches(self.matches, state.depth_bend, self.setup.size)

    def regulariser(self, state: FrameState) -> Tensor:
        """Eq. parameter_regularization, each term free of units."""
        c, s = self.config, self.setup
        focal, n = group_focal(s), s.count
        return (
            bend_penalty(state.depth_bend, s, c)
            + c.scale_prior * beside_chunk(state, s).square().sum() / n
            + c.chunk_scale_prior * (state.depth_scale - 1)[s.tied].square().sum() / n
            + c.shift_prior * (state.depth_shift / s.unit)[s.tied].square().sum() / n
            + c.focal_prior * ((state.focal_delta / focal).square().sum(-1) / group_frames(s)).mean()
            + c.aspect_prior * (state.focal_delta / focal).diff(dim=-1).square().mean()
        )

    def loss(self, state: FrameState) -> float:
        """Eq. final_objective."""
        sums = pair_sums(self.matches_at(state), self.geometry(state), self.objective, self.norm, 0)
        return sums.loss() + float(self.regulariser(state))

    def median_px(self, state: FrameState) -> float:
        return residual_median(self.matches_at(state), self.geometry(state), self.objective)

    def linearise(self, state: FrameState) -> tuple[float, BlockSystem]:
        geometry, matches = self.geometry(state), self.matches_at(state)
        sums = pair_sums(matches, geometry, self.objective, self.norm, self.parameters)
        assert sums.gradient is not None and sums.normal is not None
        loss = sums.loss() + float(self.regulariser(state))
        system = self._system(state, geometry.z, sums.gradient, sums.normal)
        if self.bending is None:
            return loss, system
        couplings = [self._coupling(s, state, geometry.z) for s in self._bend_sums(matches, geometry)]
        return loss, hide(system, couplings)

    def _bend_sums(self, matches: PairMatches, geometry: PairGeometry) -> Iterator[BendSums]:
        assert self.bending is not None, "asked for"
        return self.bending.sums(matches, geometry, self.objective, self.norm, self.parameters)

    def bend_gradient(self, state: FrameState) -> Float[Tensor, "F r c"]:
        """Derivative of the loss without its regulariser by the nodes of every frame."""
        assert state.depth_bend is not None, "asked for"
        blocks = self._bend_sums(self.matches_at(state), self.geometry(state))
        return torch.cat([s.gradient for s in blocks]).reshape(state.depth_bend.shape)

    def _coupling(self, sums: BendSums, state: FrameState, z: Sim3) -> Coupling:
        """How the nodes of some frames hang on the unknowns of these and of the frames matched to them."""
        assert state.depth_bend is not None, "a phase that bends starts from a flat bend"
        F, K = len(self.setup.group), sums.gradient.shape[1]
        stiff = 2 * bend_stiffness(state.depth_bend, self.setup, self.config) / (self.setup.count * K)
        normal = sums.normal + stiff * torch.eye(K, dtype=torch.float64)
        gradient = sums.gradient + stiff * state.depth_bend[sums.frame].flatten(1)
        pair = sums.end // 2
        to_i, to_j = self._to_frames(z[pair])
        other = torch.cat([x[pair] for x in (self.matches.observation_i, self.matches.observation_j)])
        link, which = unique_pairs(sums.owner.repeat(2), other, F)
        mixed = torch.zeros(len(link), K, 8, dtype=torch.float64)
        mixed.index_add_(0, which, torch.cat([sums.mixed @ to_i, sums.mixed @ to_j]))
        to_focal = self._to_focal(pair)
        border = torch.zeros(len(sums.frame), K, to_focal.shape[-1], dtype=torch.float64)
        border.index_add_(0, sums.owner, sums.mixed @ to_focal)
        return Coupling(sums.frame, normal, gradient, link, mixed, border)

    def _system(self, state: FrameState, z: Sim3, g: Tensor, H: Tensor) -> BlockSystem:
        """T <- exp(delta) T in each camera's own frame; eight unknowns a frame, the focals as a border."""
        i, j = self.matches.observation_i, self.matches.observation_j
        F = len(self.setup.group)
        to_i, to_j = self._to_frames(z)
        diagonal, gradient = torch.zeros(F, 8, 8, dtype=H.dtype), torch.zeros(F, 8, dtype=H.dtype)
        for frame, move in ((i, to_i), (j, to_j)):
            diagonal.index_add_(0, frame, move.mT @ H @ move)
            gradient.index_add_(0, frame, (move.mT @ g[..., None]).squeeze(-1))
        pair, which = unique_pairs(torch.minimum(i, j), torch.maximum(i, j), F)
        cross = to_i.mT @ H @ to_j
        cross = torch.where((i > j)[:, None, None], cross.mT, cross)
        off = torch.zeros(len(pair), 8, 8, dtype=H.dtype).index_add_(0, which, cross)
        border, corner, corner_gradient = self._border(H, g, to_i, to_j)
        self._add_priors(state, diagonal, gradient, corner, corner_gradient)
        # frames without a match stay where they are: a video has many, and they would fill the linear system
        free = torch.zeros(F, 8, dtype=torch.bool)
        free[i] = free[j] = True
        free[self.setup.held, :6] = False
        coarse = Coarse(self.setup.part, similarity_basis(state, self.setup))
        return BlockSystem(diagonal, pair, off, gradient, border, corner, corner_gradient, free, coarse)

    def _to_frames(self, z: Sim3) -> tuple[Float[Tensor, "P n 8"], Float[Tensor, "P n 8"]]:
        """How a pair's local parameters follow from the unknowns of its two frames."""
        to_i, to_j = (torch.zeros(len(z), self.parameters, 8, dtype=torch.float64) for _ in range(2))
        to_i[:, :6, :6] = -SE3(z.rotation, z.translation).adjoint()
        to_j[:, :6, :6] = torch.eye(6, dtype=torch.float64)
        to_i[:, 7, 6] = to_i[:, 8, 7] = to_j[:, 9, 6] = to_j[:, 10, 7] = 1
        return to_i, to_j

    def _to_focal(self, pair: Int[Tensor, "P"] | slice = slice(None)) -> Float[Tensor, "P n k"]:
        """The same for the focal lengths of the physical cameras."""
        i, j = self.matches.observation_i[pair], self.matches.observation_j[pair]
        G = 0 if self.setup.calibrated else int(self.setup.group.max()) + 1
        to_focal = torch.zeros(len(i), self.parameters, 2 * G, dtype=torch.float64)
        rows = torch.arange(len(i))
        for first, frame in ((11, i), (13, j)) if G else ():
            for axis in (0, 1):
                to_focal[rows, first + axis, 2 * self.setup.group[frame] + axis] = 1
        return to_focal

    def expand(self, z: Sim3, local: Float[Tensor, "P n d"]) -> Float[Tensor, "u d"]:
        """Vectors in the pairs' local parameters summed into the unknowns, held ones left out."""
        to_i, to_j = self._to_frames(z)
        F = len(self.setup.group)
        out = torch.zeros(F, 8, local.shape[-1], dtype=torch.float64)
        out.index_add_(0, self.matches.observation_i, to_i.mT @ local)
        out.index_add_(0, self.matches.observation_j, to_j.mT @ local)
        out[self.setup.held, :6] = 0
        focal = (self._to_focal().mT @ local).sum(0)
        return torch.cat([out.flatten(0, 1), focal])

    def without_bends(
        self, right: Float[Tensor, "u d"], system: BlockSystem, forces: Float[Tensor, "F K d"]
    ) -> Float[Tensor, "u d"]:
        """What right-hand sides of frames, focals and nodes mean once the nodes are eliminated."""
        F = len(self.setup.group)
        blocks, corner = right[: 8 * F].reshape(F, 8, -1).clone(), right[8 * F :].clone()
        for hidden in system.hidden:
            hidden.reduce(forces[hidden.block], blocks, corner)
        blocks[self.setup.held, :6] = 0
        return torch.cat([blocks.flatten(0, 1), corner])

    def _border(self, H: Tensor, g: Tensor, to_i: Tensor, to_j: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        i, j = self.matches.observation_i, self.matches.observation_j
        F = len(self.setup.group)
        to_focal = self._to_focal()
        border = torch.zeros(F, 8, to_focal.shape[-1], dtype=H.dtype)
        for frame, move in ((i, to_i), (j, to_j)):
            border.index_add_(0, frame, move.mT @ H @ to_focal)
        corner = (to_focal.mT @ H @ to_focal).sum(0)
        return border, corner, (to_focal.mT @ g[..., None]).squeeze(-1).sum(0)

    def _add_priors(
        self, state: FrameState, diagonal: Tensor, gradient: Tensor, corner: Tensor, corner_gradient: Tensor
    ) -> None:
        c, s, n = self.config, self.setup, self.setup.count
        # with each chunk's mean as it is now: a quadratic that touches the term here and lies above it
        diagonal[:, 6, 6] += 2 * (c.scale_prior + c.chunk_scale_prior) / n
        gradient[:, 6] += 2 * c.scale_prior / n * beside_chunk(state, s)
        gradient[:, 6] += 2 * c.chunk_scale_prior / n * (state.depth_scale - 1)
        diagonal[:, 7, 7] += 2 * c.shift_prior / n / s.unit.square()
        gradient[:, 7] += 2 * c.shift_prior / n * state.depth_shift / s.unit.square()
        if not s.calibrated:
            stiff = focal_stiffness(s, c)
            corner += stiff
            corner_gradient += stiff @ state.focal_delta.flatten()

    def step(self, state: FrameState, system: BlockSystem, damping: float) -> FrameState:
        delta, focal = system.solve(damping)
        moved = SE3.exp(delta[:, :6]) @ state.cam_from_world
        scale = (state.depth_scale + delta[:, 6]).clamp(min=SMALLEST_SCALE)
        focal_delta = state.focal_delta if self.setup.calibrated else state.focal_delta + focal.reshape(-1, 2)
        bend = state.depth_bend
        if bend is not None and system.hidden:
            step = torch.cat([hidden.answer(delta, focal) for hidden in system.hidden])
            bend = bend + step.reshape(bend.shape)
        stepped = FrameState(moved, scale, state.depth_shift + delta[:, 7], focal_delta, bend)
        return _in_one_scale(stepped, system.free[:, 6])


def frame_problem(
    matches: PairMatches, setup: FrameSetup, config: FrameRefinementConfig, phase: Phase
) -> FrameProblem:
    objective = config.objective(phase)
    if phase.view_centred:
        norm = view_centred_normalisation(matches, objective, matches.observation_i, matches.observation_j)
    else:
        norm = global_normalisation(matches, objective)
    if not phase.bend:
        return FrameProblem(matches, setup, objective, norm, config)
    grid = bend_grid(setup.size, config.bend_nodes)
    bending = Bending(grid, matches.observation_i, matches.observation_j, len(setup.group))
    return FrameProblem(matches, setup, objective, norm, config, bending)


def corrected_intrinsics(setup: FrameSetup, state: FrameState) -> Float[Tensor, "F 4"]:
    """Eq. shared_intrinsics."""
    delta = state.focal_delta[setup.group]
    return setup.intrinsics + torch.cat([delta, torch.zeros_like(delta)], -1)


def _in_one_scale(state: FrameState, moved: Bool[Tensor, "F"]) -> FrameState:
    """The same scene with depth scales of mean one: its overall size is nobody's to choose."""
    if not bool(moved.any()):
        return state
    size = torch.where(moved, state.depth_scale[moved].mean(), 1.0)
    camera = state.cam_from_world
    return replace(
        state,
        cam_from_world=SE3(camera.rotation, camera.translation / size[:, None]),
        depth_scale=state.depth_scale / size,
        depth_shift=state.depth_shift / size,
    )


def similarity_basis(state: FrameState, setup: FrameSetup) -> Float[Tensor, "F 8 7"]:
    """How each frame's unknowns move when its chunk moves by a similarity about its own middle."""
    centre = state.cam_from_world.centre
    K, tied = int(setup.part.max()) + 1, setup.tied.double()
    count = torch.bincount(setup.part, tied, minlength=K).clamp(min=1)[:, None]
    total = torch.zeros(K, 3, dtype=torch.float64).index_add_(0, setup.part, tied[:, None] * centre)
    middle = (total / count)[setup.part]
    R = state.cam_from_world.rotation
    away = (R @ (middle - centre)[..., None]).squeeze(-1)
    basis = torch.zeros(len(centre), 8, 7, dtype=torch.float64)
    basis[:, :3, :3], basis[:, 3:6, 3:6], basis[:, :3, 3:6] = -R, -R, -hat(away) @ R
    basis[:, :3, 6], basis[:, 6, 6], basis[:, 7, 6] = away, state.depth_scale, state.depth_shift
    return basis
