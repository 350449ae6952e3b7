"""B_D: a convex surrogate for losses that are neither submodular nor supermodular."""

from __future__ import annotations

import warnings

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise._foundation._warnings import callers_level
from setwise.losses import Loss
from setwise.losses._labels import Labels
from setwise.losses._parts import decomposition
from setwise.surrogates._base import Properties, Surrogate, times
from setwise.surrogates._function_properties import distinct_functions, is_nonnegative
from setwise.surrogates._lovasz import LovaszHinge
from setwise.surrogates._rows import ScoredRows, Scores
from setwise.surrogates._slack import SlackRescaling


class DecomposedHinge(Surrogate):
    r"""The operator B_D (B_D paper, Definition 9) for any loss that is a set function.

    The loss of each y is split by the operator D, l = f + g with f submodular and g supermodular
    and increasing (``sw.functions.decompose``); then

    .. math:: B_D(y, g) = \text{LovaszHinge}_f(y, g) + \text{SlackRescaling}_g(y, g).

    It is convex (Theorem 3), and equal to the loss at the corners of the unit cube if f >= 0
    (Theorem 4), as for Dice and F-beta with beta >= 1. If f is negative somewhere, a warning names
    the loss. For a submodular loss it equals the Lovász hinge (Theorem 2). If f is not increasing,
    it is **not** an upper bound outside the unit cube: for Dice it can be 0, with zero gradient, at
    a wrong prediction.

    The cost for losses of |I|, Dice and F-beta with beta >= 1, without weights, is two sorts at any
    size. Other losses of counts need a linear program up to 30 elements and O(m r) above; any other
    loss needs a linear program for each distinct y, up to 12 elements. Decompositions are cached.

    Parameters
    ----------
    loss : Loss or str

    Examples
    --------
    >>> import setwise as sw
    >>> surrogate = sw.surrogates.DecomposedHinge("dice")
    >>> value, gradient = surrogate.value_and_gradient([1, 1, -1], [0.0, 0.0, -1.0])
    >>> round(value, 6) == sw.losses.Dice()([1, 1, -1], [-1, -1, -1])
    True
    """

    submodular_part: LovaszHinge
    supermodular_part: SlackRescaling | None

    def __init__(self, loss: Loss | str) -> None:
        super().__init__(loss)
        f, g = self.loss._unscaled()[0]._parts()
        self._set(
            submodular_part=LovaszHinge(f),
            supermodular_part=None if g is None else SlackRescaling(g),
        )

    def evaluate(self, rows: ScoredRows) -> tuple[FloatArray, Scores]:
        factor = self.loss._unscaled()[1]
        rows.labels.keep(self, "nonnegative", self._warn_if_negative, rows.labels)
        values, gradient = self.submodular_part.evaluate(rows)
        if self.supermodular_part is not None:
            more, slope = self.supermodular_part.evaluate(rows)
            values += more
            gradient += slope
        return times(factor, values, gradient)

    def _warn_if_negative(self, labels: Labels) -> None:
        """Warn once if f is negative somewhere, so that B_D is not an extension of this loss."""
        said: list[bool] = self._remember("said", list)
        if said or self.submodular_part.loss.is_increasing:
            return
        functions = distinct_functions(self.submodular_part.loss, labels)
        if any(is_nonnegative(function) is False for function in functions):
            said.append(True)
            warnings.warn(
                f"the submodular part of {self.loss!r} is negative somewhere, so its "
                "DecomposedHinge is convex but is not the loss at every corner of the unit cube",
                UserWarning,
                stacklevel=callers_level(),
            )

    def general_properties(self) -> Properties:
        loss = self.loss._unscaled()[0]
        closed = loss.is_submodular or loss._traits.has_closed_parts
        submodular_and_increasing = loss.is_submodular and loss.is_increasing
        return Properties(
            is_convex=closed,
            is_extension=submodular_and_increasing or loss._traits.has_nonnegative_part,
            is_upper_bound=submodular_and_increasing,
            is_exact=closed,
        )

    def properties_of(self, positive: BoolArray) -> Properties:
        loss = self.loss._unscaled()[0]
        lovasz = self.submodular_part.properties_of(positive)
        if self.supermodular_part is None:
            return lovasz
        exact = self.supermodular_part.properties_of(positive).is_exact
        f = self.submodular_part.loss.function_of(positive)
        return Properties(
            is_convex=True if lovasz.is_convex and exact else None,
            is_extension=is_nonnegative(f) if exact else None,
            # If f is increasing, both parts are upper bounds, and so is their sum.
            is_upper_bound=True if lovasz.is_upper_bound and exact else None,
            is_exact=exact and decomposition(loss, positive).exact,
        )
