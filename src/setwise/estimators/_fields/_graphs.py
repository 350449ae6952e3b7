"""Samples that are graphs: features on nodes and edges, and regions, all concatenated."""

from __future__ import annotations

from collections.abc import Iterable
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
from setwise.fields._regions import as_regions


@dataclass(frozen=True, eq=False)
class Graphs:
    """The concatenation of n graphs, with M nodes, E edges and R regions in total.

    Attributes
    ----------
    nodes : (M, d)
        Features of the nodes; NaN if one is missing, which not every learner accepts.
    edges : (E, 2)
        The ends of each edge; nodes are numbered consecutively over all graphs.
    pairs : (E, k)
        Features of the edges, not negative.
    node_starts, edge_starts : (n + 1,)
        Graph i has the nodes [node_starts[i], node_starts[i + 1]), and edges likewise.
    regions : (M, layers)
        The region of each node in each layer, numbered consecutively over all graphs; -1 for none.
    region_layers : (R,)
        The layer of each region.
    region_starts : (n + 1,)
    """

    nodes: FloatArray
    edges: IntArray
    pairs: FloatArray
    node_starts: IntArray
    edge_starts: IntArray
    regions: IntArray
    region_layers: IntArray
    region_starts: IntArray

    @property
    def widths(self) -> tuple[int, int, int]:
        """The numbers of node features, of edge features and of layers of regions."""
        return self.nodes.shape[1], self.pairs.shape[1], self.regions.shape[1]

    @property
    def layers(self) -> FloatArray:
        """Features of regions, (R, layers): indicators of their layers."""
        return np.eye(self.regions.shape[1])[self.region_layers]

    def take(self, chosen: IntArray) -> Graphs:
        """Return the given graphs, in the given order."""

        def rows(starts: IntArray) -> tuple[IntArray, IntArray]:
            parts = [np.arange(starts[i], starts[i + 1]) for i in chosen]
            return np.concatenate([*parts, np.zeros(0, np.int64)]), _starts(map(len, parts))

        (at, nodes), (between, edges), (regions, region_starts) = (
            rows(starts) for starts in (self.node_starts, self.edge_starts, self.region_starts)
        )
        new_node = np.full(len(self.nodes), -1)
        new_node[at] = np.arange(len(at))
        # The last entry is for nodes without a region.
        new_region = np.full(len(self.region_layers) + 1, -1)
        new_region[regions] = np.arange(len(regions))
        return Graphs(
            self.nodes[at],
            new_node[self.edges[between]],
            self.pairs[between],
            nodes,
            edges,
            new_region[self.regions[at]],
            self.region_layers[regions],
            region_starts,
        )

    def __len__(self) -> int:
        return len(self.node_starts) - 1

    def of_nodes(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Split values of the nodes by graph."""
        return [values[begin:end] for begin, end in pairwise(self.node_starts.tolist())]

    def sums(self, of_nodes: FloatArray, of_edges: FloatArray) -> FloatArray:
        """Sum over the nodes and edges of each graph, (n,)."""
        total = np.zeros(len(self))
        total += np.bincount(graph_of(self.node_starts), of_nodes, len(self))
        total += np.bincount(graph_of(self.edge_starts), of_edges, len(self))
        return total


def graph_of(starts: IntArray) -> IntArray:
    """Return the graph of each node, edge or region, given where each graph begins."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def read_graphs(X: Any, widths: tuple[int, int, int] | None = None, name: str = "X[{}]") -> Graphs:
    """Check samples (node features, edges, edge features) and optional regions; concatenate them.

    ``widths`` are the numbers of features and layers of the fit; by default those of the first
    graph. ``name`` is the name of a graph in errors, where {} is its number.
    """
    parts = []
    d, k, layers = widths or (None, None, None)
    for i, graph in enumerate(as_list(X, "X", "graphs")):
        nodes, edges, pairs, regions = _read(graph, name.format(i), d, k, layers)
        parts.append((nodes, edges, pairs, regions))
        d, layers = nodes.shape[1], regions.shape[1]
        k = k if pairs is None else pairs.shape[1]
    if not parts:
        raise ValueError("X must hold at least one graph, got none")
    nothing = np.zeros((0, k or 0))
    node_starts = _starts(len(part[0]) for part in parts)
    shifted = [part[1] + start for part, start in zip(parts, node_starts[:-1], strict=True)]
    region_starts = _starts(int(part[3].max(initial=-1)) + 1 for part in parts)
    regions = np.concatenate(
        [
            np.where(part[3] >= 0, part[3] + start, -1)
            for part, start in zip(parts, region_starts[:-1], strict=True)
        ]
    )
    region_layers = np.zeros(region_starts[-1], np.int64)
    for layer, column in enumerate(regions.T):
        region_layers[column[column >= 0]] = layer
    return Graphs(
        np.concatenate([part[0] for part in parts]),
        np.concatenate(shifted),
        np.concatenate([nothing if part[2] is None else part[2] for part in parts]),
        node_starts,
        _starts(len(part[1]) for part in parts),
        regions,
        region_layers,
        region_starts,
    )


def _starts(sizes: Iterable[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.fromiter(sizes, np.int64))])


