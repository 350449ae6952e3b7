"""The best labelling by the Lovász relaxation: a bound, and a labelling rounded from it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._search import Ending
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._map._bound_extrapolation import AT_LIMIT, BoundExtrapolation
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._map._search import MapSearch
from setwise.inference._relaxation._cooling import Stage, begin, stages
from setwise.inference._relaxation._projected_logits import Descent
from setwise.inference._relaxation._relaxation import Relaxation

# The largest number of passes for a bound on the labelling of another method. Not tuned.
CERTIFYING_PASSES = 200
# The relaxation counts as solved if the possible rise of the bound, relative to the possible gain,
# is below this value, which is above rounding errors. Not tuned.
SOLVED = 1e-6


def convex(field: Field, options: MapOptions) -> MapResult:
    r"""Minimise the Lovász relaxation of the energy and round it.

    For two labels and a submodular energy the result is exact, except with a cardinality whose
    center has both labels, which is submodular only in the pairs (variable, label). Otherwise the
    relaxation is a linear program whose value may be below the least energy; the gap bounds the
    difference. A term that is not submodular is replaced by a submodular lower bound
    (``_minorants``).

    The search has ``converged`` if the gap is within ``tol``, or if no bound of this relaxation is
    higher by more than 1e-6 (relative) or a thousandth of the gap. It makes at most 500 passes by
    default. A pass is O(N L) for Potts terms. The callback is called after each temperature.
    """
    return _Convex(field, options).run()


def certify(field: Field, result: MapResult, options: MapOptions) -> MapResult:
    """Return the result with the bound of the relaxation, if that is better than its own.

    The search ends if the gap is within ``tol``, if the relaxation can close at most a twentieth of
    it, if its extrapolated rise can close at most a few hundredths, or after 200 passes. The
    remaining gap is then due to the relaxation or to the labelling. With ``max_iter`` it makes
    ``max_iter`` passes unless the relaxation can close almost nothing.
    """
    return _Certificate(field, result, options).run()


class _Cooling(MapSearch):
    """Stages of the relaxation at decreasing temperatures, with at most ``passes`` passes."""

    passes: int
    sums = Sums(0.0)
    n_iter = 0
    """The number of rounds that the callback receives: passes, or rounds of an earlier search."""

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        self.limit = inf
        self._descent: Descent | None = None
        self._stage: Stage | None = None

    @abstractmethod
    def meet(self, stage: Stage) -> bool:
        """Update the bound by that of a stage. Return whether the search ends."""

    def step(self) -> bool:
        if self._descent is None:
            descent = begin(Relaxation.below(self.field), self.options.n_threads)
            self._stages = stages(descent, self.passes)
            self._descent = descent
        self._stage = next(self._stages, None)
        return self._stage is None or self.meet(self._stage)

    def progress(self, n_iter: int, seconds: float) -> MapProgress | None:
        return None if self._stage is None else super().progress(self.n_iter, seconds)

    def reassess(self) -> None:
        descent = self._descent
        if descent is None:
            return
        # A bound is valid after every pass, and the search may have ended within a stage.
        magnitude, lost = self.sums.magnitude, self.sums.lost
        self.sums = Sums(max(magnitude, descent.magnitude()), max(lost, descent.rounding()))
        self.bound = max(self.bound, min(descent.best_bound, self.best[1]))


class _Convex(_Cooling):
    """A search with the bound of each stage, and the best of the labellings rounded from them."""

    method = "convex"

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        self.passes = 500 if options.max_iter is None else options.max_iter
        self._rounding = Rounding(field, options.init)
        self.best = self._rounding.best

    def meet(self, stage: Stage) -> bool:
        self._rounding.improve(stage)
        options, self.best = self.options, self._rounding.best
        value, before = self.best[1], self.best[1] - self.bound
        self.bound, self.n_iter = max(self.bound, stage.bound), stage.n_iter
        self.sums = Sums(stage.magnitude, stage.lost)
        gap_scale, gap = value - options.problem.trivial, value - self.bound
        solved = stage.slack <= max(SOLVED * gap_scale, 1e-3 * gap)
        solved = solved and stage.slack < gap - min(options.tol, 1.0) * gap_scale
        self.converged = options.settled(value, self.bound, self.sums, before) or solved
        return self.converged

    def reassess(self) -> None:
        self.best = self._rounding.best
        super().reassess()

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        return super().result(replace(ending, n_iter=self.n_iter))


class _Certificate(_Cooling):
    """A search with the bound of each stage, for the labelling of another search."""

    def __init__(self, field: Field, result: MapResult, options: MapOptions) -> None:
        super().__init__(field, options)
        self.best = result.labels, result.value
        self.bound, self.n_iter = result.bound, result.n_iter
        self.passes, self._little, self._is_free = CERTIFYING_PASSES, 0.05, True
        if options.max_iter is not None:
            self.passes, self._little, self._is_free = options.max_iter, SOLVED, False
        self._result, self._rise, self._is_over = result, BoundExtrapolation(), False

    def meet(self, stage: Stage) -> bool:
        options, value, before = self.options, self.best[1], self.best[1] - self.bound
        self.bound = max(self.bound, min(stage.bound, value))
        self.sums = Sums(stage.magnitude, stage.lost)
        self.converged = options.settled(value, self.bound, self.sums, before)
        if stage.n_iter > 0:  # the rise in the first passes does not predict the later rise
            self._rise.note(stage.n_iter, self.bound)
        gap, goal = value - self.bound, min(options.tol, 1.0) * (value - options.problem.floor)
        at_limit = stage.slack <= self._little * gap
        at_limit = at_limit or (self._is_free and self._rise.is_over(gap, goal))
        if at_limit:
            self._result = replace(self._result, reason=AT_LIMIT)
        self._is_over = self.converged or at_limit
        return self._is_over

    def progress(self, n_iter: int, seconds: float) -> MapProgress | None:
        return None if self._is_over else super().progress(n_iter, seconds)

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        return self.options.improved(self._result, self.bound, ending.cut_short, self.sums)


class Rounding:
    """The best labelling found by rounding, measured by the true energy.

    At a solution of the relaxation several labels of a variable may have equal scores, and choosing
    the lowest score for each variable separately breaks up regions. Therefore each label is tried
    for all variables at which its score is within a width of the lowest, and kept if this lowers
    the energy.
    """

    def __init__(self, field: Field, init: IntArray | None) -> None:
        self._field = field
        labels: IntArray = field._favourites().labels.copy()
        self.best = labels, self._energy(labels)
        if init is not None:
            self._keep(init)

    def improve(self, stage: Stage) -> None:
        """Round s for all variables, then label by label with widths near the temperature."""
        scores = stage.scores
        lowest = scores.min(axis=1)
        self._keep(scores.argmin(axis=1))
        for width in (3.0 * stage.temperature, 0.3 * stage.temperature):
            self._expand(scores, lowest + width)

    def _expand(self, scores: FloatArray, level: FloatArray) -> None:
        for label in range(self._field.n_labels):
            near = scores[:, label] <= level
            changed = near & (self.best[0] != label)
            if changed.any():
                self._keep(np.where(near, label, self.best[0]))

    def _keep(self, labels: IntArray) -> None:
        value = self._energy(labels)
        if value < self.best[1]:
            self.best = labels, value

    def _energy(self, labels: IntArray) -> float:
        return float(self._field._energies(labels[None])[0])
