"""Block-coordinate Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import FloatArray, as_count, as_function
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._progress import Progress
from setwise._foundation._randomness import as_generator
from setwise.learning._cutting_planes._blocks import ExampleOracle, evaluate
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._cutting_planes._search import MOST_WEIGHTS, Search


def block_frank_wolfe(
    oracle: ExampleOracle,
    n: int,
    dimension: int,
    C: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    time_limit: float | None = None,
    passes: int = 5,
    rng: object = None,
    verbose: bool = False,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    r"""Minimise 1/2 |w|^2 + C sum_i risk_i(w) one example at a time, with its duality gap.

    For a random example i the oracle gives a plane :math:`(a, b)` at the present w; with
    :math:`w_s = -C a` and :math:`l_s = C b` the dual rises most by the step

    .. math:: w_i \mathrel{+}= \gamma (w_s - w_i), \qquad
        \gamma = \frac{l_s - l_i - \langle w, w_s - w_i \rangle}{|w_s - w_i|^2} \in [0, 1],

    so there is no step size to choose. After every ``passes`` sweeps one more sweep without steps
    gives the primal value, hence the gap. Memory: one vector of length d an example.

    Parameters
    ----------
    oracle : callable
        (i, w) -> (risk of example i, subgradient); no risk may be negative.
    n : int
        Number of examples.
    dimension : int
        Length of w.
    passes : int
        Sweeps over the examples between two evaluations of the gap: a round.
    rng : None, int or numpy Generator
        The order of the examples in each sweep.
    C, tol, max_iter, time_limit, verbose, callback
        As in ``one_slack``; ``max_iter`` counts rounds.

    Returns
    -------
    Fit

    References
    ----------
    S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher, Block-coordinate Frank-Wolfe
    optimization for structural SVMs, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import block_frank_wolfe
    >>> def hinge(i, w):
    ...     slack = 1 - 2 * w[0]
    ...     return max(slack, 0.0), np.array([-2.0 if slack > 0 else 0.0])
    >>> block_frank_wolfe(hinge, 1, 1, C=10.0, tol=1e-6).w.round(4).tolist()
    [0.5]
    """
    check_display(verbose, callback)
    if verbose:
        with progress_callback(True, tol, callback) as shown:
            return block_frank_wolfe(
                oracle,
                n,
                dimension,
                C,
                tol=tol,
                max_iter=max_iter,
                time_limit=Deadline.of(time_limit, armed=False).inherited,
                passes=passes,
                rng=rng,
                callback=shown,
            )
    as_function(oracle, "oracle", "i", "w")
    dimension = as_count(dimension, "dimension", most=MOST_WEIGHTS)
    n = as_count(n, "n", most=MOST_WEIGHTS // max(dimension, 1))
    search = Search(dimension, C, tol, max_iter, callback, time_limit=time_limit)
    sweeps = as_count(passes, "passes", least=1)
    random = as_generator(rng)
    parts, heights = np.zeros((n, dimension)), np.zeros(n)
    w = np.zeros(dimension)
    try:
        while True:
            evaluate(oracle, n, w, search)
            if search.end_round_of_blocks(heights, w):
                break
            for _ in range(sweeps):
                for i in random.permutation(n):
                    _step(oracle, int(i), w, parts, heights, search)
                w = parts.sum(axis=0)  # anew: rounding of many small steps does not build up
    except KeyboardInterrupt:
        search.interrupt()
    return search.fit("block_frank_wolfe")


def _step(
    oracle: ExampleOracle,
    i: int,
    w: FloatArray,
    parts: FloatArray,
    heights: FloatArray,
    search: Search,
) -> None:
    """The best step for block i; changes w, parts and heights in place."""
    height, slope = search.ask(oracle, w, i)
    C = search.C
    offset = height - float(slope @ w)
    direction = -C * slope - parts[i]
    rise = C * offset - heights[i]
    curvature = float(direction @ direction)
    if curvature <= 0:
        heights[i] += max(rise, 0.0)
        return
    gamma = min(1.0, max(0.0, (rise - float(w @ direction)) / curvature))
    parts[i] += gamma * direction
    heights[i] += gamma * rise
    w += gamma * direction
