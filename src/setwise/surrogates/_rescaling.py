"""The maximum over all sets of mistakes that margin and slack rescaling share."""

from __future__ import annotations

from typing import Literal

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, did_you_mean
from setwise.functions import SetFunction
from setwise.losses import Loss
from setwise.losses._families import Call
from setwise.losses._labels import Labels
from setwise.surrogates._base import Surrogate
from setwise.surrogates._maximizers import Method, RescalingRule, best_method, most_violated
from setwise.surrogates._rows import ScoredRows, Scores

Maximizer = Literal["auto", "greedy"]


class Rescaling(Surrogate):
    """The common part of both rescalings: a maximum over all sets of mistakes."""

    maximizer: Maximizer
    _slack: bool

    def __init__(self, loss: Loss | str, maximizer: Maximizer) -> None:
        super().__init__(loss)
        # Typed as object, because a wrong argument can be anything, such as an array.
        given: object = maximizer
        if not isinstance(given, str) or given not in ("auto", "greedy"):
            near = did_you_mean(given, ("auto", "greedy"))
            raise ValueError(f"maximizer must be 'auto' or 'greedy', got {maximizer!r}{near}")
        self._set(maximizer=maximizer)

    def _maximum(
        self, loss: Loss, rows: ScoredRows, weights: FloatArray
    ) -> tuple[FloatArray, Scores]:
        """Return the maximum for each set, given the weights of margins, and the gradient."""
        labels = rows.labels
        call = labels.keep(self, "maximum", self._call, loss, labels, weights)
        return self._search(loss, rows, weights) if call is None else rows.run(*call)

    def _call(self, loss: Loss, labels: Labels, weights: FloatArray) -> Call | None:
        """Return the kernel of the exact maximum on these sets, or None if there is none."""
        family = None if self.maximizer == "greedy" else loss._family_of(labels)
        return None if family is None else family.rescaling(self._slack, weights)

    def _search(
        self, loss: Loss, rows: ScoredRows, weights: FloatArray
    ) -> tuple[FloatArray, Scores]:
        values, gradient = np.empty(rows.n), np.empty_like(rows.scores)
        offsets = rows.labels.offsets
        for function, members in loss._distinct(rows.labels):
            if len(members) < rows.n and self.maximizer == "auto":
                part = rows.take(members)
                if self._call(loss, part.labels, weights[members]) is not None:
                    # The batch is processed in parts, because its tables are too large only
                    # together.
                    values[members], slopes = self._maximum(loss, part, weights[members])
                    for i, slope in zip(members, slopes.reshape(len(members), -1), strict=True):
                        gradient[offsets[i] : offsets[i + 1]] = slope
                    continue
            method = self._method(function)
            for weight in np.unique(weights[members]):
                same = members[weights[members] == weight]
                rule = RescalingRule(self._slack, float(weight))
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
        labels = Labels(
            positive.view(np.uint8), np.array([0, len(positive)]), "single", positive.shape
        )
        if self._call(loss, labels, np.ones(1)) is not None:
            return True
        return self._method(loss.function_of(positive)) != "greedy"
