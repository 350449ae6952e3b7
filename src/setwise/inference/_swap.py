"""Swap moves: all variables of two labels may exchange them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from numpy.typing import ArrayLike

from setwise.fields._field import Field
from setwise.fields._terms import TransitionTerm
from setwise.inference._cut import best_of_two
from setwise.inference._move_search import search_moves
from setwise.inference._result import MapProgress, MapResult


def swap(
    field: Field,
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    init: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: object = None,
    callback: Callable[[MapProgress], object] | None = None,
) -> MapResult:
    r"""A labelling that no swap improves (Boykov, Veksler, Zabih, PAMI 2001).

    A swap of a and b labels the variables of these two labels anew, with a or b each; the best
    such labelling is a minimum cut, exactly. Tables need :math:`\theta(a, a) + \theta(b, b) \le
    \theta(a, b) + \theta(b, a)`, which is less than an expansion needs. A label that nobody uses
    takes part. With at most two labels one swap is the whole problem, and the answer is the best.

    Costs of label transitions are concave in the number n of edges that join two labels: a line
    through the present n stands for each, the swap that is best for the lines is made if the
    energy falls, and again. Such a swap need not be the best one.

    Parameters
    ----------
    field : Field
        Of any number of labels.
    tol : float
        Ends the search when the relative gap is at most this.
    max_iter : int, optional
        The most sweeps over the pairs of labels.
    init : array of shape (N,), optional
        The labelling to start from; the labels of least unary energy when None.
    n_jobs
        Unused: one thread.
    random_state
        The pairs take turns in this generator's order, new for each sweep; in lexicographic order
        when None.
    callback : callable, optional
        Called with a ``MapProgress`` after each sweep; True ends the search.

    Returns
    -------
    MapResult
        With more than two labels ``bound`` is the sum of the least values of all terms.

    Examples
    --------
    >>> import setwise as sw
    >>> from setwise.inference._swap import swap
    >>> swap(sw.fields.Field([[3.0, 1.0, 2.0], [0.0, 4.0, 4.0]])).labels.tolist()
    [1, 0]
    """
    moves_decide = any(isinstance(term, TransitionTerm) for _, term in field._terms())
    if field.n_labels <= 2 and not moves_decide:
        return best_of_two(field, "swap", tol=tol, max_iter=max_iter, init=init, callback=callback)
    return search_moves(
        field,
        "swap",
        list(combinations(range(field.n_labels), 2)),
        lambda kernel, move: kernel.swap(*move),
        tol=tol,
        max_iter=max_iter,
        init=init,
        random_state=random_state,
        callback=callback,
    )
