"""The parameters of a diversity that give the best lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from time import perf_counter
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_choice,
    as_count,
    as_integers,
    as_list,
)
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._interrupts import whole
from setwise._foundation._pool import Pool
from setwise._foundation._progress import Progress, stops
from setwise._foundation._threads import as_threads
from setwise.diversities._base import Diversity
from setwise.diversities._concatenated import Concatenated
from setwise.fields._field import Field
from setwise.inference._diverse._diverse import diverse
from setwise.inference._diverse._oracle_accuracy import (
    SCORINGS,
    as_labels,
    check_ignore,
    oracle_accuracy,
)


@dataclass(frozen=True, eq=False)
class TuningProgress(Progress):
    """Where a grid search stands, for a callback: a true answer of it ends the search.

    Attributes
    ----------
    n_iter : int
        Points done, which is ``n_done``.
    n_points : int
        Points of the grid.
    parameters : dict
        Those of the latest point.
    value : float
        Its oracle accuracy, which is ``score``.
    bound, relative_gap : float
        ``inf``: nothing is known of points to come.
    seconds : float
        Since the start of the search.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> seen = []
    >>> best = sw.inference.tune_diversity(
    ...     [field],
    ...     [[1, 1]],
    ...     sw.diversities.DivMBest,
    ...     {"weight": [0.1, 1.5]},
    ...     m=2,
    ...     callback=seen.append,
    ... )
    >>> [(step.n_done, step.n_points, step.score) for step in seen]
    [(1, 2, 0.5), (2, 2, 1.0)]
    """

    _sense: ClassVar[float] = -1.0  # scores are better higher

    n_points: int
    parameters: dict[str, object]

    @property
    def n_done(self) -> int:
        """Points done."""
        return self.n_iter

    @property
    def score(self) -> float:
        """The oracle accuracy of the latest point."""
        return self.value


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The best point of a grid, and the score of every point.

    Attributes
    ----------
    diversity : Diversity or Concatenated
        That of the best point; of equals the first.
    parameters : dict
        Its parameters.
    score : float
        Its oracle accuracy.
    grid : list of dict
        The parameters of every point tried.
    scores : array of shape (number of points,)
        Their oracle accuracies.
    interrupted : bool
        Whether the callback or Ctrl-C ended the search.
    reason : str
        Why it ended, in words: that every point was tried, ``time_limit``, or who ended it.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> tuned = sw.inference.tune_diversity(
    ...     [field], [[1, 1]], sw.diversities.DivMBest, {"weight": [0.1, 1.5]}, m=2
    ... )
    >>> tuned.diversity, tuned.parameters, tuned.score
    (DivMBest(weight=1.5), {'weight': 1.5}, 1.0)
    """

    diversity: Diversity | Concatenated
    parameters: dict[str, object]
    score: float
    grid: list[dict[str, object]]
    scores: FloatArray
    interrupted: bool = False
    reason: str = "every point was tried"


