"""Depth and confidence of an observation at matched pixels, with only a few chunks in memory at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from geoweaver.datatypes import ChunkPrior, Observations
from geoweaver.errors import StoreError
from geoweaver.geometry.camera import pixel_centres, sample_bilinear, sample_nearest
from geoweaver.matching.weights import Normalisation, confidence_quantiles, normalised_confidence

ReadPrior = Callable[[int], ChunkPrior]

_MAX_JUMP = 0.2
"""Relative depth step between neighbouring pixels that is still one surface, seen at a grazing angle."""


@dataclass(frozen=True)
class Reading:
    """What a prior says at some pixels of one observation."""

    depth: Float[Tensor, "n"]
    """0 where unknown."""
    known: Bool[Tensor, "n"]
    gamma: Float[Tensor, "n"]


class Readings:
    """Reads observations at pixels; asks for a chunk once as long as requests stay among few chunks."""

    def __init__(
        self,
        observations: Observations,
        read: ReadPrior,
        how: Normalisation,
        ceiling: float,
        cached_chunks: int,
    ) -> None:
        self._observations = observations
        self._prior = lru_cache(maxsize=cached_chunks)(read)
        self._how: Normalisation = how
        self._ceiling = ceiling
        self._quantiles: dict[int, Tensor] = {}

    def at(self, observation: int, pixel: Float[Tensor, "n 2"]) -> Reading:
        """Depth (bilinear, unknown at depth edges) and normalised confidence at pixels of the full size."""
        depth_map, confidence_map = self._maps(observation)
        scaled = pixel.double() * self._map_scale(depth_map)
        depth, known = sample_bilinear(depth_map, scaled, _MAX_JUMP)
        confidence, _ = sample_nearest(confidence_map, pixel.double() * self._map_scale(confidence_map))
        if observation not in self._quantiles:
            self._quantiles[observation] = confidence_quantiles(confidence_map, depth_map > 0)
        gamma = normalised_confidence(confidence, self._quantiles[observation], self._how, self._ceiling)
        return Reading(depth, known, gamma)

    def grid(self, observation: int, at_most: int) -> Float[Tensor, "n 2"]:
        """Pixel centres of the observation's own depth map, thinned evenly, in pixels of the full size."""
        depth_map, _ = self._maps(observation)
        height, width = depth_map.shape
        step = max(1, int((height * width / max(at_most, 1)) ** 0.5 + 0.999))
        centres = pixel_centres(width, height)[step // 2 :: step, step // 2 :: step].reshape(-1, 2)
        return centres / self._map_scale(depth_map)

    def _maps(self, observation: int) -> tuple[Tensor, Tensor]:
        chunk, frame = int(self._observations.chunk[observation]), int(self._observations.frame[observation])
        prior = self._prior(chunk)
        row = (prior.frame == frame).nonzero().flatten()
        if not len(row):
            raise StoreError(
                f"the stored prior of chunk {chunk} has no frame {frame}: not the one that was indexed: "
                "run again with --overwrite"
            )
        return prior.depth[int(row[0])], prior.confidence[int(row[0])]

    def _map_scale(self, image: Tensor) -> Tensor:
        """Pixels of a map per pixel of the full size, in x and y."""
        width, height = self._observations.size
        return torch.tensor([image.shape[1] / width, image.shape[0] / height], dtype=torch.float64)