def _read(
    graph: Any, name: str, d: int | None, k: int | None, layers: int | None
) -> tuple[FloatArray, IntArray, FloatArray | None, IntArray]:
    """Read one sample. Without edges it needs no edge features."""
    if not isinstance(graph, tuple | list) or len(graph) not in (3, 4):
        what = f"{len(graph)} entries" if isinstance(graph, tuple | list) else type(graph).__name__
        raise TypeError(
            f"{name} must be a tuple (node_features, edges, edge_features), or with regions as a "
            f"fourth entry, got {what}"
        )
    nodes = _numbers_or_nan(graph[0], f"node_features of {name}")
    try:
        edges = as_edges(graph[1])
        check_edges(edges, len(nodes))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    pairs = as_array(graph[2], f"edge_features of {name}")
    _check_width(nodes, d, f"node_features of {name}")
    regions = _read_regions(graph[3] if len(graph) == 4 else None, len(nodes), name)
    if layers is not None and regions.shape[1] != layers:
        raise ValueError(
            f"regions of {name} must have {layers} layers as those of the others, "
            f"got {regions.shape[1]}"
        )
    if len(edges) == 0 and pairs.size == 0 and pairs.ndim < 2:  # an empty list has no edges
        return nodes, edges, None, regions
    pairs = as_numbers(
        pairs, f"edge_features of {name}", shape=(len(edges), None), largest=SQUARABLE
    )
    if pairs.size and pairs.min() < 0:
        raise ValueError(
            f"edge_features of {name} must not be negative, so that cuts find the best labels, "
            f"got {pairs.min():g}"
        )
    _check_width(pairs, k, f"edge_features of {name}")
    return nodes, edges, pairs, regions


def _read_regions(regions: Any, n_nodes: int, name: str) -> IntArray:
    """Read regions of all layers, (N, layers), numbered consecutively; None has no layer."""
    if regions is None:
        return np.zeros((n_nodes, 0), np.int64)
    array = as_array(regions, f"regions of {name}")
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or len(array) != n_nodes:
        raise ValueError(
            f"regions of {name} must have shape ({n_nodes},) or ({n_nodes}, layers), "
            f"got {np.shape(regions)}"
        )
    numbered, so_many = np.empty(array.shape, np.int64), 0
    for layer, column in enumerate(array.T):
        try:
            compact = as_regions(column)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None
        numbered[:, layer] = np.where(compact >= 0, compact + so_many, -1)
        so_many += int(compact.max(initial=-1)) + 1
    return numbered


def _numbers_or_nan(values: Any, name: str) -> FloatArray:
    """Return features (N, d), NaN for those that are missing."""
    array = as_array(values, name)
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, np.bool_)
    if missing.any():
        array = np.where(missing, np.zeros_like(array), array)
    numbers = as_numbers(array, name, shape=(None, None), largest=SQUARABLE)
    numbers[missing] = np.nan
    return numbers


def refuse_missing(graphs: Graphs, name: str = "X[{}]") -> None:
    """Raise an error if a feature of a node is missing (NaN)."""
    missing = np.flatnonzero(np.isnan(graphs.nodes).any(axis=1))
    if missing.size:
        graph = int(np.searchsorted(graphs.node_starts, missing[0], side="right")) - 1
        raise ValueError(f"node_features of {name.format(graph)} must be finite, got nan")


def _check_width(rows: FloatArray, width: int | None, name: str) -> None:
    if width is not None and rows.shape[1] != width:
        raise ValueError(f"{name} must have {width} columns, got {rows.shape[1]}")


def read_of_nodes(values: Any, graphs: Graphs, name: str) -> NDArray[Any]:
    """Read one entry per node, given graph by graph, and join them."""
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
    """Read the cost of a mistake at each node: 1 by default, or one number for all."""
    if weights is None:
        return np.ones(len(graphs.nodes))
    if isinstance(weights, int | float | np.number | np.ndarray) and np.ndim(weights) == 0:
        cost = as_numbers(weights, "node_weights", shape=(), nonnegative=True)
        costs = np.full(len(graphs.nodes), float(cost))
    else:
        flat: ArrayLike = read_of_nodes(weights, graphs, "node_weights")
        costs = as_numbers(flat, "node_weights", nonnegative=True)
    largest = float(costs.max(initial=0.0))
    if 0.0 < largest < 1e-300:  # relative weights would be NaN
        raise ValueError(f"node_weights must reach 1e-300 somewhere, got at most {largest:g}")
    return costs
