"""Pinhole cameras: lift and project with Jacobians, intrinsics under resize and crop, depth between pixels.

Intrinsics are (fx, fy, cx, cy); (0, 0) is the image's corner and the first pixel's centre is (0.5, 0.5).
Sizes are (width, height). Leading dimensions broadcast.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def bearing(pixel: Float[Tensor, "*b 2"], intrinsics: Float[Tensor, "*c 4"]) -> Float[Tensor, "*d 3"]:
    """The ray K^-1 u with z = 1: also the derivative of `lift` by the depth."""
    xy = (pixel - intrinsics[..., 2:]) / intrinsics[..., :2]
    return torch.cat([xy, torch.ones_like(xy[..., :1])], -1)


def lift(
    pixel: Float[Tensor, "*b 2"], depth: Float[Tensor, "*b"], intrinsics: Float[Tensor, "*c 4"]
) -> Float[Tensor, "*d 3"]:
    """The point in camera coordinates that a pixel sees at a depth (Eq. lift)."""
    return depth[..., None] * bearing(pixel, intrinsics)


def lift_focal_jacobian(
    pixel: Float[Tensor, "*b 2"], depth: Float[Tensor, "*b"], intrinsics: Float[Tensor, "*c 4"]
) -> Float[Tensor, "*d 3 2"]:
    """d lift / d (fx, fy)."""
    slope = -depth[..., None] * (pixel - intrinsics[..., 2:]) / intrinsics[..., :2].square()
    return torch.cat([torch.diag_embed(slope), torch.zeros_like(slope)[..., None, :]], -2)


def project(points: Float[Tensor, "*b 3"], intrinsics: Float[Tensor, "*c 4"]) -> Float[Tensor, "*d 2"]:
    """Pixels of points in camera coordinates; means something only where z > 0."""
    return project_with_depth(points, intrinsics)[0]


def project_with_depth(
    points: Float[Tensor, "*b 3"], intrinsics: Float[Tensor, "*c 4"]
) -> tuple[Float[Tensor, "*d 2"], Float[Tensor, "*b"]]:
    """Pixels and z of points in camera coordinates: the caller decides what z <= 0 means."""
    z = points[..., 2]
    return intrinsics[..., :2] * (points[..., :2] / z[..., None]) + intrinsics[..., 2:], z


def project_point_jacobian(
    points: Float[Tensor, "*b 3"], intrinsics: Float[Tensor, "*c 4"]
) -> Float[Tensor, "*d 2 3"]:
    """d project / d point."""
    z = points[..., 2:]
    slope = intrinsics[..., :2] / z
    last = -slope * points[..., :2] / z
    return torch.cat([torch.diag_embed(slope), last[..., None]], -1)


def project_focal_jacobian(points: Float[Tensor, "*b 3"]) -> Float[Tensor, "*b 2 2"]:
    """d project / d (fx, fy)."""
    return torch.diag_embed(points[..., :2] / points[..., 2:])


def focal_from_fov(fov: Float[Tensor, "*b"], extent: float) -> Float[Tensor, "*b"]:
    """Focal in pixels from the full field of view (rad) across an image side of `extent` pixels."""
    return extent / 2 / (fov / 2).tan()


def fov_from_focal(focal: Float[Tensor, "*b"], extent: float) -> Float[Tensor, "*b"]:
    """Full field of view (rad) across an image side of `extent` pixels."""
    return 2 * torch.atan2(torch.full_like(focal, extent / 2), focal)


def resize_intrinsics(
    intrinsics: Float[Tensor, "*b 4"], old_size: tuple[int, int], new_size: tuple[int, int]
) -> Float[Tensor, "*b 4"]:
    """Intrinsics of the same image resampled to another (width, height)."""
    x, y = new_size[0] / old_size[0], new_size[1] / old_size[1]
    return intrinsics * intrinsics.new_tensor([x, y, x, y])


def crop_intrinsics(intrinsics: Float[Tensor, "*b 4"], left: float, top: float) -> Float[Tensor, "*b 4"]:
    """Intrinsics after `left` columns and `top` rows are cut away (negative: padded)."""
    return intrinsics - intrinsics.new_tensor([0, 0, left, top])


def intrinsic_matrix(intrinsics: Float[Tensor, "*b 4"]) -> Float[Tensor, "*b 3 3"]:
    """K."""
    fx, fy, cx, cy = intrinsics.unbind(-1)
    zero, one = torch.zeros_like(fx), torch.ones_like(fx)
    return torch.stack([fx, zero, cx, zero, fy, cy, zero, zero, one], -1).reshape(*fx.shape, 3, 3)


def intrinsics_from_matrix(matrix: Float[Tensor, "*b 3 3"]) -> Float[Tensor, "*b 4"]:
    """(fx, fy, cx, cy) of K; a skew is not represented."""
    return torch.stack([matrix[..., 0, 0], matrix[..., 1, 1], matrix[..., 0, 2], matrix[..., 1, 2]], -1)


def corner_from_centre_origin(intrinsics: Float[Tensor, "*b 4"]) -> Float[Tensor, "*b 4"]:
    """Ours from intrinsics that count from the first pixel's centre (OpenCV, KITTI, EuRoC, users)."""
    return intrinsics + intrinsics.new_tensor([0, 0, 0.5, 0.5])


