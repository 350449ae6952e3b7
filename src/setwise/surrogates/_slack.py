"""Slack rescaling, with the exact maximiser wherever the loss allows one."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise.losses import Loss
from setwise.losses._labels import Labels
from setwise.surrogates._base import Properties, times
from setwise.surrogates._function_properties import distinct_functions, is_nonnegative
from setwise.surrogates._rescaling import Maximizer, Rescaling
from setwise.surrogates._rows import ScoredRows, Scores


class SlackRescaling(Rescaling):
    r"""Slack rescaling (Lovász hinge paper, equation (22)).

    .. math:: S(y, g) = \max_I\; l(I) \Bigl(1 - 2 \sum_{i \in I} g_i y_i\Bigr)

    It is convex and an upper bound of the loss. It equals the loss at the unit cube's corners if
    and only if the loss is increasing (Proposition 1). A loss that is negative somewhere raises an
    error.

    The maximum is exact for losses of |I| (one sort), Jaccard and F-beta without weights (a binary
    search for each number of false negatives), other losses of counts up to 2**22 pairs of counts,
    and any loss up to 16 elements. In other cases (a weighted Hamming loss already contains the
    partition problem) it is a greedy search, and the value is neither convex nor a bound.

    Parameters
    ----------
    loss : Loss or str
        Not negative.
    maximizer : {"auto", "greedy"}
        "greedy" forces the search of the paper's authors: one pass in index order.

    Examples
    --------
    >>> import setwise as sw
    >>> surrogate = sw.surrogates.SlackRescaling("jaccard")
    >>> surrogate([1, 1, -1], [-0.5, 2.0, -1.0])
    1.0
    """

    _slack = True

    def __init__(self, loss: Loss | str, *, maximizer: Maximizer = "auto") -> None:
        super().__init__(loss, maximizer)

    def evaluate(self, rows: ScoredRows) -> tuple[FloatArray, Scores]:
        loss, factor = self.loss._unscaled()
        if not loss.is_increasing:
            rows.labels.keep(self, "nonnegative", self._refuse_negative, loss, rows.labels)
        return times(factor, *self._maximum(loss, rows, np.full(rows.n, 2.0)))

    def _refuse_negative(self, loss: Loss, labels: Labels) -> None:
        for function in distinct_functions(loss, labels):
            if is_nonnegative(function) is False:
                raise ValueError(
                    f"loss must not be negative for SlackRescaling, got {self.loss!r}, whose "
                    f"{function!r} is negative somewhere"
                )

    def general_properties(self) -> Properties:
        exact = self.maximizer == "auto" and self.loss._has_maximizer(slack=True)
        increasing = self.loss.is_increasing
        return Properties(exact, exact and increasing, exact and increasing, exact)

    def properties_of(self, positive: BoolArray) -> Properties:
        loss, _ = self.loss._unscaled()
        exact = self._is_exact_for(loss, positive)
        function = loss.function_of(positive)
        increasing = loss.is_increasing or function.is_increasing
        nonnegative = True if increasing else is_nonnegative(function)
        return Properties(
            is_convex=exact or None,
            is_extension=increasing if exact else None,
            is_upper_bound=True if exact and nonnegative else None,
            is_exact=exact,
        )
