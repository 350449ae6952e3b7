"""Diversity by Hamming balls: the number of labellings near an item of the list."""

from __future__ import annotations

from itertools import accumulate, combinations, product
from math import comb

import numpy as np

from setwise._foundation._arguments import BATCH, FloatArray, IntArray, as_count
from setwise.diversities._addition import Addition
from setwise.diversities._base import (
    MOST_LABELS,
    Diversity,
    all_labelings,
    as_weight,
    can_list_all,
    distances,
)
from setwise.fields._potentials._cardinality import CardinalityPotential


def ball_intersections(n: int, n_labels: int, radius: int) -> list[int]:
    r"""Return the number of labellings in two Hamming balls, for each distance of their centers.

    A labelling z has distance at most k from both y and y' if it differs from both in e of the N -
    D variables where they agree and from both in c of the D others, from only y in b of them, and
    from only y' in a of them:

    .. math:: I(D) = \sum_{e} \binom{N - D}{e} (L - 1)^e \sum_{c} \binom{D}{c} (L - 2)^c
              \sum_{\substack{a + b = D - c \\ \max(a, b) + c + e \le k}} \binom{D - c}{a}

    Parameters
    ----------
    n, n_labels : int
        N and L.
    radius : int
        k.

    Returns
    -------
    list of int, of length N + 1
        I(0), the size of a ball, to I(N); zero beyond 2 k. Exact; O(k^3) products of integers.

    Examples
    --------
    >>> from setwise.diversities._balls import ball_intersections
    >>> ball_intersections(3, 2, 1)  # a center and its three neighbours
    [4, 2, 2, 0]
    """
    n = as_count(n, "n")
    n_labels = as_count(n_labels, "n_labels", least=1)
    k = min(as_count(radius, "radius"), n)
    if n_labels == 1:
        return [1] + [0] * n  # there is only one labelling
    prefix = [[0, *accumulate(comb(m, a) for a in range(m + 1))] for m in range(2 * k + 1)]
    counts = []
    for d in range(min(2 * k, n) + 1):
        total = 0
        for e in range(min(k, n - d) + 1):
            near = k - e  # the number of the d variables that may differ from each center
            inner = 0
            for c in range(min(d, near) + 1):
                low, high = max(0, d - near), min(d - c, near - c)
                if low <= high:
                    ways = prefix[d - c][high + 1] - prefix[d - c][low]
                    inner += comb(d, c) * (n_labels - 2) ** c * ways
            total += comb(n - d, e) * (n_labels - 1) ** e * inner
        counts.append(total)
    return counts + [0] * (n + 1 - len(counts))


class _Balls(Diversity):
    """Balls of one radius and one weight around the items."""

    weight: float
    radius: int
    n_labels: int | None

    def __init__(self, weight: float, radius: int, n_labels: int | None = None) -> None:
        if n_labels is not None:
            n_labels = as_count(n_labels, "n_labels", least=1, most=MOST_LABELS)
        self._set(weight=as_weight(weight), radius=as_count(radius, "radius"), n_labels=n_labels)

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def copies_take_most(self) -> bool:
        return True

    def _depends_on_labels(self, n_earlier: int) -> bool:
        # The first ball has its full gain, and a ball of radius 0 is its center.
        return n_earlier > 0 and self.radius > 0 and self.weight > 0

    def _known_labels(self) -> int | None:
        return self.n_labels

    def __repr__(self) -> str:
        labels = "" if self.n_labels is None else f", n_labels={self.n_labels}"
        return f"{type(self).__name__}(weight={self.weight:g}, radius={self.radius}{labels})"


class BallCoverageBound(_Balls):
    r"""The coverage of a ball around each item, less its overlap with each earlier ball.

    .. math:: d(y \mid S) = \lambda \Bigl(1 - \sum_{y' \in S}
              \frac{|B_k(y) \cap B_k(y')|}{|B_k|}\Bigr)

    Equation (10) of the paper, in units of one ball: a lower bound on the gain of
    :class:`BallCoverage`, tight while balls overlap in pairs at most. It may be negative, because
    shared parts are subtracted once for each ball, so it is submodular but not monotone. The step
    has one ``CardinalityPotential`` per earlier item. The cost is O(m N + k^3).

    Parameters
    ----------
    weight : float
        :math:`\lambda \ge 0`, the gain of a ball that is disjoint from all others.
    radius : int
        k, the largest number of variables in which a labelling of the ball differs from its center.
    n_labels : int, optional
        L, the number of labels of the fields. ``diverse`` takes it from the field. If it is set
        here, ``gain`` and ``value`` need no ``n_labels``.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.BallCoverageBound(weight=1.0, radius=1, n_labels=2)
    >>> d.gain([0, 0, 0], []), d.gain([1, 0, 0], [[0, 0, 0]])
    (1.0, 0.5)
    >>> d.is_monotone, d.is_submodular
    (False, True)
    """

    @property
    def is_monotone(self) -> bool:
        return self.weight == 0

    def gain_of(self, labels: IntArray, labelings: IntArray, n_labels: int) -> float:
        shared = self._shares(len(labels), n_labels)[distances(labels, labelings)]
        return self.weight * (1.0 - float(shared.sum()))

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        n = labelings.shape[1]
        if self.weight == 0 or n == 0:
            return Addition()
        table = self.weight * self._shares(n, n_labels)
        return Addition(counts=[CardinalityPotential(y, table) for y in labelings])

    def _shares(self, n: int, n_labels: int) -> FloatArray:
        """Return |B(y) and B(y')| / |B|, for each distance."""

        def divide() -> FloatArray:
            counts = ball_intersections(n, n_labels, self.radius)
            return np.array([count / counts[0] for count in counts])

        return self._remember((n, n_labels), divide)


