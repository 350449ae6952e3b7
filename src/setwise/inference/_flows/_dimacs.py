"""Flow problems in the format of the DIMACS challenge."""

from __future__ import annotations

import gzip
import zlib
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray


class Problem(NamedTuple):
    """A graph with a source and a sink, nodes numbered from 0."""

    n: int
    edges: IntArray
    capacities: IntArray | FloatArray
    source: int
    sink: int


def read_dimacs(data: bytes, name: str) -> Problem:
    """The problem in a file: lines "p max NODES ARCS", "n ID s", "n ID t", "a FROM TO CAPACITY"."""
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{name} must be packed by gzip as it begins: {error}") from None
    size: tuple[int, int] | None = None
    ends: dict[str, int] = {}
    rows: list[bytes] = []
    for number, line in enumerate(data.splitlines(), start=1):
        kind, *words = line.split() or [b""]
        try:
            if kind == b"a":
                if len(words) != 3:
                    raise ValueError("it must be 'a FROM TO CAPACITY'")
                rows += words
            elif kind == b"p":
                if words[0] != b"max":
                    raise ValueError("it must be 'p max NODES ARCS'")
                size = int(words[1]), int(words[2])
            elif kind == b"n":
                ends[words[1].decode()] = int(words[0]) - 1
            elif kind not in (b"c", b""):
                raise ValueError("it must begin with c, p, n or a")
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"{name}: line {number} is not one of a flow problem: {error}"
            ) from None
    if size is None or set(ends) != {"s", "t"}:
        raise ValueError(f"{name} must have a line 'p max NODES ARCS' and lines 'n ID s', 'n ID t'")
    if len(rows) != 3 * size[1]:
        raise ValueError(
            f"{name} must have the {size[1]} arcs that it promises, got {len(rows) // 3}"
        )
    edges, capacities = _arcs(rows, name)
    outside = edges.size and (edges.min() < 0 or edges.max() >= size[0])
    if outside or not all(0 <= node < size[0] for node in ends.values()):
        raise ValueError(f"{name} must name nodes from 1 to {size[0]} only")
    # A loop carries nothing, and the solver takes none.
    kept = edges[:, 0] != edges[:, 1]
    return Problem(size[0], edges[kept], capacities[kept], ends["s"], ends["t"])


def _arcs(rows: list[bytes], name: str) -> tuple[IntArray, IntArray | FloatArray]:
    try:
        numbers = np.array(rows, np.bytes_).astype(np.float64).reshape(-1, 3)
    except ValueError:
        raise ValueError(
            f"{name} must have arcs 'a FROM TO CAPACITY', three numbers each"
        ) from None
    ends, capacities = numbers[:, :2], numbers[:, 2]
    if not (np.abs(ends) < 2**53).all() or (ends != np.rint(ends)).any():
        raise ValueError(f"{name} must number its nodes by whole numbers")
    edges = ends.astype(np.int64) - 1
    if not (np.abs(capacities) < 2**53).all() or (capacities != np.rint(capacities)).any():
        return edges, capacities
    return edges, capacities.astype(np.int64)
