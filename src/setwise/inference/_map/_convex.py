"""The best labelling by the Lovász relaxation: a bound from s, a labelling by rounding it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._field import Field
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._rise import AT_LIMIT, Rise
from setwise.inference._relaxation._cooling import Stage, begin, stages
from setwise.inference._relaxation._relaxation import Relaxation

CERTIFYING_PASSES = 200
SOLVED = 1e-6  # of all there was: what is left to gain where the gap cannot close anyway


def convex(field: Field, options: MapOptions) -> MapResult:
    r"""Minimise the Lovász relaxation of the energy and round it.

    Two labels and a submodular energy: exact (but for a cardinality with centers of both labels,
    which is submodular in the pairs (variable, label) alone). Otherwise the relaxation is a linear
    programme whose value may lie below the least energy, and the gap says by how much at most;
    terms that are not submodular enter it through a submodular term below them (``_minorants``).

    The search has ``converged`` where the gap is within ``tol``, or where it cannot close and no
    bound of this relaxation is higher by more than 1e-6 (relative) or a thousandth of the gap; 500
    passes by default. A pass is O(N L) for Potts terms. The callback is called after each
    temperature.
    """
    rounding = Rounding(field, options.init)
    limit = 500 if options.max_iter is None else options.max_iter
    bound, paid = options.scale.trivial, 0.0
    n_iter, converged, interrupted = 0, False, False
    descent = None
    try:
        descent = begin(Relaxation.below(field), options.n_threads)
        for stage in stages(descent, limit):
            rounding.improve(stage)
            before = rounding.value - bound
            bound, paid, n_iter = max(bound, stage.bound), stage.paid, stage.n_iter
            room, gap = rounding.value - options.scale.trivial, rounding.value - bound
            solved = stage.slack <= max(SOLVED * room, 1e-3 * gap)
            solved = solved and stage.slack < gap - min(options.tol, 1.0) * room
            converged = options.settled(rounding.value, bound, paid, before) or solved
            interrupted = options.ends(n_iter, rounding.value, bound) and not converged
            if converged or interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
        if descent is not None:
            bound, paid = max(bound, descent.best_bound), max(paid, descent.paid())
    return options.result(
        rounding.labels,
        rounding.value,
        bound,
        method="convex",
        n_iter=n_iter,
        converged=converged,
        interrupted=interrupted,
        paid=paid,
    )


def certify(field: Field, result: MapResult, options: MapOptions) -> MapResult:
    """The result with the bound of the relaxation, where that is better than its own.

    Ends once the gap is within ``tol``, once the relaxation can close no more than a twentieth of
    it or its rise, extrapolated, no more than a few hundredths, or after 200 passes: what is left
    then is the relaxation's, or the labelling's. With ``max_iter`` it makes that many passes
    unless the relaxation can close next to nothing.
    """
    value, bound, paid, interrupted = result.value, result.bound, 0.0, False
    limit, little, is_free = CERTIFYING_PASSES, 0.05, True
    if options.max_iter is not None:
        limit, little, is_free = options.max_iter, SOLVED, False
    rise, at_limit = Rise(), False
    descent = None
    try:
        descent = begin(Relaxation.below(field), options.n_threads)
        for stage in stages(descent, limit):
            before = value - bound
            bound, paid = max(bound, min(stage.bound, value)), stage.paid
            settled = options.settled(value, bound, paid, before)
            if stage.n_iter > 0:  # the first passes bring far more than a doubling ever will
                rise.note(stage.n_iter, bound)
            goal = min(options.tol, 1.0) * (value - options.scale.floor)
            at_limit = stage.slack <= little * (value - bound)
            at_limit = at_limit or (is_free and rise.is_over(value - bound, goal))
            if settled or at_limit:
                break
            interrupted = options.ends(result.n_iter, value, bound)
            if interrupted:
                break
    except KeyboardInterrupt:  # a bound holds after every pass, not after a stage alone
        interrupted = True
        if descent is not None:
            bound, paid = max(bound, min(descent.best_bound, value)), max(paid, descent.paid())
    if at_limit:
        result = replace(result, reason=AT_LIMIT)
    return options.improved(result, bound, interrupted, paid)


class Rounding:
    """The best labelling met, by the true energy.

    At a solution of the relaxation many labels of a variable may tie, and taking the lowest for
    each variable alone breaks regions up. So each label in turn is given to all variables where it
    is within a width of the lowest, and what lowers the energy is kept.
    """

    def __init__(self, field: Field, init: IntArray | None) -> None:
        self._field = field
        self.labels: IntArray = field._favourites().labels.copy()
        self.value = self._energy(self.labels)
        if init is not None:
            self._keep(init)

    def improve(self, stage: Stage) -> None:
        """Round s at once, then label by label with widths about the temperature."""
        scores = stage.scores
        lowest = scores.min(axis=1)
        self._keep(scores.argmin(axis=1))
        for width in (3.0 * stage.temperature, 0.3 * stage.temperature):
            self._expand(scores, lowest + width)

    def _expand(self, scores: FloatArray, level: FloatArray) -> None:
        for label in range(self._field.n_labels):
            near = scores[:, label] <= level
            changed = near & (self.labels != label)
            if changed.any():
                self._keep(np.where(near, label, self.labels))

    def _keep(self, labels: IntArray) -> None:
        value = self._energy(labels)
        if value < self.value:
            self.labels, self.value = labels, value

    def _energy(self, labels: IntArray) -> float:
        return float(self._field._energies(labels[None])[0])
