"""Block-sparse normal equations H x = -g, solved directly or, where long, by two-level conjugate gradients.

A chain of thousands of frames has modes as long as the chain, on which plain block-Jacobi crawls. The second
level is the chunks themselves: each may move as a whole by a similarity, and that small system is solved
exactly in every iteration.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import torch
from jaxtyping import Bool, Float, Int
from numpy.linalg import LinAlgError
from torch import Tensor

from geoweaver.engine import one_blas_thread

DIRECT_BELOW = 1600
"""Unknowns up to which a dense Cholesky is the quickest exact solve."""


@dataclass(frozen=True)
class Coarse:
    """The second level: which chunk a block belongs to, and how the block moves when its chunk does."""

    part: Int[Tensor, "N"]
    basis: Float[Tensor, "N b c"]


@dataclass(frozen=True)
class Hidden:
    """Unknowns (h a block) that were eliminated from the system: they follow from what they are coupled to.

    With their normal matrix L L^T everything is kept as L^-1 leaves it.
    """

    block: Int[Tensor, "n"]
    whiten: Float[Tensor, "n h h"]
    """L^-1."""
    gradient: Float[Tensor, "n h"]
    link: Int[Tensor, "l 2"]
    """A row of `block`, and a block that its unknowns are coupled to."""
    mixed: Float[Tensor, "l h b"]
    border: Float[Tensor, "n h k"]

    def answer(self, step: Float[Tensor, "N b"], corner: Float[Tensor, "k"]) -> Float[Tensor, "n h"]:
        """Their own step, after that of the blocks and of the border."""
        pull = self.gradient + self.border @ corner
        moved = (self.mixed @ step[self.link[:, 1], :, None]).squeeze(-1)
        pull = pull.index_add(0, self.link[:, 0], moved)
        return -(self.whiten.mT @ pull[..., None]).squeeze(-1)

    def reduce(self, own: Float[Tensor, "n h d"], blocks: Tensor, corner: Tensor) -> None:
        """Take what right-hand sides of the hidden unknowns mean for blocks (N b d) and border off these."""
        own = self.whiten @ own
        blocks.index_add_(0, self.link[:, 1], -(self.mixed.mT @ own[self.link[:, 0]]))
        corner -= (self.border.mT @ own).sum(0)


@dataclass(frozen=True)
class BlockSystem:
    """N unknown blocks of size b and a dense border of k shared unknowns (the focal lengths)."""

    diagonal: Float[Tensor, "N b b"]
    pair: Int[Tensor, "Q 2"]
    off: Float[Tensor, "Q b b"]
    gradient: Float[Tensor, "N b"]
    border: Float[Tensor, "N b k"]
    corner: Float[Tensor, "k k"]
    corner_gradient: Float[Tensor, "k"]
    free: Bool[Tensor, "N b"]
    """False for unknowns that are held (the gauge)."""
    coarse: Coarse | None = None
    hidden: tuple[Hidden, ...] = ()
    """What was eliminated before."""

    @property
    def size(self) -> int:
        return self.gradient.numel() + len(self.corner_gradient)

    def right_side(self) -> Any:
        flat = torch.cat([-(self.gradient * self.free).flatten(), -self.corner_gradient])
        return flat.numpy()

    @cached_property
    def matrix(self) -> Any:
        """H as a scipy matrix, held unknowns cut out (their rows and columns are zero)."""
        N, b = self.gradient.shape
        i, j = self.pair[:, 0].numpy(), self.pair[:, 1].numpy()
        free = self.free.double()
        mask = free[:, :, None] * free[:, None, :]
        off = self.off * free[self.pair[:, 0], :, None] * free[self.pair[:, 1], None, :]
        data = torch.cat([self.diagonal * mask, off, off.mT]).numpy()
        rows = np.concatenate([np.arange(N), i, j])
        columns = np.concatenate([np.arange(N), j, i])
        order = np.lexsort((columns, rows))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N))])
        frames = scipy.sparse.bsr_matrix((data[order], columns[order], indptr), shape=(N * b, N * b))
        if not len(self.corner_gradient):
            return frames
        border = scipy.sparse.csr_matrix((self.border * free[..., None]).reshape(N * b, -1).numpy())
        corner = scipy.sparse.csr_matrix(self.corner.numpy())
        return scipy.sparse.bmat([[frames, border], [border.T, corner]], format="csr")

    def damping(self, factor: float) -> Any:
        """Marquardt's term: a share of the diagonal, floored where no match constrains; 1 where held."""
        own = self.diagonal.diagonal(dim1=-2, dim2=-1)
        floor = torch.where(self.free, own, 0.0).amax(0, keepdim=True) * 1e-9 + 1e-300
        frames = torch.where(self.free, factor * torch.maximum(own, floor) + floor * 1e-3, 1.0)
        corner = factor * self.corner.diagonal() + 1e-300
        return torch.cat([frames.flatten(), corner]).numpy()

    @one_blas_thread()
    def solve(self, factor: float, tolerance: float = 1e-2) -> tuple[Tensor, Tensor]:
        """The damped step (N b) and (k); LinAlgError where rounding or the data leave none."""
        if self.size <= DIRECT_BELOW:
            step = self._solve_dense(factor)
        elif self.coarse is None:
            step = self._solve_sparse(factor)
        else:
            step = self.solve_many(factor, self.right_side()[:, None], tolerance)[:, 0]
        flat = torch.from_numpy(np.ascontiguousarray(_finite(step)))
        count = self.gradient.numel()
        return flat[:count].reshape(self.gradient.shape), flat[count:]

    def _solve_dense(self, factor: float) -> Any:
        dense = self.matrix.toarray()
        dense[np.diag_indices(self.size)] += self.damping(factor)
        # Unit diagonal: the blocks mix radians, lengths and pixels.
        unit = _unit(dense)
        scaled = dense * unit[:, None] * unit
        root = scipy.linalg.cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)
        return unit * scipy.linalg.cho_solve(root, unit * self.right_side(), check_finite=False)

    def _solve_sparse(self, factor: float) -> Any:
        full = (self.matrix + scipy.sparse.diags(self.damping(factor))).tocsc()
        options = {"SymmetricMode": True}
        try:
            root = scipy.sparse.linalg.splu(
                full, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
            )
        except RuntimeError as singular:
            raise LinAlgError(str(singular)) from singular
        return root.solve(self.right_side())

    @one_blas_thread()
    def solve_many(self, factor: float, right: Any, tolerance: float, most: int = 400) -> Any:
        """Two-level preconditioned conjugate gradients for several right-hand sides (columns) at once."""
        matrix, extra = self.matrix, self.damping(factor)[:, None]
        preconditioner = TwoLevel(self, factor)
        x, r = np.zeros_like(right), right.copy()
        z = preconditioner(r)
        p, rz = z.copy(), (r * z).sum(0)
        goal = tolerance**2 * rz
        for _ in range(most):
            if (rz <= goal).all():
                break
            Ap = matrix @ p + extra * p
            alpha = rz / np.maximum((p * Ap).sum(0), 1e-300)
            x += alpha * p
            r -= alpha * Ap
            z = preconditioner(r)
            fresh = (r * z).sum(0)
            p = z + np.where(rz > 0, fresh / np.maximum(rz, 1e-300), 0.0) * p
            rz = fresh
        return _finite(x)


