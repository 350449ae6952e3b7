"""Samples that are graphs: features on nodes and edges, laid end to end, and a label a node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise.fields._edges import as_edges, check_edges
from setwise.functions._arguments import FloatArray, IntArray, as_array, as_numbers


@dataclass(frozen=True, eq=False)
class Graphs:
    """n graphs end to end: M nodes and E edges in all.

    Attributes
    ----------
    nodes : (M, d)
        Features of the nodes.
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


def read_graphs(X: Any, widths: tuple[int, int] | None = None) -> Graphs:
    """Checked samples (node features, edges, edge features), laid end to end.

    ``widths`` are the numbers of features that a fit had; by default those of the first graph.
    """
    if not isinstance(X, Iterable) or isinstance(X, str | bytes):
        raise TypeError(f"X must be a sequence of graphs, got {type(X).__name__}")
    parts = []
    for i, graph in enumerate(X):
        parts.append(_read(graph, i, widths))
        if widths is None:
            widths = parts[0][0].shape[1], parts[0][2].shape[1]
    if not parts or widths is None:
        raise ValueError("X must hold at least one graph, got none")
    node_starts = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])])
    edge_starts = np.concatenate([[0], np.cumsum([len(part[1]) for part in parts])])
    shifted = [edges + start for (_, edges, _), start in zip(parts, node_starts[:-1], strict=True)]
    return Graphs(
        np.concatenate([part[0] for part in parts]),
        np.concatenate(shifted),
        np.concatenate([part[2] for part in parts]),
        node_starts,
        edge_starts,
    )


def _read(
    graph: Any, i: int, widths: tuple[int, int] | None
) -> tuple[FloatArray, IntArray, FloatArray]:
    if not isinstance(graph, tuple | list) or len(graph) != 3:
        what = f"{len(graph)} entries" if isinstance(graph, tuple | list) else type(graph).__name__
        raise TypeError(f"X[{i}] must be a tuple (node_features, edges, edge_features), got {what}")
    nodes = as_numbers(graph[0], f"node_features of X[{i}]", shape=(None, None))
    try:
        edges = as_edges(graph[1])
        check_edges(edges, len(nodes))
    except (TypeError, ValueError) as error:
        raise type(error)(f"X[{i}]: {error}") from None
    pairs = as_array(graph[2], f"edge_features of X[{i}]")
    if len(edges) == 0 and pairs.size == 0 and pairs.ndim < 2:  # a plain [] has no width to tell
        pairs = np.zeros((0, widths[1] if widths is not None else 0))
    pairs = as_numbers(pairs, f"edge_features of X[{i}]", shape=(len(edges), None))
    if pairs.size and pairs.min() < 0:
        raise ValueError(
            f"edge_features of X[{i}] must not be negative, so that cuts find the best labels, "
            f"got {pairs.min():g}"
        )
    for have, want, name in zip(
        (nodes, pairs), widths or (), ("node_features", "edge_features"), strict=False
    ):
        if have.shape[1] != want:
            raise ValueError(f"{name} of X[{i}] must have {want} columns, got {have.shape[1]}")
    return nodes, edges, pairs


def read_of_nodes(values: Any, graphs: Graphs, name: str) -> NDArray[Any]:
    """One entry a node, given graph by graph, laid end to end."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise TypeError(f"{name} must be a sequence of arrays, got {type(values).__name__}")
    parts = [as_array(part, f"{name}[{i}]") for i, part in enumerate(values)]
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
    """What a mistake at each node costs: 1 by default."""
    if weights is None:
        return np.ones(len(graphs.nodes))
    flat: ArrayLike = read_of_nodes(weights, graphs, "node_weights")
    return as_numbers(flat, "node_weights", nonnegative=True)
