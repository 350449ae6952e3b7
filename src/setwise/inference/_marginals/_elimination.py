"""log Z and marginals exactly, by the elimination of variables, where the graph is narrow."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.inference._map._largest_energy import rounding_of_logs
from setwise.inference._marginals._factors import most_variables, tables_of, widest
from setwise.inference._marginals._options import Options, Solution

CELLS = 1 << 23  # of the table of a clique: 64 MB
ALL_CELLS = 1 << 26  # of all messages: 512 MB


def elimination(field: Field, options: Options) -> Solution:
    r"""Sum over all labels of one variable after the other, then the way back.

    The table of a variable and its neighbours at the time has :math:`L^{w + 1}` cells, w the width
    of the order; the order is the one in which each variable adds the fewest edges. Exact but for
    rounding, with potentials of any kind: those of many variables at once must be small.
    """
    t = options.temperature
    _, tree, constant = planned(field, t)
    options.watch.lap("set-up")
    log_z = tree.log_partition() - constant / t
    p: FloatArray = np.empty(field.unary.shape)
    tree.marginals(p)
    slack = rounding_of_logs(field, t)
    upper = log_z + slack
    return Solution(
        probabilities=p,
        upper=upper,
        gap=0.0,
        relative_gap=0.0,
        n_iter=1,
        converged=True,
        interrupted=options.report(1, upper, 0.0, 0.0),
        history=[upper],
        lower=log_z - slack,
    )


def planned(field: Field, temperature: float) -> tuple[str | None, Any, float]:
    """Why the field is too wide, or a tree with a plan, and the energy's constant."""
    n, n_labels = field.unary.shape
    constant, unary, terms = field._folded()
    most = most_variables(CELLS, n_labels)
    wide, whose = widest(terms, n)
    if wide > most:
        return f"tables of at most {most} variables, got {wide} in {whose!r}", None, constant
    tree = _core.JunctionTree(np.ascontiguousarray(-unary / temperature))
    for _, term in terms:
        for scope, energies in tables_of(term, n, n_labels):
            if len(scope) == 0:
                constant += float(energies[0])
                continue
            tree.add_factor(np.ascontiguousarray(scope), -energies / temperature)
    largest, total = tree.plan(most)
    if largest == inf or total > ALL_CELLS:
        return f"a graph of width below {most}, got a wider one", None, constant
    return None, tree, constant


def narrow(field: Field) -> str | None:
    """What elimination asks of a field."""
    return planned(field, 1.0)[0]
