"""Diversity by Hamming distance: without limit, or within a ball."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray, as_number
from setwise.diversities._addition import Addition
from setwise.diversities._base import Diversity, as_weight, distances
from setwise.fields._potentials._cardinality import CardinalityPotential


class DivMBest(Diversity):
    r"""A reward for every variable that differs from every earlier item.

    .. math:: d(y \mid S) = \lambda \sum_{y' \in S} \mathrm{Ham}(y, y')

    (Batra, Yadollahpour, Guzman-Rivera and Shakhnarovich, *Diverse M-Best Solutions in Markov
    Random Fields*, 2012.) The step changes only the unaries, so it is as easy as MAP inference
    itself; with two labels and a submodular energy it is one cut, exact. It is monotone, but gains
    grow with the list, so it is not submodular and the list has no guarantee. The cost is O(m N).

    Parameters
    ----------
    weight : float
        :math:`\lambda \ge 0`.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.DivMBest(0.5)
    >>> d.gain([0, 1, 1], [[0, 0, 0], [1, 1, 1]])
    1.5
    >>> d.is_monotone, d.is_submodular
    (True, False)
    """

    weight: float

    def __init__(self, weight: float) -> None:
        self._set(weight=as_weight(weight))

    @property
    def is_monotone(self) -> bool:
        return True

    @property
    def is_submodular(self) -> bool:
        return self.weight == 0

    @property
    def copies_take_most(self) -> bool:
        return True

    def _depends_on_labels(self, n_earlier: int) -> bool:
        return False

    def gain_of(self, labels: IntArray, labelings: IntArray, n_labels: int) -> float:
        return self.weight * float(distances(labels, labelings).sum())

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        # Ham(y, y') is N less the number of variables that agree.
        return Addition(prices=[(y, self.weight) for y in labelings if self.weight])

    def _node_costs(self, m: int) -> FloatArray | None:
        # Among m items, m^2 - sum_l n_l^2 ordered pairs differ at a variable.
        counts = np.arange(m + 1.0)
        return np.asarray(0.5 * self.weight * counts * (counts - m))

    def __repr__(self) -> str:
        return f"DivMBest(weight={self.weight:g})"


class HammingBall(Diversity):
    r"""A penalty for being close to an earlier item, which fades with the distance.

    .. math:: d(y \mid S) = -\lambda \sum_{y' \in S} e^{-\gamma \, \mathrm{Ham}(y, y')}

    It is a ball with a soft border around each item: far from the items, a larger distance has no
    further gain (Section 3.2 of the paper). It is submodular, since each earlier item reduces a
    gain, but not monotone. In the energy it is a convex function of a count, one
    ``CardinalityPotential`` per earlier item, which a cut cannot minimise; ``diverse`` searches
    over multipliers, which gives a bound too. The cost is O(m N).

    Parameters
    ----------
    weight : float
        :math:`\lambda \ge 0`, the penalty of an exact copy.
    gamma : float
        :math:`\gamma \ge 0`: at 1 / gamma differing variables the penalty has fallen to 1 / e.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.HammingBall(weight=2.0, gamma=0.5)
    >>> d.gain([0, 0], [[0, 0]]), round(d.gain([1, 1], [[0, 0]]), 6)
    (-2.0, -0.735759)
    >>> d.is_monotone, d.is_submodular
    (False, True)
    """

    weight: float
    gamma: float

    def __init__(self, weight: float, gamma: float) -> None:
        self._set(weight=as_weight(weight), gamma=as_number(gamma, "gamma", nonnegative=True))

    @property
    def is_monotone(self) -> bool:
        return self.weight == 0

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def copies_take_most(self) -> bool:
        return True

    def _depends_on_labels(self, n_earlier: int) -> bool:
        return False

    def gain_of(self, labels: IntArray, labelings: IntArray, n_labels: int) -> float:
        return -self.weight * float(np.exp(-self.gamma * distances(labels, labelings)).sum())

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        if self.weight == 0.0:
            return Addition()
        ball = self._ball(labelings.shape[1])
        return Addition(counts=[ball._around(y) for y in labelings])

    def _ball(self, n: int) -> CardinalityPotential:
        """Return the penalty for each distance 0..n."""

        def make() -> CardinalityPotential:
            table = self.weight * np.exp(-self.gamma * np.arange(n + 1.0))
            return CardinalityPotential(np.zeros(n, np.int64), table)

        return self._remember(n, make)

    def __repr__(self) -> str:
        return f"HammingBall(weight={self.weight:g}, gamma={self.gamma:g})"
