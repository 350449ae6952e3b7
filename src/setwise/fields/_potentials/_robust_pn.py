"""Robust P^n: a truncated price on variables outside a region's most common label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_numbers
from setwise.fields._base import range_in_repr
from setwise.fields._potentials._region_potential import RegionPotential
from setwise.fields._terms._region_counts import RobustTerm


class RobustPn(RegionPotential):
    r"""A price for the variables outside a region's most common label, constant above Q of them.

    .. math:: \varphi(x) = \sum_S w_S \min\Bigl(1, \min_j \frac{|S| - n_{Sj}}{Q_S}\Bigr),
              \qquad w \ge 0,\ Q > 0

    where :math:`n_{Sj}` variables of S take label j (Kohli, Ladický and Torr, *Robust Higher Order
    Potentials for Enforcing Label Consistency*). With :math:`Q \le 1` it is the P^n Potts model.

    A region's part is :math:`\sum_j h_S(n_{Sj})` with a concave :math:`h_S`, and thus submodular,
    if :math:`Q_S \le \lceil |S|/2 \rceil`, or if the most common of L labels always has so many
    variables that at most :math:`\lceil |S|/2 \rceil` are outside it, which holds for two labels.
    An energy costs O(N), compiled, for any number of labels.

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
        # The more labels there are, the fewer regions have a price that is a sum over labels. If it
        # is one for every number of labels, the price is submodular in any field.
        return True if self._term().is_submodular else None

    def _term(self) -> RobustTerm:
        return self._remember(
            "term", lambda: RobustTerm._of(self.regions, self.weight, self.truncation)
        )

    def terms(self, n_variables: int, n_labels: int) -> tuple[RobustTerm, ...]:
        return (self._term(),) if self.n_regions else ()

    def __repr__(self) -> str:
        return (
            f"RobustPn(regions={self.n_regions}, weight={range_in_repr(self.weight)}, "
            f"truncation={range_in_repr(self.truncation)})"
        )
