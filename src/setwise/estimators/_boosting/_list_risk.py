"""The risk of whole rankings: average precision and discounted gains per query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from setwise import _core
from setwise._foundation._arguments import FloatArray, as_numbers, as_sample_weights, without_unit
from setwise.estimators._boosting._rank_risk import by_group


class ListRisk(ABC):
    r"""The risk of lists: the weighted mean over the queries of the most violated rankings.

    .. math:: R(f) = \sum_q v_q \max_\pi\ \Delta_q(\pi)
        + \langle \psi_q(\pi) - \psi_q(\pi^*), f_q \rangle, \qquad \sum_q v_q = 1 .

    It is a convex upper bound of the mean loss, because the ranking by f has the largest <psi, f>
    of all rankings. Queries in which all rankings are equally good are ignored. Rows with equal
    levels and scores have equal slopes, so that the order of the rows does not matter.

    Parameters
    ----------
    levels : array of shape (m,)
        y, real numbers.
    sample_weight : array of shape (m,) or number, optional
        The weight of a query, the same for all its rows; rows of weight 0 are left out.
    groups : array of shape (m,), optional
        The query of each row; by default there is one query.
    """

    name: str

    def __init__(
        self,
        levels: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        y = as_numbers(levels, "y")
        m = len(y)
        weights = without_unit(as_sample_weights(sample_weight, m))
        order, starts = by_group(groups, m)
        kept = weights[order] > 0
        self._order = order[kept]
        starts = np.concatenate([[0], np.cumsum(kept)])[starts]
        self._starts = starts[np.concatenate([[True], np.diff(starts) > 0])]
        self._shape = (len(self._starts) - 1, m)
        self._query = np.repeat(np.arange(self._shape[0]), np.diff(self._starts))
        shares = weights[self._order][self._starts[:-1]] if len(self._order) else np.empty(0)
        if (weights[self._order] != shares[self._query]).any():
            raise ValueError(
                "sample_weight must be the same for all rows of a query, or 0, with "
                f"loss={self.name!r}, got different ones"
            )
        shares = np.where(self._prepare(y[self._order]), shares, 0.0)
        if not shares.any():
            raise ValueError(
                "y must hold two classes or levels whose sample_weight is not zero"
                f"{'' if groups is None else ' in one group'}, got fewer"
            )
        self._shares = shares / shares.sum()
        self.offsets = np.array([0, m])

    @abstractmethod
    def _prepare(self, levels: FloatArray) -> NDArray[np.bool_]:
        """Prepare the levels of each query; return which queries have rows of different levels."""

    @abstractmethod
    def _plane(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return losses of the worst rankings, (n_queries,), and psi - psi*, (rows,), by query."""

    @abstractmethod
    def _merits(self, scores: FloatArray) -> FloatArray:
        """Return 1 - the loss of each query, (n_queries,), the mean over orders of equal scores."""

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk and a subgradient, (m,)."""
        own = scores[self._order]
        losses, slopes = self._plane(own)
        slopes *= self._shares[self._query]
        whole = np.zeros(len(scores))
        whole[self._order] = slopes
        return float(self._shares @ losses) + float(slopes @ own), whole

    def each(self, scores: FloatArray) -> tuple[FloatArray, csr_array]:
        """Return the risk of each query and its subgradient, (n_queries, m): R is the mean."""
        own = scores[self._order]
        losses, slopes = self._plane(own)
        scale = self._shape[0] * self._shares
        slopes *= scale[self._query]
        values = scale * losses + np.add.reduceat(slopes * own, self._starts[:-1])
        return values, csr_array((slopes, self._order, self._starts), shape=self._shape)

    def merit(self, scores: FloatArray) -> float:
        """Return the mean over the queries of 1 - the loss."""
        return float(self._shares @ self._merits(scores[self._order]))

    def _sums(self, values: NDArray[Any]) -> FloatArray:
        """Sum values over the rows of each query, (n_queries,)."""
        return np.asarray(np.bincount(self._query, values, self._shape[0]), np.float64)

    def _blocks(self, keys: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of each query by decreasing key, and the starts of runs of equal keys."""
        order = np.lexsort((-keys, self._query))
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(keys[order]) != 0) | (np.diff(self._query[order]) != 0)
        return order, np.flatnonzero(first)


