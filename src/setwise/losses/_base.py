"""A loss: ground truth -> a set function of the mistakes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_number
from setwise._foundation._immutable import Immutable
from setwise.functions import SetFunction
from setwise.losses._families import Family
from setwise.losses._labels import Labels, read_labels


class Loss(Immutable, ABC):
    r"""What a set of predictions costs.

    .. math:: \Delta(y, \tilde y) = l_y(\{i : y_i \ne \tilde y_i\})

    The set function l depends on the ground truth y for Jaccard, Dice and F-beta, and on its size
    p for most others; l(empty) = 0 always. Positive means y > 0; y in {-1, +1}, {0, 1} or bool.

    A loss is immutable, and losses compose: ``Exponential() + Hamming([1.0, 0.5])``,
    ``2.0 * Jaccard()``. A new one implements ``_set_function(positive)``; see ``CardinalityLoss``,
    ``CountsLoss`` and ``SetLoss`` for ways that need no class.

    Examples
    --------
    >>> import setwise as sw
    >>> class AnyMistake(sw.losses.Loss):
    ...     def _set_function(self, positive):
    ...         return sw.functions.Cardinality([0.0] + [1.0] * len(positive))
    >>> AnyMistake()([[1, 0], [1, 1]], [[1, 0], [0, 0]]).tolist()
    [0.0, 1.0]
    """

    # An array times a loss is a mistake, not an array of losses.
    __array_ufunc__ = None

    @abstractmethod
    def _set_function(self, positive: BoolArray) -> SetFunction: ...

    def set_function(self, y: ArrayLike) -> SetFunction:
        """The set function l of the mistakes for the ground truth y of shape (p,)."""
        labels = read_labels(y)
        if labels.layout != "single":
            raise ValueError(f"y must have shape (p,), got {labels.shape}")
        return self._set_function(labels.row(0))

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, offsets: ArrayLike | None = None
    ) -> float | FloatArray:
        """The loss of each set: (p,) -> float, (n, p) -> (n,), flat with n + 1 offsets -> (n,)."""
        truth = read_labels(y_true, offsets, "y_true")
        prediction = read_labels(y_pred, offsets, "y_pred")
        if truth.shape != prediction.shape:
            raise ValueError(
                f"y_pred must have the shape of y_true, {truth.shape}, got {prediction.shape}"
            )
        return truth.of_shape(self._values(truth, truth.positive != prediction.positive))

    # What a batch asks. The plain versions go set by set; families answer for all at once.

    def _values(self, labels: Labels, mistakes: BoolArray) -> FloatArray:
        """The loss of each set of mistakes."""
        values = np.empty(labels.n)
        for function, rows in self._distinct(labels):
            sets = [mistakes[labels.offsets[i] : labels.offsets[i + 1]] for i in rows]
            values[rows] = function._values(np.stack(sets))
        return values

    def _gains(self, labels: Labels, order: IntArray, chains: IntArray) -> FloatArray:
        """Gains along a chain a set: set i adds the elements order[chains[i]:chains[i + 1]]."""
        gains = np.empty(len(order))
        for function, rows in self._distinct(labels):
            for i in rows:
                chain = slice(chains[i], chains[i + 1])
                gains[chain] = function._gains(order[chain])
        return gains

    def _family(self, labels: Labels) -> Family | None:
        """How the kernels may see this loss on these sets; None: through its gains alone."""
        return None

    def _key(self, positive: BoolArray) -> object:
        """Ground truths with one key have one set function."""
        return positive.tobytes()

    def _distinct(self, labels: Labels) -> Iterator[tuple[SetFunction, IntArray]]:
        """The distinct set functions of a batch, each with its sets."""
        rows: dict[object, list[int]] = {}
        for i in range(labels.n):
            rows.setdefault(self._key(labels.row(i)), []).append(i)
        for key, members in rows.items():
            positive = labels.row(members[0])
            function = self._remember(key, partial(self._set_function, positive))
            yield function, np.array(members)

    # What a loss knows of itself, for every ground truth and size.

    @property
    def is_submodular(self) -> bool | None:
        """True if l is submodular for every y; False if for some y it is not; None: not known."""
        return None

    @property
    def is_increasing(self) -> bool | None:
        """True if l is increasing for every y; False if for some y it is not; None: not known."""
        return None

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
