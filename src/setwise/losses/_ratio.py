"""Linear-fractional losses of the counts: Jaccard, Dice, F-beta."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.functions import Ratio, SetFunction
from setwise.functions._families._counts import ratio_gains
from setwise.functions._families._ratio import as_beta
from setwise.losses._base import Loss
from setwise.losses._counts import OfCounts
from setwise.losses._families import RatioRows
from setwise.losses._labels import Labels
from setwise.losses._parts import Which
from setwise.losses._weighted import WeightedRatio


class OfRatio(OfCounts):
    """Jaccard, F-beta and their parts: the formula is compiled and needs no grid."""

    @abstractmethod
    def _ratio(self, m: int) -> Ratio: ...

    def _formula(self, m: int, r: int) -> Ratio:
        return self._ratio(m)

    def _family(self, labels: Labels) -> RatioRows:
        return self._form

    def _up_to_order(self, labels: Labels) -> Iterator[tuple[SetFunction, IntArray]]:
        splits, which = self._splits(labels)
        for k, (m, r) in enumerate(splits):
            yield self._sorted(m, r), np.flatnonzero(which == k)

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        n = labels.counts(mistakes & labels.positive.view(np.bool_)).astype(np.float64)
        q = labels.counts(mistakes) - n
        m = labels.positives
        a, _, d = self._ratio(1)._constants
        with np.errstate(divide="ignore", invalid="ignore"):
            values = (a * n + q) / (a * m + d * (m - n) + q)
        return np.where(m == 0, np.minimum(1.0, q), values)

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        gains = np.empty(len(order))
        for i in range(labels.n):
            chain = slice(chains[i], chains[i + 1])
            positive = labels.row(i)
            hit = positive[order[chain]]
            n: IntArray = np.cumsum(hit) - hit
            q = np.arange(len(hit)) - n
            gains[chain] = ratio_gains(self._ratio(int(np.count_nonzero(positive))), hit, n, q)
        return gains

    @property
    def _form(self) -> RatioRows:
        return self._remember("form", lambda: RatioRows(self._ratio(0)))

    @property
    def _fraction(self) -> Ratio | None:
        ratio = self._form.ratio
        return ratio if ratio.part == "whole" else None

    def _has_maximizer(self, *, slack: bool) -> bool:
        return True

    @property
    def _has_closed_parts(self) -> bool:  # type: ignore[override]
        return self._ratio(1).parts() is not None

    @property
    def _has_nonnegative_part(self) -> bool:  # type: ignore[override]
        return self._has_closed_parts

    def _part(self, which: Which) -> Loss:
        return RatioPart(self, which) if self._has_closed_parts else super()._part(which)

    _takes_multiplicity = True

    def _with_multiplicity(self, weights: FloatArray) -> WeightedRatio:
        return WeightedRatio(self, weights)


class Jaccard(OfRatio):
    r"""One minus intersection over union: (n + q) / (m + q), equations (42) and (43).

    n false negatives, q false positives, m positives. Submodular (Proposition 11) and increasing.
    With no positive in y the loss of anything predicted is 1.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.losses.Jaccard()([1, 1, 0, 0], [1, 0, 1, 0])
    0.6666666666666666
    """

    def _ratio(self, m: int) -> Ratio:
        return Ratio(m)

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool:
        return True


class FBeta(OfRatio):
    r"""One minus the F-beta score: (b n + q) / ((1 + b) m - n + q), b = beta squared.

    Increasing, but neither submodular nor supermodular as soon as there are two positives and a
    negative: ``DecomposedHinge`` is made for it. For beta >= 1 its decomposition is closed and has
    a non-negative submodular part. With no positive in y the loss of anything predicted is 1.

    Parameters
    ----------
    beta : float
        Between 1e-3 and 1e15; recall counts beta times as much as precision.

    Examples
    --------
    >>> import setwise as sw
    >>> round(sw.losses.FBeta(2.0)([1, 1, 0, 0], [1, 0, 1, 0]), 3)
    0.5
    """

    beta: float

    def __init__(self, beta: float = 1.0) -> None:
        self._set(beta=as_beta(beta))

    def _ratio(self, m: int) -> Ratio:
        return Ratio(m, self.beta)

    @property
    def is_submodular(self) -> bool:
        return False

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"FBeta(beta={self.beta:g})"


class Dice(FBeta):
    r"""One minus the Sørensen-Dice coefficient: (n + q) / (2 m - n + q) (B_D paper, (29)).

    The F-1 loss: increasing, neither submodular nor supermodular (Proposition 6).

    Examples
    --------
    >>> import setwise as sw
    >>> sw.losses.Dice()([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """

    def __init__(self) -> None:
        super().__init__(1.0)

    def __repr__(self) -> str:
        return "Dice()"


class RatioPart(OfRatio):
    """The submodular or the supermodular part of an F-beta loss with beta >= 1, or of Jaccard."""

    whole: OfRatio
    which: Which

    def __init__(self, whole: OfRatio, which: Which) -> None:
        self._set(whole=whole, which=which)

    def _ratio(self, m: int) -> Ratio:
        parts = self.whole._ratio(m).parts()
        assert parts is not None
        return parts[self.which == "g"]

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        return OfCounts._values(self, labels, mistakes)

    @property
    def is_submodular(self) -> bool | None:
        return True if self.which == "f" else None

    @property
    def is_increasing(self) -> bool | None:
        return True if self.which == "g" else None

    def __repr__(self) -> str:
        name = "submodular" if self.which == "f" else "supermodular"
        return f"the {name} part of {self.whole!r}"