class BallCoverage(_Balls):
    r"""The number of labellings within a distance of some item of the list.

    .. math:: d(S) = \lambda \, \Bigl| \bigcup_{y \in S} B_k(y) \Bigr| \, / \, |B_k|

    This is equation (9) of the paper in units of one ball. It is monotone and submodular, so that
    the guarantee of the paper holds for it. Labellings are counted one by one, so the field or a
    ball must have at most about 1e6 of them: images have balls of radius 1 or 2. If the field has
    few labellings, ``diverse`` tries all in every step. On larger fields it takes the better of the
    labellings that maximise the lower bound of equation (10), :class:`BallCoverageBound`, clamped
    at 0, and an upper bound, in which only the mean overlap with the earlier balls is subtracted;
    the upper bound gives the gap.

    Parameters
    ----------
    weight : float
        :math:`\lambda \ge 0`, the gain of a ball that is disjoint from all others.
    radius : int
        k, the largest number of variables in which a labelling of the ball differs from its center.
    n_labels : int, optional
        L, the number of labels of the fields. ``diverse`` takes it from the field. If it is set
        here, ``gain`` and ``value`` need no ``n_labels``.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.BallCoverage(weight=1.0, radius=1, n_labels=2)
    >>> d.gain([1, 0, 0], [[0, 0, 0]]), d.value([[0, 0, 0], [1, 1, 1]])
    (0.5, 2.0)
    >>> d.is_monotone, d.is_submodular
    (True, True)
    """

    @property
    def is_monotone(self) -> bool:
        return True

    def _lacks_potential(self) -> bool:
        return True

    def gain_of(self, labels: IntArray, labelings: IntArray, n_labels: int) -> float:
        n, k = len(labels), min(self.radius, len(labels))
        if can_list_all(n, n_labels):
            return float(self._gains_of_all(labelings, n_labels)[_code_of(labels, n_labels)])
        size = sum(comb(n, r) * (n_labels - 1) ** r for r in range(k + 1))
        if size > BATCH:
            raise ValueError(
                f"BallCoverage counts at most {BATCH} labellings, got {n_labels}^{n}, and {size} "
                f"in a ball: take BallCoverageBound, a smaller radius or a smaller n_labels"
            )
        new = sum(self._count_new(labels, labelings, n_labels, r) for r in range(k + 1))
        return self.weight * float(new / size)

    def _count_new(self, labels: IntArray, labelings: IntArray, n_labels: int, r: int) -> int:
        """Return how many labellings that differ from ``labels`` in r variables are in no ball."""
        n = len(labels)
        places = np.array(list(combinations(range(n), r)), np.int64).reshape(comb(n, r), r)
        kinds = list(product(range(1, n_labels), repeat=r))
        steps = np.array(kinds, np.int64).reshape(len(kinds), r)
        others = (labels[places][:, None].astype(np.int64) + steps) % n_labels  # (C, (L - 1)^r, r)
        new = np.ones(others.shape[:2], np.bool_)
        for earlier in labelings:
            apart = np.count_nonzero(earlier != labels)
            lost = (earlier != labels)[places].sum(axis=1)
            gained = (others != earlier[places][:, None]).sum(axis=2)
            new &= apart - lost[:, None] + gained > self.radius
        return int(np.count_nonzero(new))

    def _gains_of_all(self, labelings: IntArray, n_labels: int) -> FloatArray:
        """Return all gains by a sum over balls, one variable at a time: O(k N L^N)."""
        n = labelings.shape[1]
        every, shape = all_labelings(n, n_labels), (n_labels,) * n
        new = np.ones(len(every), np.bool_)
        for earlier in labelings:
            new &= np.count_nonzero(every != earlier, axis=1) > self.radius
        # within[e] counts the new labellings that differ in e of the variables seen so far.
        within = [new.astype(np.int64).reshape(shape)]
        within += [np.zeros(shape, np.int64) for _ in range(min(self.radius, n))]
        for variable in range(n):
            for e in range(len(within) - 1, 0, -1):
                near = within[e - 1]
                within[e] = within[e] + near.sum(axis=variable, keepdims=True) - near
        size = sum(comb(n, r) * (n_labels - 1) ** r for r in range(len(within)))
        return np.asarray(self.weight * (np.sum(within, axis=0).ravel() / size))

    def _around(self, labelings: IntArray, n_labels: int) -> tuple[Diversity, Diversity, float]:
        lower = BallCoverageBound(self.weight, self.radius, self.n_labels)
        m = max(len(labelings), 1)
        # The overlap with a union of balls is at least the mean of the overlaps with each.
        return lower, (1.0 / m) * lower, (1.0 - 1.0 / m) * self.weight

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        raise ValueError(
            "BallCoverage has no potential, as balls overlap in more than pairs: take "
            "BallCoverageBound"
        )


def _code_of(labels: IntArray, n_labels: int) -> int:
    """Return the row of a labelling in ``all_labelings``."""
    code = 0
    for label in labels.tolist():
        code = code * n_labels + label
    return code
