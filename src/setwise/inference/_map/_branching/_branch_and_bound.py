"""The best labelling by branch and bound over tables of any kind, with forbidden combinations."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from setwise._core import BranchAndBound
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise._foundation._methods import refused, taken
from setwise._foundation._search import Ending
from setwise.fields._field import Field
from setwise.fields._terms import (
    KINDS,
    CliqueTerm,
    ConstantTerm,
    PottsTerm,
    TableTerm,
    UnaryTerm,
)
from setwise.inference._conditioning._conditioned import Conditioned, Sums
from setwise.inference._conditioning._magnitude import largest_of_terms, sum_below
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._map._search import MapSearch

# The most pairs of passes over all variables before the search. They end when the bound hardly
# rises. Not tuned.
_PASSES = 300
# The cells of tables that a round reads, which takes about 10 milliseconds. Not tuned.
_CELLS = 1 << 21
# The cells that are read in the time of one unit of ``MapOptions.budget``, about 30 nanoseconds.
_CELLS_PER_WORK = 16.0
# Where energies are multiples of a unit, problems that cannot improve by more than this share of it
# are closed. The rest of the unit allows for rounding.
_STRICTLY = 1.0 - 2.0**-10
# The most numbers of messages and tables: 512 MB.
_MOST_NUMBERS = 1 << 26

TAKEN_BY_BRANCHING = dict.fromkeys(KINDS, refused("it joins more than a few variables")) | (
    dict.fromkeys((ConstantTerm, UnaryTerm, PottsTerm, TableTerm, CliqueTerm), taken)
)


def branch_and_bound(field: Field, options: MapOptions) -> MapResult:
    r"""Minimise by a search over the labels of one variable after the other.

    Costs are moved from tables to variables and back, as in sequential reweighted message passing
    (Kolmogorov, 2015), such that all of them stay nonnegative. What can be taken from a variable
    whatever its label adds to the bound. Labels are removed if they are forbidden together with
    all labels of a neighbour, or if their cost and the bound reach the energy of the best
    labelling. Then a variable of few labels and many failures gets its cheapest label, or any
    other label. The search is depth first, and returns to the open problem of least bound after a
    few failures, so the bound rises.

    All numbers are first rounded down to multiples of a power of two with exact sums, so the bound
    has no other rounding error. A field without an allowed labelling is refused. If the time ends
    before an allowed labelling was found, ``value`` is infinite and ``reason`` reports it. A round
    reads about two million cells of tables.
    """
    return BranchAndBoundSearch(field, options).run()


def size_of_network(field: Field) -> str | None:
    """Return None if the messages and tables of a field fit into memory, else the condition."""
    n, n_labels = field.unary.shape
    total = float(n * n_labels)
    for _, term in field._folded().terms:
        match term:
            case PottsTerm():
                total += 2.0 * len(term.edges) * n_labels
            case TableTerm():
                total += len(term.edges) * (2.0 * n_labels + n_labels**2)
            case CliqueTerm():
                total += term.cliques.size * float(n_labels) + float(term.tables.size)
            case _:
                pass  # terms of this kind are not supported
    if total <= _MOST_NUMBERS:
        return None
    return f"at most {_MOST_NUMBERS} numbers in messages and tables, got {total:.3g}"


def is_hard(field: Field) -> bool:
    """Return whether a table of a field forbids labellings."""
    return any(isinstance(term, CliqueTerm) and term.is_hard for _, term in field._folded().terms)


def network_of(field: Field, problem: Conditioned) -> BranchAndBound:
    """Return the compiled search over a field of unaries, pairs and tables."""
    _, unary, terms = field._folded()
    tree = BranchAndBound(np.ascontiguousarray(unary))
    for _, term in terms:
        match term:
            case PottsTerm():
                tree.add_potts(np.ascontiguousarray(term.edges), term.weights)
            case TableTerm():
                _add_tables(tree, term.edges, term.tables)
            case CliqueTerm():
                _add_tables(tree, term.cliques, term.tables)
            case _:
                raise TypeError(f"{type(term).__name__} is no sum of small tables")
    tree.begin(_STRICTLY * problem.unit.step if problem.adds_exactly(0.0) else 0.0)
    return tree


def sums_of(tree: BranchAndBound, bound: float, problem: Conditioned) -> Sums | None:
    """Return the summands of a bound that a tree has computed; None if it has no rounding error."""
    if tree.rounded == 0.0 and problem.adds_exactly(0.0):
        return None
    summands = EPS * max(problem.n_summands, 1)
    magnitude = max(bound - problem.trivial, 0.0) + tree.rounded / summands
    return Sums(magnitude, FEW_ROUNDINGS * EPS * largest_of_terms(problem.field), 4)


def _add_tables(tree: BranchAndBound, scopes: IntArray, tables: FloatArray) -> None:
    if len(tables) > 1 and (tables == tables[0]).all():  # a single table stays in the cache
        tables = tables[:1]
    if len(scopes):
        sides = np.array(tables.shape[1:], np.int64)
        rows = np.ascontiguousarray(tables.reshape(len(tables), -1))
        tree.add_tables(np.ascontiguousarray(scopes), sides, rows)


class BranchAndBoundSearch(MapSearch):
    method = "branch_and_bound"

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        labels = options.start(field) if options.known is None else options.known.labels
        self.best = labels, _energy(field, labels)
        self.bound = min(self.bound, self.best[1])
        self._constant = field._folded().constant
        self._tree = network_of(field, options.problem)
        self._is_root = True
        if self.best[1] < inf:
            self._tree.offer(np.ascontiguousarray(labels))
        options.watch.lap("set-up")

    def step(self) -> bool:
        if self._is_root:
            self._is_root = False
            self._tree.settle_root(_PASSES)
        ended = self._tree.search(_CELLS)
        self._read()
        if ended and self.best[1] == inf:
            raise ValueError("field must have a labelling of finite energy, got none")
        self.converged = ended or self.options.close_enough(self.best[1], self.bound)
        return self.converged or self.work > self.options.budget

    @property
    def work(self) -> float:
        """The work so far, in units of ``MapOptions.budget``."""
        return self._tree.work / _CELLS_PER_WORK

    def reassess(self) -> None:
        self._read()

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        found = super().result(ending)
        if found.value == inf:
            return replace(found, reason="no allowed labelling was found, and there may be none")
        return found

    def _read(self) -> None:
        """Read the best labelling and the bound."""
        labels: IntArray = np.empty(self.field.n_variables, np.int64)
        if self._tree.best(labels):
            value = _energy(self.field, labels)
            if value < self.best[1]:
                self.best = labels, value
        problem = self.options.problem
        bound = self._tree.bound()
        if bound < inf:
            self.bound = max(self.bound, min(sum_below(bound, self._constant), self.best[1]))
        self.sums = sums_of(self._tree, self.bound, problem)


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels[None])[0])