def centre_from_corner_origin(intrinsics: Float[Tensor, "*b 4"]) -> Float[Tensor, "*b 4"]:
    """The inverse of `corner_from_centre_origin`."""
    return intrinsics - intrinsics.new_tensor([0, 0, 0.5, 0.5])


def pixel_centres(width: int, height: int, dtype: torch.dtype = torch.float64) -> Float[Tensor, "H W 2"]:
    """Where the pixels of an image are: (0.5, 0.5) first."""
    y, x = torch.meshgrid(
        torch.arange(height, dtype=dtype) + 0.5, torch.arange(width, dtype=dtype) + 0.5, indexing="ij"
    )
    return torch.stack([x, y], -1)


def sample_nearest(
    depth_map: Float[Tensor, "*b H W"], pixel: Float[Tensor, "*b n 2"]
) -> tuple[Float[Tensor, "*b n"], Bool[Tensor, "*b n"]]:
    """The value of the pixel that a position lies in, and where there is one (> 0, finite); 0 elsewhere."""
    height, width = depth_map.shape[-2:]
    x, y = pixel.unbind(-1)
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    value = _gather(depth_map, torch.where(inside, x, 0).long(), torch.where(inside, y, 0).long())
    valid = inside & (value > 0) & value.isfinite()
    return torch.where(valid, value, 0), valid


def sample_bilinear(
    depth_map: Float[Tensor, "*b H W"], pixel: Float[Tensor, "*b n 2"], max_jump: float = 0.1
) -> tuple[Float[Tensor, "*b n"], Bool[Tensor, "*b n"]]:
    """Depth between four pixels, and where all four are valid and within a factor 1 + max_jump; 0 elsewhere.

    The inverse depth is what is interpolated: on a plane it is linear in the pixel, the depth is not.
    """
    height, width = depth_map.shape[-2:]
    x0, dx, inside_x = _cell(pixel[..., 0], width)
    y0, dy, inside_y = _cell(pixel[..., 1], height)
    x1, y1 = (x0 + 1).clamp(max=width - 1), (y0 + 1).clamp(max=height - 1)
    corners = torch.stack([_gather(depth_map, x, y) for y in (y0, y1) for x in (x0, x1)], -1).to(pixel.dtype)
    valid = ((corners > 0) & corners.isfinite()).all(-1) & inside_x & inside_y
    corners = torch.where(valid[..., None], corners, 1)
    valid &= corners.amax(-1) <= (1 + max_jump) * corners.amin(-1)
    weight = torch.stack([(1 - dx) * (1 - dy), dx * (1 - dy), (1 - dx) * dy, dx * dy], -1)
    return torch.where(valid, 1 / (weight / corners).sum(-1).clamp(min=1e-300), 0), valid


def _cell(position: Tensor, extent: int) -> tuple[Tensor, Tensor, Tensor]:
    """First of the two pixel centres around a position, the fraction towards the second, if both exist."""
    centred = position - 0.5
    inside = (centred >= 0) & (centred <= extent - 1)
    centred = torch.where(inside, centred, 0)
    first = centred.long().clamp(max=max(extent - 2, 0))
    return first, centred - first, inside


def _gather(maps: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Values of maps (*b H W) at integer positions (*b n)."""
    return maps.flatten(-2).gather(-1, y * maps.shape[-1] + x)
