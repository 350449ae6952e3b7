"""Diversity per variable: a reward for labels that a variable did not have in earlier items."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_number
from setwise.diversities._addition import Addition
from setwise.diversities._base import Diversity, as_weight
from setwise.diversities._concave import ConcaveCount
from setwise.diversities._groups import Concave
from setwise.fields._potentials._robust_pn import RobustPn


class VariableCoverage(Diversity):
    r"""A reward for labels that a variable had in few earlier items, with optional regions.

    .. math:: d(S) = \lambda \sum_v \sum_l \bigl( h(n_{vl}) - h(0) \bigr)
              - \kappa \sum_{y \in S} \sum_R |R| \, [\, y \text{ is not constant on } R \,], \qquad
              n_{vl} = |\{y \in S : y_v = l\}|

    With h = min(1, n) the first sum counts the different labels that each variable has had. Like
    ``DivMBest`` it changes only the unaries, but gains decrease as the list grows, which gives a
    guarantee. The second sum is a price for every region that an item splits. With superpixels, or
    the connected parts of a segmentation, as regions, whole objects change their label. The price
    is a ``RobustPn`` potential, which a cut minimises exactly for two labels. It is submodular, and
    monotone without regions. The cost is O(m N).

    Parameters
    ----------
    h : {"min1", "sqrt", "log1p"} or callable
        Increasing and concave, of an array of counts; a callable is checked on the counts used.
    weight : float
        :math:`\lambda \ge 0`, for each variable.
    regions : array-like of int, shape (N,), optional
        The region of each variable; -1 for none.
    consistency : float
        :math:`\kappa \ge 0`, for each variable of a region that is split.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.VariableCoverage("min1", weight=0.5)
    >>> d.gain([0, 1, 1], [[0, 0, 0], [1, 1, 0]])
    0.5
    >>> parts = sw.diversities.VariableCoverage(weight=0.5, regions=[0, 0, 1], consistency=1.0)
    >>> parts.gain([0, 1, 1], [[0, 0, 0]]), parts.gain([1, 1, 0], [[0, 0, 0]])
    (-1.0, 1.0)
    >>> parts.is_monotone, parts.is_submodular
    (False, True)
    """

    h: ConcaveCount
    weight: float
    consistency: float
    regions: RobustPn | None

    def __init__(
        self,
        h: Concave = "min1",
        weight: float = 1.0,
        *,
        regions: ArrayLike | None = None,
        consistency: float = 0.0,
    ) -> None:
        price = as_number(consistency, "consistency", nonnegative=True)
        if regions is None and price > 0.0:
            raise ValueError(f"regions must be given for a consistency of {price:g}, got None")
        layer = None
        if regions is not None:
            sizes = RobustPn(regions, 1.0, 1.0).sizes
            layer = RobustPn(regions, np.asarray(sizes, np.float64), 1.0)
        self._set(h=ConcaveCount(h), weight=as_weight(weight), regions=layer, consistency=price)

    @property
    def is_monotone(self) -> bool:
        return self.regions is None or self.consistency == 0.0

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def copies_take_most(self) -> bool:
        return True

    def _depends_on_labels(self, n_earlier: int) -> bool:
        return False

    def scaled(self, scale: float) -> VariableCoverage:
        scaled = VariableCoverage.__new__(VariableCoverage)
        scaled._set(
            h=self.h,
            weight=as_weight(scale * self.weight),
            regions=self.regions,
            consistency=as_number(scale * self.consistency, "consistency", nonnegative=True),
        )
        return scaled

    def _check_size(self, n: int) -> None:
        if self.regions is not None and len(self.regions.regions) != n:
            raise ValueError(
                f"regions must have an entry for each of the {n} variables, got "
                f"{len(self.regions.regions)}"
            )

    def gain_of(self, labels: IntArray, labelings: IntArray, n_labels: int) -> float:
        self._check_size(len(labels))
        counts = np.count_nonzero(labelings == labels, axis=0)
        gain = self.weight * float(self.h.steps(len(labelings))[counts].sum())
        if self.regions is None or self.consistency == 0.0:
            return gain
        split = self.regions.energies(np.asarray(labels, np.int64)[None], max(n_labels, 1))
        return gain - self.consistency * float(split[0])

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        self._check_size(labelings.shape[1])
        prices: list[tuple[IntArray, FloatArray]] = []
        if self.weight > 0.0 and len(labelings):
            steps = self.weight * self.h.steps(len(labelings))
            everyone = np.ones(labelings.shape[1], np.int64)
            for label in range(n_labels):
                counts = np.count_nonzero(labelings == label, axis=0)
                prices.append((label * everyone, steps[0] - steps[counts]))
        potentials = []
        if self.regions is not None and self.consistency > 0.0:
            layer = self.regions
            weight = self.consistency * layer.weight
            potentials.append(RobustPn(layer.regions, weight, layer.truncation))
        return Addition(prices=prices, potentials=potentials)

    def _node_costs(self, m: int) -> FloatArray | None:
        if self.consistency > 0.0:
            return None
        steps = self.h.steps(m)[:m]
        return np.asarray(-self.weight * np.concatenate([[0.0], np.cumsum(steps)]))

    def __repr__(self) -> str:
        options = f"h={self.h!r}, weight={self.weight:g}"
        if self.regions is not None:
            options += f", regions={self.regions.n_regions}, consistency={self.consistency:g}"
        return f"VariableCoverage({options})"
