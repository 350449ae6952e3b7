"""The upper bound on log Z that keeps pairs: elimination with shared edges."""

from __future__ import annotations

from setwise.fields._field import Field
from setwise.inference._marginals._descent import lowered
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
