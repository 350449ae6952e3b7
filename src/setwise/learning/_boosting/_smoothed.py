"""Descent on the soft risk over the weak learners in use."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray
from setwise.learning._boosting._problem import EVERY, Column, SofteningRisk, SoftRisk
from setwise.learning._boosting._timed import Timed

# The error of the first temperature, as a share of the risk without learners, and the factor by
# which the temperature decreases. On 300 and 400 rows four times the first takes up to a fifth more
# rounds, and a factor of 0.3 a tenth; a quarter of the first and 0.9 change rounds by 1.
_WARM, _COOLING = 0.17, 0.7
# The error of softening, C tau times the mean entropy, and that of the cutting planes of a round
# are at most this share of the gap. That of the planes may be this share of the tolerance. A
# quarter of it takes a third to three quarters more evaluations of the risk.
SHARE_OF_GAP = 0.2
# A descent ends when the largest edge in use exceeds 1 by at most this share of the excess of the
# edge that the last search found. A quarter of it takes up to a quarter more evaluations, and 0.95
# up to two thirds more.
_SLACK = 0.5
# Evaluations of all edges per descent; each selects the learners to move. One takes up to a fifth
# more evaluations of the risk; twelve save up to a quarter of them, for up to four times the looks.
_LOOKS = 3
# The learners that move have at least this share of the largest excess. A quarter of it and 0.8
# change the rounds and evaluations of 91 fits by up to 3 %.
_WORTH = 0.3
# _LOOKS doubles at most this often before the linear program takes over. On 91 fits, 3 saves a
# twentieth of the rounds, and 1 takes almost three times as long where it matters.
_SHARPER = 7


class SoftPoint(NamedTuple):
    """The weights of the learners (n, s), their objective, and the plane of the probabilities."""

    w: FloatArray
    value: float
    weights: FloatArray
    height: float


class Smoothed:
    r"""The problem min sum(abs(w)) + C R_tau(f) over the columns in use.

    If ``grouped``, the Euclidean norms of the learners' weights replace sum(abs(w)).

    The maxima of the risk become :math:`\tau \log \sum \exp(\cdot / \tau)`. The multipliers of the
    outputs are then probabilities, which change little when a weak learner is added, and they give
    a plane below the hard risk. This is the dual with an entropy term (ERLPBoost), which stabilises
    the column generation. The temperature decreases with the gap, so that its error stays a share
    of the gap. Computing the edges of the learners in use costs one product with their responses,
    O(n S). Then the learners that are furthest from their optimum take one Newton step each, O(S).

    If the maxima of the risk itself are soft, its temperature is not changed. The plane of the
    probabilities is then higher by the entropy, and touches the risk at the scores that have these
    probabilities.

    References
    ----------
    M. Warmuth, K. Glocer, S. Vishwanathan, Entropy regularized LPBoost, 2008.
    """

    def __init__(
        self,
        risk: SofteningRisk,
        soft: SoftRisk,
        C: float,
        zero: float,
        timed: Timed,
        *,
        grouped: bool = False,
    ) -> None:
        self._risk, self._soft, self._timed, self.C = risk, soft, timed, C
        self._grouped = grouped
        self._smooth = risk.temperature is not None
        self._tau = risk.temperature or _WARM * zero / np.log(soft.classes)
        self._zero = C * zero
        offsets = risk.offsets
        self._shape = len(offsets) - 1, int(offsets[1])
        self._outputs: FloatArray = np.empty((soft.classes, self._shape[1]))
        self._responses = np.empty((8, self._shape[1]), np.float32)
        self._w = np.zeros((8, self._shape[0]))
        self._segment = np.empty(8, np.int32)
        self._radius = np.empty(8)
        self._per_score = np.empty(8)  # the weight that changes a score by at most 1
        self._sums = np.empty((8, soft.classes))
        self._keys: set[tuple[int, bytes]] = set()
        self._n = 0
        self._new: list[int] = []
        self._looks, self._share = _LOOKS, SHARE_OF_GAP
        self._edge = np.inf
        soft.start(np.zeros(self._shape))

    def add(self, column: Column) -> bool:
        """Add a weak learner. Return False if single precision cannot represent its responses."""
        response = column.response.astype(np.float32)
        if not np.array_equal(response, column.response):
            return False
        if self._n == len(self._responses):
            for name in ("_responses", "_w", "_segment", "_radius", "_per_score", "_sums"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        self._responses[self._n] = response
        self._w[self._n] = 0.0
        self._segment[self._n] = column.segment
        self._per_score[self._n] = 1.0 / (float(np.abs(response).max()) or 1.0)
        self._radius[self._n] = 4.0 * self._tau * self._per_score[self._n]
        self._soft.sums(self._responses[self._n], self._sums[self._n])
        self._keys.add(_key(column))
        self._new.append(self._n)
        self._n += 1
        return True

    def resembles(self, column: Column) -> bool:
        """Return whether a learner in use is a multiple of the column, positive unless shared."""
        return _key(column) in self._keys

    def sharpen(self) -> bool:
        """Increase the accuracy. Return False if it was increased often enough."""
        self._looks *= 2
        self._share *= 0.7
        return self._looks <= _LOOKS << _SHARPER

    def minimize(self, value: float, bound: float) -> SoftPoint:
        """Descend until edges in use are small compared with the edge of the last search."""
        n, C = self._n, self.C
        responses, w = self._responses[:n], self._w[:n]
        segment, radius, sums = self._segment[:n], self._radius[:n], self._sums[:n]
        per_score = self._per_score[:n]
        best: tuple[float, FloatArray] = (np.inf, w)
        order = np.array(3 * self._new, np.int32)
        self._new = []
        look = 0
        while True:
            self._timed.deadline.check()
            if len(order):
                np.maximum(radius, 0.5 * self._tau * per_score, out=radius)
                self._soft.descend(
                    responses, sums, segment, order, C, self._tau, self._grouped, w, radius
                )
            soft, hard, height, entropy = self._soft.probabilities(self._tau, self._outputs)
            if self._smooth:
                hard, height = soft, height + self._tau * entropy
            now = size_of(w, grouped=self._grouped) + C * hard
            if now < best[0]:
                best = now, w.copy()
            nothing, value = min(value, now) >= self._zero, min(value, now)
            slope = self._risk.soft_slope(self._outputs)
            edges = responses @ (slope.reshape(self._shape).astype(np.float32).T * np.float32(-C))
            if self._grouped:
                excess, most = _group_excess(edges, w)
                # The difference of the penalty and the weighted edges is part of the gap.
                spent = now - C * hard - float((edges * w).sum()) <= SHARE_OF_GAP * (value - bound)
            else:
                excess, most = _excess(edges, w, segment)
                spent = True
            look += 1
            near = most - 1.0 <= _SLACK * (self._edge - 1.0) and spent
            if near or look > self._looks or n == 0:
                return SoftPoint(best[1], best[0], -C * slope, C * height)
            warm = nothing or C * self._tau * entropy > self._share * (value - bound)
            if warm and not self._smooth:
                self._tau *= _COOLING
            worst = np.argsort(-excess, kind="stable")
            order = worst[excess[worst] > _WORTH * excess.max()].astype(np.int32)

    def met(self, edge: float) -> None:
        """Store the largest edge that the last search found."""
        self._edge = max(edge, 1.0)


def size_of(w: FloatArray, *, grouped: bool) -> float:
    """Return the penalty of the weights of the learners, (n, s)."""
    return float(np.linalg.norm(w, axis=1).sum() if grouped else np.abs(w).sum())


def _group_excess(edges: NDArray[np.float32], w: FloatArray) -> tuple[FloatArray, float]:
    """Return ``_excess`` for grouped weights, for which optimal edges are w / |w|."""
    sizes, norms = np.linalg.norm(edges, axis=1), np.linalg.norm(w, axis=1)
    unit = w / np.where(norms > 0, norms, 1.0)[:, None]
    far = np.where(norms > 0, np.linalg.norm(edges - unit, axis=1), np.maximum(sizes - 1.0, 0.0))
    return far, float(sizes.max(initial=0.0))


def _key(column: Column) -> tuple[int, bytes]:
    """Return a key that is equal for responses that differ by a factor."""
    response = column.response
    first = response[np.flatnonzero(response)[:1]].sum() or 1.0
    unit = response / (first if column.segment == EVERY else abs(first))
    if np.array_equal(np.abs(unit), np.ones_like(unit)):  # responses of -1 and 1, the usual case
        return column.segment, blake2b(np.packbits(unit > 0).tobytes(), digest_size=16).digest()
    return column.segment, blake2b(unit.tobytes(), digest_size=16).digest()


def _excess(
    edges: NDArray[np.float32], w: FloatArray, segment: NDArray[np.int32]
) -> tuple[FloatArray, float]:
    """Return the distance of each learner's edges from optimality, (n,), and the largest edge.

    At the optimum an edge is the sign of its weight, or at most 1 if the weight is zero.
    """
    shared = not len(segment) or segment[0] == EVERY
    if not shared:
        own = segment[:, None]
        edges, w = np.take_along_axis(edges, own, 1), np.take_along_axis(w, own, 1)
    sizes = np.abs(edges) if shared else edges
    far = np.where(w != 0, np.abs(edges - np.sign(w)), np.maximum(sizes - 1.0, 0.0))
    return far.max(axis=1, initial=0.0), float(sizes.max(initial=0.0))
