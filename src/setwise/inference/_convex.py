"""The best labelling by the Lovász relaxation: a bound from s, a labelling by rounding it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from setwise.fields._field import Field
from setwise.functions._arguments import FloatArray, IntArray, as_count, as_integers, as_number
from setwise.inference._cooling import Stage, cool
from setwise.inference._relaxation import Relaxation
from setwise.inference._result import MapProgress, MapResult
from setwise.inference._threads import as_threads

SOLVED = 1e-6  # of max(1, |value|): what is left to gain where the gap cannot close anyway


def convex(
    field: Field,
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    init: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: object = None,
    callback: Callable[[MapProgress], bool | None] | None = None,
) -> MapResult:
    r"""Minimise the Lovász relaxation of the energy and round it.

    Two labels and a submodular energy: exact (but for a cardinality with centers of both labels,
    which is submodular in the pairs (variable, label) alone). Otherwise the relaxation is a linear
    programme whose value may lie below the least energy, and the gap says by how much at most;
    terms that are not submodular enter it through a submodular term below them (``_minorants``).

    Parameters
    ----------
    field : Field
        Any field.
    tol : float
        The relative gap to stop at.
    max_iter : int, default=None
        Most passes; None is 500.
    init : array of shape (N,), default=None
        A labelling to start from: the answer is not worse.
    n_jobs : int, default=None
        Threads; None is all cores. The answer does not depend on it.
    random_state : object
        Not used: nothing is random.
    callback : callable, default=None
        Called with a ``MapProgress`` after each temperature; returning True ends the search.

    Returns
    -------
    MapResult
        ``converged`` where the gap is within ``tol``, or where it cannot close and no bound of this
        relaxation is higher by more than 1e-6 (relative) or a thousandth of the gap. A pass is
        O(N L) for Potts terms.
    """
    rounding = Rounding(field, init)
    limit = 500 if max_iter is None else as_count(max_iter, "max_iter")
    tol = as_number(tol, "tol", nonnegative=True)
    bound, n_iter, converged, interrupted = -inf, 0, False, False
    try:
        for stage in cool(Relaxation.below(field), limit, as_threads(n_jobs)):
            rounding.improve(stage)
            bound, n_iter = stage.bound, stage.n_iter
            unit = max(1.0, abs(rounding.value))
            gap = rounding.value - bound
            solved = stage.slack <= max(SOLVED * unit, 1e-3 * gap)
            solved = solved and stage.slack < gap - tol * unit
            converged = gap <= tol * unit or solved
            progress = MapProgress(n_iter, rounding.value, bound)
            interrupted = callback is not None and bool(callback(progress))
            if converged or interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
    return MapResult(
        labels=rounding.labels,
        value=rounding.value,
        bound=min(bound, rounding.value),  # above it by rounding only
        method="convex",
        reason="",
        n_iter=n_iter,
        converged=converged,
        interrupted=interrupted,
    )


def lower_bound(
    field: Field,
    *,
    value: float = inf,
    tol: float = 1e-6,
    max_iter: int = 200,
    n_jobs: int | None = None,
    callback: Callable[[MapProgress], bool | None] | None = None,
) -> float:
    """An energy that no labelling is below, from the cooled relaxation.

    Ends once it is within ``tol`` of ``value`` (the energy of a known labelling; relative to max(1,
    abs(value))), once the relaxation can give no more than that, or after ``max_iter`` passes.
    """
    bound = -inf
    for stage in cool(Relaxation.below(field), max_iter, as_threads(n_jobs)):
        bound = stage.bound
        unit = max(1.0, abs(value) if np.isfinite(value) else abs(bound))
        if value - bound <= tol * unit or stage.slack <= tol * unit:
            break
        if callback is not None and callback(MapProgress(stage.n_iter, value, bound)):
            break
    return min(bound, value)


class Rounding:
    """The best labelling met, by the true energy.

    At a solution of the relaxation many labels of a variable may tie, and taking the lowest for
    each variable alone breaks regions up. So each label in turn is given to all variables where it
    is within a width of the lowest, and what lowers the energy is kept.
    """

    def __init__(self, field: Field, init: ArrayLike | None) -> None:
        self._field = field
        self.labels: IntArray = field.unary.argmin(axis=1)
        self.value = self._energy(self.labels)
        if init is not None:
            given = np.asarray(init)
            if given.shape != (field.n_variables,):
                raise ValueError(f"init must have shape ({field.n_variables},), got {given.shape}")
            self._keep(as_integers(given, "init", below=field.n_labels))

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
