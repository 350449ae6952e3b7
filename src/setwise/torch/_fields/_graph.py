"""The pairs of pixels of a field, and the positions of their weights in a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from setwise._foundation._arguments import IntArray

Directions = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Graph:
    """The edges of a field of N pixels, the same for all images of a batch.

    Weights are tensors (B, K, M). On a grid there are K directions and M = N pixels, and the weight
    of a pair is at its first pixel; entries whose direction leads out of the image are ignored.
    Otherwise K = 1 and M = E.
    """

    n: int
    edges: IntArray
    """(E, 2)"""
    position: IntArray
    """(E,): the position of the weight of each edge in the K M weights of an image"""
    slots: tuple[int, int]
    """The pair (K, M)."""
    sides: tuple[int, ...] | None
    """The sides of the grid, or None."""
    directions: Directions

    def indices(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Return first pixels, second pixels and positions, (E,) each, on ``device``."""
        cache = self.__dict__.setdefault("_on", {})
        if device not in cache:
            parts = (self.edges[:, 0], self.edges[:, 1], self.position)
            with torch.inference_mode(False):  # a later call may need these in its backward pass
                cache[device] = tuple(torch.tensor(np.array(part), device=device) for part in parts)
        found: tuple[Tensor, Tensor, Tensor] = cache[device]
        return found

    def pair_prices(self, p: Tensor) -> Tensor:
        """Return prices (B, E): half the 1-norm distance of the ends' probabilities (B, L, N)."""
        if self.sides is None:
            tails, heads, _ = self.indices(p.device)
            return (p[:, :, tails] - p[:, :, heads]).abs().sum(1) / 2
        image, parts = p.view(*p.shape[:2], *self.sides), []
        for way in self.directions:
            first, second = image, image
            for axis, (side, step) in enumerate(zip(self.sides, way, strict=True), 2):
                length = max(side - abs(step), 0)
                first = first.narrow(axis, min(max(-step, 0), side - length), length)
                second = second.narrow(axis, min(max(step, 0), side - length), length)
            parts.append((first - second).abs().sum(1).flatten(1) / 2)
        return torch.cat(parts, 1) if parts else p.new_zeros(len(p), 0)

    def of_edges(self, weights: Tensor) -> Tensor:
        """Return the weights (B, E) of the edges, taken from weights (B, K, M)."""
        _, _, position = self.indices(weights.device)
        return weights.flatten(1)[:, position]

    def to_slots(self, values: Tensor) -> Tensor:
        """Return values (B, E) of the edges at their positions in (B, K, M), 0 elsewhere."""
        _, _, position = self.indices(values.device)
        out = values.new_zeros(len(values), prod(self.slots))
        out[:, position] = values
        return out.view(len(values), *self.slots)


@lru_cache(maxsize=32)
def grid_graph(sides: tuple[int, ...], connectivity: int | Directions | None) -> Graph:
    """Return the graph of an image or a volume."""
    from setwise._foundation._imports import load

    edges = load("setwise.fields").grid_edges(sides, connectivity)
    directions: Directions = load("setwise.fields._edges").grid_of(edges).steps
    counts = [
        prod(max(side - abs(step), 0) for side, step in zip(sides, way, strict=True))
        for way in directions
    ]
    n = prod(sides)
    position = edges[:, 0] + np.repeat(np.arange(len(directions)) * n, counts)
    return Graph(n, edges, position, (len(directions), n), sides, directions)


def edge_graph(edges: Any, n: int) -> Graph:
    """Return the graph of given edges (E, 2) over n variables."""
    from setwise._foundation._imports import load

    module = load("setwise.fields._edges")
    if isinstance(edges, Tensor):
        edges = edges.detach().cpu().numpy()
    pairs = module.as_edges(edges)
    module.check_edges(pairs, n)
    return Graph(n, pairs, np.arange(len(pairs)), (1, len(pairs)), None, ())


def as_directions(connectivity: object) -> int | Directions | None:
    """Return a number of neighbours, or offsets as tuples, which can be cached."""
    if connectivity is None:
        return None
    if _is_integer(connectivity):
        return int(connectivity)  # type: ignore[call-overload, no-any-return]
    if isinstance(connectivity, Tensor):
        connectivity = connectivity.detach().cpu().numpy()
    if isinstance(connectivity, np.ndarray):
        connectivity = connectivity.tolist()
    if not isinstance(connectivity, Sequence) or isinstance(connectivity, str):
        raise TypeError(
            "connectivity must be a number of neighbours or a list of offsets, "
            f"got {type(connectivity).__name__}"
        )
    offsets = []
    for offset in connectivity:
        if isinstance(offset, Tensor | np.ndarray):
            offset = offset.tolist()
        if not isinstance(offset, Sequence) or not all(map(_is_integer, offset)):
            raise TypeError(f"connectivity must hold offsets of integers, got {offset!r}")
        offsets.append(tuple(map(int, offset)))
    return tuple(offsets)


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
