"""Flow problems that can be changed and solved again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from setwise import _core
from setwise._foundation._arguments import BoolArray, IntArray, as_count
from setwise._foundation._threads import as_threads
from setwise.inference._flows._capacities import (
    Capacities,
    as_capacities,
    as_edges,
    as_kind,
    as_places,
    kind_of,
)
from setwise.inference._flows._grid_edges import as_grid


class FlowGraph:
    r"""A maximum-flow problem with terminals, which can be solved, changed and solved again.

    Node :math:`i` is joined to the source with capacity :math:`s_i` and to the sink with
    :math:`t_i`; an edge :math:`e = (i, j)` lets :math:`c_e` pass from :math:`i` to :math:`j` and
    :math:`r_e` back. :meth:`solve` finds a largest flow and with it a set :math:`A` that minimises

    .. math:: \sum_{i \notin A} s_i + \sum_{i \in A} t_i
       + \sum_{e = (i, j)} c_e \, [i \in A, j \notin A] + r_e \, [j \in A, i \notin A].

    Computations with integers are exact. The sum of all capacities must be below :math:`2^{63}`
    for integers, and below :math:`2^{1022}` for floats. With floats no tolerance is used: an edge
    is saturated when its residual capacity is exactly zero, and every augmentation saturates one
    edge. The graph sums up the losses of capacities by rounding. If they exceed 64 units in the
    last place of the flow, the flow is computed again from zero, with capacities above twice the
    cut lowered to that value. So ``mask`` is a minimum cut up to 64 units in the last place of the
    flow beyond :math:`\sum_i \min(s_i, t_i)` (more only if paths are so long that no float could do
    better). This holds for any earlier changes and solutions, and for any large terminal capacities
    that the cut leaves unsaturated. ``value`` is the value of the flow. It is at most ``bound``,
    and differs from it by at most this error and one rounding of the sum. An infinite terminal
    capacity ties a node to its side.

    Threads may share a graph. An answer belongs to the current problem; if the problem was changed
    and not yet solved again, a ``RuntimeError`` is raised.

    A second :meth:`solve` starts from the flow of the first. Its time is proportional to the part
    of the graph that the changes affect. The algorithm is that of Goldberg et al., *Maximum flows
    by incremental breadth-first search* (ESA 2011).

    Parameters
    ----------
    n : int
        The number of nodes.
    edges : array-like of int, shape (E, 2)
        Pairs of different nodes. Repeated edges are not merged: each has its own flow.
    capacities : array-like of shape (E,) or a number
        :math:`c_e`, finite and not negative.
    reverse : array-like of shape (E,) or a number, optional
        :math:`r_e`; zero by default. For undirected edges pass ``capacities`` again.
    dtype : dtype, optional
        Integers or floats; by default the type of ``capacities`` and ``reverse``.

    Examples
    --------
    >>> import setwise as sw
    >>> graph = sw.inference.FlowGraph(3, [[0, 1], [1, 2]], [2, 1], [2, 1])
    >>> graph.set_terminals([4, 0, 0], [0, 0, 3])
    >>> graph.solve()
    1
    >>> graph.mask.tolist(), graph.flows.tolist()
    ([True, True, False], [1, 1])
    >>> graph.set_terminals(1, 2, nodes=[1])  # node 1: 1 from the source, 2 to the sink
    >>> graph.solve()
    3
    """

    def __init__(
        self,
        n: int,
        edges: ArrayLike,
        capacities: ArrayLike,
        reverse: ArrayLike | None = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.n = as_count(n, "n")
        self.shape: tuple[int, ...] = (self.n,)
        pairs = as_edges(edges, self.n)
        self.dtype = np.dtype(
            kind_of((capacities, "capacities"), (reverse, "reverse"))
            if dtype is None
            else as_kind(dtype)
        )
        self.n_edges = len(pairs)
        there, back = self._both(capacities, reverse, self.n_edges)
        self._graph = _core.make_flow_graph(self.n, pairs, np.empty(0, self.dtype))
        self._graph.set_all_capacities(there, back)

    @classmethod
    def grid(
        cls,
        shape: Sequence[int],
        weights: ArrayLike,
        reverse: ArrayLike | None = None,
        *,
        offsets: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Self:
        r"""Build the graph of a grid of pixels, of any dimension and connectivity.

        Pixels are numbered in C order. ``set_terminals`` accepts arrays of the grid's shape, and
        ``mask`` has this shape. The edges are ordered by offset; edges that leave the grid are
        omitted.

        Parameters
        ----------
        shape : sequence of int
            The sides of the grid.
        weights : a number, or array-like that broadcasts to (K, \*shape)
            Entry ``[k, p]`` is the capacity from pixel ``p`` to pixel ``p + offsets[k]``.
        reverse : the same, optional
            The capacity in the reverse direction; by default ``weights``, for undirected edges.
        offsets : array-like of int, shape (K, len(shape)), optional
            The offsets of the neighbours; by default the next pixel along each axis. Of two
            opposite offsets, list only one.
        dtype : dtype, optional
            Integers or floats; by default the type of ``weights`` and ``reverse``.

        Examples
        --------
        With four neighbours, then with eight:

        >>> import setwise as sw
        >>> graph = sw.inference.FlowGraph.grid((2, 3), 1)
        >>> graph.set_terminals([[9, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 9]])
        >>> graph.solve(), graph.n_edges
        (2, 7)
        >>> eight = [[0, 1], [1, 0], [1, 1], [1, -1]]
        >>> sw.inference.FlowGraph.grid((2, 3), 1, offsets=eight).n_edges
        11
        """
        grid = as_grid(shape, weights, reverse, offsets)
        kind = (
            kind_of((grid.there, "weights"), (grid.back, "reverse"))
            if dtype is None
            else as_kind(dtype)
        )
        there, back = grid.in_kind(kind)
        sides = np.array(grid.sides, np.int64)
        kernel = _core.make_flow_grid(sides, grid.steps, there, back) if grid.n else None
        if kernel is None:
            edges, capacities, backward = grid.edges()
            graph = cls(grid.n, edges, capacities, backward, dtype=kind)
        else:
            graph = cls.__new__(cls)
            graph.n, graph.n_edges = grid.n, sum(grid.sizes)
            graph.dtype, graph._graph = np.dtype(kind), kernel
        graph.shape = grid.sides
        return graph

    def _both(
        self, capacities: ArrayLike, reverse: ArrayLike | None, count: int
    ) -> tuple[Capacities, Capacities]:
        """Return the capacities of ``count`` edges; an empty array if all are zero."""
        kind = as_kind(self.dtype)
        there = as_capacities(capacities, "capacities", kind, (count,))
        if reverse is None:
            return there, np.empty(0, kind)
        if reverse is capacities:
            return there, there
        return there, as_capacities(reverse, "reverse", kind, (count,))

    def set_terminals(
        self, source: ArrayLike, sink: ArrayLike, *, nodes: ArrayLike | None = None
    ) -> None:
        """Replace the capacities from the source and to the sink, of all nodes or of some.

        Parameters
        ----------
        source, sink : array-like of shape (n,), or one entry for each of ``nodes``, or a number
            Nonnegative. A grid also accepts arrays of its shape. ``inf`` (in a graph of floats)
            ties the node to that side; one node cannot be tied to both.
        nodes : array-like of int, optional
            Distinct nodes; all of them by default.

        Examples
        --------
        >>> import setwise as sw
        >>> graph = sw.inference.FlowGraph(2, [[0, 1]], 1.5)
        >>> graph.set_terminals([2.0, 0.0], [0.0, float("inf")])
        >>> graph.solve()
        1.5
        """
        which = None if nodes is None else as_places(nodes, self.n, "nodes")
        count = self.n if which is None else len(which)
        kind = as_kind(self.dtype)
        shape = self.shape if which is None else (count,)
        out = as_capacities(source, "source", kind, shape, infinite=True)
        into = as_capacities(sink, "sink", kind, shape, infinite=True)
        if kind is np.float64:
            torn = np.flatnonzero(np.isinf(out) & np.isinf(into))
            if len(torn):
                node = torn[0] if which is None else which[torn[0]]
                raise ValueError(
                    f"source and sink must not both be infinite at one node, got node {node}"
                )
        if which is None:
            self._graph.set_all_terminals(out, into)
        else:
            self._graph.set_terminals(which, out, into)

    def _join(self, source: int, sink: int) -> None:
        """Tie one node to each side, by capacities larger than any flow between the two."""
        most = min(self._graph.through(source, True), self._graph.through(sink, False))
        terminals = np.zeros((2, self.n), self.dtype)
        terminals[0, source] = terminals[1, sink] = most + 1 if self.dtype.kind == "i" else np.inf
        self._graph.set_all_terminals(*terminals)

    def set_capacities(
        self, edges: ArrayLike, capacities: ArrayLike, reverse: ArrayLike | None = None
    ) -> None:
        """Replace the capacities of some edges; they may be below the current flow.

        Parameters
        ----------
        edges : array-like of int, shape (m,)
            Distinct edges, given by their indices in the ``edges`` of the constructor.
        capacities, reverse : array-like of shape (m,) or a number
            As in the constructor: ``reverse`` is zero by default.

        Examples
        --------
        >>> import setwise as sw
        >>> graph = sw.inference.FlowGraph(2, [[0, 1]], 5)
        >>> graph.set_terminals([9, 0], [0, 9])
        >>> graph.solve()
        5
        >>> graph.set_capacities([0], 3)
        >>> graph.solve()
        3
        """
        which = as_places(edges, self.n_edges, "edges")
        there, back = self._both(capacities, reverse, len(which))
        self._graph.set_capacities(which, there, back)

    def solve(self, *, n_jobs: int | None = None) -> int | float:
        """Find a maximum flow, starting from the last one if there is one, and return its value.

        The first flow of a large graph is found in blocks of consecutive nodes (strips of an image,
        slabs of a volume) that are solved separately and then joined, after Liu and Sun, *Parallel
        graph-cuts by adaptive bottom-up merging* (CVPR 2010). Later flows use one thread. The first
        flow also uses one thread if most edges join distant nodes, or if augmenting paths are much
        longer than the thickness of a block. If only the labels of a large
        grid are needed, ``solve_map`` is faster: it proves labels block by block, without a flow of
        the whole grid, which this class keeps for ``flows``, ``residuals`` and the next solution.

        Parameters
        ----------
        n_jobs : int, optional
            The number of threads; None for all cores. The answer does not depend on it, to the last
            bit, because the blocks depend on the graph alone.

        Examples
        --------
        >>> import setwise as sw
        >>> sw.inference.FlowGraph(1, [], []).solve()
        0
        """
        return self._graph.solve(as_threads(n_jobs))

    def copy(self) -> Self:
        """Return an independent graph in the same state, including its flow.

        Examples
        --------
        >>> import setwise as sw
        >>> graph = sw.inference.FlowGraph(2, [[0, 1]], 5)
        >>> other = graph.copy()
        >>> other.set_terminals([1, 0], [0, 1])
        >>> other.solve(), graph.solve()
        (1, 0)
        """
        twin = self.__class__.__new__(self.__class__)
        twin.__dict__.update(self.__dict__, _graph=self._graph.copy())
        return twin

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self.copy()

    @property
    def value(self) -> int | float:
        """The value of the flow."""
        return self._graph.value()

    @property
    def bound(self) -> int | float:
        """The capacity of the cut, from the problem and ``mask`` alone; never below ``value``."""
        return self._graph.cut()

    @property
    def mask(self) -> BoolArray:
        """The nodes on the source side of a minimum cut, of shape (n,) or of the grid's shape."""
        mask = np.empty(self.n, np.bool_)
        self._graph.read_sides(mask)
        return mask.reshape(self.shape)

    def _least_sink_side(self) -> BoolArray:
        """Return the sink side of the minimum cut whose sink side is smallest."""
        mask = np.empty(self.n, np.bool_)
        self._graph.read_least_sink_side(mask)
        return mask.reshape(self.shape)

    @property
    def flows(self) -> Capacities:
        """The net flow on each edge, of shape (E,), negative if it runs backwards."""
        flows: Capacities = np.empty(self.n_edges, self.dtype)
        self._graph.read_flows(flows, np.empty(0, self.dtype))
        return flows

    @property
    def residuals(self) -> Capacities:
        """The residual capacities of each edge, forwards and backwards, of shape (E, 2)."""
        residuals: Capacities = np.empty((self.n_edges, 2), self.dtype)
        self._graph.read_flows(np.empty(0, self.dtype), residuals.reshape(-1))
        return residuals

    @property
    def edges(self) -> IntArray:
        """The edges, of shape (E, 2)."""
        edges = np.empty((self.n_edges, 2), np.int64)
        self._graph.read_edges(edges)
        return edges

    def __getstate__(self) -> dict[str, Any]:
        """Return the problem without its flow: a loaded graph is solved from a cold start."""
        numbers: list[Capacities] = [
            np.empty(k, self.dtype) for k in (self.n_edges, self.n_edges, self.n, self.n)
        ]
        self._graph.read_problem(*numbers)
        return {"shape": self.shape, "edges": self.edges, "dtype": self.dtype, "numbers": numbers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        capacities, reverse, source, sink = state["numbers"]
        n, dtype = math.prod(state["shape"]), state["dtype"]
        self.__init__(n, state["edges"], capacities, reverse, dtype=dtype)  # type: ignore[misc]
        self.set_terminals(source, sink)
        self.shape = state["shape"]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.n}, n_edges={self.n_edges}, dtype={self.dtype})"
