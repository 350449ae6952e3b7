"""The upper bound on log Z that keeps pairs: elimination with shared edges."""

from __future__ import annotations

from setwise.fields._field import Field
from setwise.inference._map._largest_energy import rounding_of_logs
from setwise.inference._marginals._count_descent import CountDescent
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._marginals._tree_descent import TreeDescent


def trees(field: Field, options: Options) -> Solution:
    r"""Lower the tree-reweighted bound, and the Lovász extension of all that is not a pair in it.

    .. math:: \log Z \le \max_\mu \sum_i H(\mu_i) - \sum_e \rho_e I(\mu_e) - E(\mu)

    over marginals of variables and pairs that agree (Wainwright, Jaakkola and Willsky, *A New Class
    of Upper Bounds on the Log Partition Function*, 2005). The variables are in an order, leaves
    first, and the edges from one to later ones share out 1, :math:`\rho_e`: all of it on a forest,
    where the bound is log Z. They begin evenly, and edges whose ends say more about each other get
    more in three rounds. Where E L is at most 20,000 the shares are those of a mean of up to 40
    spanning forests, each the one whose edges say most at the time. Pairs may have any tables;
    other terms must be submodular. A pass is O(E L) for Potts terms, O(E L^2) for tables, and that
    of ``projection`` for the other terms; memory: 2 E numbers of ``dtype`` and 8 N a label, and the
    blocks of the other terms. In single precision messages to later variables are rounded up, and
    all sums are in double precision, so that the bound holds; the gap then ends near 1e-6.
    """
    t = options.temperature
    descent = TreeDescent(field, t, options.n_threads, options.dtype)
    if options.state is not None and not descent.fits(options.state):
        raise ValueError(
            f"init must be a result with {descent.size} messages and block entries, "
            "got one of a field with other edges, regions or label costs"
        )
    options.watch.lap("set-up")
    if options.state is not None:
        descent.resume(options.state)
    elif options.start is not None:
        descent.resume_near(options.start)
    return lowered(descent, field, options)


def lowered(descent: TreeDescent | CountDescent, field: Field, options: Options) -> Solution:
    """What a descent ends with, its bound in the unit of log Z and allowing for rounding."""
    descent.begin()
    t = options.temperature
    constant = descent.constant / t - rounding_of_logs(field, t)

    def report(now: TreeDescent | CountDescent) -> bool:
        return options.report(now.n_iter, now.value - constant, now.relative_gap, now.gap)

    try:
        converged, interrupted = descent.run(options.tol, options.max_iter, report)
    except KeyboardInterrupt:
        descent.measure()
        converged, interrupted = descent.relative_gap <= options.tol, True
    history = [value - constant for value in descent.history]
    return Solution(
        probabilities=descent.probabilities(),
        upper=history[-1],
        gap=descent.gap,
        relative_gap=descent.relative_gap,
        n_iter=descent.n_iter,
        converged=converged,
        interrupted=interrupted,
        history=history,
        state=descent.state(),
        strengths=descent.informations,
    )
