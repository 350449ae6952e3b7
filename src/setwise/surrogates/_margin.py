"""Margin rescaling, with the exact maximiser wherever the loss allows one."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import BoolArray, FloatArray, as_number
from setwise.functions import SetFunction
from setwise.losses import Loss
from setwise.losses._labels import Labels
from setwise.surrogates._base import Properties, times
from setwise.surrogates._function_properties import is_increasing
from setwise.surrogates._rescaling import Maximizer, Rescaling
from setwise.surrogates._rows import ScoredRows, Scores


class MarginRescaling(Rescaling):
    r"""Margin rescaling (Lovász hinge paper, equation (21)).

    .. math:: M(y, g) = \max_I\; l(I) - \frac{2}{\gamma} \sum_{i \in I} g_i y_i,

    which is a scaled version :math:`M(\gamma l) / \gamma` of the usual one. It is convex and an
    upper bound of the loss. It equals the loss at the unit cube's corners only for an increasing
    loss and a small enough scale: :math:`\gamma \le 2 / \max_{B, i} (l(B + i) - l(B))`, B = empty
    included (Proposition 2, corrected); ``scale="extension"`` uses the largest such scale for each
    y.

    The maximum is exact for losses of |I| (one sort), for Jaccard and F-beta without weights (a
    binary search for each number of false negatives), for other losses of counts up to 2**22 pairs
    of counts, for early detection (a dynamic programme), for all of these plus a weighted Hamming
    loss, for supermodular losses (submodular minimisation), and for any loss up to 16 elements. In
    other cases it is a greedy search, and the value is neither convex nor a bound; see
    ``properties(y).is_exact``.

    Parameters
    ----------
    loss : Loss or str
    scale : float or "extension"
        The scale gamma, positive.
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

    def extension_scale(self, y: ArrayLike) -> float:
        """Return the largest scale for which this is an extension for the ground truth y."""
        gain = self._largest_gain(self.loss.set_function(y))
        return np.inf if gain == 0 else 2.0 / gain

    def _largest_gain(self, function: SetFunction) -> float:
        if is_increasing(function) is False:
            raise ValueError(
                f"scale must be a number for {self.loss!r}, which is not increasing, got "
                "'extension', which no scale gives"
            )
        gain = function._largest_gain()
        if gain is None:
            raise ValueError(
                f"scale must be a number for {self.loss!r} at {function.n} elements, "
                "got 'extension', whose largest gain is not known"
            )
        return max(gain, 0.0)

    def _weights(self, labels: Labels) -> FloatArray:
        """Return 2 / gamma for each set."""
        if self.scale != "extension":
            return np.full(labels.n, 2.0 / self.scale)
        weights = np.empty(labels.n)
        for function, members in self.loss._up_to_order(labels):
            weights[members] = self._largest_gain(function)
        return weights

    def evaluate(self, rows: ScoredRows) -> tuple[FloatArray, Scores]:
        labels, dtype = rows.labels, rows.scores.dtype
        weights, loss, factor, shifts = labels.keep(self, "margin", self._terms, labels)
        if shifts is not None:
            rows = rows.shifted(shifts)
        values, gradient = times(factor, *self._maximum(loss, rows, weights))
        return values, gradient.astype(dtype, copy=False)

    def _terms(self, labels: Labels) -> tuple[FloatArray, Loss, float, FloatArray | None]:
        """Return the weights of margins, the unscaled loss, its factor, and the shifts of margins.

        A modular part b of the objective l(I) + <b, I> - w <margins, I> shifts the margins by -b /
        w.
        """
        weights = self._weights(labels)
        loss, modular = self.loss._without_modular(labels)
        shifts = None
        if modular is not None:
            # A weight of 0 means that the whole loss is 0, and then so is b.
            shifts = modular / np.repeat(np.where(weights > 0, weights, 1.0), labels.sizes)
        loss, factor = loss._unscaled()
        return weights / factor, loss, factor, shifts

    def general_properties(self) -> Properties:
        exact = self.maximizer == "auto" and self.loss._has_maximizer(slack=False)
        return Properties(
            is_convex=exact,
            is_extension=exact and self.scale == "extension" and self.loss.is_increasing,
            is_upper_bound=exact,
            is_exact=exact,
        )

    def properties_of(self, positive: BoolArray) -> Properties:
        exact = self._is_exact_for(self.loss._beside_modular(), positive)
        function = self.loss.function_of(positive)
        increasing = self.loss.is_increasing or function.is_increasing
        extension = None
        if exact and increasing is False:
            extension = False
        elif exact and increasing:
            gain = function._largest_gain()
            if self.scale == "extension":
                extension = True
            elif gain is not None:
                extension = bool(self.scale * gain <= 2 * (1 + 1e-12))
        return Properties(exact or None, extension, exact or None, exact)

    def __repr__(self) -> str:
        return f"MarginRescaling({self.loss!r}, scale={self.scale!r})"
