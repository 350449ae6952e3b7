"""Linear-fractional losses of the counts: Jaccard, Dice, F-beta."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_numbers
from setwise.functions import Counts, Ratio, SetFunction
from setwise.functions._families._counts import ratio_gains
from setwise.functions._families._ratio import as_beta
from setwise.losses._base import Loss, LossTraits
from setwise.losses._counts import OfCounts
from setwise.losses._families import RatioRows
from setwise.losses._labels import Labels
from setwise.losses._modular import flat_weights
from setwise.losses._parts import Which
from setwise.losses._weighted import RatioOfModular, weighted_gains, weighted_values, without_unit


class OfRatio(OfCounts):
    """The common base of Jaccard, F-beta and their parts, whose compiled formula needs no grid.

    With ``weights`` of the elements, the same formula uses sums of weights instead of counts. The
    kernels for counts are not valid then, and gains of the set function are used.
    """

    weights: FloatArray | None = None

    @abstractmethod
    def _ratio(self, m: int) -> Ratio: ...

    def _formula(self, m: int, r: int) -> Ratio:
        return self._ratio(m)

    @property
    def _shares(self) -> FloatArray:
        """The weights divided by their unit, which does not affect ratios."""
        weights = self.weights
        assert weights is not None
        return self._remember("shares", lambda: without_unit(weights))

    def function_of(self, positive: BoolArray) -> Counts | RatioOfModular:  # type: ignore[override]
        if self.weights is None:
            return super().function_of(positive)
        if len(self.weights) != len(positive):
            raise ValueError(
                f"y must have {len(self.weights)} elements a set, one for each weight of the "
                f"loss, got {len(positive)}"
            )
        return RatioOfModular(self._ratio(1), positive, self._shares)

    def _family(self, labels: Labels) -> RatioRows | None:
        return self._form

    def _up_to_order(self, labels: Labels) -> Iterator[tuple[SetFunction, IntArray]]:
        if self.weights is not None:
            yield from self._distinct(labels)
            return
        splits, which = self._splits(labels)
        for k, (m, r) in enumerate(splits):
            yield self._sorted(m, r), np.flatnonzero(which == k)

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        if self.weights is not None:
            flat_weights(self.weights, labels)
            sets = labels.n, len(self.weights)
            truth = labels.positive.view(np.bool_).reshape(sets)
            return weighted_values(self._ratio(1), self._shares, truth, mistakes.reshape(sets))
        n = labels.counts(mistakes & labels.positive.view(np.bool_)).astype(np.float64)
        q = labels.counts(mistakes) - n
        m = labels.positives
        a, _, d = self._ratio(1)._constants
        with np.errstate(divide="ignore", invalid="ignore"):
            values = (a * n + q) / (a * m + d * (m - n) + q)
        return np.where(m == 0, np.minimum(1.0, q), values)

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        if self.weights is not None:
            return self._gains_of_weights(labels, order, chains)
        gains = np.empty(len(order))
        for i in range(labels.n):
            chain = slice(chains[i], chains[i + 1])
            positive = labels.row(i)
            hit = positive[order[chain]]
            n: IntArray = np.cumsum(hit) - hit
            q = np.arange(len(hit)) - n
            gains[chain] = ratio_gains(self._ratio(int(np.count_nonzero(positive))), hit, n, q)
        return gains

    def _gains_of_weights(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        """Return the gains of all sets at once: one row per chain, padded with steps of 0."""
        flat_weights(self.weights, labels)
        shares = self._shares
        rows = np.repeat(np.arange(labels.n), np.diff(chains))
        places = np.arange(len(order)) - chains[rows]
        truth = labels.positive.view(np.bool_)
        steps, hits = np.zeros((2, labels.n, len(shares)))
        steps[rows, places] = shares[order]
        hits[rows, places] = truth[labels.offsets[rows] + order]
        total = truth.reshape(labels.n, len(shares)) @ shares
        gains = weighted_gains(self._ratio(1), total[:, None], steps, hits > 0)
        along: FloatArray = gains[rows, places]
        return along

    @property
    def _traits(self) -> LossTraits:  # type: ignore[override]
        return self._remember("traits", self._find_traits)

    def _find_traits(self) -> LossTraits:
        closed = self.weights is None and self._ratio(1).parts() is not None
        return LossTraits(
            is_symmetric=self.weights is None,
            takes_multiplicity=True,
            has_closed_parts=closed,
            has_nonnegative_part=closed,
        )

    def _grid_of_counts(self, m: int, r: int) -> FloatArray | None:  # type: ignore[override]
        return super()._grid_of_counts(m, r) if self.weights is None else None

    @property
    def _form(self) -> RatioRows | None:
        if self.weights is not None:
            return None
        return self._remember("form", lambda: RatioRows(self._ratio(0)))

    @property
    def _fraction(self) -> Ratio | None:
        form = self._form
        return form.ratio if form is not None and form.ratio.part == "whole" else None

    def _has_maximizer(self, *, slack: bool) -> bool:
        return self.weights is None

    def _part(self, which: Which) -> Loss:
        if self.weights is not None:
            return Loss._part(self, which)
        return RatioPart(self, which) if self._traits.has_closed_parts else super()._part(which)

    def _with_multiplicity(self, weights: FloatArray) -> OfRatio:
        """Return the loss with element weights: 2 repeats an element, 0 removes it."""
        if self.weights is not None:
            if len(weights) != len(self.weights):
                raise ValueError(
                    f"y must have {len(self.weights)} elements a set, one for each weight of the "
                    f"loss, got {len(weights)}"
                )
            weights = self.weights * weights
        weighted = object.__new__(type(self))
        weighted._set(**self._contents() | {"weights": weights})
        return weighted

    def _named(self, *parameters: str) -> str:
        """Return the repr of a loss with these parameters and its weights."""
        weights = () if self.weights is None else (f"weights={_listed(self.weights)}",)
        return f"{type(self).__name__}({', '.join((*parameters, *weights))})"


class Jaccard(OfRatio):
    r"""One minus intersection over union: (n + q) / (m + q), equations (42) and (43).

    There are n false negatives, q false positives and m positives. The loss is submodular
    (Proposition 11) and increasing. If y has no positive, any prediction of a positive has loss 1.

    With weights of the elements, n, q and m are sums of weights. Proposition 11 holds for them too:
    the gain of another false negative is w_i / (m + q), that of another false positive w_i (m - n)
    / ((m + q) (m + q + w_i)), and neither grows as mistakes are added. Therefore the Lovász hinge
    is convex and equal to the loss at the unit cube's corners (Propositions 6 and 7).

    Parameters
    ----------
    weights : array of shape (p,), optional
        Not negative; by default 1 for every element, in sets of any size. Multiplying all of them
        by a constant changes nothing.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.losses.Jaccard()([1, 1, 0, 0], [1, 0, 1, 0])
    0.6666666666666666
    >>> sw.losses.Jaccard([2.0, 1.0, 1.0, 1.0])([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    """

    def __init__(self, weights: ArrayLike | None = None) -> None:
        self._set(weights=_as_weights(weights))

    def _ratio(self, m: int) -> Ratio:
        return Ratio(m)

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        return self._named()


class FBeta(OfRatio):
    r"""One minus the F-beta score: (b n + q) / ((1 + b) m - n + q), b = beta squared.

    It is increasing, but neither submodular nor supermodular if there are at least two positives
    and a negative; use ``DecomposedHinge``. For beta >= 1 its decomposition has a closed form and a
    non-negative submodular part. If y has no positive, any prediction of a positive has loss 1.

    Parameters
    ----------
    beta : float
        Between 1e-3 and 1e15; recall counts beta times as much as precision.
    weights : array of shape (p,), optional
        Not negative; by default 1 for every element, in sets of any size. Multiplying all of them
        by a constant changes nothing. With weights, B_D needs a linear program and is limited to 12
        elements, and margin and slack rescaling are exact up to 16.

    Examples
    --------
    >>> import setwise as sw
    >>> round(sw.losses.FBeta(2.0)([1, 1, 0, 0], [1, 0, 1, 0]), 3)
    0.5
    """

    beta: float

    def __init__(self, beta: float = 1.0, weights: ArrayLike | None = None) -> None:
        self._set(beta=as_beta(beta), weights=_as_weights(weights))

    def _ratio(self, m: int) -> Ratio:
        return Ratio(m, self.beta)

    @property
    def is_submodular(self) -> bool | None:
        """False if two elements count: the second false negative costs more than the first."""
        few = self.weights is not None and np.count_nonzero(self._shares) < 2
        return None if few else False

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        return self._named(f"beta={self.beta:g}")


class Dice(FBeta):
    r"""One minus the Sørensen-Dice coefficient: (n + q) / (2 m - n + q) (B_D paper, (29)).

    It is the F-1 loss: increasing, and neither submodular nor supermodular (Proposition 6).

    Parameters
    ----------
    weights : array of shape (p,), optional
        As in ``FBeta``: n, q and m are then sums of weights.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.losses.Dice()([1, 1, 0, 0], [1, 0, 1, 0])
    0.5
    >>> sw.losses.Dice([2.0, 1.0, 1.0, 1.0])([1, 1, 0, 0], [1, 0, 1, 0])
    0.3333333333333333
    """

    def __init__(self, weights: ArrayLike | None = None) -> None:
        super().__init__(1.0, weights)

    def __repr__(self) -> str:
        return self._named()


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


def _as_weights(weights: ArrayLike | None) -> FloatArray | None:
    return None if weights is None else as_numbers(weights, "weights", nonnegative=True)


def _listed(weights: FloatArray) -> str:
    """Return all weights, or their number."""
    return str(weights.tolist()) if len(weights) <= 8 else f"<{len(weights)} numbers>"
