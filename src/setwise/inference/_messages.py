"""The best labelling by passing messages, with a bound from the dual."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._core import MessageSearch
from setwise.fields._field import Field
from setwise.functions._arguments import IntArray, as_count, as_integers, as_number
from setwise.functions._randomness import as_generator
from setwise.inference._ascent import Ascent
from setwise.inference._factors import Factors, factors_of
from setwise.inference._message_search import message_search
from setwise.inference._result import MapProgress, MapResult

_DAMPING = 0.5
_HEAD_START = 10  # passes before forests are relabelled: most fields are solved by then
_WALK = 20  # passes in a walk
_MOST_MOVED = 100_000  # entries of the unaries that a pass relabels, in 1 to 4 forests
_PATIENCE = 50  # passes without news before the search ends


def messages(
    field: Field,
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    init: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: object = None,
    callback: Callable[[MapProgress], object] | None = None,
) -> MapResult:
    r"""A labelling of low energy and a bound, for pairs of any kind and functions of counts.

    Two kinds of messages run side by side. Those of the dual reparametrise the energy,

    .. math::
        E(x) = \sum_i \Bigl(u_i + \sum_{f \ni i} \lambda_{fi}\Bigr)(x_i)
               + \sum_f \Bigl(\varphi_f(x_f) - \sum_{i \in f} \lambda_{fi}(x_i)\Bigr),

    so that the minima of all parts add up to a bound, which rises with every pass (block
    coordinate ascent by min-marginals). Those of max-product, damped, bound nothing and find
    labellings. Both are decoded in every pass (a variable takes its best label given those before
    it), the best is improved one variable at a time, and the best of all is returned.

    Exact, with ``bound == value``, for a forest of pairs and for unaries with one function of a
    count. Where the bound slows below the value, triangles and squares of the pairs join the
    factors, then steps along a supergradient mix with the passes, and forests of the best
    labelling are relabelled, with noise that fades: most grids of pairs, of any sign, are then
    solved exactly too. For functions of counts among pairs the bound is at most that of the linear
    relaxation, tightened by cycles, and a gap may stay.

    Parameters
    ----------
    field : Field
        Potts, pairwise tables of any sign, cardinality potentials with any table, region
        consistency, label costs, robust regions.
    tol : float
        Stop when the relative gap is at most this.
    max_iter : int or None
        Passes over the field at most; None is 1000.
    init : array of shape (N,) or None
        A labelling to start the descent from: the answer is no worse.
    n_jobs : int or None
        Taken as every method does; the passes are sequential.
    random_state : None, int or generator
        For the forests that are relabelled.
    callback : callable or None
        Called with a ``MapProgress`` after every pass; True ends the search.

    Notes
    -----
    A pass costs O(E L) for Potts, O(E L^2) for tables, O(n log n) for a function of a count over n
    variables, and O(L^3) for each triangle or square once they are in. Pairs are swept as in
    sequential tree-reweighted message passing (Kolmogorov, 2006): forward and backward, each
    variable giving 1 / max(pairs ahead, pairs behind) of what it holds to every pair ahead. A
    function of a count takes all that its variables hold and gives back nearly the largest multiple
    of its min-marginals that leaves its own minimum where it was, twice; so do cycles, with what
    their pairs hold.

    Examples
    --------
    >>> import setwise as sw
    >>> from setwise.inference._messages import messages
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0], [0.0, 0.5]])
    >>> field = field + sw.fields.Potts([[0, 1], [1, 2]], 0.75)
    >>> best = messages(field)
    >>> best.labels.tolist(), best.value, best.bound
    ([0, 1, 1], 1.25, 1.25)
    """
    tol = as_number(tol, "tol", nonnegative=True)
    most = 1000 if max_iter is None else as_count(max_iter, "max_iter", least=1)
    if n_jobs is not None:
        as_count(n_jobs, "n_jobs", least=-1)
    random = as_generator(random_state)
    factors = factors_of(field)
    search, order = message_search(factors, _DAMPING)
    ascent = Ascent(search, factors, order)
    # A labelling to return whatever happens: an interruption may come in the first pass.
    best = np.argmin(field.unary, axis=1) if init is None else _as_labels(init, field)
    value, bound = _energy(field, best), -np.inf
    values: list[float] = []
    bounds: list[float] = []
    n_iter, converged, interrupted = 0, False, False
    try:
        search.offer(np.ascontiguousarray(best[order]))
        while n_iter < most and not (converged or interrupted):
            raised = ascent.advance(value)
            search.max_product_pass()
            if len(values) >= _HEAD_START and values[-1] == values[-3]:
                _walk(search, n_iter - _HEAD_START, factors, random)
            labels = _best(search, order)
            energy = _energy(field, labels)
            if energy < value:
                best, value = labels, energy
            bound = min(raised, value)
            n_iter += 1
            values.append(value)
            bounds.append(bound)
            converged = value - bound <= tol * max(1.0, abs(value)) or _has_stopped(values, bounds)
            if callback is not None and callback(MapProgress(n_iter, value, bound)) is True:
                interrupted = not converged
    except KeyboardInterrupt:
        interrupted = True
    return MapResult(
        labels=best,
        value=value,
        bound=bound,
        method="messages",
        reason="messages take pairs of any kind and functions of counts",
        n_iter=n_iter,
        converged=converged,
        interrupted=interrupted,
    )


def _has_stopped(values: list[float], bounds: list[float]) -> bool:
    """Whether 20 passes found no better labelling and closed less than a thousandth of the gap."""
    if len(bounds) <= _PATIENCE or values[-1] < values[-1 - _PATIENCE]:
        return False
    return bounds[-1] - bounds[-1 - _PATIENCE] <= 1e-3 * (values[-1] - bounds[-1])


def _walk(search: MessageSearch, k: int, factors: Factors, random: np.random.Generator) -> None:
    """Relabel random forests, with noise on the unaries that falls to nothing in 20 passes.

    At first the noise is as large as the pairs' energies vary.
    """
    n, size = len(factors.unary), factors.unary.size
    moves = min(4, max(1, _MOST_MOVED // max(size, 1)))
    for move in range(k % _WALK * moves, (k % _WALK + 1) * moves):
        noise = factors.pairs.spread * (1.0 - (move + 1) / (_WALK * moves))
        search.move_tree(move == 0, random.permutation(n), noise * random.standard_normal(size))


def _best(search: MessageSearch, order: IntArray) -> IntArray:
    """The search's best labelling, with the field's numbering of the variables."""
    found, labels = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    search.best(found)
    labels[order] = found
    return labels


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels[None])[0])


def _as_labels(init: ArrayLike, field: Field) -> IntArray:
    """A labelling of the field that no unary forbids."""
    array = np.asarray(init)
    if array.shape != (field.n_variables,):
        raise ValueError(f"init must have shape ({field.n_variables},), got {array.shape}")
    labels = as_integers(array, "init", below=field.n_labels)
    forbidden = np.flatnonzero(np.isinf(field.unary[np.arange(len(labels)), labels]))
    if len(forbidden):
        i = forbidden[0]
        raise ValueError(f"init must not use forbidden labels, got {labels[i]} for variable {i}")
    return labels
