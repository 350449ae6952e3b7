"""The choice of method, temperature and scale of the unaries by labelled fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    IntArray,
    as_choice,
    as_count,
    as_list,
    as_number,
    as_numbers,
)
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import check_display, progress_callback
from setwise._foundation._threads import Pool, as_threads
from setwise.fields._field import Field
from setwise.inference._calibration._calibrated import (
    UNARIES,
    CalibrationProgress,
    TemperatureCalibration,
)
from setwise.inference._calibration._point_search import best_of_grid, searched
from setwise.inference._calibration._reliability import as_true_labels, brier_scores, log_losses
from setwise.inference._calibration._trials import Cases, Ended, Point, Trials
from setwise.inference._marginals._methods import METHODS

SCORINGS = {"nll": log_losses, "brier": brier_scores}
# The temperatures of a grid: from 1/8 to 4, in steps of the square root of 2.
TEMPERATURES = tuple(float(2.0 ** (k / 2)) for k in range(-6, 5))


@hints_at_names
def calibrate_temperature(
    fields: Sequence[Field],
    labels: Sequence[ArrayLike],
    method: str = "auto",
    *,
    grid: Mapping[str, ArrayLike] | None = None,
    scoring: str = "nll",
    cv: int | Sequence[object] = 5,
    ignore: int = -1,
    tol: float = 1e-3,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Callable[[CalibrationProgress], object] | None = None,
) -> TemperatureCalibration:
    r"""Find the method, temperature and scale of the unaries with the best marginals.

    For points (method, t, a) the marginals p of :math:`\exp(-(a \, u(x) + \varphi(x)) / t)` are
    scored by the labels, over all labelled variables of all fields:

    .. math:: -\log p_{i y_i} \;\text{("nll")}, \qquad
              \textstyle\sum_j (p_{ij} - [y_i = j])^2 \;\text{("brier")}

    Without a grid the search of each method starts at t = a = 1, or 8 if that is better. It changes
    the temperature, the weight 1 / t of the potentials, the weight a / t of the unaries, or both
    weights in opposite directions, by factors of 2 as long as the score falls, and then by factors
    of :math:`2^{1/2}` and :math:`2^{1/4}`. The point of least mean score is the answer.
    Cross-validation estimates its score on new fields: each fold is scored with the point and the
    method that the other folds choose. It costs little more, since the marginals of a field do not
    depend on other fields.

    Parameters
    ----------
    fields : sequence of Field
        Fields of any sizes, for instance one per image.
    labels : sequence of array-like of int
        The true labels of each field, (N,) or in the shape of its image; ``ignore`` for unknown
        labels.
    method : str
        A method of :func:`marginals`, or "unaries" to ignore the potentials. "auto" chooses the
        best of unaries, projection, trees, mean field and belief propagation, among those that
        accept all fields. If elimination is cheap for all fields, "auto" tries only its exact
        marginals.
    grid : mapping, optional
        The values of "temperature", t > 0, and of "scale", a > 0, to try instead of the search, in
        all combinations. Without "temperature" they go from 1/8 to 4, in steps of
        :math:`\sqrt{2}`; without "scale" it is 1.
    scoring : {"nll", "brier"}
        The score to minimise.
    cv : int or sequence
        The number of folds, to which the fields are assigned in turn; 1 for no cross-validation. Or
        the name of the fold of each field, so that fields of one photograph can stay together.
    ignore : int
        The label of variables that are not scored.
    tol : float
        As in :func:`marginals`.
    time_limit : float, optional
        The largest number of seconds. The search then ends with the points that are done, at least
        one, and ``reason`` says so. The number of these points depends on the machine and its load.
    n_jobs : int, optional
        The number of threads, one per field; None for all cores. The answer does not depend on it.
    verbose : bool
        Show points done, scores and seconds on stderr.
    callback : callable, optional
        Called with a ``CalibrationProgress`` after each point. A true return value ends the search.

    Returns
    -------
    TemperatureCalibration
        The ``method``, ``temperature``, ``scale``, ``score``, ``cv_score``, the points that were
        tried, and ``marginals`` for new fields. Ctrl-C also ends the search with the points that
        are done; before the first one is done, it raises ``KeyboardInterrupt``.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> truths = [np.repeat(rng.integers(2, size=5), 4) for _ in range(6)]
    >>> chain = sw.fields.Potts(np.stack([np.arange(19), np.arange(1, 20)], axis=1), 1.0)
    >>> seen = [y + rng.normal(0.0, 1.0, 20) for y in truths]
    >>> unaries = [4.0 * np.stack([x, 1.0 - x], axis=1) for x in seen]  # too sure
    >>> fields = [sw.fields.Field(unary) + chain for unary in unaries]
    >>> found = sw.calibrate_temperature(fields, truths, grid={"temperature": [1, 2, 4, 8, 16]})
    >>> found.temperature, bool(found.cv_score < found.scores[0])
    (8.0, True)
    """
    given = as_list(fields, "fields", "Fields")
    if not given or not all(isinstance(field, Field) for field in given):
        raise TypeError("fields must be a sequence of at least one Field")
    check_display(verbose, callback)
    as_choice(method, "method", ["auto", UNARIES, *METHODS])
    truths = _as_truths(labels, given, ignore)
    score = SCORINGS[as_choice(scoring, "scoring", SCORINGS)]
    grids = _grids(grid)
    folds = _folds(cv, len(given))
    as_number(tol, "tol", nonnegative=True)
    deadline = Deadline.of(time_limit, armed=False)
    options: dict[str, Any] = {"tol": tol, "n_jobs": 1, "rng": 0}
    cases = Cases(given, truths, score, options)
    if not cases.counts.any():
        raise ValueError("labels must have a variable that counts, got none")
    methods = cases.candidates() if method == "auto" else (method,)
    points = [Point(m, t, a) for m, (t, a) in product(methods, product(*grids))] if grids else []
    n_points = len(points) or None
    with (
        progress_callback(
            verbose, 0.0, callback, what="calibrate_temperature", rounds=n_points
        ) as shown,
        Pool(min(as_threads(n_jobs), len(given))) as pool,
    ):
        trials = Trials(cases, pool, deadline, shown, n_points)
        chosen, ended = _chosen(trials, points, methods, folds)
    return _calibration(trials, chosen, folds, scoring, ended=ended)


def _chosen(
    trials: Trials, grid: list[Point], methods: Sequence[str], folds: IntArray
) -> tuple[list[Point], bool]:
    """Return the best points for all fields and without each fold, and whether it ended early."""
    number = int(folds.max()) + 1
    sets = [np.ones(len(folds), bool), *(folds != fold for fold in range(number) if number > 1)]
    try:
        for point in grid:
            trials.sums(point)
        if grid:
            return [best_of_grid(trials, grid, inside) for inside in sets], False
        return [searched(trials, methods, inside) for inside in sets], False
    except Ended:
        tried = list(trials.points)
        return [best_of_grid(trials, tried, inside) for inside in sets], True


def _calibration(
    trials: Trials, chosen: list[Point], folds: IntArray, scoring: str, *, ended: bool
) -> TemperatureCalibration:
    """Return the record of the best point, with the scores of the folds."""
    counts, deadline = trials.cases.counts, trials.deadline
    table = np.array(list(trials.points.values()))
    scores = table.sum(axis=1) / counts.sum()
    best, *of_folds = chosen
    score = float(trials.points[best].sum() / counts.sum())
    if score == inf:
        raise ValueError(
            "labels must have a positive probability at some point of the grid for scoring='nll', "
            "got one that has none: scoring='brier' takes it, and so do unaries without infinities"
        )
    held_out = sum(trials.points[p][folds == k].sum() for k, p in enumerate(of_folds))
    with np.errstate(invalid="ignore"):
        field_scores = np.where(counts > 0, table / np.maximum(counts, 1.0), nan)
    reason = "every point was tried" if trials.n_points else "no step was worth it any more"
    if ended:
        reason = deadline.sentence if deadline.expired else "a callback or Ctrl-C ended it"
    return TemperatureCalibration(
        temperature=best.temperature,
        scale=best.scale,
        score=score,
        cv_score=float(held_out / counts.sum()) if of_folds else nan,
        temperatures=np.array([point.temperature for point in trials.points]),
        scales=np.array([point.scale for point in trials.points]),
        scores=scores,
        field_scores=field_scores,
        fold_temperatures=np.array([point.temperature for point in of_folds]),
        fold_scales=np.array([point.scale for point in of_folds]),
        folds=folds,
        scoring=scoring,
        method=best.method,
        methods=tuple(point.method for point in trials.points),
        fold_methods=tuple(point.method for point in of_folds),
        interrupted=ended and not deadline.expired,
        reason=reason,
    )


def _as_truths(labels: Sequence[ArrayLike], fields: list[Field], ignore: int) -> list[IntArray]:
    ignore = as_count(ignore, "ignore", least=-(2**62), most=2**62)
    truths = as_list(labels, "labels", "arrays of labels")
    if len(truths) != len(fields):
        raise ValueError(
            f"labels must hold an array for each of the {len(fields)} fields, got {len(truths)}"
        )
    found = []
    for k, (truth, field) in enumerate(zip(truths, fields, strict=True)):
        read = as_true_labels(truth, f"labels[{k}]", field.n_labels, ignore)
        if read.size != field.n_variables or read.ndim == 0:
            raise ValueError(
                f"labels[{k}] must have an entry for each of the field's {field.n_variables} "
                f"variables, got shape {read.shape}"
            )
        found.append(read.ravel())
    return found


def _grids(grid: object) -> list[list[float]]:
    """Return the temperatures and the scales of a grid, or None without a grid."""
    if grid is None:
        return []
    usual: dict[str, list[float]] = {"temperature": list(TEMPERATURES), "scale": [1.0]}
    if not isinstance(grid, Mapping):
        raise TypeError(f"grid must be a mapping or None, got {type(grid).__name__}")
    if unknown := set(grid) - set(usual):
        raise ValueError(f"grid must have the keys 'temperature' and 'scale', got {unknown}")
    return [
        _positive(grid[name], f"grid[{name!r}]") if name in grid else values
        for name, values in usual.items()
    ]


def _positive(values: ArrayLike, name: str) -> list[float]:
    numbers = as_numbers(values, name)
    if len(numbers) == 0 or numbers.min() <= 0:
        what = f"{numbers.min():g}" if len(numbers) else "none"
        raise ValueError(f"{name} must be positive, and one at least, got {what}")
    return [as_number(number, name, positive=True) for number in numbers.tolist()]


def _folds(cv: object, n: int) -> IntArray:
    """Return the number of the fold of each field."""
    if isinstance(cv, str) or not isinstance(cv, Iterable) or getattr(cv, "ndim", 1) == 0:
        return np.arange(n) % min(as_count(cv, "cv", least=1), n)
    names = as_list(cv, "cv", "the folds of the fields")
    if len(names) != n:
        raise ValueError(f"cv must hold a fold for each of the {n} fields, got {len(names)}")
    numbers: dict[object, int] = {}
    try:
        each = [numbers.setdefault(name, len(numbers)) for name in names]
    except TypeError as error:
        raise TypeError(f"cv must hold names or numbers of folds, got: {error}") from None
    return np.array(each, np.int64)
