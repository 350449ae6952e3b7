"""The best labelling of two labels, by one minimum cut or a few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise.fields._field import Field
from setwise.functions._arguments import as_count, as_number
from setwise.inference._move_terms import Method, start_moves
from setwise.inference._result import MapProgress, MapResult


def cut(
    field: Field,
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    init: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: object = None,
    callback: Callable[[MapProgress], object] | None = None,
) -> MapResult:
    r"""The labelling of least energy of a field of at most two labels.

    Edges need :math:`\theta(0, 0) + \theta(1, 1) \le \theta(0, 1) + \theta(1, 0)`; functions of
    counts must be concave. Each is bounded from below by a function that is linear between a few
    counts, which a cut minimises with one auxiliary node a count; the counts of its answer
    refine the bound, until the two meet. Terms with few kinks, and edges alone, need one cut.

    Parameters
    ----------
    field : Field
        With one label or two.
    tol : float
        Ends the rounds when the relative gap is at most this.
    max_iter : int, optional
        The most cuts; as many as it takes when None.
    init : array of shape (N,), optional
        A labelling that the answer is not worse than, however soon the rounds end.
    n_jobs, random_state
        Unused: one thread, nothing random.
    callback : callable, optional
        Called with a ``MapProgress`` after each cut; True ends the search.

    Returns
    -------
    MapResult
        ``bound`` is the least value of the last function that the cuts minimised.

    Examples
    --------
    >>> import setwise as sw
    >>> from setwise.inference._cut import cut
    >>> best = cut(sw.fields.Field([[0.0, 2.0], [1.0, 0.0]]))
    >>> best.labels.tolist(), best.value, best.exact
    ([0, 1], 0.0, True)
    """
    if field.n_labels > 2:
        raise ValueError(f"cut needs a field of at most two labels, got {field.n_labels}")
    return best_of_two(field, "cut", tol=tol, max_iter=max_iter, init=init, callback=callback)


def best_of_two(
    field: Field,
    method: Method,
    *,
    tol: float,
    max_iter: int | None,
    init: ArrayLike | None,
    callback: Callable[[MapProgress], object] | None,
) -> MapResult:
    """The search of ``cut``, under the name of a method that comes down to it."""
    tol = as_number(tol, "tol", nonnegative=True)
    most = None if max_iter is None else as_count(max_iter, "max_iter")
    kernel, labels = start_moves(field, method, init)
    start = float(field.energy(labels))
    value, bound = start, -np.inf
    n_iter, done, interrupted = 0, False, False
    if field.n_labels == 1:
        bound, done = value, True
    else:
        kernel.offer_swap(0, 1)
        try:
            while not done and not interrupted and n_iter != most:
                done = kernel.round()
                n_iter += 1
                value = min(start, start + kernel.change())
                bound = min(value, start + kernel.bound())
                done = done or value - bound <= tol * max(1.0, abs(value))
                progress = MapProgress(n_iter, value, bound)
                interrupted = callback is not None and callback(progress) is True and not done
        except KeyboardInterrupt:
            interrupted = True
        kernel.commit()
        labels = np.empty(field.n_variables, np.int64)
        kernel.read(labels)
        value = float(field.energy(labels))
        bound = min(bound, value)
    return MapResult(
        labels=labels,
        value=value,
        bound=bound,
        method=method,
        reason=f"{method} was asked for",
        n_iter=n_iter,
        converged=done,
        interrupted=interrupted,
    )
