"""The best labelling by exact searches that are confined to windows."""

from __future__ import annotations

from dataclasses import replace
from math import fsum, inf
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._search import completed
from setwise.fields._field import Field
from setwise.fields._potentials._pairwise import Pairwise
from setwise.fields._potentials._potts import Potts
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import NEGLIGIBLE, sum_below
from setwise.inference._map._bound_extrapolation import BoundExtrapolation
from setwise.inference._map._branching._branch_and_bound import (
    BranchAndBoundSearch,
    network_of,
    sums_of,
)
from setwise.inference._map._elimination import eliminate
from setwise.inference._map._junction_tree import is_affordable, is_cheap
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._search import MapSearch

# The passes of a round, and the most of them before windows.
_LOOK, _PASSES = 4, 400
# Passes end when the extrapolated rise of the bound is below this share of the gap.
_LITTLE = 0.03
# A variable belongs to a window if it and its factors cost more than this share of the gap scale
# divided by the number of variables. All other costs together are then within the rounding of a
# claim.
_PAYS = 1e-11
# The work of a search in a window before elimination is considered, in units of
# ``MapOptions.budget``: about 0.3 seconds.
_SHORT = 1e7
# The work of all searches in windows, about ten seconds, unless ``MapOptions.budget`` is less.
_ALL = 3e8


def windows(field: Field, options: MapOptions) -> MapResult:
    r"""Minimise a sum of unaries and pairs by exact searches in small windows.

    Messages move costs such that the energy is a bound plus costs that are not negative. A
    labelling is optimal if it pays none of them. Where a labelling pays, a window is cut out. The
    costs of the variables around it are first pushed into it: each pair at its border adds to the
    inner variable what it costs whatever the label outside. The least cost of each connected
    window, by elimination or branch and bound, adds to the bound. If pairs at the border do not
    pay with the new labels inside, the labelling is optimal; else the window grows there (Haller,
    Swoboda, Savchynskyy, 2018). Labels whose cost and the bound exceed the best energy are removed
    on the way. A search in a window that is left early gives its bound.

    Passes end when the extrapolated rise of the bound closes almost nothing of the gap. A round is
    four pairs of passes, or the solution of the windows.
    """
    return _Windows(field, options).run()


class _Solved(NamedTuple):
    """The answer in a connected window."""

    labels: IntArray
    bound: float
    """a bound on the cost of the window above the bound of the messages"""
    magnitude: float
    """the sum of the absolute summands of the bound"""


