r"""The lower bound on log Z of a product of trees.

.. math:: \log Z \ge H(Q) - E_Q[E] / t, \qquad Q(x) = \prod_c Q_c(x_c)

The components c are trees of the strongest edges, chosen such that the graph has no other edges
within a component. On a grid of equal weights they are its rows. Across edges between components, Q
is a product. The variables of a function of a count are not independent under Q, so the function is
replaced by a concave function of its expected count. Therefore the bound of a fully factorised Q
may be higher.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._search import attempt, completed
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._lower_bound import (
    LARGE,
    SWEEPS,
    TRIAL,
    Factorized,
    Raised,
    Terms,
    raised_bound,
    settled,
)
from setwise.inference._marginals._search import MarginalsOptions, MarginalsSolution, allowed
from setwise.inference._marginals._trees._pairs import Pairs, pairs_of

# The largest cost of an edge of a tree, in units of t. It must be below 745, because exp(-x) is 0
# for larger x. Not tuned.
STEEPEST = 600.0


class Forested(Factorized):
    """A product of trees and its lower bound on log Z, which sweeps over the trees raise."""

    def __init__(
        self,
        field: Field,
        q: FloatArray,
        temperature: float,
        strengths: FloatArray | None = None,
        n_threads: int = 1,
    ) -> None:
        """Choose a forest of strong edges.

        ``strengths`` (E,) belong to the edges of ``pairs_of``; the default is computed here.
        """
        super().__init__(field, q, temperature, n_threads)
        order = _strongest_first(self._pairs, temperature, strengths)
        borders = [term.edges for term in self._transitions]
        edges = np.ascontiguousarray(np.concatenate([self._pairs.edges, *borders]))
        kept = np.zeros(len(edges), np.uint8)
        _core.induced_forest(edges, field.n_variables, order, kept)
        self._kernel.set_forest(kept, temperature)

    def _made(self, unary: FloatArray, small: int) -> Any:
        return _core.ForestField(unary)

    def _arranged(self, terms: Terms, shape: tuple[int, ...]) -> Terms:
        """Add the pairs to the kernel, each pair of variables as one edge. Return other terms."""
        self._pairs = pairs_of(terms, shape)
        self._pairs.add_to(self._kernel, 1.0)
        return tuple(item for item in terms if not isinstance(item[1], PottsTerm | TableTerm))

    def _swept(self) -> float:
        return float(self._kernel.sweep(self._temperature, self._threads))

    def bound(self, exact: int | None = None) -> float:
        """Return H(Q) - E_Q[E] / t after a sweep, or less if an expectation is replaced."""
        lacking = self._follow()
        value = self._kernel.value(self._temperature, self._threads)
        value -= (lacking + self._constant) / self._temperature
        return float(value) - self._rounding


def _strongest_first(
    pairs: Pairs, temperature: float, strengths: FloatArray | None
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return edges by decreasing strength, without those whose exponentials would underflow."""
    heights = pairs.heights
    if strengths is None:
        strengths = heights
    order = np.argsort(-strengths, kind="stable")
    return np.ascontiguousarray(order[heights[order] < STEEPEST * temperature])


def forest_bound(
    field: Field,
    q: FloatArray,
    temperature: float,
    strengths: FloatArray | None = None,
    *,
    sweeps: int = SWEEPS,
    n_threads: int = 1,
    upper: float = np.inf,
) -> Raised:
    """Raise the lower bound of trees on log Z by a few sweeps from q. Return it with its marginals.

    The sweeps end when one raises the bound by less than a thousandth of the distance to ``upper``.
    In large fields the limit is a hundredth, which hardly widens the interval and makes the call a
    third faster.
    """
    forest = Forested(field, q, temperature, strengths, n_threads)
    best = Raised(-np.inf, q)
    for _ in range(sweeps):  # closing a generator could lose a Ctrl-C
        change = forest.sweep()
        value, before = forest.bound(), best.bound
        if value > before:
            best = Raised(value, forest.probabilities)
        if change <= 1e-3 or value - before <= settled(q) * (upper - value):
            break
    return best


def lower_bound(
    field: Field, solution: MarginalsSolution, options: MarginalsOptions
) -> tuple[Raised, bool]:
    """Bound log Z from below, starting at the probabilities found.

    Return the bound, and whether a search was interrupted. After an interruption the bound of the
    given probabilities is used, if there is time for it.
    """
    q = allowed(solution.probabilities.astype(np.float64, copy=False), field)
    t, n_threads = options.temperature, options.n_threads

    def raised(sweeps: int) -> Raised:
        if solution.strengths is None:
            return raised_bound(field, q, t, n_threads, sweeps=sweeps, upper=solution.upper)
        labels = None
        if sweeps and q.size <= LARGE:
            labels = completed(solve_map(field, tol=np.inf, n_jobs=n_threads)).labels
        if not sweeps or not len(solution.strengths):
            return raised_bound(field, q, t, n_threads, sweeps=sweeps, labels=labels)
        best = raised_bound(field, q, t, n_threads, sweeps=TRIAL, labels=labels)
        forest = forest_bound(
            field,
            best.probabilities,
            t,
            solution.strengths,
            sweeps=sweeps,
            n_threads=n_threads,
            upper=solution.upper,
        )
        if forest.bound > best.bound:
            return forest
        more = raised_bound(field, best.probabilities, t, n_threads, sweeps=sweeps)
        return max(best, more, key=lambda one: one.bound)

    found, cut_short = None, solution.cut_short
    if not cut_short:
        found, cut_short = attempt(options.deadline.run, raised, SWEEPS)
    if found is None and (solution.cut_short or options.deadline.expired):
        found, _ = attempt(raised, 0)
    return found or Raised(-np.inf, q), cut_short
