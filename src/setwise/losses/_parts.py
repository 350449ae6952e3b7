"""The two parts of a loss: l = f + g by the operator D, for each ground truth."""

from __future__ import annotations

from typing import Literal

import numpy as np

from setwise._foundation._arguments import BoolArray
from setwise.functions import Cardinality, Counts, SetFunction, decompose
from setwise.functions._base import empty_value
from setwise.functions._decomposition._decompose import Decomposition
from setwise.functions._families._compose import Sum
from setwise.functions._families._counts import GRID_CELLS
from setwise.losses._base import Loss
from setwise.losses._families import Family, TableRows
from setwise.losses._labels import Labels

Which = Literal["f", "g"]


def decomposition(loss: Loss, positive: BoolArray) -> Decomposition:
    """Return f and g of the loss's set function for this ground truth, cached."""
    return loss._remember(
        ("decomposition", loss._key(positive)), lambda: decompose(loss.function_of(positive))
    )


class PartOf(Loss):
    """The part f or g of another loss."""

    whole: Loss
    which: Which

    def __init__(self, whole: Loss, which: Which) -> None:
        self._set(whole=whole, which=which)

    def _decomposed(self, positive: BoolArray) -> SetFunction:
        decomposed = decomposition(self.whole, positive)
        return decomposed.f if self.which == "f" else decomposed.g

    @property
    def is_submodular(self) -> bool | None:
        return True if self.which == "f" else None

    @property
    def is_increasing(self) -> bool | None:
        return True if self.which == "g" else None

    def __repr__(self) -> str:
        return f"part {self.which} of {self.whole!r}"


class Part(PartOf):
    """A part of any other loss on small sets, decomposed for each ground truth."""

    def function_of(self, positive: BoolArray) -> SetFunction:
        part = self._decomposed(positive)
        constant = empty_value(part)
        if constant == 0:
            return part
        return Sum([part, Cardinality(np.full(part.n + 1, -constant))])

    def _key(self, positive: BoolArray) -> object:
        return self.whole._key(positive)

    def _family(self, labels: Labels) -> Family | None:
        sizes: list[Cardinality] = []
        counts: list[Counts] = []
        which, cells = np.empty(labels.n, np.int64), 0
        for function, rows in self._distinct(labels):
            if isinstance(function, Cardinality):
                which[rows] = len(sizes)
                sizes.append(function)
            elif isinstance(function, Counts) and all(
                np.array_equal(function.positive, labels.row(i)) for i in rows
            ):  # the kernels count by the truth, so the function must have the same split
                which[rows] = len(counts)
                counts.append(function)
                cells += (function.m + 1) * (function.r + 1)
            else:
                return None
        if (sizes and counts) or cells > GRID_CELLS:
            return None
        return TableRows.of(sizes or counts, which) if sizes or counts else None
