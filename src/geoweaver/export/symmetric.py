"""Many small symmetric systems at once, in closed form: a library's solver costs more to call than to run."""

import torch
from jaxtyping import Float
from torch import Tensor


def solve_symmetric(H: Float[Tensor, "n 3 3"], g: Float[Tensor, "n 3 *k"]) -> Float[Tensor, "n 3 *k"]:
    """H^-1 g by cofactors; 0 where H is singular."""
    a, b, c = H.unbind(1)
    cofactors = torch.stack([b.cross(c, -1), c.cross(a, -1), a.cross(b, -1)], 1)
    determinant = (a * cofactors[:, 0]).sum(-1)
    right = g if g.ndim == 3 else g[..., None]
    solution = (cofactors[..., None] * right[:, :, None]).sum(1) / determinant[:, None, None]
    return torch.nan_to_num(solution, 0.0, 0.0, 0.0).reshape(g.shape)
