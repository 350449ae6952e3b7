"""The best labelling of two labels, by one minimum cut or a few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import fsum

import numpy as np

from setwise import _core
from setwise._foundation._arguments import IntArray
from setwise._foundation._certificate import EPS
from setwise._foundation._search import Ending, attempt
from setwise.fields._field import Field
from setwise.fields._terms import LabelTerm, PottsTerm
from setwise.inference._conditioning._conditioned import Conditioned, Sums
from setwise.inference._conditioning._magnitude import (
    NEGLIGIBLE,
    largest_of_terms,
    rounding_of,
    sum_below,
)
from setwise.inference._flows._potts_cut import (
    PottsField,
    above_least,
    as_potts,
    cut_potts,
    least_of_all,
)
from setwise.inference._map._moves._cut_by_slopes import cut_by_slopes
from setwise.inference._map._moves._terms import start_moves
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._map._search import MapSearch

# Grids from this number of variables on are cut by slopes. With 17,000 variables of blobs that took
# 0.3 to 1.0 of the time of the search of functions, with 90,000 variables 0.1 to 0.5.
_LARGE = 20_000

# The number of roundings of a weight when prices are added at the ends of its edge.
_ADDED = 4.0


def cut(field: Field, options: MapOptions) -> MapResult:
    r"""Find the labelling of least energy of a field of at most two labels.

    Edges need :math:`\theta(0, 0) + \theta(1, 1) \le \theta(0, 1) + \theta(1, 0)`; functions of
    counts must be concave. Each is bounded from below by a function that is linear between a few
    counts, which a cut minimises with one auxiliary node per count. The counts of its answer refine
    the bound until bound and value are equal. Terms with few kinks, and fields of edges only, need
    one cut. Large grids are cut with lines in place of the functions first (_cut_by_slopes).

    The bound is the least value of the last function that the cuts minimised; before the first cut
    it is the sum of the least values of all terms. ``n_iter`` counts cuts. For edges only, without
    a start, the best labelling with the fewest ones is returned.
    """
    return best_of_two(field, "cut", options)


def cut_at_once(field: Field, read: Callable[..., MapOptions]) -> MapResult | None:
    """Return the answer of ``cut`` for two labels with only Potts terms and tables, or None.

    The field is not conditioned first: a cut depends only on differences, and its costs are counted
    above the least unaries and table entries. ``read`` makes the options of a field. The result is
    None if there is another potential, a start, or nothing to cut, or if large costs increase
    rounding errors. Then ``cut`` is used.
    """
    potts = as_potts(field)
    if potts is None:
        return None
    options = read(field, problem=_AboveLeast(field, field, potts=potts), by_cut=True)
    if options.init is not None or options.max_iter == 0:
        return None
    options.watch.lap("set-up")
    found, ended = attempt(cut_potts, *potts[:2], options.n_threads)
    options.watch.lap("search")
    if ended:
        problem = Conditioned.of(field)
        options = replace(options, problem=problem)
        return options.in_given(options.not_begun(problem.field, "cut"))
    if found is None:
        return None
    above = above_least(field, found.labels) if potts.largest > 0.0 else None
    excess = found.above_least if above is None else above
    if options.problem.costs_hide_digits(excess, by_cut=True):
        return None
    sums = Sums(excess, found.rounding, depth=0)
    _, interrupted = attempt(options.report_end, 1, excess, excess - found.gap, sums)
    result = options.result(
        found.labels,
        excess,
        excess - found.gap,
        method="cut",
        n_iter=1,
        converged=True,
        interrupted=interrupted,
        sums=sums,
    )
    if not result.exact:
        return None
    alone = len(potts.pairs) == 1 and potts.unary is field.unary
    return options.in_given(result, found.value if alone else None)


@dataclass(frozen=True, eq=False)
class _AboveLeast(Conditioned):
    """A field of Potts terms and tables as it is.

    Its energies are counted above the least unaries and the least entries of its tables.
    """

    potts: PottsField | None = None
    is_changed = True
    trivial = floor = 0.0

    @property
    def _potts(self) -> PottsField:
        assert self.potts is not None
        return self.potts

    @property
    def n_summands(self) -> int:
        return self.field.n_variables + sum(len(edges) for edges, _ in self._potts.pairs)

    @property
    def _sizes(self) -> tuple[float, float]:
        return 0.0, self._potts.total

    @property
    def constant(self) -> float:
        return fsum(least_of_all(self.field))

    def below(self, bound: float) -> float:
        return sum_below(*least_of_all(self.field), bound)

    def costs_hide_digits(self, value: float, *, by_cut: bool) -> bool:
        return rounding_of(self._potts.largest) > NEGLIGIBLE * value


def best_of_two(field: Field, method: str, options: MapOptions) -> MapResult:
    """Run ``cut`` under the name of a method that reduces to it for two labels."""
    if field.n_labels == 2 and options.init is None and options.max_iter != 0:
        for quickly in (_cut_of_edges, _cut_of_large_grid):
            found = quickly(field, method, options)
            if found is not None:
                return found
    return _CutSearch(field, method, options).run()


class _CutSearch(MapSearch):
    """A search by cuts of lower bounds of the terms, which the counts of each answer refine."""

    def __init__(self, field: Field, method: str, options: MapOptions) -> None:
        super().__init__(field, options)
        self.method = method
        self._kernel, labels = start_moves(field, options.init)
        options.watch.lap("set-up")
        self._start = float(field.energy(labels))
        self.best = labels, self._start
        if field.n_labels == 1:
            self.bound, self.converged, self.limit = self._start, True, 0
            return
        # A start with a high energy causes this rounding error in reported values.
        self._lost = options.problem.rounding(self._start, 0.0)
        self._prices = _ADDED * EPS * largest_of_terms(field)
        self._kernel.offer_swap(0, 1)

    def step(self) -> bool:
        kernel, start, options = self._kernel, self._start, self.options
        done = kernel.round()
        value = min(start, start + kernel.change())
        is_lost = self._lost > NEGLIGIBLE * (value - options.problem.trivial)
        below = start + kernel.bound() - (self._lost if is_lost else 0.0)
        self.bound = min(value, max(self.bound, below))
        self.sums = self._sums()
        self.best = self.best[0], value  # the labels are read from the kernel at the end
        self.converged = done or options.close_enough(value, self.bound)
        return self.converged

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        field, kernel = self.field, self._kernel
        if field.n_labels > 1:
            gap, change, rounding = kernel.gap(), kernel.change(), kernel.rounding()
            gap += kernel.commit() - change  # a gain within rounding is ignored
            labels: IntArray = np.empty(field.n_variables, np.int64)
            kernel.read(labels)
            value = float(field._energies(labels[None])[0])
            # The value is recomputed from the answer, because a start of high energy causes
            # rounding errors.
            self.best, self.bound = (labels, value), max(self.options.problem.trivial, value - gap)
            self.sums = _summed(field, labels, value, self._sums(), rounding)
        return super().result(ending)

    def _sums(self) -> Sums | None:
        """Return the summands of the bound; slopes are rounded, unlike tables and unaries."""
        if not self.field._folded().terms:
            return None
        return Sums(max(self.bound - self.options.problem.trivial, 0.0), self._prices)


def _summed(
    field: Field, labels: IntArray, value: float, sums: Sums | None, rounding: float
) -> Sums | None:
    """Return the summands of a bound that is computed relative to its labelling.

    For edges and unaries only, the rounding error of the value is known; ``rounding`` is that of
    the flow.
    """
    excess = above_least(field, labels)
    if excess is None or sums is None:
        return sums
    off = max(value - fsum((*least_of_all(field), excess)), 0.0)
    prices = _ADDED * EPS * largest_of_terms(field)
    return Sums(sums.magnitude, off + rounding + prices, depth=0)


def _cut_of_edges(field: Field, method: str, options: MapOptions) -> MapResult | None:
    """Return the single cut of a field with only unaries and Potts terms, or None."""
    constant, unary, rest = field._folded()
    pairs = [(term.edges, term.weights) for _, term in rest if isinstance(term, PottsTerm)]
    if not pairs or len(pairs) < len(rest):
        return None
    found, ended = attempt(cut_potts, unary, pairs, options.n_threads)
    if ended:
        return options.not_begun(field, method)
    if found is None:
        return None
    value = float(field._energies(found.labels[None])[0])
    bound = max(options.problem.trivial, value - found.gap)
    off = max(value - fsum((*_core.sum_of_least(unary), constant, found.above_least)), 0.0)
    sums = Sums(max(bound - options.problem.trivial, 0.0), off + found.rounding, depth=0)
    result = options.result(
        found.labels, value, bound, method=method, n_iter=1, converged=True, sums=sums
    )
    if not result.exact:  # the rounding error of the flow exceeds the costs
        return None
    _, ended = attempt(options.report_end, 1, value, bound, sums)
    return replace(result, interrupted=True) if ended else result


def _cut_of_large_grid(field: Field, method: str, options: MapOptions) -> MapResult | None:
    """Return the answer for a large grid with functions of counts and label costs, or None."""
    if field.n_variables < _LARGE:
        return None
    found, ended = attempt(cut_by_slopes, field, options.n_threads)
    if ended:
        return options.not_begun(field, method)
    if found is None:
        return None
    options.watch.lap("search")
    choices = [found.labels]
    if any(isinstance(term, LabelTerm) for _, term in field._folded().terms):
        # Label costs are the same for all labellings that use both labels.
        choices = [np.zeros_like(found.labels), found.labels, np.ones_like(found.labels)]
    values = [float(field._energies(labels[None])[0]) for labels in choices]
    best = int(np.argmin(values))
    value, trivial = values[best], options.problem.trivial
    few = 64 * EPS * max(value - trivial, 0.0)
    gap, off = (0.0, found.lost) if found.lost <= few else (found.lost, 0.0)
    bound = max(trivial, min(value, values[len(values) // 2] - gap))
    prices = _ADDED * EPS * largest_of_terms(field)
    sums = Sums(max(bound - trivial, 0.0), found.rounding + prices + off)
    result = options.result(
        choices[best], value, bound, method=method, n_iter=found.n_cuts, converged=True, sums=sums
    )
    _, ended = attempt(options.report_end, found.n_cuts, value, bound, sums)
    return replace(result, interrupted=True) if ended else result
