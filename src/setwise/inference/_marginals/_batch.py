"""Marginals of many fields, over threads."""

from __future__ import annotations

from collections.abc import Iterable

from setwise._foundation._arguments import as_list
from setwise._foundation._search import completed
from setwise._foundation._threads import Pool, as_threads
from setwise.fields._field import Field
from setwise.inference._marginals._marginals import DType, marginals
from setwise.inference._marginals._result import MarginalsResult


def marginals_batch(
    fields: Iterable[Field],
    method: str = "auto",
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    temperature: float = 1.0,
    n_jobs: int | None = None,
    dtype: DType = "float64",
) -> list[MarginalsResult]:
    """Compute ``marginals`` of each field, with one thread per field.

    Parameters
    ----------
    fields : iterable of Field
        Fields of any sizes, for instance one per image.
    method, tol, max_iter, temperature, dtype
        As in :func:`setwise.marginals`, for every field.
    n_jobs : int, optional
        The number of threads; None for all cores. The answers do not depend on it, and equal those
        of :func:`setwise.marginals` to the last bit.

    Returns
    -------
    list of MarginalsResult
        The results in the order of the fields. Memory is that of one field per thread, and of the
        results.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, which ends all threads after their current pass. There is no result.

    Examples
    --------
    >>> import setwise as sw
    >>> fields = [sw.fields.Field([[0.0, u]]) for u in (0.0, 5.0)]
    >>> [post.probabilities.round(2).tolist() for post in sw.inference.marginals_batch(fields)]
    [[[0.5, 0.5]], [[0.99, 0.01]]]
    """
    if isinstance(fields, Field):
        raise TypeError("fields must be an iterable of Fields, got a Field")
    given = as_list(fields, "fields", "Fields")
    for field in given:
        if not isinstance(field, Field):
            raise TypeError(f"fields must hold Fields, got {type(field).__name__}")

    def one(field: Field) -> MarginalsResult:
        post = marginals(
            field,
            method,
            tol=tol,
            max_iter=max_iter,
            temperature=temperature,
            n_jobs=1,
            dtype=dtype,
        )
        return completed(post)

    threads = min(as_threads(n_jobs), len(given))
    if threads <= 1:
        return [one(field) for field in given]
    with Pool(threads) as pool:
        return pool.map(one, given)
