"""What a Lovász hinge says besides the sign: where its scores leave a label open."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray


def abstains(scores: FloatArray, offsets: IntArray) -> BoolArray:
    r"""Which elements of each set a score does not decide; set i is [offsets[i], offsets[i + 1]).

    The Lovász hinge of an increasing submodular f is consistent not for f but for

    .. math:: l_{abs}(v) = f(\{v y < 0\}) + f(\{v y \le 0\}), \qquad v \in \{-1, 0, 1\}^p,

    where 0 is to abstain (Finocchiaro, Frongillo and Nueve, arXiv 2203.08645). The link: clip
    :math:`|u|` at 1, sort, cut at the largest of the p + 1 gaps from 1 down to 0, keep the signs
    above the cut and abstain below. With prefixes v_j of the sorted signs and gaps g_j the hinge of
    the clipped scores is :math:`\sum_j g_j \, l_{abs}(v_j)`, so that the regret in l_abs is at most
    p + 1 times that of the hinge. Of equal gaps the first counts: abstain rather more. O(p log p).
    """
    open_ = np.zeros(len(scores), np.bool_)
    sizes = np.abs(np.clip(scores, -1.0, 1.0))
    for begin, end in pairwise(offsets.tolist()):
        order = np.argsort(-sizes[begin:end], kind="stable")
        levels = np.concatenate([[1.0], sizes[begin:end][order], [0.0]])
        cut = int(np.argmax(-np.diff(levels)))
        open_[begin + order[cut:]] = True
    return open_