class _Windows(MapSearch):
    method = "windows"

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        labels = options.start(field) if options.known is None else options.known.labels
        self.best = labels, _energy(field, labels)
        self.bound = min(self.bound, self.best[1])
        self._constant = field._folded().constant
        self._tree = network_of(field, options.problem)
        terms = (term for _, term in field._folded().terms)
        self._terms = [term for term in terms if isinstance(term, PottsTerm | TableTerm)]
        none: IntArray = np.zeros((0, 2), np.int64)
        self._edges = np.concatenate([none, *(term.edges for term in self._terms)])
        self._n_passes, self._rise = 0, BoundExtrapolation()
        self._inside: BoolArray = np.zeros(field.n_variables, np.bool_)
        self._solved: dict[bytes, _Solved] = {}
        self._is_passing = True
        self._left = min(_ALL, options.budget)
        if self.best[1] < inf:
            self._tree.offer(np.ascontiguousarray(labels))
        options.watch.lap("set-up")

    def step(self) -> bool:
        if self._is_passing:
            self._is_passing = not self._pass()
            return self.converged
        return self._solve_windows()

    def reassess(self) -> None:
        self._raise(self._tree.bound())

    # ------------------------------------------------------------------------------------ passes

    def _pass(self) -> bool:
        """Make passes and decode a labelling. Return whether further passes are useless."""
        is_open = self._tree.settle_root(_LOOK)
        self._n_passes += _LOOK
        self._raise(self._tree.bound())
        if not is_open:
            self.converged = True
            return True
        labels: IntArray = np.empty(self.field.n_variables, np.int64)
        self._tree.decode(labels)
        self._meet(labels)
        self._rise.note(self._n_passes, self.bound)
        over = self._rise.rest <= _LITTLE * (self.best[1] - self.bound)
        return self._settles() or over or self._n_passes >= _PASSES

    # ----------------------------------------------------------------------------------- windows

    def _solve_windows(self) -> bool:
        """Extend the windows to variables with costs above the bound, and solve the new windows."""
        tree, field = self._tree, self.field
        labels, paid = self.best[0].copy(), np.empty(field.n_variables)
        for part, one in self._solved.items():
            labels[np.frombuffer(part, np.int64)] = one.labels
        tree.pays(labels, paid)
        grown = self._inside | (paid > self._negligible)
        if (grown == self._inside).all():
            return True  # the rest is in windows whose search ended early, or rounding
        self._inside = self._with_neighbors(grown) if self._inside.any() else grown
        inside = self._inside.astype(np.uint8)
        costs = np.empty(field.unary.shape)
        if tree.push(inside):
            constant = tree.window(inside, costs)
            tree.pays(labels, paid)  # takes allowed labels only
            self._solved = self._solve(costs, labels)
            for part, one in self._solved.items():
                labels[np.frombuffer(part, np.int64)] = one.labels
            self._meet(labels)
            above = fsum(one.bound for one in self._solved.values())
            self._raise(sum_below(tree.bound(), above, -constant))
            return self._settles()
        self._raise(tree.bound())
        self.converged = True
        return True

    def _with_neighbors(self, grown: BoolArray) -> BoolArray:
        """Add the neighbours of the new variables, so that a window grows in few rounds."""
        added, wide = grown & ~self._inside, grown.copy()
        for one, other in ((0, 1), (1, 0)):
            wide[self._edges[added[self._edges[:, one]], other]] = True
        return wide

    def _solve(self, costs: FloatArray, labels: IntArray) -> dict[bytes, _Solved]:
        """Return the answers of the connected windows; those that have not changed keep theirs."""
        n = self.field.n_variables
        within = self._edges[self._inside[self._edges].all(axis=1)]
        links = coo_array((np.ones(len(within)), (within[:, 0], within[:, 1])), shape=(n, n))
        _, component = connected_components(links, directed=False)
        members = np.flatnonzero(self._inside)
        members = members[np.argsort(component[members], kind="stable")]
        names, starts = np.unique(component[members], return_index=True)
        terms = [_ByComponent(term, component, self._inside) for term in self._terms]
        place = np.zeros(n, np.int64)
        found: dict[bytes, _Solved] = {}
        for name, part in zip(names.tolist(), np.split(members, starts[1:]), strict=True):
            key = part.tobytes()
            if key in self._solved:
                found[key] = self._solved[key]
                continue
            place[part] = np.arange(len(part))
            live = np.asarray(np.isfinite(costs[part]).any(axis=0))
            inner = Field(costs[part][:, live])
            for term in terms:
                inner = term.added_to(inner, name, place, live)
            start = (np.cumsum(live) - 1)[labels[part]]
            found[key] = self._solve_one(inner, start, np.flatnonzero(live))
        return found

    def _solve_one(self, inner: Field, start: IntArray, names: IntArray) -> _Solved:
        """Return the best labels of a window, by elimination if it is cheap, or by a search."""
        problem = Conditioned.of(inner)
        field = problem.field
        options = replace(
            self.options,
            tol=0.0,
            max_iter=None,
            init=start,
            callback=None,
            problem=problem,
            by_cut=None,
            known=None,
            budget=min(_SHORT, self._left),
        )
        if is_cheap(field):
            result = completed(eliminate(field, options))
        else:
            result = self._searched(field, options)
            if not result.exact and is_affordable(field):
                result = completed(eliminate(field, options))
            elif not result.exact:
                result = self._searched(field, replace(options, budget=self._left))
        result = options.in_given(result)
        finite = np.where(np.isfinite(inner.unary), np.abs(inner.unary), 0.0)
        return _Solved(names[result.labels], result.bound, float(finite.max(axis=1).sum()))

    def _searched(self, field: Field, options: MapOptions) -> MapResult:
        search = BranchAndBoundSearch(field, options)
        result = completed(search.run())
        self._left = max(0.0, self._left - search.work)
        return result

    # ------------------------------------------------------------------------------------ answers

    @property
    def _negligible(self) -> float:
        scale = self.best[1] - self.options.problem.floor
        return _PAYS * scale / self.field.n_variables

    def _meet(self, labels: IntArray) -> None:
        """Keep a labelling if it is the best so far."""
        value = _energy(self.field, labels)
        if value < self.best[1]:
            self.best = labels.copy(), value
            self._tree.offer(labels)

    def _raise(self, bound: float) -> None:
        """Keep a bound on the cost of the tree if it is the best so far."""
        if bound < inf:
            self.bound = max(self.bound, min(sum_below(bound, self._constant), self.best[1]))
        self.sums = sums_of(self._tree, self.bound, self.options.problem)
        if self.sums is not None:
            of_windows = sum(one.magnitude for one in self._solved.values())
            self.sums = self.sums._replace(magnitude=self.sums.magnitude + of_windows)

    def _settles(self) -> bool:
        value = self.best[1]
        exact = self.options.problem.is_exact(value, self.bound, self.sums)
        self.converged = exact or self.options.close_enough(value, self.bound)
        return exact or self._left == 0.0 or (self.converged and self.options.tol > NEGLIGIBLE)


class _ByComponent:
    """The pairs of a term inside windows, sorted by the component of the windows."""

    def __init__(self, term: PottsTerm | TableTerm, component: IntArray, inside: BoolArray) -> None:
        self._term = term
        within = np.flatnonzero(inside[term.edges].all(axis=1))
        names = component[term.edges[within, 0]]
        order = np.argsort(names, kind="stable")
        self._pairs, self._names = within[order], names[order]

    def added_to(self, field: Field, name: int, place: IntArray, live: BoolArray) -> Field:
        """Return a window's field plus the pairs of the term in it."""
        begin, end = np.searchsorted(self._names, [name, name + 1])
        pairs = self._pairs[begin:end]
        if not len(pairs):
            return field
        edges = place[self._term.edges[pairs]]
        if isinstance(self._term, PottsTerm):
            return field + Potts(edges, self._term.weights[pairs])
        return field + Pairwise(edges, self._term.tables[pairs][:, live][:, :, live])


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels[None])[0])
