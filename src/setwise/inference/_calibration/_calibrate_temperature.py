"""The temperature, and the scale of the unaries, whose marginals are best on labelled fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import inf, nan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_choice,
    as_count,
    as_list,
    as_number,
    as_numbers,
)
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._interrupts import whole
from setwise._foundation._pool import Pool
from setwise._foundation._progress import stops
from setwise._foundation._threads import as_threads
from setwise.fields._field import Field
from setwise.inference._calibration._calibrated import (
    CalibrationProgress,
    TemperatureCalibration,
    scaled,
)
from setwise.inference._calibration._reliability import as_true_labels, brier_scores, log_losses
from setwise.inference._marginals._marginals import marginals
from setwise.inference._marginals._methods import METHODS

SCORINGS = {"nll": log_losses, "brier": brier_scores}
# from an eighth to four, in steps of the root of two; 1 is among them
TEMPERATURES = tuple(float(2.0 ** (k / 2)) for k in range(-6, 5))


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
    r"""The temperature, and a scale of the unaries, with the best marginals on labelled fields.

    For each pair (t, a) of a grid the marginals p of :math:`\exp(-(a \, u(x) + \varphi(x)) / t)`
    are scored by the labels, over all labelled variables of all fields:

    .. math:: -\log p_{i y_i} \;\text{("nll")}, \qquad
              \textstyle\sum_j (p_{ij} - [y_i = j])^2 \;\text{("brier")}

    The pair of least mean score is taken. Cross-validation says what it is worth on fields that
    were not seen: each fold is scored at the pair that is best for the others. It costs nothing,
    since the marginals of a field depend on no other.

    Parameters
    ----------
    fields : sequence of Field
        Of any sizes, for instance one an image.
    labels : sequence of array-like of int
        The right labels of each field, (N,) or in the shape of its image; ``ignore`` where nobody
        knows.
    method : str
        That of :func:`marginals`.
    temperatures : array-like, optional
        t > 0 to try; by default from 1/8 to 4, in steps of :math:`\sqrt{2}`.
    scales : array-like, optional
        a > 0 to try with each of them; by default 1 alone.
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
        ``temperature``, ``scale``, ``score``, ``cv_score``, the curve, and ``marginals`` for new
        fields. Ctrl-C ends the search too, with the points that are done; before the first is, it
        raises ``KeyboardInterrupt``.

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
    METHODS.read(method)
    truths = _as_truths(labels, given, ignore)
    score = SCORINGS[as_choice(scoring, "scoring", SCORINGS)]
    points = list(product(_grid(temperatures, "temperatures"), _grid(scales, "scales")))
    names = None if groups is None else as_list(groups, "groups", "names")
    folds = _folds(as_count(cv, "cv", least=1), names, len(given))
    as_number(tol, "tol", nonnegative=True)
    deadline = Deadline.of(time_limit, armed=False)
    if verbose:
        what, rounds = "calibrate_temperature", len(points)
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
    counts = np.array([np.count_nonzero(truth >= 0) for truth in truths], np.float64)
    if not counts.any():
        raise ValueError("labels must have a variable that counts, got none")

    def sum_of(k: int, t: float, a: float) -> float:
        known = truths[k] >= 0
        if not known.any():
            return 0.0
        options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "n_jobs": 1, "rng": 0}
        post = whole(marginals(scaled(given[k], a), method, temperature=t, **options))
        return float(score(post.probabilities[known], truths[k][known]).sum())

    sums: list[list[float]] = []
    interrupted, began = False, perf_counter()
    with Pool(min(as_threads(n_jobs), len(given))) as pool:
        for t, a in points:

            def one(k: int, t: float = t, a: float = a) -> float:
                return sum_of(k, t, a)

            try:
                sums.append(deadline.run(pool.map, one, range(len(given))))
                deadline.armed = True  # from now on there is an answer
            except KeyboardInterrupt:
                if not sums:
                    raise
                interrupted = True
                break
            progress = CalibrationProgress(
                n_iter=len(sums),
                value=float(np.sum(sums[-1]) / counts.sum()),
                bound=-inf,
                relative_gap=inf,
                seconds=perf_counter() - began,
                n_points=len(points),
                temperature=t,
                scale=a,
            )
            if stops(callback, progress) and len(sums) < len(points):
                interrupted = True
                break
    reason = "every point was tried"
    if interrupted:
        reason = deadline.sentence if deadline.struck else "a callback or Ctrl-C ended it"
    tried, table = np.array(points[: len(sums)]), np.array(sums)
    scores = table.sum(axis=1) / counts.sum()
    best = int(np.argmin(scores))
    if scores[best] == inf:
        raise ValueError(
            "labels must have a positive probability at some point of the grid for scoring='nll', "
            "got one that has none: scoring='brier' takes it, and so do unaries without infinities"
        )
    chosen, held_out = _crossed(table, counts, folds)
    with np.errstate(invalid="ignore"):
        field_scores = np.where(counts > 0, table / np.maximum(counts, 1.0), nan)
    return TemperatureCalibration(
        temperature=float(tried[best, 0]),
        scale=float(tried[best, 1]),
        score=float(scores[best]),
        cv_score=held_out,
        temperatures=tried[:, 0].copy(),
        scales=tried[:, 1].copy(),
        scores=scores,
        field_scores=field_scores,
        fold_temperatures=tried[chosen, 0],
        fold_scales=tried[chosen, 1],
        folds=folds,
        scoring=scoring,
        method=method,
        interrupted=interrupted and not deadline.struck,
        reason=reason,
    )


def _crossed(table: FloatArray, counts: FloatArray, folds: IntArray) -> tuple[IntArray, float]:
    """The point that each fold's absence chooses, and the mean score of the folds at theirs."""
    number = int(folds.max()) + 1
    if number < 2:
        return np.zeros(0, np.int64), nan
    chosen, total = np.zeros(number, np.int64), 0.0
    for fold in range(number):
        inside = folds == fold
        chosen[fold] = table[:, ~inside].sum(axis=1).argmin()
        total += float(table[chosen[fold], inside].sum())
    return chosen, total / float(counts.sum())


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


def _grid(values: ArrayLike | None, name: str) -> list[float]:
    if values is None:
        return list(TEMPERATURES if name == "temperatures" else (1.0,))
    numbers = as_numbers(values, name)
    if len(numbers) == 0 or numbers.min() <= 0:
        what = f"{numbers.min():g}" if len(numbers) else "none"
        raise ValueError(f"{name} must be positive, and one at least, got {what}")
    return [float(number) for number in numbers]


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
