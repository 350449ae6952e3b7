"""Flow problems in the format of the DIMACS challenge."""

from __future__ import annotations

import gzip
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
        data = gzip.decompress(data)
    size: tuple[int, int] | None = None
    ends: dict[str, int] = {}
    rows: list[bytes] = []
    for number, line in enumerate(data.splitlines(), start=1):
        kind, _, rest = line.strip().partition(b" ")
        words = rest.split()
        try:
            if kind == b"a":
                rows.append(rest)
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
    if len(rows) != size[1]:
        raise ValueError(f"{name} must have the {size[1]} arcs that it promises, got {len(rows)}")
    edges, capacities = _arcs(rows, name)
    outside = edges.size and (edges.min() < 0 or edges.max() >= size[0])
    if outside or not all(0 <= node < size[0] for node in ends.values()):
        raise ValueError(f"{name} must name nodes from 1 to {size[0]} only")
    # A loop carries nothing, and the solver takes none.
    kept = edges[:, 0] != edges[:, 1]
    return Problem(size[0], edges[kept], capacities[kept], ends["s"], ends["t"])


def _arcs(rows: list[bytes], name: str) -> tuple[IntArray, IntArray | FloatArray]:
    try:
        numbers = np.array(b" ".join(rows).split(), np.bytes_).astype(np.float64).reshape(-1, 3)
    except ValueError:
        raise ValueError(
            f"{name} must have arcs 'a FROM TO CAPACITY', three numbers each"
        ) from None
    edges = numbers[:, :2].astype(np.int64) - 1
    whole = numbers[:, 2].astype(np.int64)
    exact = np.array_equal(whole, numbers[:, 2]) and numbers[:, 2].max(initial=0) < 2**53
    return edges, whole if exact else numbers[:, 2]
