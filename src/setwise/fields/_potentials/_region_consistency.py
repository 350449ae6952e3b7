"""Region consistency: pixels of a region prefer one label, with diminishing costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import as_number
from setwise.fields._base import range_in_repr
from setwise.fields._potentials._region_potential import RegionPotential
from setwise.fields._terms._region_counts import CountTerm, list_counts


class RegionConsistency(RegionPotential):
    r"""A price per region that is a power of the number of its variables outside each label.

    .. math:: \varphi(x) = \sum_S w_S \Bigl[ \sum_j |\{i \in S : x_i \ne j\}|^\alpha
              - (L - 1) |S|^\alpha \Bigr], \qquad w \ge 0,\ 0 < \alpha \le 1

    It is zero for a region of one label, and highest if all labels are equally common: the
    superpixel potential of Zhang, Djolonga and Krause, *Higher-Order Inference for Multi-class
    Log-supermodular Models*, minus its constant. It is submodular for any number of labels and
    identically zero for :math:`\alpha = 1`. An energy costs O(N), compiled, for any number of
    labels.

    Parameters
    ----------
    regions : array-like of int, shape (N,) or that of an image
        The region of each variable, any nonnegative numbers; -1 for none. Overlapping regions need
        one potential per layer.
    weight : float or array-like of shape (R,)
        Not negative; one number for all, or one per region in the order of their numbers.
    alpha : float
        Above 0 and at most 1. The smaller it is, the less each differing pixel after the first one
        adds.

    Examples
    --------
    >>> import setwise as sw
    >>> layer = sw.fields.RegionConsistency([0, 0, 0, 0, -1], weight=2.0, alpha=0.5)
    >>> field = sw.fields.Field([[0.0, 0.0, 0.0]] * 5) + layer
    >>> field.energy([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0], [0, 1, 1, 2, 2]]).round(6).tolist()
    [0.0, 1.464102, 1.75663]
    >>> layer
    RegionConsistency(regions=1, weight=2, alpha=0.5)
    """

    alpha: float

    def __init__(self, regions: ArrayLike, weight: ArrayLike, alpha: float) -> None:
        power = as_number(alpha, "alpha", positive=True)
        if power > 1:
            raise ValueError(f"alpha must be at most 1, got {power:g}")
        self._set(alpha=power)
        self._set_regions(regions, weight)

    @property
    def is_submodular(self) -> bool:
        return True

    def _term(self) -> CountTerm:
        r"""Return h(n) = w s^a ((1 - n/s)^a - 1 + n/s), concave, zero at n = 0 and n = s.

        Its sum over the labels of a region of s variables is the potential, because their counts
        sum to s. So no constant remains, and no digits cancel.
        """

        def tabulate() -> CountTerm:
            starts, region, count = list_counts(self.sizes)
            size = self.sizes[region]
            # Each formula is accurate on one half of the range, where the other loses digits.
            few, rest = np.minimum(count / size, 0.5), (size - count) / size
            near = np.expm1(self.alpha * np.log1p(-few)) + few
            bend = np.where(2 * count <= size, near, rest**self.alpha - rest)
            if self.alpha == 1.0:  # otherwise rounding would leave a small table
                bend = np.zeros(len(count))
            table = self.weight[region] * size**self.alpha * bend
            return CountTerm._of(self.regions, starts, np.asarray(table))

        return self._remember("term", tabulate)

    def terms(self, n_variables: int, n_labels: int) -> tuple[CountTerm, ...]:
        return (self._term(),) if self.n_regions else ()

    def __repr__(self) -> str:
        return (
            f"RegionConsistency(regions={self.n_regions}, weight={range_in_repr(self.weight)}, "
            f"alpha={self.alpha:g})"
        )
