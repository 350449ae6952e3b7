"""Maximum flow and minimum cut of a graph given as arrays, one graph or many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import BoolArray, as_array, as_count, as_list
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import EPS, MANY_ROUNDINGS
from setwise._foundation._threads import as_threads
from setwise.inference._flows._capacities import MOST_NODES, Capacities, kind_of
from setwise.inference._flows._flow_graph import FlowGraph


@dataclass(frozen=True, eq=False, repr=False)
class Flow(Record):
    r"""A maximum flow and a minimum cut.

    Attributes
    ----------
    value : int or float
        The value of the flow.
    bound : int or float
        The capacity of the cut, computed from the problem and ``mask`` alone: no flow is larger.
    gap : int or float
        ``bound - value``: zero for integers, rounding for floats.
    exact : bool
        Whether the cut is proved to be minimal up to rounding: up to 64 units in the last place of
        the flow, without the part min(source, sink) that passes directly through each node. Unused
        capacity, for instance of a large terminal, does not increase this error.
    mask : ndarray of bool, shape (n,)
        The nodes on the source side of the cut.
    flows : ndarray, shape (E,)
        The net flow on each edge, negative where it runs backwards.
    residuals : ndarray, shape (E, 2)
        The residual capacities of each edge, forwards and backwards.

    Examples
    --------
    >>> import setwise as sw
    >>> flow = sw.inference.maxflow([[0, 1]], [3], source=0, sink=1)
    >>> flow.value, flow.bound, flow.exact
    (3, 3, True)
    """

    value: int | float
    bound: int | float
    gap: int | float
    exact: bool
    mask: BoolArray
    flows: Capacities
    residuals: Capacities


def maxflow(
    edges: ArrayLike,
    capacities: ArrayLike,
    reverse: ArrayLike | None = None,
    *,
    n: int | None = None,
    source: ArrayLike,
    sink: ArrayLike,
    n_jobs: int | None = None,
) -> Flow:
    """Find a maximum flow from the source to the sink, and a minimum cut between them.

    Parameters
    ----------
    edges : array-like of int, shape (E, 2)
        Pairs of different nodes; repeated edges are not merged.
    capacities : array-like of shape (E,) or a number
        The capacity from the first node of an edge to the second; finite and nonnegative.
    reverse : array-like of shape (E,) or a number, optional
        The capacity from the second node to the first; zero by default.
    n : int, optional
        The number of nodes; by default the least that ``edges``, ``source`` and ``sink`` need.
    source, sink : int, or array-like of shape (n,)
        Two different nodes, as in :func:`scipy.sparse.csgraph.maximum_flow`; or the capacities of
        all nodes from the source and to the sink, where ``inf`` ties a node to that side.
    n_jobs : int, optional
        The number of threads; None for all cores. The answer does not depend on it.

    Returns
    -------
    Flow
        Computed exactly in integers if no argument holds floats; see :class:`FlowGraph`.

    Examples
    --------
    Between two nodes:

    >>> import setwise as sw
    >>> flow = sw.inference.maxflow(
    ...     [[0, 1], [0, 2], [1, 3], [2, 3]], [3, 2, 2, 3], source=0, sink=3
    ... )
    >>> flow.value, flow.flows.tolist(), flow.mask.tolist()
    (4, [2, 2, 2, 2], [True, True, False, False])

    With a capacity for every node:

    >>> sw.inference.maxflow([[0, 1]], 0.5, 0.5, source=[2.0, 0.0], sink=[0.0, 1.0]).value
    0.5
    """
    shapes = as_array(source, "source").shape, as_array(sink, "sink").shape
    between = shapes == ((), ())
    if not between and [len(shape) for shape in shapes] != [1, 1]:
        raise ValueError(
            "source and sink must be two nodes or two arrays of shape (n,), "
            f"got shapes {shapes[0]} and {shapes[1]}"
        )
    numbers = [(capacities, "capacities"), (reverse, "reverse")]
    if between:
        first, last = _as_node(source, "source"), _as_node(sink, "sink")
        if first == last:
            raise ValueError(f"source and sink must be different nodes, got {first} twice")
        size = _size(edges, first + 1, last + 1) if n is None else as_count(n, "n")
        for node, name in ((first, "source"), (last, "sink")):
            if node >= size:
                raise ValueError(f"{name} must lie between 0 and {size - 1}, got {node}")
    else:
        numbers += [(source, "source"), (sink, "sink")]
        size = _size(edges, *shapes[0]) if n is None else as_count(n, "n")
    graph = FlowGraph(size, edges, capacities, reverse, dtype=kind_of(*numbers))
    if between:
        graph._join(first, last)
    else:
        graph.set_terminals(source, sink)
    value = graph.solve(n_jobs=n_jobs)
    bound = graph.bound
    unproved, flowing = graph._graph.unproved()
    exact = bool(unproved <= MANY_ROUNDINGS * EPS * flowing)
    return Flow(value, bound, bound - value, exact, graph.mask, graph.flows, graph.residuals)


def _as_node(node: ArrayLike, name: str) -> int:
    """Return a node's number, also from an array of dimension 0."""
    return as_count(node[()] if isinstance(node, np.ndarray) else node, name)


def _size(edges: ArrayLike, *least: int) -> int:
    """Return one more than the largest node of the edges, but at least ``least``."""
    array = as_array(edges, "edges")
    named = int(array.max()) + 1 if array.size and array.dtype.kind in "iu" else 0
    size = max(named, *least)
    if size > MOST_NODES:
        raise ValueError(
            f"edges, source and sink must name nodes below {MOST_NODES}, got {size - 1}"
        )
    return size


def maxflow_batch(graphs: Sequence[FlowGraph], *, n_jobs: int | None = None) -> list[int | float]:
    """Solve many graphs on several threads. Each graph stores its answer.

    Parameters
    ----------
    graphs : sequence of FlowGraph
        Solved as by :meth:`FlowGraph.solve`, with a warm start if they were solved before.
    n_jobs : int, optional
        The number of threads; None or -1: all processors. The answers do not depend on it.

    Returns
    -------
    list of int or float
        The values of the flows.

    Examples
    --------
    >>> import setwise as sw
    >>> graphs = [sw.inference.FlowGraph(2, [[0, 1]], c) for c in (1, 2)]
    >>> for graph in graphs:
    ...     graph.set_terminals([5, 0], [0, 5])
    >>> sw.inference.maxflow_batch(graphs, n_jobs=2)
    [1, 2]
    """
    given = as_list(graphs, "graphs", "FlowGraphs")
    for graph in given:
        if not isinstance(graph, FlowGraph):
            raise TypeError(f"graphs must hold FlowGraphs, got {type(graph).__name__}")
    threads = as_threads(n_jobs)
    distinct = list({id(graph): graph._graph for graph in given}.values())
    if distinct:
        _core.solve_flow_graphs(distinct, min(threads, len(distinct)))
    return [graph.value for graph in given]
