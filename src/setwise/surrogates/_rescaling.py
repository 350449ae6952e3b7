"""The maximum over all sets of mistakes that margin and slack rescaling share."""

from __future__ import annotations

from typing import Literal

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import BoolArray, FloatArray
from setwise.functions import Cardinality, SetFunction
from setwise.losses import ConcaveLoss, Hamming, Loss, SumLoss
from setwise.losses._cardinality import OfCardinality
from setwise.losses._counts import OfRatio
from setwise.losses._early import EarlyDetection
from setwise.losses._families import Family, ModularRows, PrefixRows, RatioRows, TableRows
from setwise.losses._labels import Labels
from setwise.surrogates._base import Surrogate, unscaled
from setwise.surrogates._maximizers import Method, Rule, best_method, most_violated
from setwise.surrogates._rows import Rows, Scores

Maximizer = Literal["auto", "greedy"]


class Rescaling(Surrogate):
    """What the two have in common: a maximum over all sets of mistakes."""

    maximizer: Maximizer
    _slack: bool

    def __init__(self, loss: Loss | str, maximizer: Maximizer) -> None:
        super().__init__(loss)
        given: object = maximizer  # an array has no truth of its own
        if not isinstance(given, str) or given not in ("auto", "greedy"):
            raise ValueError(f"maximizer must be 'auto' or 'greedy', got {maximizer!r}")
        self._set(maximizer=maximizer)

    def _maximum(self, loss: Loss, rows: Rows, weights: FloatArray) -> tuple[FloatArray, Scores]:
        """The maximum for each set, with the weight of its margins, and the gradient."""
        family = None if self.maximizer == "greedy" else self._known(loss, rows.labels)
        if isinstance(family, RatioRows):
            return rows.run(_core.rescale_ratio, *family.arguments, self._slack, weights)
        if isinstance(family, TableRows):
            kernel = _core.rescale_counts if family.of_counts else _core.rescale_cardinality
            return rows.run(kernel, family.tables, family.starts, self._slack, weights)
        if isinstance(family, ModularRows):
            return rows.run(_core.hinge_modular, family.weights, weights)
        if isinstance(family, PrefixRows):
            return rows.run(_core.rescale_prefix, family.weights, family.caps, weights)
        return self._search(loss, rows, weights)

    def _known(self, loss: Loss, labels: Labels) -> Family | None:
        """The family if there is a kernel for it."""
        family = loss._family(labels)
        if self._slack:
            if isinstance(family, ModularRows):
                return _as_cardinality(loss, labels)
            if isinstance(family, PrefixRows):
                return None
        return family

    def _search(self, loss: Loss, rows: Rows, weights: FloatArray) -> tuple[FloatArray, Scores]:
        values, gradient = np.empty(rows.n), np.empty_like(rows.scores)
        offsets = rows.labels.offsets
        for function, members in loss._distinct(rows.labels):
            if len(members) < rows.n and self.maximizer == "auto":
                part = rows.take(members)
                if self._known(loss, part.labels) is not None:
                    # The tables of the batch are too large only together.
                    values[members], slopes = self._maximum(loss, part, weights[members])
                    for i, slope in zip(members, slopes.reshape(len(members), -1), strict=True):
                        gradient[offsets[i] : offsets[i + 1]] = slope
                    continue
            method = self._method(function)
            for weight in np.unique(weights[members]):
                same = members[weights[members] == weight]
                rule = Rule(self._slack, float(weight))
                margins = np.stack([rows.margins(i) for i in same])
                values[same], losses, sets = most_violated(function, margins, rule, method)
                slopes = rule.slopes(losses)
                for i, slope, chosen in zip(same, slopes, sets, strict=True):
                    gradient[offsets[i] : offsets[i + 1]] = slope * rows.signs(i) * chosen
        return values, gradient

    def _method(self, function: SetFunction) -> Method:
        if self.maximizer == "greedy":
            return "greedy"
        return best_method(function, slack=self._slack)

    def _is_exact_for(self, loss: Loss, positive: BoolArray) -> bool:
        if self.maximizer == "greedy":
            return False
        labels = Labels(
            positive.view(np.uint8), np.array([0, len(positive)]), "single", positive.shape
        )
        if self._known(loss, labels) is not None:
            return True
        return self._method(loss._set_function(positive)) != "greedy"


def _as_cardinality(loss: Loss, labels: Labels) -> TableRows | None:
    """A Hamming loss with one weight for all as a loss of |I|; None for other modular losses."""
    if not isinstance(loss, Hamming):
        return None
    weight = 1.0
    if loss.weights is not None and loss.weights.size:
        if np.any(loss.weights != loss.weights[0]):
            return None
        weight = float(loss.weights[0])
    sizes, which = np.unique(labels.sizes, return_inverse=True)
    return TableRows.of([Cardinality(weight * np.arange(p + 1.0)) for p in sizes], which)


def has_kernel(loss: Loss, *, slack: bool) -> bool:
    """Whether every y and size has an exact maximiser by the kind of the loss alone."""
    loss, _ = unscaled(loss)
    if isinstance(loss, OfCardinality | OfRatio):
        return True
    if isinstance(loss, ConcaveLoss):
        return loss.weights is None
    if isinstance(loss, Hamming):
        return not slack or loss.weights is None
    if slack:
        return False
    if isinstance(loss, SumLoss):
        others = [term for term in loss.terms if not isinstance(term, Hamming)]
        return len(others) == 1 and has_kernel(others[0], slack=False)
    return isinstance(loss, EarlyDetection)
