"""The base class of losses: from a ground truth to a set function of the mistakes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BATCH, BoolArray, FloatArray, IntArray, as_number
from setwise._foundation._base_classes import Immutable
from setwise.functions import Ratio, SetFunction
from setwise.losses._families import Family, TableRows
from setwise.losses._labels import Labels, is_sparse, read_labels, read_sparse_labels


@dataclass(frozen=True)
class LossTraits:
    """The properties of a loss by which upper layers choose their algorithms."""

    is_symmetric: bool = False
    """Whether elements of equal labels are interchangeable, so that void ones can be omitted."""
    is_modular: bool = False
    """Whether the loss is the sum of weights of the mistakes, ``_element_weights``."""
    is_count: bool = False
    """Whether the loss is the number of mistakes."""
    takes_multiplicity: bool = False
    """Whether the loss supports fractional elements, by ``_with_multiplicity``."""
    has_closed_parts: bool = False
    """Whether the decomposition l = f + g is exact for every y and size."""
    has_nonnegative_part: bool = False
    """Whether f is nonnegative for every y and size."""


class Loss(Immutable, ABC):
    r"""The loss of a set of predictions.

    .. math:: \Delta(y, \tilde y) = l_y(\{i : y_i \ne \tilde y_i\})

    The set function l depends on the ground truth y for Jaccard, Dice and F-beta, and on its size p
    for most others; l(empty) = 0 always holds. Positive means y > 0; y may have entries in {-1,
    +1}, {0, 1} or bool.

    A loss is immutable, and losses compose: ``Exponential() + Hamming([1.0, 0.5])``,
    ``2.0 * Jaccard()``. A new loss implements ``function_of``. ``CardinalityLoss``, ``CountsLoss``
    and ``SetLoss`` define losses without a new class.

    Examples
    --------
    >>> import setwise as sw
    >>> class AnyMistake(sw.losses.Loss):
    ...     def function_of(self, positive):
    ...         return sw.functions.Cardinality([0.0] + [1.0] * len(positive))
    >>> AnyMistake()([[1, 0], [1, 1]], [[1, 0], [0, 0]]).tolist()
    [0.0, 1.0]
    """

    # An array times a loss raises an error instead of making an array of losses.
    __array_ufunc__ = None

    @abstractmethod
    def function_of(self, positive: BoolArray) -> SetFunction:
        """Return the set function l for a checked ground truth, of which True means positive."""

    def set_function(self, y: ArrayLike) -> SetFunction:
        """Return the set function l of the mistakes for the ground truth y of shape (p,)."""
        labels = read_labels(y)
        if labels.layout != "single":
            raise ValueError(f"y must have shape (p,), got {labels.shape}")
        return self.function_of(labels.row(0))

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, offsets: ArrayLike | None = None
    ) -> float | FloatArray:
        """Return the loss of each set: (p,) -> float, (n, p) or flat with n + 1 offsets -> (n,).

        Matrices (n, p) may be sparse, with labels in {0, 1}.
        """
        if is_sparse(y_true) or is_sparse(y_pred):
            if offsets is not None:
                raise ValueError(f"offsets must be None for a sparse matrix, got {offsets!r:.60}")
            return self._of_sparse(y_true, y_pred)
        truth = read_labels(y_true, offsets, "y_true")
        prediction = read_labels(y_pred, offsets, "y_pred")
        if truth.shape != prediction.shape:
            raise ValueError(
                f"y_pred must have the shape of y_true, {truth.shape}, got {prediction.shape}"
            )
        return truth.of_shape(self._values(truth, truth.positive != prediction.positive))

    def _of_sparse(self, y_true: Any, y_pred: Any) -> FloatArray:
        """Return the loss of each row of sparse labels."""
        truth, found = read_sparse_labels(y_true, "y_true"), read_sparse_labels(y_pred, "y_pred")
        if truth.shape != found.shape:
            raise ValueError(
                f"y_pred must have the shape of y_true, {truth.shape}, got {found.shape}"
            )
        if self._fraction is not None or self._traits.is_count:
            # Negatives that are not predicted do not matter: 1 is found, 2 is true, 3 is both.
            both = found + 2 * truth
            positive = (both.data > 1).view(np.uint8)
            labels = Labels(positive, both.indptr.astype(np.int64), "ragged", truth.shape)
            return self._values(labels, both.data < 3)
        step = max(1, BATCH // max(1, truth.shape[1]))
        parts = [
            self(truth[k : k + step].toarray(), found[k : k + step].toarray())
            for k in range(0, truth.shape[0], step)
        ]
        return np.concatenate([np.empty(0), *parts])

    # Methods for batches. The default versions loop over sets; families have vectorised ones.

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        """Return the loss of each set of mistakes."""
        values = np.empty(labels.n)
        for function, rows in self._distinct(labels):
            sets = [mistakes[labels.offsets[i] : labels.offsets[i + 1]] for i in rows]
            values[rows] = function._values(np.stack(sets))
        return values

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        """Return gains along one chain per set: set i adds order[chains[i]:chains[i + 1]]."""
        gains = np.empty(len(order))
        for function, rows in self._distinct(labels):
            for i in rows:
                chain = slice(chains[i], chains[i + 1])
                gains[chain] = function._gains(order[chain])
        return gains

    def _family(self, labels: Labels) -> Family | None:
        """Return the family of this loss on these sets; None if kernels can only use its gains."""
        return None

    def _family_of(self, labels: Labels) -> Family | None:
        """Return the family on these sets, cached with the sets."""
        return labels.keep(self, "family", self._family, labels)

    def _table_rows(self, labels: Labels) -> TableRows | None:
        """Return the family if it consists of tables, else None."""
        family = self._family_of(labels)
        return family if isinstance(family, TableRows) else None

    def _key(self, positive: BoolArray) -> object:
        """Return a key such that ground truths with equal keys have the same set function."""
        return positive.tobytes()

    def _distinct(self, labels: Labels) -> Iterator[tuple[SetFunction, IntArray]]:
        """Yield the distinct set functions of a batch, each with its sets."""
        rows: dict[object, list[int]] = {}
        for i in range(labels.n):
            rows.setdefault(self._key(labels.row(i)), []).append(i)
        for key, members in rows.items():
            positive = labels.row(members[0])
            function = self._remember(key, partial(self.function_of, positive))
            yield function, np.array(members)

    def _up_to_order(self, labels: Labels) -> Iterator[tuple[SetFunction, IntArray]]:
        """Yield the distinct functions up to permutations of elements with equal labels."""
        return self._distinct(labels)

    # The properties of a loss, for every ground truth and size.

    @property
    def is_submodular(self) -> bool | None:
        """True if l is submodular for every y, False if it is not for some y, None if unknown."""
        return None

    @property
    def is_increasing(self) -> bool | None:
        """True if l is increasing for every y, False if it is not for some y, None if unknown."""
        return None

    _traits: LossTraits = LossTraits()
    """The properties that upper layers use instead of the type of the loss."""

    @property
    def _form(self) -> object | None:
        """The data for computing gains on a device (``_families``); None if only the host can."""
        return None

    @property
    def _fraction(self) -> Ratio | None:
        """The linear-fractional formula of the counts, for any m, or None."""
        return None

    def _has_maximizer(self, *, slack: bool) -> bool:
        """Return whether a kernel computes margin or slack rescaling exactly for every y."""
        return False

    def _parts(self) -> tuple[Loss, Loss | None]:
        """Return the losses of f and g, where l = f + g by the operator D; None if g = 0."""
        return (self, None) if self.is_submodular else (self._part("f"), self._part("g"))

    def _part(self, which: Literal["f", "g"]) -> Loss:
        """Return the part f or g, in the most specific family."""
        from setwise.losses._parts import Part

        return Part(self, which)

    def _with_multiplicity(self, weights: FloatArray) -> Loss:
        """Return the loss of one set whose element i counts weights[i] times."""
        raise NotImplementedError(f"{self!r} counts whole elements only")

    # Methods that sums of losses use.

    def _unscaled(self) -> tuple[Loss, float]:
        """Return the loss without its factor, and the factor, by which surrogates scale too."""
        return self, 1.0

    def _summands(self) -> list[tuple[float, Loss]]:
        """Return the losses that this one is the sum of, each with its factor."""
        return [(1.0, self)]

    def _grid_of_counts(self, m: int, r: int) -> FloatArray | None:
        """Return l(n, q) for m positives and r negatives; None if counts do not determine l."""
        return None

    def _element_weights(self, labels: Labels) -> FloatArray | None:
        """Return the weight of each mistake of each set, flat, if the loss is their sum."""
        return None

    def _beside_modular(self) -> Loss:
        """Return the only term that is not modular if there is just one, else the loss itself."""
        return self

    def _without_modular(self, labels: Labels) -> tuple[Loss, FloatArray | None]:
        """Return the terms that are not modular, and the flat weights of the others."""
        return self, None

    def __add__(self, other: Loss) -> Loss:
        from setwise.losses._sum import SumLoss

        if not isinstance(other, Loss):
            return NotImplemented
        return SumLoss([self, other])

    def __mul__(self, scale: float) -> Loss:
        from setwise.losses._sum import SumLoss

        return SumLoss([self], [as_number(scale, "scale", positive=True)])

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
