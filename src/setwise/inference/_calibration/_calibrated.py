"""The result of a calibration: a method, a temperature, a scale of the unaries, and the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._base_classes import Record
from setwise._foundation._progress import Progress
from setwise.fields._field import Field, as_field
from setwise.inference._marginals._marginals import marginals
from setwise.inference._marginals._result import MarginalsResult

UNARIES = "unaries"  # the method that ignores the potentials


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationProgress(Progress):
    """The state of a calibration for a callback, which may end it by a true return value.

    Attributes
    ----------
    n_iter : int
        The number of points that are done.
    n_points : int
        The number of points of the grid; for a search, of the points tried so far.
    method : str
        The method of the latest point.
    temperature, scale : float
        The temperature and scale of the latest point.
    value : float
        The score of the latest point.
    bound, relative_gap : float
        Always ``-inf`` and ``inf``, since the scores of later points are unknown.
    seconds : float
        The time since the start of the search.

    Examples
    --------
    >>> import setwise as sw
    >>> seen = []
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> found = sw.calibrate_temperature(
    ...     [field], [[0, 1]], grid={"temperature": [0.5, 1.0]}, callback=seen.append
    ... )
    >>> [(step.n_iter, step.n_points, step.temperature) for step in seen]
    [(1, 2, 0.5), (2, 2, 1.0)]
    """

    _sense: ClassVar[float] = 1.0

    n_points: int
    method: str
    temperature: float
    scale: float


@dataclass(frozen=True, eq=False, repr=False)
class TemperatureCalibration(Record):
    r"""The method, the temperature and the scale of the unaries with the best probabilities.

    Attributes
    ----------
    temperature : float
        t of the best point; the first one if several are equal.
    scale : float
        a: the probabilities are those of :math:`\exp(-(a \, u(x) + \varphi(x)) / t)`.
    score : float
        The score of that point over all fields, by which it was chosen.
    cv_score : float
        The score over all fields, each at the point that the other folds chose: an estimate for
        new fields. NaN if there is only one fold.
    temperatures, scales : arrays of shape (P,)
        The temperatures and scales that were tried, in this order.
    methods : tuple of P str
        The methods of these points.
    scores : array of shape (P,)
        The scores of these points, over all labelled variables.
    field_scores : array of shape (P, number of fields)
        The mean score of each field; NaN for a field without labels.
    fold_temperatures, fold_scales : arrays of shape (K,)
        The temperatures and scales that were chosen without each fold.
    fold_methods : tuple of K str
        The methods that were chosen without each fold.
    folds : array of int of shape (number of fields,)
        The fold of each field.
    scoring : str
        "nll" or "brier".
    method : str
        The best method. "unaries" means that the potentials made the probabilities worse.
    interrupted : bool
        Whether the callback or Ctrl-C ended the search.
    reason : str
        Why the search ended, in words.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> field = sw.fields.Field(np.tile([[0.0, 2.0]], (4, 1)))  # 88 % sure
    >>> found = sw.calibrate_temperature([field], [[0, 0, 1, 0]])  # and right in 3 of 4
    >>> round(found.temperature, 2), found.scale
    (1.68, 1.0)
    >>> found.marginals(field).probabilities[0].round(2).tolist()
    [0.77, 0.23]
    """

    _printed = (
        "temperature scale score cv_score method scoring "
        "fold_temperatures fold_scales interrupted reason"
    )

    temperature: float
    scale: float
    score: float
    cv_score: float
    temperatures: FloatArray
    scales: FloatArray
    scores: FloatArray
    field_scores: FloatArray
    fold_temperatures: FloatArray
    fold_scales: FloatArray
    folds: IntArray
    scoring: str
    method: str
    methods: tuple[str, ...] = ()
    fold_methods: tuple[str, ...] = ()
    interrupted: bool = False
    reason: str = "every point was tried"

    @property
    def curve(self) -> tuple[FloatArray, FloatArray]:
        """The temperatures in order, and the best score for each over scales and methods."""
        levels = np.unique(self.temperatures)
        best = [self.scores[self.temperatures == level].min() for level in levels]
        return levels, np.array(best)

    def scaled(self, field: Field) -> Field:
        """Return the field with its unaries times ``scale``, for a call at ``temperature``.

        The potentials are omitted if ``method`` is "unaries".
        """
        return scaled(as_field(field), self.method, self.scale)

    def marginals(self, field: Field, **options: Any) -> MarginalsResult:
        """Return the marginals of a field with the scale, the temperature and the method found.

        ``options`` are those of :func:`marginals`, such as ``tol`` and ``n_jobs``.
        """
        point = (self.method, self.temperature, self.scale)
        return calibrated_marginals(as_field(field), point, options)


def scaled(field: Field, method: str, scale: float) -> Field:
    """Return a field with scaled unaries, where infinite ones stay infinite."""
    if method == UNARIES:
        return Field._of(field.unary * scale, (), field.shape)
    return field if scale == 1.0 else field._over(field.unary * scale)


def calibrated_marginals(
    field: Field, point: tuple[str, float, float], options: dict[str, Any]
) -> MarginalsResult:
    """Return the marginals by a method, at a temperature and a scale of the unaries."""
    method, temperature, scale = point
    given: dict[str, Any] = {
        "method": "auto" if method == UNARIES else method,
        "temperature": temperature,
    }
    return marginals(scaled(field, method, scale), **given | options)
