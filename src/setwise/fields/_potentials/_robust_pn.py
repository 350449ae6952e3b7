"""Robust P^n: a truncated price on variables outside a region's most common label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise import _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise.fields._base import Numbers, range_in_repr
from setwise.fields._potentials._region_potential import RegionPotential
from setwise.fields._terms._base import Term
from setwise.fields._terms._region_counts import RobustTerm, robust_numbers


class RobustPn(RegionPotential):
    r"""A price for the variables outside a region's most common label, constant above Q of them.

    .. math:: \varphi(x) = \sum_S w_S \min\Bigl(1, \min_j \frac{|S| - n_{Sj}}{Q_S}\Bigr),
              \qquad w \ge 0,\ Q > 0

    where :math:`n_{Sj}` variables of S take label j (Kohli, Ladický and Torr, *Robust Higher Order
    Potentials for Enforcing Label Consistency*). With :math:`Q \le 1` it is the P^n Potts model.

    A region's part is :math:`\sum_j h_S(n_{Sj})` with a concave :math:`h_S`, and thus submodular,
    if :math:`Q_S \le \lceil |S|/2 \rceil`, or if L labels cannot leave more than :math:`\lceil
    |S|/2 \rceil` variables outside the most common one, which is always so for two labels. An
    energy costs O(N), compiled, for any number of labels.

    Parameters
    ----------
    regions : array-like of int, shape (N,) or that of an image
        The region of each variable, any nonnegative numbers; -1 for none. Overlapping regions need
        one potential per layer.
    weight : float or array-like of shape (R,)
        Not negative; one number for all, or one per region in the order of their numbers.
    truncation : float or array-like of shape (R,)
        Q, a positive number of variables.
    relative : bool
        Whether ``truncation`` is relative to each region's size.

    Examples
    --------
    >>> import setwise as sw
    >>> layer = sw.fields.RobustPn([7, 7, 7, 7, 9, 9], weight=3.0, truncation=2.0)
    >>> field = sw.fields.Field([[0.0, 0.0, 0.0]] * 6) + layer
    >>> field.energy([[1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0], [0, 1, 1, 2, 2, 2]]).tolist()
    [0.0, 1.5, 3.0]
    >>> sw.fields.RobustPn([7, 7, 7, 7, 9, 9], weight=3.0, truncation=0.5, relative=True).truncation
    array([2., 1.])
    >>> layer
    RobustPn(regions=2, weight=3, truncation=2)
    """

    truncation: FloatArray

    def __init__(
        self,
        regions: ArrayLike,
        weight: ArrayLike,
        truncation: ArrayLike,
        *,
        relative: bool = False,
    ) -> None:
        if not isinstance(relative, bool | np.bool_):
            raise TypeError(f"relative must be True or False, got {type(relative).__name__}")
        self._set_regions(regions, weight)
        if not np.all(as_numbers(truncation, "truncation", shape=None, largest=np.inf)):
            raise ValueError("truncation must be positive, got 0")
        limits = self._one_each(truncation, "truncation")
        if relative:
            with np.errstate(over="ignore"):
                shares, limits = limits, limits * self.sizes
            if not np.isfinite(limits).all():
                bad = shares[np.isinf(limits)][0]
                raise ValueError(
                    f"truncation times a region's size must be finite, got a truncation of {bad}"
                )
        self._set(truncation=limits)

    @property
    def is_submodular(self) -> bool | None:
        # With more labels, fewer regions are sums over labels. With very many labels, only those
        # regions are that satisfy the condition for any number of labels.
        return True if self._separable(int(self.sizes.max(initial=1))).all() else None

    def _limited(self, limit: float, n_labels: int) -> RobustPn:
        # The least price of a region with two labels, per unit of weight.
        least = np.minimum(1.0 / self.truncation, 1.0)
        return RobustPn(self.regions, self._weight_within(limit, least), self.truncation)

    def energies(self, labels: IntArray, n_labels: int) -> FloatArray:
        energies = np.empty(len(labels))
        members, offsets = self._members()
        _core.robust_energies(
            labels, n_labels, members, offsets, self.weight, self.truncation, energies
        )
        return energies

    def _numbers(self, n_variables: int, n_labels: int) -> Numbers | None:
        numbers = robust_numbers(self.weight, self.truncation)
        return None if numbers is None else [(numbers, 1)]

    def _has_fractions(self, n_labels: int) -> bool:
        return True  # parts of a price are divided by the truncation

    def _separable(self, n_labels: int) -> BoolArray:
        """Return which regions are a sum over labels, (R,).

        The price must not depend on the counts of labels if none has more than half.
        """
        half = -(-self.sizes // 2)
        most_outside = self.sizes - -(-self.sizes // n_labels)
        limited = (self.truncation <= half) | (most_outside <= half)
        return np.asarray(limited | (self.weight == 0))

    def _table(self) -> FloatArray:
        """Return h(n) of each region, with h(0) = 0; the sum over labels is the price if separable.

        Let p(k) be the price of k variables outside the most common label, s the size and m =
        p(s/2). Up to half of the region h(n) = m n / s, above it h(n) = p(s - n) - m (s - n) / s. A
        label with more than half of the region adds the price and cancels the sum of the others;
        without such a label the sum of all is m.
        """
        _, region, count = self._counts()
        size, outside = self.sizes[region], self.sizes[region] - count
        weight, limit = self.weight[region], self.truncation[region]
        most = weight * np.minimum(1.0, -(-size // 2) / limit)
        price = weight * np.minimum(1.0, outside / limit)
        table = np.where(2 * count <= size, most * count / size, price - most * outside / size)
        return np.asarray(table)

    def terms(self, n_variables: int, n_labels: int) -> tuple[Term, ...]:
        if self.n_regions == 0:
            return ()
        easy = self._separable(n_labels)
        if easy.all():
            return (self._count_term(self._table()),)
        hard = self._part(~easy)
        robust = RobustTerm._of(hard.regions, hard.weight, hard.truncation)
        if not easy.any():
            return (robust,)
        part = self._part(easy)
        return part._count_term(part._table()), robust

    def _part(self, chosen: BoolArray) -> RobustPn:
        """Return the potential of the chosen regions."""
        kept = (self.regions >= 0) & chosen[self.regions]
        regions = np.where(kept, self.regions, -1)
        return RobustPn(regions, self.weight[chosen], self.truncation[chosen])

    def __repr__(self) -> str:
        return (
            f"RobustPn(regions={self.n_regions}, weight={range_in_repr(self.weight)}, "
            f"truncation={range_in_repr(self.truncation)})"
        )