class TwoLevel:
    """Each chunk's own block solved exactly, plus the chunks' similarities and the border solved together."""

    def __init__(self, system: BlockSystem, factor: float) -> None:
        assert system.coarse is not None
        N, b = system.gradient.shape
        self.frames, self.extra = N * b, system.damping(factor)
        part = system.coarse.part.numpy()
        matrix = system.matrix.tocsr()
        moving = system.free.any(1).numpy().nonzero()[0]
        order = moving[np.argsort(part[moving], kind="stable")]
        bounds = np.searchsorted(part[order], np.arange(part.max() + 2))
        self.parts = []
        for first, last in pairwise(bounds):
            if last > first:
                index = (order[first:last, None] * b + np.arange(b)).ravel()
                local = matrix[index][:, index].toarray()
                local[np.diag_indices(len(index))] += self.extra[index]
                self.parts.append((index, *_inverse(local)))
        self.prolong = self._prolongation(system, part)
        small = (
            self.prolong.T @ (matrix @ self.prolong + self.prolong.multiply(self.extra[:, None]))
        ).toarray()
        self.unit = 1 / np.sqrt(np.maximum(np.diag(small), 1e-300))[:, None]
        small = small * self.unit * self.unit[:, 0]
        small[np.diag_indices(len(small))] += 1e-12
        self.small = scipy.linalg.cho_factor(small, lower=True, overwrite_a=True, check_finite=False)

    @staticmethod
    def _prolongation(system: BlockSystem, part: Any) -> Any:
        assert system.coarse is not None
        N, b, c = system.coarse.basis.shape
        chunks, k = int(part.max()) + 1, len(system.corner_gradient)
        values = (system.coarse.basis * system.free[..., None]).numpy()
        rows = np.broadcast_to((np.arange(N)[:, None] * b + np.arange(b))[:, :, None], values.shape)
        columns = np.broadcast_to((part[:, None] * c + np.arange(c))[:, None, :], values.shape)
        rows = np.concatenate([rows.ravel(), N * b + np.arange(k)])
        columns = np.concatenate([columns.ravel(), chunks * c + np.arange(k)])
        data = np.concatenate([values.ravel(), np.ones(k)])
        return scipy.sparse.csr_matrix((data, (rows, columns)), shape=(N * b + k, chunks * c + k))

    def __call__(self, r: Any) -> Any:
        out = np.zeros_like(r)
        for index, inverse, unit in self.parts:
            out[index] = unit * (inverse @ (unit * r[index]).astype(np.float32))
        restricted = self.unit * (self.prolong.T @ r)
        return out + self.prolong @ (
            self.unit * scipy.linalg.cho_solve(self.small, restricted, check_finite=False)
        )


def _finite(answer: Any) -> Any:
    if not np.isfinite(answer).all():
        raise LinAlgError("the answer is not finite")
    return answer


def _unit(matrix: Any) -> Any:
    """What makes the diagonal of a positive matrix one."""
    diagonal = np.diag(matrix)
    if not ((diagonal > 0) & (diagonal < np.inf)).all():
        raise LinAlgError("the diagonal is not positive and finite")
    return 1 / np.sqrt(diagonal)


def _inverse(matrix: Any) -> tuple[Any, Any]:
    """Inverse of a positive matrix in single precision (a preconditioner needs no more) and its units."""
    unit = _unit(matrix)
    scaled = matrix * unit[:, None] * unit
    root, _ = scipy.linalg.cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)
    lower, _ = scipy.linalg.lapack.dpotri(root, lower=True)
    full = np.tril(lower) + np.tril(lower, -1).T
    return full.astype(np.float32), unit[:, None]


def unique_pairs(i: Int[Tensor, "P"], j: Int[Tensor, "P"], count: int) -> tuple[Tensor, Tensor]:
    """The distinct pairs (Q 2), and for each of the P which of them it is."""
    keys, which = torch.unique(i * count + j, return_inverse=True)
    return torch.stack([keys // count, keys % count], 1), which
