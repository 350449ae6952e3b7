"""The search for the parameters of a diversity with the best lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
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
from setwise._foundation._base_classes import Record
from setwise._foundation._clock import Deadline
from setwise._foundation._progress import Progress, check_display, progress_callback
from setwise._foundation._search import Control, Search, completed, drive
from setwise._foundation._threads import Pool, as_threads
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


@dataclass(frozen=True, eq=False, repr=False)
class TuningProgress(Progress):
    """The state of a grid search for a callback, which may end it by a true return value.

    Attributes
    ----------
    n_iter : int
        The number of points done, which is ``n_done``.
    n_points : int
        The number of points of the grid.
    parameters : dict
        The parameters of the latest point.
    value : float
        The oracle accuracy of the latest point, which is ``score``.
    bound, relative_gap : float
        ``inf``, because nothing is known about later points.
    seconds : float
        The seconds since the start of the search.

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

    _sense: ClassVar[float] = -1.0  # higher scores are better

    n_points: int
    parameters: dict[str, object]

    @property
    def n_done(self) -> int:
        """The number of points done."""
        return self.n_iter

    @property
    def score(self) -> float:
        """The oracle accuracy of the latest point."""
        return self.value


@dataclass(frozen=True, eq=False, repr=False)
class TuningResult(Record):
    """The best point of a grid, and the score of every point.

    Attributes
    ----------
    diversity : Diversity or Concatenated
        The diversity of the best point; the first one if several are equal.
    parameters : dict
        The parameters of the best point.
    score : float
        The oracle accuracy of the best point.
    grid : list of dict
        The parameters of every point tried.
    scores : array of shape (number of points,)
        The oracle accuracies of these points.
    interrupted : bool
        Whether the callback or Ctrl-C ended the search.
    reason : str
        Why the search ended: every point was tried, ``time_limit``, the callback or Ctrl-C.

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
    time_limit: float | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    callback: Callable[[TuningProgress], object] | None = None,
) -> TuningResult:
    """Search a grid for the diversity whose lists have the best oracle accuracy.

    Parameters
    ----------
    fields : sequence of Field
        One field per image.
    truths : sequence of array-like of int
        The true labels of each image; ``ignore`` for unknown labels.
    diversity : callable
        A class of diversities, or a function of the grid's parameters that returns one.
    grid : mapping
        The values to try of each parameter; all combinations are tried.
    m : int
        The length of the lists.
    scoring : {"accuracy", "iou"}
        As in :func:`oracle_accuracy`.
    regions : sequence of array-like of int, optional
        The variable of each pixel, if fields are over superpixels and truths over pixels.
    ignore : int
        The label of pixels that do not count.
    time_limit : float, optional
        The largest number of seconds. The search then ends with the points that are done, at least
        one, and ``reason`` says so. The number of these points depends on the machine and its load.
    n_jobs : int, optional
        The number of threads, one per image; None for all cores. The answer does not depend on it.
    verbose : bool
        Show points done, scores and seconds on stderr: a bar in a terminal or a notebook (with
        rich), else lines.
    callback : callable, optional
        Called with a ``TuningProgress`` after each point. A true return value ends the search.

    Returns
    -------
    TuningResult
        The ``diversity``, ``parameters`` and ``score`` of the best point, and of every point.
        Ctrl-C also ends the search with the points that are done; before the first one is done, it
        raises ``KeyboardInterrupt``.

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
    made = [diversity(**point) for point in points]
    with (
        progress_callback(
            verbose, 0.0, callback, what="tune_diversity", rounds=len(points)
        ) as shown,
        Pool(as_threads(n_jobs)) as pool,
    ):

        def score(point: int) -> float:
            def listed(k: int) -> IntArray:
                found = completed(diverse(images[k], m, made[point], n_jobs=1))
                labelings = found.labelings
                return labelings if variables is None else labelings[:, variables[k]]

            lists = pool.map(listed, range(len(images)))
            return oracle_accuracy(lists, truths, scoring, ignore=ignore)

        search = _GridSearch(points, score)
        ending = drive(search, Control(0.0, len(points), shown, deadline))
    best = int(np.argmax(search.scores))
    return TuningResult(
        diversity=made[best],
        parameters=points[best],
        score=search.scores[best],
        grid=points[: len(search.scores)],
        scores=np.array(search.scores),
        interrupted=ending.interrupted,
        reason=ending.reason if ending.cut_short else "every point was tried",
    )


class _GridSearch(Search[TuningProgress]):
    """The points of a grid, one per step."""

    def __init__(self, points: list[dict[str, object]], score: Callable[[int], float]) -> None:
        self._points, self._score = points, score
        self.scores: list[float] = []

    def step(self) -> bool:
        self.scores.append(self._score(len(self.scores)))
        return len(self.scores) == len(self._points)

    def progress(self, n_iter: int, seconds: float) -> TuningProgress:
        return TuningProgress(
            n_iter=n_iter,
            value=self.scores[-1],
            bound=inf,
            relative_gap=inf,
            seconds=seconds,
            n_points=len(self._points),
            parameters=self._points[n_iter - 1],
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
