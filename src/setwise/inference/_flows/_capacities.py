"""Checks of the capacities and edges of a graph."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from setwise import _core
from setwise._foundation._arguments import IntArray, as_array, as_integers

Capacities = NDArray[np.int64 | np.float64]

# The kernel numbers nodes and arcs by 32-bit integers. Every edge has two arcs.
MOST_NODES = 2**31 - 2
MOST_EDGES = MOST_NODES // 2


def check_size(n: int, n_edges: int, nodes: str = "n", edges: str = "edges") -> None:
    """Raise an error if the kernel cannot number a graph, or the system cannot allocate it.

    ``nodes`` and ``edges`` are the names of the arguments in the message.
    """
    if n > MOST_NODES:
        raise ValueError(f"{nodes} must give at most {MOST_NODES} nodes, got {n}")
    if n_edges > MOST_EDGES:
        raise ValueError(f"{edges} must give at most {MOST_EDGES} edges, got {n_edges}")
    try:
        # Raises a MemoryError if the kernel's memory is not available.
        np.empty(44 * n + 52 * n_edges, np.int8)
    except MemoryError:
        raise ValueError(
            f"{nodes} must give a graph that fits into memory, got {n} nodes and {n_edges} edges"
        ) from None


def as_kind(dtype: DTypeLike, name: str = "dtype") -> type[np.int64] | type[np.float64]:
    """Return the type that a graph computes in: int64 for integers, float64 for floats."""
    try:
        kind = np.dtype(dtype).kind
    except (TypeError, ValueError, SyntaxError) as error:
        raise TypeError(f"{name} must be a type of numbers, got {dtype!r}") from error
    if kind in "biu":
        return np.int64
    if kind == "f":
        return np.float64
    raise TypeError(f"{name} must hold real numbers, got dtype {np.dtype(dtype)}")


def kind_of(*values: tuple[ArrayLike | None, str]) -> type[np.int64] | type[np.float64]:
    """Return float64 if a nonempty one of the named arrays holds floats, else int64."""
    arrays = [(as_array(x, name), name) for x, name in values if x is not None]
    kinds = [(as_kind(array.dtype, name), array.size) for array, name in arrays]
    floats = any(kind is np.float64 and size for kind, size in kinds)
    return np.float64 if floats else np.int64


def as_capacities(
    values: ArrayLike,
    name: str,
    kind: type[np.int64] | type[np.float64],
    shape: tuple[int, ...],
    *,
    infinite: bool = False,
) -> Capacities:
    """Return nonnegative numbers of one type as a flat array. A single number is repeated.

    The argument may be flat or have the shape ``shape``.
    """
    array = as_array(values, name)
    given = as_kind(array.dtype, name)
    if kind is np.int64 and given is np.float64 and array.size:
        raise TypeError(
            f"{name} must hold integers in a graph of integers, got dtype {array.dtype}: "
            "make the graph with dtype=float"
        )
    length = math.prod(shape)
    if array.ndim == 0:
        array = np.broadcast_to(array, length)
    if array.shape not in (shape, (length,)):
        raise ValueError(f"{name} must be a number or have shape {shape}, got {array.shape}")
    if array.dtype == np.uint64 and kind is np.int64 and length and array.max() > 2**63 - 1:
        raise ValueError(f"{name} must be below 2**63, got {array.max()}")
    array = array.reshape(-1)
    numbers: Capacities = np.ascontiguousarray(array, dtype=kind)
    bad = _core.first_not_capacity(numbers, infinite)
    if bad >= 0:
        if not infinite:
            wanted = "be finite and not negative"
        else:
            wanted = "hold numbers" if np.isnan(array[bad]) else "not be negative"
        raise ValueError(f"{name} must {wanted}, got {array[bad]}")
    return numbers


def as_edges(edges: ArrayLike, n: int) -> NDArray[np.int32] | NDArray[np.int64]:
    """Return pairs of different nodes as rows. 32-bit and 64-bit integers are not converted."""
    pairs = as_array(edges, "edges")
    if pairs.size == 0:
        pairs = np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"edges must have shape (E, 2), got {pairs.shape}")
    check_size(n, len(pairs))
    if pairs.dtype not in (np.int32, np.int64):
        pairs = as_integers(pairs, "edges", below=n)
    pairs = np.ascontiguousarray(pairs)
    bad = _core.first_not_edge(pairs, n)
    if bad >= 0:
        tail, head = map(int, pairs[bad])
        if tail == head and 0 <= tail < n:
            raise ValueError(f"edges must join two different nodes, got ({tail}, {head})")
        raise ValueError(f"edges must lie between 0 and {n - 1}, got ({tail}, {head})")
    return pairs


def as_places(places: ArrayLike, count: int, name: str) -> IntArray:
    """Return the numbers of distinct nodes or edges, checked in one compiled pass."""
    array = as_array(places, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    which = np.ascontiguousarray(array, dtype=np.int64)
    bad = _core.first_not_distinct(which, count)
    if bad >= 0 and not 0 <= array[bad] < count:
        raise ValueError(f"{name} must lie between 0 and {count - 1}, got {array[bad]}")
    if bad >= 0:
        raise ValueError(f"{name} must be distinct, got {array[bad]} more than once")
    return which
