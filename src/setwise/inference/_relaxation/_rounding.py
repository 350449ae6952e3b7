r"""By how much rounding may have put the blocks of a relaxation outside their base polytopes.

:math:`\log Z \le \sum_i \log \sum_j \exp(-s_{ij} / t)` needs :math:`s(A) \le F(A)` for every set A.
A projection is rounded at the size of what it projects, :math:`z = s_g + t\,\mathrm{logit}\,p`, and
the mean of n numbers, which a pool or a segment of a block subtracts, n times as much at worst. A
forbidden label stands 750 t above the others, so that its digits are what counts.
"""

from __future__ import annotations

from math import log

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS
from setwise.inference._relaxation._block_groups import Group

_ROUNDINGS = 8.0  # of an entry on its way through a step


def rounding_of_blocks(
    groups: list[Group], scores: FloatArray, blocks: FloatArray, temperature: float
) -> float:
    r"""More than what any labelling is charged above its energy, for blocks that were projected.

    With s (N, L) the ``scores``, without a constant for each row, and
    :math:`|z_{ij}| \le |s_{g,ij}| + \max_k s_{ik} - \min_k s_{ik} + t \log L`, the sum over the
    groups g, whose longest blocks are of :math:`n_g` variables, of

    .. math:: 2 \varepsilon (8 + n_g) \sum_i \max_j |z_{ij}|;

    the 2 is for momentum, which starts a pass beyond s.
    """
    n, n_labels = scores.shape
    if n == 0 or n_labels == 1:
        return 0.0
    spread = float((scores.max(axis=1) - scores.min(axis=1)).sum())
    spread += n * temperature * log(n_labels)
    total, begin = 0.0, 0
    for group in groups:
        end = begin + len(group.variables) * max(len(group.slots), 1)
        entries = float(np.abs(blocks[begin:end]).sum(dtype=np.float64))
        total += (_ROUNDINGS + int(np.diff(group.starts).max())) * (entries + spread)
        begin = end
    return 2.0 * EPS * total
