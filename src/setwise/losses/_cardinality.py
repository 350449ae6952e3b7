"""Losses of the number of mistakes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    as_count,
    as_function,
    as_number,
    call_on_arrays,
)
from setwise.functions import Cardinality
from setwise.losses._base import Loss, LossTraits
from setwise.losses._families import TableRows, Tables
from setwise.losses._labels import Labels
from setwise.losses._parts import PartOf, Which


class OfCardinality(Loss):
    """A loss l(I) = table_p[|I|] with one cached table per size p."""

    @abstractmethod
    def _table(self, p: int) -> FloatArray: ...

    def _cardinality(self, p: int) -> Cardinality:
        return self._remember(p, lambda: Cardinality(self._table(p)))

    def function_of(self, positive: BoolArray) -> Cardinality:
        return self._cardinality(len(positive))

    def _key(self, positive: BoolArray) -> object:
        return len(positive)

    def _family(self, labels: Labels) -> TableRows:
        if labels.layout != "ragged":
            p = int(labels.offsets[1]) if labels.n else 0
            return TableRows.of([self._cardinality(p)], np.zeros(labels.n, np.int64))
        sizes, which = np.unique(labels.sizes, return_inverse=True)
        return TableRows.of([self._cardinality(int(p)) for p in sizes], which)

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        family = self._table_rows(labels)
        assert family is not None
        values: FloatArray = family.tables[family.starts + labels.counts(mistakes)]
        return values

    _traits = LossTraits(is_symmetric=True, has_closed_parts=True)

    @property
    def _form(self) -> Tables:
        return Tables(self, of_size=True)

    def _has_maximizer(self, *, slack: bool) -> bool:
        return True

    def _part(self, which: Which) -> Loss:
        return CardinalityPart(self, which)


class CardinalityPart(PartOf, OfCardinality):
    """A part of a loss of the number of mistakes, which is such a loss too."""

    def _table(self, p: int) -> FloatArray:
        part = self._decomposed(np.zeros(p, np.bool_))
        return part.values if isinstance(part, Cardinality) else np.zeros(p + 1)


class CardinalityLoss(OfCardinality):
    """The loss l(I) = formula(|I|, p) - formula(0, p) for |I| mistakes out of p.

    Parameters
    ----------
    formula : callable
        Called as formula(k, p) with an array k = 0, ..., p.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> loss = sw.losses.CardinalityLoss(lambda k, p: np.minimum(k, p / 2))
    >>> loss([1, 0, 1, 0], [0, 1, 0, 0])
    2.0
    >>> loss.set_function([1, 0, 1, 0]).is_submodular
    True
    """

    formula: Callable[..., ArrayLike]

    def __init__(self, formula: Callable[..., ArrayLike]) -> None:
        self._set(formula=as_function(formula, "formula", "k", "p"))

    def _table(self, p: int) -> FloatArray:
        if p == 0:  # no mistake is possible, and a formula may divide by p
            return np.zeros(1)
        values = call_on_arrays(lambda k: self.formula(k, p), "formula", np.arange(p + 1.0))
        table: FloatArray = values - values[0]
        return table

    def __repr__(self) -> str:
        return f"CardinalityLoss({getattr(self.formula, '__name__', self.formula)!s})"


class Exponential(OfCardinality):
    r"""The loss l(I) = :math:`1 - e^{-\alpha |I|}`, submodular and increasing, equation (53).

    With a modular part it is the loss of equations (52) and (54): ``Exponential() +
    Hamming(beta)``.

    Parameters
    ----------
    alpha : float
        Positive.

    Examples
    --------
    >>> import setwise as sw
    >>> loss = sw.losses.Exponential() + sw.losses.Hamming([1.0, 0.5, 0.2])
    >>> round(loss([1, 1, 0], [0, 1, 0]), 3)
    1.632
    """

    alpha: float

    def __init__(self, alpha: float = 1.0) -> None:
        self._set(alpha=as_number(alpha, "alpha", positive=True))

    def _table(self, p: int) -> FloatArray:
        return -np.expm1(-self.alpha * np.arange(p + 1.0))

    @property
    def is_submodular(self) -> bool:
        return True

    @property
    def is_increasing(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Exponential(alpha={self.alpha:g})"


class FaceTrack(OfCardinality):
    r"""The four losses of face tracks in the B_D paper, k mistakes among n frames.

    Each is normalised by the size of the track, and with the default :math:`\alpha` none is
    submodular or supermodular:

    1. :math:`\max(\min(k, n/3), k - n/3) / (n/3)`, equation (33);
    2. :math:`\min(\max(\min(k, n/4), k - n/4) / (n/4), \alpha)`, equation (34);
    3. :math:`\min(\max(0, k - n/3) / (n/3), \alpha)`, equation (35);
    4. :math:`[(1 + \alpha)/2 \cdot \max(0, k - n/3) - \max(0, k - 2n/3)] / (n/3)`, equation (36),
       which with :math:`\alpha = 0.5` rises to 0.75 and ends at 0.5.

    The submodular part of their decomposition is non-negative for the first two only.

    Parameters
    ----------
    kind : {1, 2, 3, 4}
    alpha : float, optional
        :math:`\alpha`, the loss of a track that is wrong everywhere: by default 2, 1 and 0.5 for
        kinds 2, 3 and 4, as in the experiments of the paper. Positive, and at most 3 for kind 2 and
        2 for kind 3, which reach no more. Kind 1 has none.

    Examples
    --------
    >>> import setwise as sw
    >>> loss = sw.losses.FaceTrack(1)
    >>> loss([1] * 6, [0, 0, 0, 1, 1, 1])
    1.0
    """

    kind: int
    alpha: float | None

    def __init__(self, kind: int = 1, alpha: float | None = None) -> None:
        if as_count(kind, "kind", least=1) > 4:
            raise ValueError(f"kind must be 1, 2, 3 or 4, got {kind}")
        if alpha is None:
            alpha = _ALPHAS[kind]
        elif kind == 1:
            raise ValueError(f"alpha must be None for kind 1, got {alpha!r}")
        else:
            alpha = as_number(alpha, "alpha", positive=True)
            if alpha > (most := {2: 3.0, 3: 2.0}.get(kind, np.inf)):
                raise ValueError(f"alpha must be at most {most:g} for kind {kind}, got {alpha:g}")
        self._set(kind=int(kind), alpha=alpha)

    def _table(self, p: int) -> FloatArray:
        k = np.arange(p + 1.0) / max(p, 1)  # every formula depends on the share k / n
        table: FloatArray
        if self.kind == 1:
            table = 3 * np.maximum(np.minimum(k, 1 / 3), k - 1 / 3)
        elif self.kind == 2:
            table = 4 * np.minimum(np.maximum(np.minimum(k, 1 / 4), k - 1 / 4), self._most / 4)
        elif self.kind == 3:
            table = 3 * np.minimum(np.maximum(0.0, k - 1 / 3), self._most / 3)
        else:
            rise = 1.5 * (1.0 + self._most)
            table = rise * np.maximum(0.0, k - 1 / 3) - 3 * np.maximum(0.0, k - 2 / 3)
        return table

    @property
    def _most(self) -> float:
        """The loss of a track that is wrong everywhere."""
        return 2.0 if self.alpha is None else self.alpha

    @property
    def is_submodular(self) -> bool:
        return self.kind == 2 and self._most <= 1.0

    @property
    def is_increasing(self) -> bool:
        return self.kind < 4 or self._most >= 1.0

    def __repr__(self) -> str:
        own = "" if self.alpha == _ALPHAS[self.kind] else f", alpha={self._most:g}"
        return f"FaceTrack(kind={self.kind}{own})"


# The values of l(V) in the experiments of the B_D paper.
_ALPHAS = {1: None, 2: 2.0, 3: 1.0, 4: 0.5}
