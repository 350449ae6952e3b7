r"""Markov chains of labellings with the stationary distribution :math:`\exp(-E(x) / t) / Z`.

A sweep draws the components of a forest one after the other from their exact distributions, given
all other variables (Hamze and de Freitas, *From Fields to Trees*, 2004): messages from the leaves,
labels from the root down. All edges between two variables of a component belong to the forest, so
nothing is approximated. Several forests take turns, so that each edge is in some forest. With terms
of many variables the draw of a component is a proposal: it uses the change of each term by each
variable separately, and a Metropolis step corrects the error. For a component of one variable the
proposal is exact. The size of components is tuned during burn-in by the acceptance rate.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._field import Field
from setwise.fields._terms import (
    CardinalityTerm,
    CountTerm,
    LabelTerm,
    PottsTerm,
    RobustTerm,
    TableTerm,
    Term,
    TransitionTerm,
)
from setwise.fields._terms._pairs import as_heights
from setwise.inference._map._factors import sides_of, tables_of
from setwise.inference._marginals._trees._pairs import Pairs, pairs_of

# The most forests that take turns. With one forest, the effective sample size of grids falls by up
# to a third. Four forests contain all edges of a grid; denser graphs would need many more.
FORESTS = 4
# The acceptance rates below which components are halved, and above which they are doubled. With
# other limits (0.125 for the first; 0.79 for the first or 0.51 for the second) the effective sample
# size falls to between a half and a twentieth if a function of a count is steep.
FEWEST_TAKEN, MOST_TAKEN = 0.5, 0.8
# The largest mean size of a component. A quarter or four times this size changes effective sample
# sizes by at most a fiftieth.
LARGEST_COMPONENT = 1024.0
_NONE = np.zeros(0, np.int64)


class Chains:
    """Labellings (C, N) that sweeps of the kernel change."""

    def __init__(self, field: Field, temperature: float, seed: int, n_threads: int) -> None:
        """Prepare the kernel; ``begin`` starts the chains."""
        _, unary, terms = field._folded()
        self._seed, self._threads, self._done = seed, n_threads, 0
        self._kernel: Any = _core.ForestSampler(np.ascontiguousarray(-unary / temperature))
        pairs = pairs_of(terms, unary.shape)
        pairs.add_to(self._kernel, temperature)
        others = [term for _, term in terms if not isinstance(term, PottsTerm | TableTerm)]
        apart = [edges for term in others for edges in self._add(term, field, temperature)]
        self._kernel.close()
        forests = _forests(pairs, apart, field.n_variables)
        for kept in forests:
            self._kernel.add_forest(kept)
        self.n_forests = len(forests)
        self.proposes = bool(others)
        """Whether there are Metropolis steps."""
        self.exact = not others and bool(forests[0].all())
        """Whether each sweep is an independent draw: all terms are in one forest."""
        self._size = 8.0 if self.proposes else inf
        self.labels = np.zeros((0, field.n_variables), np.int64)
        self._tallies = np.zeros((0, 2))

    def begin(self, labels: IntArray) -> None:
        """Start from labellings (C, N)."""
        self.labels = np.ascontiguousarray(labels, np.int64)
        self._tallies = np.zeros((len(labels), 2))

    @property
    def taken(self) -> float:
        """The acceptance rate of Metropolis proposals since the last ``forget``; 1 for none."""
        proposed, accepted = self._tallies.sum(axis=0)
        return float(accepted / proposed) if proposed else 1.0

    @property
    def component_size(self) -> float:
        """The approximate number of variables in a proposal; ``inf`` means no limit."""
        return self._size

    def forget(self) -> None:
        """Reset the counts of proposals."""
        self._tallies[:] = 0.0

    def sweep(self, count: int) -> None:
        """Make ``count`` sweeps of all chains; Ctrl-C leaves them unchanged."""
        labels = self.labels.copy()
        cut = 0.0 if self._size == inf else 1.0 / self._size
        self._kernel.sweep(labels, self._seed, self._done, count, cut, self._tallies, self._threads)
        self.labels, self._done = labels, self._done + count

    def settle(self, count: int) -> None:
        """Make burn-in sweeps, which tune the size of components."""
        if not self.proposes:
            self.sweep(count)
            return
        while count > 0:
            some = min(count, self.n_forests)
            self.forget()
            self.sweep(some)
            count -= some
            if self.taken < FEWEST_TAKEN:
                self._size = max(1.0, self._size / 2)
            elif self.taken > MOST_TAKEN:
                self._size = min(LARGEST_COMPONENT, self._size * 2)
        self.forget()

    def _add(self, term: Term, field: Field, t: float) -> list[IntArray]:
        """Add a term of many variables. Return edges whose ends must be in two components."""
        kernel, n = self._kernel, field.n_variables
        match term:
            case CountTerm():
                kernel.add_counts(term.regions, term.starts, term.table / t, _NONE)
            case RobustTerm():
                kernel.add_robust(term.regions, term.weights / t, term.truncation)
            case LabelTerm():
                kernel.add_cost(term.cost / t, term.labels.astype(np.uint8))
            case CardinalityTerm():
                # The table counts the variables that differ from the center, the kernel those that
                # agree.
                if n:
                    same = np.ascontiguousarray(term.table[::-1]) / t
                    everyone, ends = np.zeros(n, np.int64), np.array([0, n + 1])
                    kernel.add_counts(everyone, ends, same, term.center)
            case TransitionTerm():
                heights: FloatArray = as_heights(term.concave, len(term.edges)) / t
                kernel.add_transitions(term.edges, term.costs, heights)
                return [term.edges]
            case _:
                return self._add_tables(term, field, t)
        return []

    def _add_tables(self, term: Term, field: Field, t: float) -> list[IntArray]:
        among = []
        for scopes, tables in tables_of(term, field.n_variables, field.n_labels):
            if not np.isfinite(tables).all():
                raise ValueError(
                    "field must have finite tables for sample, which may not begin where nothing "
                    f"is possible, got one of {scopes.shape[1]} variables with inf: forbid labels "
                    'by unaries, or ask marginals with method="elimination"'
                )
            size = scopes.shape[1]
            if not size:  # a table of no variables is a constant
                continue
            self._kernel.add_factors(
                np.ascontiguousarray(scopes).ravel(),
                size * np.arange(len(scopes) + 1),
                _on_all_labels(term, size, tables, field.n_labels).ravel() / t,
            )
            first, second = np.triu_indices(size, 1)
            among.append(np.stack([scopes[:, first].ravel(), scopes[:, second].ravel()], axis=1))
        return among


def _on_all_labels(term: Term, size: int, tables: FloatArray, n_labels: int) -> FloatArray:
    """Return tables (F, L^k) of tables with other sides; entries outside forbid a labelling."""
    sides = sides_of(term, size, n_labels)
    if (sides == n_labels).all():
        return tables
    whole = np.zeros((len(tables), *(n_labels,) * size))
    whole[(slice(None), *map(slice, sides.tolist()))] = tables.reshape(-1, *sides)
    return whole


def _forests(pairs: Pairs, apart: list[IntArray], n: int) -> list[np.ndarray[Any, Any]]:
    """Return edges (E,) of a few forests: first strong edges, then rarely used ones."""
    edges = np.ascontiguousarray(np.concatenate([pairs.edges, *apart]), np.int64)
    strengths = np.nan_to_num(pairs.heights, posinf=1e300)
    used = np.zeros(len(strengths), np.int64)
    found: list[np.ndarray[Any, Any]] = []
    for _ in range(FORESTS):
        order = np.lexsort((-strengths, used))
        kept = np.zeros(len(edges), np.uint8)
        _core.induced_forest(edges, n, np.ascontiguousarray(order), kept)
        kept = np.ascontiguousarray(kept[: len(strengths)])
        found.append(kept)
        used += kept
        if used.all():  # every edge is in a forest
            break
    return found
