"""Expansion moves: every variable may keep its label or take one that is offered to all."""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from setwise.fields._field import Field
from setwise.inference._cut import best_of_two
from setwise.inference._move_search import search_moves
from setwise.inference._result import MapProgress, MapResult


def expansion(
    field: Field,
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    init: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: object = None,
    callback: Callable[[MapProgress], object] | None = None,
) -> MapResult:
    r"""A labelling that no expansion improves (Boykov, Veksler, Zabih, PAMI 2001).

    An expansion to label a lets any set of variables take a, the others keep their labels; the
    best of these :math:`2^N` labellings is a minimum cut, exactly, also with functions of counts
    and with label costs. For Potts terms the answer's energy is at most twice the least (Theorem
    6.1). Tables need :math:`\theta(a, a) + \theta(b, c) \le \theta(b, a) + \theta(a, c)`. With at
    most two labels the answer is the best one, by ``cut``.

    A move costs a maximum flow over the variables that may gain from it; where edges alone join
    variables, over those parts of the field that changed since the label's last turn.

    Parameters
    ----------
    field : Field
        Of any number of labels.
    tol : float
        Ends the search when the relative gap is at most this.
    max_iter : int, optional
        The most sweeps over the labels.
    init : array of shape (N,), optional
        The labelling to start from; the labels of least unary energy when None.
    n_jobs
        Unused: one thread.
    random_state
        The labels take turns in this generator's order, new for each sweep; 0 to L-1 when None.
    callback : callable, optional
        Called with a ``MapProgress`` after each sweep; True ends the search.

    Returns
    -------
    MapResult
        With more than two labels ``bound`` is the sum of the least values of all terms.

    Examples
    --------
    >>> import setwise as sw
    >>> from setwise.inference._expansion import expansion
    >>> expansion(sw.fields.Field([[3.0, 1.0, 2.0], [0.0, 4.0, 4.0]])).labels.tolist()
    [1, 0]
    """
    if field.n_labels <= 2:
        return best_of_two(
            field, "expansion", tol=tol, max_iter=max_iter, init=init, callback=callback
        )
    return search_moves(
        field,
        "expansion",
        [(a,) for a in range(field.n_labels)],
        lambda kernel, move: kernel.expand(*move),
        tol=tol,
        max_iter=max_iter,
        init=init,
        random_state=random_state,
        callback=callback,
    )
