"""log Z and marginals exactly, by the elimination of variables, where the graph is narrow."""

from __future__ import annotations

from math import inf

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.inference._map._junction_tree import planned
from setwise.inference._map._largest_energy import rounding_of_logs
from setwise.inference._marginals._options import Options, Solution


def elimination(field: Field, options: Options) -> Solution:
    r"""Sum over all labels of one variable after the other, then the way back.

    The table of a variable and its neighbours at the time has :math:`L^{w + 1}` cells, w the width
    of the order; the order is the one in which each variable adds the fewest edges. Exact but for
    rounding, with potentials of any kind: those of many variables at once must be small.
    """
    t = options.temperature
    tree, constant, owners = planned(field, t)
    options.watch.lap("set-up")
    log_z = tree.log_partition() - constant / t
    if log_z == -inf:
        raise ValueError("field must have a labelling of finite energy, got none")
    p: FloatArray = np.empty(field.unary.shape)
    tree.marginals(p, np.empty(len(owners)))
    return Solution.exact(p, log_z, rounding_of_logs(field, t), options)