class AveragePrecisionRisk(ListRisk):
    r"""The risk of 1 - average precision, with the features of Yue et al.

    <psi, f> is the sum of +-(f_i - f_j) / (|P| |N|) over pairs of a relevant and another row.

    The worst ranking is found exactly, by ``cpp/boosting/average_precision.hpp``, O(m log m).
    """

    name = "average_precision"

    def _prepare(self, levels: FloatArray) -> NDArray[np.bool_]:
        if len(kinds := np.unique(levels)) > 2:
            raise ValueError(
                "y must hold two classes with loss='average_precision', relevant or not, got "
                f"{len(kinds)} levels"
            )
        relevant = levels > levels.min(initial=np.inf)
        self._relevant = relevant
        self._kernel = _core.AveragePrecisionRisk(relevant.astype(np.uint8), self._starts)
        share = self._sums(relevant) / np.diff(self._starts)
        ranked: NDArray[np.bool_] = (share > 0) & (share < 1)
        return ranked

    def _plane(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        losses, slopes = np.empty(self._shape[0]), np.empty(len(scores))
        self._kernel.plane(scores, losses, slopes)
        return losses, slopes

    def _merits(self, scores: FloatArray) -> FloatArray:
        """Return the precision at each distinct score, weighted by its share of relevant rows."""
        order, first = self._blocks(scores)
        found = np.add.reduceat(self._relevant[order].astype(np.float64), first)
        query = self._query[order][first]
        before = np.cumsum(found) - found
        hits = np.cumsum(found) - before[np.searchsorted(query, query)]
        ends = np.append(first[1:], len(order))
        precision = hits / (ends - self._starts[query])
        relevant = np.bincount(query, found, self._shape[0])
        sums = np.bincount(query, found * precision, self._shape[0])
        merits: FloatArray = sums / np.maximum(relevant, 1.0)
        return merits


class GainRisk(ListRisk):
    r"""The risk of 1 - NDCG, with gains y and discounts D(r) = 1 / log2(1 + r).

    The features are psi = sum_i D(pi_i) f_i. The loss

    .. math:: \Delta(\pi) = 1 - \frac1Z \sum_i y_i D(\pi_i)

    has the same discounts as psi, so that the worst ranking sorts :math:`f_i - y_i / Z`. This is
    exact and takes O(m log m); it is a special case of Le and Smola's assignment problem. psi* is
    the mean over the ideal rankings. With ``k`` the discounts are 0 beyond the first k places, in
    the loss and in psi. They are still decreasing, so the sort remains exact.
    """

    name = "ndcg"

    def __init__(
        self,
        levels: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        k: int | None = None,
    ) -> None:
        self._k = np.inf if k is None else k
        super().__init__(levels, sample_weight, groups)

    def _prepare(self, levels: FloatArray) -> NDArray[np.bool_]:
        if levels.min(initial=0.0) < 0:
            raise ValueError(
                f"y must hold gains that are not negative with loss='ndcg', got {levels.min():g}"
            )
        place = np.arange(len(levels)) - self._starts[self._query]
        self._discounts = np.where(place < self._k, 1.0 / np.log2(2.0 + place), 0.0)
        self._ideal = self._shared_discounts(levels)
        best = self._sums(self._ideal * levels)
        self._gains = levels / np.where(best > 0, best, 1.0)[self._query]
        spread = np.maximum.reduceat(levels, self._starts[:-1]) - np.minimum.reduceat(
            levels, self._starts[:-1]
        )
        ranked: NDArray[np.bool_] = spread > 0
        return ranked

    def _plane(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        discounts = self._shared_discounts(scores - self._gains)
        return self._sums((self._ideal - discounts) * self._gains), discounts - self._ideal

    def _merits(self, scores: FloatArray) -> FloatArray:
        return self._sums(self._shared_discounts(scores) * self._gains)

    def _shared_discounts(self, keys: FloatArray) -> FloatArray:
        """Return the discount of each row in the ranking by its key, the mean for equal keys."""
        order, first = self._blocks(keys)
        sizes = np.diff(np.append(first, len(order)))
        means = np.add.reduceat(self._discounts, first) / sizes
        shared = np.empty(len(order))
        shared[order] = np.repeat(means, sizes)
        return shared
