"""B_D: a convex surrogate for losses that are neither submodular nor supermodular."""

from __future__ import annotations

import warnings

import numpy as np

from setwise.functions import Counts, Ratio
from setwise.functions._arguments import BoolArray, FloatArray
from setwise.losses import Loss
from setwise.losses._cardinality import OfCardinality
from setwise.losses._counts import OfRatio
from setwise.losses._families import RatioRows, TableRows
from setwise.losses._labels import Labels
from setwise.losses._parts import NoLoss, decomposition, parts
from setwise.surrogates._base import Properties, Surrogate, unscaled
from setwise.surrogates._facts import is_nonnegative
from setwise.surrogates._lovasz import LovaszHinge
from setwise.surrogates._rescaling import SlackRescaling
from setwise.surrogates._rows import Rows, Scores


class DecomposedHinge(Surrogate):
    r"""The operator B_D (B_D paper, Definition 9) for any loss that is a set function.

    The loss of each y is split by the operator D, l = f + g with f submodular and g supermodular
    and increasing (``sw.functions.decompose``); then

    .. math:: B_D(y, g) = \text{LovaszHinge}_f(y, g) + \text{SlackRescaling}_g(y, g).

    Convex (Theorem 3), and equal to the loss at the corners of the unit cube where f >= 0
    (Theorem 4): so for Dice and F-beta with beta >= 1; where f is negative somewhere a warning
    names the loss. It equals the Lovász hinge of a submodular loss (Theorem 2). It is **not** an
    upper bound outside the unit cube: for Dice it can be 0, with zero gradient, at a wrong
    prediction.

    Cost: for losses of |I|, Dice and F-beta with beta >= 1, two sorts at any size. Other losses of
    counts take a linear program up to 30 elements and O(m r) beyond; any other loss takes a linear
    program for each distinct y, up to 12 elements. Decompositions are kept.

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
        f, g = parts(unscaled(self.loss)[0])
        self._set(
            submodular_part=LovaszHinge(f),
            supermodular_part=None if isinstance(g, NoLoss) else SlackRescaling(g),
        )

    def _evaluate(self, rows: Rows) -> tuple[FloatArray, Scores]:
        factor = unscaled(self.loss)[1]
        values, gradient = self.submodular_part._evaluate(rows)
        if self.supermodular_part is not None:
            self._warn_if_negative(rows.labels)
            more, slope = self.supermodular_part._evaluate(rows)
            values, gradient = values + more, gradient + slope
        return values * factor, gradient * gradient.dtype.type(factor)

    def _warn_if_negative(self, labels: Labels) -> None:
        """Says once that f is negative somewhere, so that B_D is no extension of this loss."""
        if self._remember("negative", dict).get("said"):
            return
        loss = self.submodular_part.loss
        family = loss._family(labels)
        if isinstance(family, RatioRows):
            return
        functions = (
            family.functions
            if isinstance(family, TableRows)
            else [function for function, _ in loss._distinct(labels)]
        )
        for function in functions:
            sign = self._remember(id(function), lambda f=function: (f, is_nonnegative(f)))[1]
            if sign is False:
                self._remember("negative", dict)["said"] = True
                warnings.warn(
                    f"the submodular part of {self.loss!r} is negative somewhere, so its "
                    "DecomposedHinge is convex but lies below the loss at a corner of the cube",
                    UserWarning,
                    stacklevel=4,
                )
                return

    def _always(self) -> Properties:
        loss = unscaled(self.loss)[0]
        closed = loss.is_submodular or isinstance(loss, OfCardinality) or self._is_closed_ratio
        submodular_and_increasing = loss.is_submodular and loss.is_increasing
        return Properties(
            is_convex=closed,
            is_extension=submodular_and_increasing or self._is_closed_ratio,
            is_upper_bound=submodular_and_increasing,
            is_exact=closed,
        )

    @property
    def _is_closed_ratio(self) -> bool:
        loss = unscaled(self.loss)[0]
        return isinstance(loss, OfRatio) and loss._ratio(1).parts() is not None

    def _properties(self, positive: BoolArray) -> Properties:
        loss = unscaled(self.loss)[0]
        f, g = parts(loss)
        lovasz = self.submodular_part._properties(positive)
        slack = None if self.supermodular_part is None else (
            self.supermodular_part._properties(positive)
        )
        exact_parts = loss.is_submodular or decomposition(loss, positive).exact
        exact_slack = True if slack is None else slack.is_exact
        function = f._set_function(positive)
        nonnegative = is_nonnegative(function)
        modular_only = slack is None
        return Properties(
            is_convex=True if lovasz.is_convex and exact_slack else None,
            is_extension=nonnegative if exact_slack else None,
            is_upper_bound=lovasz.is_upper_bound if modular_only else None,
            is_exact=bool(exact_parts and exact_slack),
        )
