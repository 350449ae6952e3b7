"""The method, temperature and scale of the unaries whose marginals are best on labelled fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._pool import Pool
from setwise._foundation._threads import as_threads
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
# from an eighth to four, in steps of the root of two; 1 is among them
TEMPERATURES = tuple(float(2.0 ** (k / 2)) for k in range(-6, 5))


@hints_at_names
def calibrate_temperature(
    fields: Sequence[Field],
    labels: Sequence[ArrayLike],
    method: str = "auto",
    *,
    temperatures: ArrayLike | None = None,
    scales: ArrayLike | None = None,
    scoring: str = "nll",
    cv: int = 5,
    groups: Sequence[object] | None = None,
    ignore: int = -1,
    tol: float = 1e-3,
    max_iter: int | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Callable[[CalibrationProgress], object] | None = None,
) -> TemperatureCalibration:
    r"""The method, temperature and scale of the unaries with the best marginals on labelled fields.

    For points (method, t, a) the marginals p of :math:`\exp(-(a \, u(x) + \varphi(x)) / t)` are
    scored by the labels, over all labelled variables of all fields:

    .. math:: -\log p_{i y_i} \;\text{("nll")}, \qquad
              \textstyle\sum_j (p_{ij} - [y_i = j])^2 \;\text{("brier")}

    Without a grid each method is searched from t = a = 1, or 8 if that is better: by factors of 2
    in the temperature, in the weight 1 / t of the potentials, in that of the unaries, a / t, and of
    one for the other, as long as the score falls, then of :math:`2^{1/2}` and :math:`2^{1/4}`. The
    point of least mean score is taken. Cross-validation says what it is worth on fields that were
    not seen: each fold is scored at the point, and by the method, that the others find on their
    own. It costs little more, since the marginals of a field depend on no other.

    Parameters
    ----------
    fields : sequence of Field
        Of any sizes, for instance one an image.
    labels : sequence of array-like of int
        The right labels of each field, (N,) or in the shape of its image; ``ignore`` where nobody
        knows.
    method : str
        That of :func:`marginals`, or "unaries" for no potentials at all. "auto" chooses the best of
        unaries, projection, trees, mean field and belief propagation, as far as they take all
        fields; where elimination is cheap for all of them its exact marginals alone.
    temperatures : array-like, optional
        A grid of t > 0 instead of the search; with ``scales`` alone from 1/8 to 4, in steps of
        :math:`\sqrt{2}`.
    scales : array-like, optional
        a > 0 to try with each of them; with ``temperatures`` alone 1.
    scoring : {"nll", "brier"}
        What is to be least.
    cv : int
        Folds, at most as many as there are groups; 1 for none.
    groups : sequence, optional
        Fields of equal groups come into the same fold, such as those of one photograph; by default
        each field is its own. Groups go to the folds in turn.
    ignore : int
        The label of variables that do not count.
    tol, max_iter
        Those of :func:`marginals`.
    time_limit : float, optional
        The most seconds: then the search ends with the points that are done, the first at least,
        and ``reason`` says so. How many these are depends on the machine.
    n_jobs : int, optional
        Threads, a field each; None for all cores. The answer does not depend on it.
    verbose : bool
        Show points done, scores and seconds on stderr.
    callback : callable, optional
        Called with a ``CalibrationProgress`` after each point; a true answer ends the search.

    Returns
    -------
    TemperatureCalibration
        ``method``, ``temperature``, ``scale``, ``score``, ``cv_score``, the points that were tried,
        and ``marginals`` for new fields. Ctrl-C ends the search too, with the points that are done;
        before the first is, it raises ``KeyboardInterrupt``.

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
    >>> found = sw.calibrate_temperature(fields, truths, temperatures=[1, 2, 4, 8, 16])
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
    grids = _grids(temperatures, scales)
    names = None if groups is None else as_list(groups, "groups", "names")
    folds = _folds(as_count(cv, "cv", least=1), names, len(given))
    as_number(tol, "tol", nonnegative=True)
    deadline = Deadline.of(time_limit, armed=False)
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_jobs": 1, "rng": 0}
    cases = Cases(given, truths, score, options)
    if not cases.counts.any():
        raise ValueError("labels must have a variable that counts, got none")
    methods = cases.candidates() if method == "auto" else (method,)
    grid = [Point(m, t, a) for m, (t, a) in product(methods, product(*grids))] if grids else []
    if verbose:
        what, rounds = "calibrate_temperature", len(grid) or None
        with progress_callback(True, 0.0, callback, what=what, rounds=rounds) as shown:
            return calibrate_temperature(
                given,
                truths,
                method,
                temperatures=temperatures,
                scales=scales,
                scoring=scoring,
                cv=cv,
                groups=names,
                ignore=-1,
                tol=tol,
                max_iter=max_iter,
                time_limit=deadline.inherited,
                n_jobs=n_jobs,
                callback=shown,
            )
    with Pool(min(as_threads(n_jobs), len(given))) as pool:
        trials = Trials(cases, pool, deadline, callback, len(grid) or None)
        chosen, ended = _chosen(trials, grid, methods, folds)
    return _calibration(trials, chosen, folds, scoring, ended=ended)


def _chosen(
    trials: Trials, grid: list[Point], methods: Sequence[str], folds: IntArray
) -> tuple[list[Point], bool]:
    """The best point for all fields, then that without each fold; and whether it ended early."""
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
    """What was found: the best point, and what those of the folds are worth on them."""
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
        reason = deadline.sentence if deadline.struck else "a callback or Ctrl-C ended it"
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
        interrupted=ended and not deadline.struck,
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


def _grids(temperatures: ArrayLike | None, scales: ArrayLike | None) -> list[list[float]]:
    """Both, where one of them is given; none for a search."""
    if temperatures is None and scales is None:
        return []
    return [
        list(TEMPERATURES) if temperatures is None else _positive(temperatures, "temperatures"),
        [1.0] if scales is None else _positive(scales, "scales"),
    ]


def _positive(values: ArrayLike, name: str) -> list[float]:
    numbers = as_numbers(values, name)
    if len(numbers) == 0 or numbers.min() <= 0:
        what = f"{numbers.min():g}" if len(numbers) else "none"
        raise ValueError(f"{name} must be positive, and one at least, got {what}")
    return [as_number(number, name, positive=True) for number in numbers.tolist()]


def _folds(cv: int, groups: list[object] | None, n: int) -> IntArray:
    """(n,): groups in the order of their first field, to the folds in turn."""
    names = list(range(n)) if groups is None else groups
    if len(names) != n:
        raise ValueError(f"groups must hold one for each of the {n} fields, got {len(names)}")
    numbers: dict[object, int] = {}
    try:
        each = [numbers.setdefault(name, len(numbers)) for name in names]
    except TypeError as error:
        raise TypeError(f"groups must hold names or numbers, got: {error}") from None
    return np.array(each, np.int64) % min(cv, len(numbers))
