"""Samples that are graphs: features on nodes and edges, laid end to end, and a label a node."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import (
    SQUARABLE,
    FloatArray,
    IntArray,
    as_array,
    as_list,
    as_numbers,
)
from setwise.fields._edges import as_edges, check_edges


@dataclass(frozen=True, eq=False)
class Graphs:
    """n graphs end to end: M nodes and E edges in all.

    Attributes
    ----------
    nodes : (M, d)
        Features of the nodes; NaN where one is missing, which not every learner takes.
    edges : (E, 2)
        The ends of each edge, the nodes of all graphs numbered through.
    pairs : (E, k)
        Features of the edges, not negative.
    node_starts, edge_starts : (n + 1,)
        Graph i has the nodes [node_starts[i], node_starts[i + 1]), and edges likewise.
    """

    nodes: FloatArray
    edges: IntArray
    pairs: FloatArray
    node_starts: IntArray
    edge_starts: IntArray

    def __len__(self) -> int:
        return len(self.node_starts) - 1

    def of_nodes(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """What belongs to the nodes of each graph."""
        return [values[begin:end] for begin, end in pairwise(self.node_starts.tolist())]

    def sums(self, of_nodes: FloatArray, of_edges: FloatArray) -> FloatArray:
        """(n,) the sum over the nodes and edges of each graph."""
        graph_of_node = np.repeat(np.arange(len(self)), np.diff(self.node_starts))
        graph_of_edge = np.repeat(np.arange(len(self)), np.diff(self.edge_starts))
        total = np.zeros(len(self))
        total += np.bincount(graph_of_node, of_nodes, len(self))
        total += np.bincount(graph_of_edge, of_edges, len(self))
        return total


def read_graphs(X: Any, widths: tuple[int, int] | None = None, name: str = "X[{}]") -> Graphs:
    """Checked samples (node features, edges, edge features), laid end to end.

    ``widths`` are the numbers of features that a fit had; by default those of the first graph.
    ``name`` is what a graph is called in errors, {} standing for its number.
    """
    parts = []
    d, k = widths or (None, None)
    for i, graph in enumerate(as_list(X, "X", "graphs")):
        nodes, edges, pairs = _read(graph, name.format(i), d, k)
        parts.append((nodes, edges, pairs))
        d = nodes.shape[1]
        k = k if pairs is None else pairs.shape[1]
    if not parts:
        raise ValueError("X must hold at least one graph, got none")
    nothing = np.zeros((0, k or 0))
    node_starts = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])])
    edge_starts = np.concatenate([[0], np.cumsum([len(part[1]) for part in parts])])
    shifted = [edges + start for (_, edges, _), start in zip(parts, node_starts[:-1], strict=True)]
    return Graphs(
        np.concatenate([part[0] for part in parts]),
        np.concatenate(shifted),
        np.concatenate([nothing if pairs is None else pairs for *_, pairs in parts]),
        node_starts,
        edge_starts,
    )


def _read(
    graph: Any, name: str, d: int | None, k: int | None
) -> tuple[FloatArray, IntArray, FloatArray | None]:
    """One sample; no edge features where there is no edge, and nothing to tell their number."""
    if not isinstance(graph, tuple | list) or len(graph) != 3:
        what = f"{len(graph)} entries" if isinstance(graph, tuple | list) else type(graph).__name__
        raise TypeError(f"{name} must be a tuple (node_features, edges, edge_features), got {what}")
    nodes = _numbers_or_nan(graph[0], f"node_features of {name}")
    try:
        edges = as_edges(graph[1])
        check_edges(edges, len(nodes))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    pairs = as_array(graph[2], f"edge_features of {name}")
    _check_width(nodes, d, f"node_features of {name}")
    if len(edges) == 0 and pairs.size == 0 and pairs.ndim < 2:  # a plain []
        return nodes, edges, None
    pairs = as_numbers(
        pairs, f"edge_features of {name}", shape=(len(edges), None), largest=SQUARABLE
    )
    if pairs.size and pairs.min() < 0:
        raise ValueError(
            f"edge_features of {name} must not be negative, so that cuts find the best labels, "
            f"got {pairs.min():g}"
        )
    _check_width(pairs, k, f"edge_features of {name}")
    return nodes, edges, pairs


def _numbers_or_nan(values: Any, name: str) -> FloatArray:
    """Features (N, d), NaN for those that are missing."""
    array = as_array(values, name)
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, np.bool_)
    if missing.any():
        array = np.where(missing, np.zeros_like(array), array)
    numbers = as_numbers(array, name, shape=(None, None), largest=SQUARABLE)
    numbers[missing] = np.nan
    return numbers


def refuse_missing(graphs: Graphs, name: str = "X[{}]") -> None:
    """Raise if a feature of a node is missing, NaN."""
    missing = np.flatnonzero(np.isnan(graphs.nodes).any(axis=1))
    if missing.size:
        graph = int(np.searchsorted(graphs.node_starts, missing[0], side="right")) - 1
        raise ValueError(f"node_features of {name.format(graph)} must be finite, got nan")


def _check_width(rows: FloatArray, width: int | None, name: str) -> None:
    if width is not None and rows.shape[1] != width:
        raise ValueError(f"{name} must have {width} columns, got {rows.shape[1]}")


def read_of_nodes(values: Any, graphs: Graphs, name: str) -> NDArray[Any]:
    """One entry a node, given graph by graph, laid end to end."""
    entries = as_list(values, name, "arrays")
    parts = [as_array(part, f"{name}[{i}]") for i, part in enumerate(entries)]
    if len(parts) != len(graphs):
        raise ValueError(
            f"{name} must have an array for each of {len(graphs)} graphs, got {len(parts)}"
        )
    for i, (part, n) in enumerate(zip(parts, np.diff(graphs.node_starts), strict=True)):
        if part.shape != (n,):
            raise ValueError(f"{name}[{i}] must have shape ({n},), got {part.shape}")
    if len({part.dtype.kind in "US" for part in parts if part.size}) > 1:
        raise TypeError(f"{name} must be of one kind, got both words and numbers")
    return np.concatenate(parts)


def read_node_weights(weights: Any, graphs: Graphs) -> FloatArray:
    """What a mistake at each node costs: 1 by default, or one number for all."""
    if weights is None:
        return np.ones(len(graphs.nodes))
    if isinstance(weights, int | float | np.number | np.ndarray) and np.ndim(weights) == 0:
        cost = as_numbers(weights, "node_weights", shape=(), nonnegative=True)
        return np.full(len(graphs.nodes), float(cost))
    flat: ArrayLike = read_of_nodes(weights, graphs, "node_weights")
    return as_numbers(flat, "node_weights", nonnegative=True)
