"""Flow problems in the format of the DIMACS challenge."""

from __future__ import annotations

import io
from array import array
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._files import LONGEST_WORD, affords, quoted, unpacked


class Problem(NamedTuple):
    """A graph with a source and a sink, whose nodes are numbered from 0."""

    n: int
    edges: IntArray
    capacities: IntArray | FloatArray
    source: int
    sink: int


def read_dimacs(data: bytes, name: str) -> Problem:
    """Read the lines "p max NODES ARCS", "n ID s", "n ID t" and "a FROM TO CAPACITY" of a file."""
    packed = data[:2] == b"\x1f\x8b"
    text = b"".join(unpacked(io.BytesIO(data), len(data), name, packed=packed))
    size: tuple[int, int] | None = None
    ends: dict[bytes, int] = {}
    numbers = array("d")
    for number, line in enumerate(text.splitlines(), start=1):
        kind, *words = line.split() or [b""]
        try:
            if kind == b"a":
                if len(words) != 3:
                    raise ValueError("it must be 'a FROM TO CAPACITY'")
                numbers.extend(map(_number, words))
            elif kind == b"p":
                if len(words) < 3 or words[0] != b"max":
                    raise ValueError("it must be 'p max NODES ARCS'")
                size = _whole(words[1]), _whole(words[2])
            elif kind == b"n":
                if len(words) != 2 or words[1] not in (b"s", b"t"):
                    raise ValueError("it must be 'n ID s' or 'n ID t'")
                ends[words[1]] = _whole(words[0]) - 1
            elif kind not in (b"c", b""):
                raise ValueError("it must begin with c, p, n or a")
        except ValueError as error:
            raise ValueError(
                f"{name}: line {number} is not one of a flow problem: {error}"
            ) from None
    if size is None or len(ends) != 2:
        raise ValueError(f"{name} must have a line 'p max NODES ARCS' and lines 'n ID s', 'n ID t'")
    if len(numbers) != 3 * size[1]:
        raise ValueError(
            f"{name} must have the {size[1]} arcs that it promises, got {len(numbers) // 3}"
        )
    if not affords(len(numbers), size[0]):  # nodes without arcs take memory too
        raise ValueError(f"{name} promises {size[0]} nodes, too many for {size[1]} arcs")
    edges, capacities = _arcs(np.frombuffer(numbers, np.float64).reshape(-1, 3), name)
    outside = edges.size and (edges.min() < 0 or edges.max() >= size[0])
    if outside or not all(0 <= node < size[0] for node in ends.values()):
        raise ValueError(f"{name} must name nodes from 1 to {size[0]} only")
    # A loop carries no flow, and the solver does not accept loops.
    kept = edges[:, 0] != edges[:, 1]
    return Problem(size[0], edges[kept], capacities[kept], ends[b"s"], ends[b"t"])


def _number(word: bytes) -> float:
    try:
        if len(word) <= LONGEST_WORD:
            return float(word)
    except ValueError:
        pass
    raise ValueError(f"it must have numbers, got {quoted(word)}")


def _whole(word: bytes) -> int:
    number = _number(word)
    if not (abs(number) < 2**53 and number.is_integer()):
        raise ValueError(f"it must have whole numbers, got {quoted(word)}")
    return int(number)


def _arcs(numbers: FloatArray, name: str) -> tuple[IntArray, IntArray | FloatArray]:
    ends, capacities = numbers[:, :2], numbers[:, 2]
    if not (np.abs(ends) < 2**53).all() or (ends != np.rint(ends)).any():
        raise ValueError(f"{name} must number its nodes by whole numbers")
    edges = ends.astype(np.int64) - 1
    if not (np.abs(capacities) < 2**53).all() or (capacities != np.rint(capacities)).any():
        return edges, capacities.copy()
    return edges, capacities.astype(np.int64)
