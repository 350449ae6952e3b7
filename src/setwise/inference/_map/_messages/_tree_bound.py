"""Bounds for fields of pairs by tree-reweighted messages, with labellings decoded from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise._foundation._search import Ending, completed
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._map._bound_extrapolation import AT_LIMIT, BoundExtrapolation
from setwise.inference._map._messages._tree_sweeps import TreeSweeps
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._map._search import MapSearch

# The largest number of passes if ``max_iter`` is not given. Other conditions usually end a search
# sooner. Not tuned.
_PASSES = 1000
# The number of passes between two decoded labellings. Not tuned.
_LOOK = 4
# After moves from a decoded labelling, passes continue if the moves have left at most the share
# _CLOSES of the gap, and if the gap is above the share _MUCH of the possible gain.
# Not tuned.
_CLOSES = 0.75
_MUCH = 1e-3


def certify_by_trees(
    field: Field,
    result: MapResult,
    options: MapOptions,
    moves: Callable[[Field, MapOptions], MapResult],
) -> MapResult:
    r"""Bound the result of moves by tree-reweighted messages, and improve its labelling.

    Sequential sweeps over the variables (Kolmogorov, 2006) raise the bound to that of the linear
    relaxation in which pairs agree on single variables, or slightly below it. Labels whose cost
    alone exceeds the value of the labelling are excluded. Every fourth pass decodes a labelling,
    and moves finally improve the best of them.

    The search ends if the gap is within ``tol``, and at most after 1000 passes. It also ends if the
    extrapolated rise of the bound (``BoundExtrapolation``) can close at most a few hundredths of
    the gap, unless moves from a decoded labelling have just closed a quarter of a large gap. With
    ``max_iter`` it makes ``max_iter`` passes unless ``tol`` is reached. A pass is O(E L) for Potts,
    O(E L^2) for tables, on one thread.
    """
    return _TreeSearch(field, result, options, moves).run()


class _TreeSearch(MapSearch):
    """A search in rounds of four passes and a decoded labelling, with moves when progress stops.

    The callback is called after a round of passes that does not end the search, not after moves.
    """

    sums = Sums(0.0)

    def __init__(
        self,
        field: Field,
        result: MapResult,
        options: MapOptions,
        moves: Callable[[Field, MapOptions], MapResult],
    ) -> None:
        super().__init__(field, options)
        self._result, self._moves, self._rise = result, moves, BoundExtrapolation()
        self.best, self._is_local = (result.labels, result.value), result.converged
        self.bound, self._n_passes = result.bound, 0
        self._most = _PASSES if options.max_iter is None else options.max_iter
        self.limit = inf if self._most > 0 else 0
        self._sweeps: TreeSweeps | None = None
        self._decoded: tuple[float, IntArray] | None = None
        self._is_over = self._is_at_limit = self._is_reported = False

    def step(self) -> bool:
        if self._is_over or self._n_passes == self._most:
            self._is_reported = False
            return self._ends_with_moves()
        self._is_reported = not self._settles_by_passes()
        return not self._is_reported

    def progress(self, n_iter: int, seconds: float) -> MapProgress | None:
        return super().progress(self._result.n_iter, seconds) if self._is_reported else None

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        """Return the result with its labelling, its bound and the reason why the search ended."""
        result, (labels, value) = self._result, self.best
        if labels is not result.labels:
            converged = self._is_local or self._is_exact
            result = replace(result, labels=labels, value=value, converged=converged)
        if self._is_at_limit:
            result = replace(result, reason=AT_LIMIT)
        return self.options.improved(result, self.bound, ending.cut_short, self.sums)

    def _settles_by_passes(self) -> bool:
        """Make passes and decode a labelling. Return whether the search has ended."""
        sweeps = self._sweeps = self._sweeps or TreeSweeps(self.field, self._largest_excess)
        passes = min(_LOOK, self._most - self._n_passes)
        raised = [sweeps.advance() for _ in range(passes)][-1]
        self._n_passes += passes
        before = self.best[1] - self.bound
        self.bound, self.sums = max(self.bound, raised), sweeps.sums()
        self._meet(sweeps.decode())
        self._rise.note(self._n_passes, min(self.bound, self.best[1]))
        if self.options.settled(self.best[1], self.bound, self.sums, before):
            if not (self._is_local or self._is_exact):
                self._improve()
            return True
        is_free = self.options.max_iter is None
        self._is_over = is_free and self._rise.is_over(self._gap, self._goal)
        return False

    def _ends_with_moves(self) -> bool:
        """Improve the best decoded labelling by moves. Return whether to end the passes."""
        gap, is_over, self._is_over = self._gap, self._is_over, False
        self._improve()
        if self.options.close_enough(self.best[1], self.bound):
            return True
        if self._gap > _CLOSES * gap or self._gap <= _MUCH * self._gap_scale:
            self._is_at_limit = is_over
            return True
        return self._n_passes == self._most

    @property
    def _gap(self) -> float:
        return max(self.best[1] - self.bound, 0.0)

    @property
    def _is_exact(self) -> bool:
        return self.options.problem.is_exact(self.best[1], self.bound, self.sums)

    @property
    def _goal(self) -> float:
        """The largest gap that ``tol`` allows."""
        return min(self.options.tol, 1.0) * self._gap_scale

    @property
    def _gap_scale(self) -> float:
        return self.best[1] - self.options.problem.floor

    @property
    def _largest_excess(self) -> float:
        """The largest excess of a unary over its row's least in any better labelling."""
        problem = self.options.problem
        return (self.best[1] - problem.trivial) + problem.rounding(self.best[1], 0.0)

    def _meet(self, labels: IntArray) -> None:
        """Keep a decoded labelling if it is the best decoded one, or the best of all."""
        energy = float(self.field._energies(labels[None])[0])
        if self._decoded is None or energy < self._decoded[0]:
            self._decoded = energy, labels
        if energy < self.best[1]:
            self._is_local, self.best = False, (labels, energy)

    def _improve(self) -> None:
        """Make moves from the best labelling that was decoded since the last moves."""
        if self._decoded is None or (
            self._is_local and np.array_equal(self._decoded[1], self.best[0])
        ):
            return
        options, self._decoded = replace(self.options, init=self._decoded[1], callback=None), None
        found = self._moves(self.field, options)
        self._result = replace(self._result, n_iter=self._result.n_iter + found.n_iter)
        value = self.best[1]
        if found.value < value or (found.value == value and not self._is_local):
            self._is_local, self.best = found.converged, (found.labels, found.value)
        completed(found)