def tune_diversity(
    fields: Sequence[Field],
    truths: Sequence[ArrayLike],
    diversity: Callable[..., Diversity | Concatenated],
    grid: Mapping[str, Sequence[object]],
    *,
    m: int,
    scoring: str = "accuracy",
    regions: Sequence[ArrayLike] | None = None,
    ignore: int = -1,
    method: str = "auto",
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Callable[[TuningProgress], object] | None = None,
) -> TuningResult:
    """Grid search for the diversity whose lists have the best oracle accuracy.

    Parameters
    ----------
    fields : sequence of Field
        One an image.
    truths : sequence of array-like of int
        The right labels of each image, ``ignore`` where nobody knows.
    diversity : callable
        A class of diversities, or a function of the grid's parameters that returns one.
    grid : mapping
        The values to try of each parameter; all combinations are tried.
    m : int
        The length of the lists.
    scoring : {"accuracy", "iou"}
        That of :func:`oracle_accuracy`.
    regions : sequence of array-like of int, optional
        The variable of each pixel, where fields are over superpixels and truths over pixels.
    ignore : int
        The label of pixels that do not count.
    method : str
        That of :func:`diverse`.
    time_limit : float, optional
        The most seconds: then the search ends with the points that are done, the first at least,
        and ``reason`` says so. How many these are depends on the machine and on what else it does.
    n_jobs : int, optional
        Threads, an image each; None for all cores. The answer does not depend on it.
    verbose : bool
        Show points done, scores and seconds on stderr: a bar in a terminal or a notebook (with
        rich), else lines.
    callback : callable, optional
        Called with a ``TuningProgress`` after each point; a true answer ends the search.

    Returns
    -------
    TuningResult
        ``diversity``, ``parameters``, ``score``, and those of every point. Ctrl-C ends the search
        too, with the points that are done; before the first is, it raises ``KeyboardInterrupt``.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0], [0.0, 0.5]])
    >>> tuned = sw.inference.tune_diversity(
    ...     [field],
    ...     [[1, 1, 1]],
    ...     sw.diversities.HammingBall,
    ...     {"weight": [0.1, 5.0], "gamma": [0.5, 2.0]},
    ...     m=3,
    ... )
    >>> tuned.parameters, tuned.score
    ({'weight': 5.0, 'gamma': 0.5}, 1.0)
    """
    images = as_list(fields, "fields", "Fields")
    truths = as_list(truths, "truths", "arrays of labels")
    for k, truth in enumerate(truths):
        as_labels(truth, f"truths[{k}]", 1)
    check_display(verbose, callback)
    deadline = Deadline.of(time_limit, armed=False)
    check_ignore(ignore)
    if not images or not all(isinstance(field, Field) for field in images):
        raise TypeError("fields must be a sequence of at least one Field")
    if len(truths) != len(images):
        raise ValueError(
            f"truths must hold one for each of the {len(images)} fields, got {len(truths)}"
        )
    if not callable(diversity):
        raise TypeError(f"diversity must be callable, got {type(diversity).__name__}")
    if not isinstance(grid, Mapping):
        raise TypeError(f"grid must be a mapping, got {type(grid).__name__}")
    m, scoring = as_count(m, "m", least=1), as_choice(scoring, "scoring", SCORINGS)
    variables = _as_regions(regions, images)
    choices = [as_list(values, f"grid[{key!r}]", "values") for key, values in grid.items()]
    points = [dict(zip(grid, values, strict=True)) for values in product(*choices)]
    if not points:
        raise ValueError("grid must hold at least one value of each parameter")
    if verbose:
        with progress_callback(
            True, 0.0, callback, what="tune_diversity", rounds=len(points)
        ) as shown:
            return tune_diversity(
                images,
                truths,
                diversity,
                dict(zip(grid, choices, strict=True)),
                m=m,
                scoring=scoring,
                regions=regions,
                ignore=ignore,
                method=method,
                time_limit=deadline.inherited,
                n_jobs=n_jobs,
                callback=shown,
            )
    made = [diversity(**point) for point in points]
    scores: list[float] = []
    interrupted, began = False, perf_counter()
    with Pool(as_threads(n_jobs)) as pool:
        for point, one in zip(points, made, strict=True):

            def listed(k: int, one: Diversity | Concatenated = one) -> IntArray:
                found = whole(diverse(images[k], m, one, method=method, n_jobs=1)).labelings
                return found if variables is None else found[:, variables[k]]

            try:
                lists = deadline.run(pool.map, listed, range(len(images)))
                scores.append(oracle_accuracy(lists, truths, scoring, ignore=ignore))
                deadline.armed = True  # from now on there is an answer
            except KeyboardInterrupt:
                if not scores:
                    raise
                interrupted = True
                break
            progress = TuningProgress(
                n_iter=len(scores),
                value=scores[-1],
                bound=inf,
                relative_gap=inf,
                seconds=perf_counter() - began,
                n_points=len(points),
                parameters=point,
            )
            if stops(callback, progress) and len(scores) < len(points):
                interrupted = True
                break
    best = int(np.argmax(scores))
    reason = "every point was tried"
    if interrupted:
        reason = deadline.sentence if deadline.struck else "a callback or Ctrl-C ended it"
    return TuningResult(
        diversity=made[best],
        parameters=points[best],
        score=scores[best],
        grid=points[: len(scores)],
        scores=np.array(scores),
        interrupted=interrupted and not deadline.struck,
        reason=reason,
    )


def _as_regions(regions: Sequence[ArrayLike] | None, images: list[Field]) -> list[IntArray] | None:
    if regions is None:
        return None
    regions = as_list(regions, "regions", "arrays of integers")
    if len(regions) != len(images):
        raise ValueError(
            f"regions must hold an array for each of the {len(images)} fields, got {len(regions)}"
        )
    return [
        as_integers(array, "regions", below=max(field.n_variables, 1)).ravel()
        for array, field in zip(regions, images, strict=True)
    ]
