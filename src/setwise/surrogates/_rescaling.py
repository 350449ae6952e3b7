"""Margin and slack rescaling, with the exact maximiser wherever the loss allows one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from setwise import _core
from setwise.functions import Cardinality, SetFunction
from setwise.functions._arguments import BoolArray, FloatArray, as_number
from setwise.losses import ConcaveLoss, Hamming, Loss, SumLoss
from setwise.losses._cardinality import OfCardinality
from setwise.losses._counts import OfRatio
from setwise.losses._early import EarlyDetection
from setwise.losses._families import Family, ModularRows, PrefixRows, RatioRows, TableRows
from setwise.losses._labels import Labels
from setwise.losses._modular import flat_weights
from setwise.surrogates._base import Properties, Surrogate, times, unscaled
from setwise.surrogates._facts import distinct_functions, is_nonnegative, largest_gain
from setwise.surrogates._maximizers import Method, Rule, best_method, most_violated
from setwise.surrogates._rows import Rows, Scores

Maximizer = Literal["auto", "greedy"]


class _Rescaling(Surrogate):
    """What the two have in common: a maximum over all sets of mistakes."""

    maximizer: Maximizer
    _slack: bool

    def __init__(self, loss: Loss | str, maximizer: Maximizer) -> None:
        super().__init__(loss)
        if maximizer not in ("auto", "greedy"):
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


class MarginRescaling(_Rescaling):
    r"""Margin rescaling (Lovász hinge paper, equation (21)).

    .. math:: M(y, g) = \max_I\; l(I) - \frac{2}{\gamma} \sum_{i \in I} g_i y_i,

    which is the usual one, scaled: :math:`M(\gamma l) / \gamma`. Convex and an upper bound of the
    loss. It equals the loss on the unit cube's corners only for an increasing loss and a small
    enough scale: :math:`\gamma \le 2 / \max_{B, i} (l(B + i) - l(B))`, B = empty included
    (Proposition 2, corrected); ``scale="extension"`` takes that largest scale for each y.

    The maximum is exact for losses of |I| (one sort), for Jaccard and F-beta (a binary search for
    each number of false negatives), for other losses of counts up to 2**22 pairs of counts, for
    early detection (a dynamic programme), for all of these plus a weighted Hamming loss, for
    supermodular losses (submodular minimisation), and for any loss up to 16 elements. Elsewhere it
    is a greedy search, and then the value is neither convex nor a bound:
    ``properties(y).is_exact`` says which.

    Parameters
    ----------
    loss : Loss or str
    scale : float or "extension"
        gamma, positive.
    maximizer : {"auto", "greedy"}
        "greedy" forces the search of the paper's authors: one pass in index order.

    Examples
    --------
    >>> import setwise as sw
    >>> surrogate = sw.surrogates.MarginRescaling("jaccard")
    >>> surrogate([1, 1, -1], [0.5, 2.0, 0.0])
    0.3333333333333333
    """

    scale: float | Literal["extension"]
    _slack = False

    def __init__(
        self,
        loss: Loss | str,
        *,
        scale: float | Literal["extension"] = 1.0,
        maximizer: Maximizer = "auto",
    ) -> None:
        super().__init__(loss, maximizer)
        if isinstance(scale, str):
            if scale != "extension":
                raise ValueError(f"scale must be positive or 'extension', got {scale!r}")
        else:
            scale = as_number(scale, "scale", positive=True)
        self._set(scale=scale)

    def extension_scale(self, y: BoolArray) -> float:
        """The largest scale for which this is an extension for the ground truth y."""
        gain = self._largest_gain(self.loss.set_function(y))
        return np.inf if gain == 0 else 2.0 / gain

    def _largest_gain(self, function: SetFunction) -> float:
        gain = largest_gain(function)
        if gain is None:
            raise ValueError(
                f"scale must be a number for {self.loss!r} at {function.n} elements, "
                "got 'extension', whose largest gain is not known"
            )
        return max(gain, 0.0)

    def _weights(self, labels: Labels) -> FloatArray:
        """2 / gamma for each set."""
        if self.scale != "extension":
            return np.full(labels.n, 2.0 / self.scale)
        weights = np.empty(labels.n)
        loss, factor = unscaled(self.loss)
        if isinstance(loss, OfRatio):
            splits, which = loss._splits(labels)
            gains = [self._largest_gain(loss._sorted(m, r)) for m, r in splits]
            return factor * np.array(gains, np.float64)[which]
        for function, members in self.loss._distinct(labels):
            weights[members] = self._largest_gain(function)
        return weights

    def _evaluate(self, rows: Rows) -> tuple[FloatArray, Scores]:
        weights = self._weights(rows.labels)
        loss, modular = _without_hamming(self.loss, rows.labels)
        dtype = rows.scores.dtype
        if modular is not None:
            # l(I) + <b, I> - w <margins, I>: the modular part lowers the margins by b / w.
            # A weight of 0 means that the whole loss is 0, and then so is b.
            per_element = np.repeat(np.where(weights > 0, weights, 1.0), rows.labels.sizes)
            rows = rows.shifted(modular / per_element)
        loss, factor = unscaled(loss)
        values, gradient = times(factor, *self._maximum(loss, rows, weights / factor))
        return values, gradient.astype(dtype, copy=False)

    def _always(self) -> Properties:
        exact = self.maximizer == "auto" and _has_kernel(self.loss, slack=False)
        return Properties(
            is_convex=exact,
            is_extension=exact and self.scale == "extension" and self.loss.is_increasing,
            is_upper_bound=exact,
            is_exact=exact,
        )

    def _properties(self, positive: BoolArray) -> Properties:
        loss = self.loss
        if isinstance(loss, SumLoss):
            others = [term for term in loss.terms if not isinstance(term, Hamming)]
            if len(others) == 1:
                loss = others[0]
        exact = self._is_exact_for(loss, positive)
        function = self.loss._set_function(positive)
        increasing = self.loss.is_increasing or function.is_increasing
        extension = None
        if exact and increasing is False:
            extension = False
        elif exact and increasing:
            gain = largest_gain(function)
            if self.scale == "extension":
                extension = True
            elif gain is not None:
                extension = bool(self.scale * gain <= 2 * (1 + 1e-12))
        return Properties(exact or None, extension, exact or None, exact)

    def __repr__(self) -> str:
        return f"MarginRescaling({self.loss!r}, scale={self.scale!r})"


class SlackRescaling(_Rescaling):
    r"""Slack rescaling (Lovász hinge paper, equation (22)).

    .. math:: S(y, g) = \max_I\; l(I) \Bigl(1 - 2 \sum_{i \in I} g_i y_i\Bigr)

    Convex and an upper bound of the loss; equal to it on the unit cube's corners if and only if
    the loss is increasing (Proposition 1). A loss that is negative somewhere is refused.

    The maximum is exact for losses of |I| (one sort), Jaccard and F-beta (a binary search for each
    number of false negatives), other losses of counts up to 2**22 pairs of counts, and any loss up
    to 16 elements. Elsewhere (a weighted Hamming loss already contains the partition problem) it
    is a greedy search, and then the value is neither convex nor a bound.

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

    def _evaluate(self, rows: Rows) -> tuple[FloatArray, Scores]:
        loss, factor = unscaled(self.loss)
        self._refuse_negative(loss, rows.labels)
        return times(factor, *self._maximum(loss, rows, np.full(rows.n, 2.0)))

    def _refuse_negative(self, loss: Loss, labels: Labels) -> None:
        if loss.is_increasing:
            return
        for function in distinct_functions(loss, labels):
            if is_nonnegative(function) is False:
                raise ValueError(
                    f"loss must not be negative for SlackRescaling, got {self.loss!r}, whose "
                    f"{function!r} is negative somewhere"
                )

    def _always(self) -> Properties:
        exact = self.maximizer == "auto" and _has_kernel(self.loss, slack=True)
        increasing = self.loss.is_increasing
        return Properties(exact, exact and increasing, exact and increasing, exact)

    def _properties(self, positive: BoolArray) -> Properties:
        loss, _ = unscaled(self.loss)
        exact = self._is_exact_for(loss, positive)
        function = loss._set_function(positive)
        increasing = loss.is_increasing or function.is_increasing
        nonnegative = True if increasing else is_nonnegative(function)
        return Properties(
            is_convex=exact or None,
            is_extension=increasing if exact else None,
            is_upper_bound=True if exact and nonnegative else None,
            is_exact=exact,
        )


def _has_kernel(loss: Loss, *, slack: bool) -> bool:
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
        return len(others) == 1 and _has_kernel(others[0], slack=False)
    return isinstance(loss, EarlyDetection)


def _without_hamming(loss: Loss, labels: Labels) -> tuple[Loss, FloatArray | None]:
    """A sum without its Hamming terms, and their weights together, flat; None if there are none."""
    if not isinstance(loss, SumLoss):
        return loss, None
    kept = [k for k, term in enumerate(loss.terms) if not isinstance(term, Hamming)]
    if not kept or len(kept) == len(loss.terms):
        return loss, None
    weights = np.zeros(len(labels.positive))
    for term, scale in zip(loss.terms, loss.coefficients, strict=True):
        if isinstance(term, Hamming):
            weights += scale * flat_weights(term.weights, labels)
    return SumLoss([loss.terms[k] for k in kept], loss.coefficients[kept]), weights
