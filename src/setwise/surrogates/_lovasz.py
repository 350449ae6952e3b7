"""The Lovász hinge."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.functions import SetFunction
from setwise.losses import Loss
from setwise.losses._families import Call, Polymatroids
from setwise.losses._labels import Labels
from setwise.surrogates._base import Properties, Surrogate, SurrogateTraits, times
from setwise.surrogates._function_properties import is_increasing, is_nonnegative
from setwise.surrogates._rows import ScoredRows, Scores

Case = Literal["auto", 1, 2]


class LovaszHinge(Surrogate):
    r"""The Lovász hinge of a submodular loss (Lovász hinge paper, Definition 6).

    With s = 1 - g y sorted in decreasing order and mu the gains of l along that order,

    .. math:: L(y, g) = \sum_j (s_j)_+\, \mu_j \quad \text{(case 1, l increasing)}, \qquad
        L(y, g) = \Bigl(\sum_j s_j\, \mu_j\Bigr)_+ \quad \text{(case 2)}.

    It is convex and equal to the loss at the unit cube's corners (Propositions 6 and 7). Case 1 is
    an upper bound of the loss everywhere and, for the Hamming loss, the sum of the hinge losses
    (Proposition 8); case 2 is not a bound outside the unit cube. The subgradient is :math:`-y_j
    \mu_j`; in case 1 it is 0 unless :math:`s_j > 0`. Minimising its mean does not, in general,
    minimise the expected loss unless l is modular: like every hinge on a set, it is not consistent.

    The cost is one sort of the violators (of all elements in case 2), then O(p). It is compiled for
    Jaccard without weights, losses of counts and of |I|, and the weighted Hamming loss; other
    losses use ``gains``.

    Parameters
    ----------
    loss : Loss or str
        Submodular; a loss that is known not to be submodular raises an error.
    case : {"auto", 1, 2}
        "auto" uses case 1 for each y whose set function is increasing. Case 1 of a loss that is not
        increasing is not convex (Proposition 10).

    Examples
    --------
    >>> import setwise as sw
    >>> hinge = sw.surrogates.LovaszHinge("jaccard")
    >>> value, gradient = hinge.value_and_gradient([1, 1, -1], [0.5, 2.0, 0.0])
    >>> round(value, 3), gradient.round(3).tolist()
    (0.5, [-0.333, 0.0, 0.333])
    """

    case: Case

    def __init__(self, loss: Loss | str, *, case: Case = "auto") -> None:
        super().__init__(loss)
        if isinstance(case, bool) or not isinstance(case, str | int | np.integer):
            raise TypeError(f"case must be 'auto', 1 or 2, got {type(case).__name__}")
        if case not in ("auto", 1, 2):
            raise ValueError(f"case must be 'auto', 1 or 2, got {case!r}")
        if self.loss.is_submodular is False:
            raise ValueError(
                f"loss must be submodular for LovaszHinge, got {self.loss!r}: use DecomposedHinge"
            )
        self._set(case=case)

    def evaluate(self, rows: ScoredRows) -> tuple[FloatArray, Scores]:
        loss, factor = self.loss._unscaled()
        return times(factor, *self._of_loss(loss, rows))

    def _of_loss(self, loss: Loss, rows: ScoredRows) -> tuple[FloatArray, Scores]:
        labels = rows.labels
        call = labels.keep(self, "lovasz", self._call, loss, labels)
        return self._through_gains(loss, rows) if call is None else rows.run(*call)

    def _call(self, loss: Loss, labels: Labels) -> Call | None:
        """Return the kernel of the loss on these sets, or None if its family has none."""
        family = loss._family_of(labels)
        if family is None:
            return None
        return family.lovasz(self.case, partial(self._componentwise, loss))

    def _through_gains(self, loss: Loss, rows: ScoredRows) -> tuple[FloatArray, Scores]:
        labels = rows.labels
        flags = labels.keep(self, "flags", self._flags, loss, labels)
        order = np.empty(rows.scores.size, np.int64)
        chains = np.empty(rows.n + 1, np.int64)
        _core.order_rows(labels.positive, rows.scores, labels.offsets, flags, order, chains)
        order = order[: chains[-1]]
        gains = loss._gains(labels, order, chains)
        return rows.run(_core.hinge_of_gains, order, chains, gains, flags)

    def _flags(self, loss: Loss, labels: Labels) -> NDArray[np.uint8]:
        """Return whether case 1 applies to each set; every set function is checked at most once."""
        if loss.is_submodular and (self.case != "auto" or loss.is_increasing):
            return np.full(labels.n, self.case != 2, np.uint8)
        flags = np.empty(labels.n, np.uint8)
        for function, members in loss._distinct(labels):
            flags[members] = self._componentwise(loss, function)
        return flags

    def _componentwise(self, loss: Loss, function: SetFunction) -> bool:
        if not loss.is_submodular and function.is_submodular is False:
            raise ValueError(
                f"loss must be submodular for LovaszHinge, got {self.loss!r}, whose {function!r} "
                "is not: use DecomposedHinge"
            )
        if self.case == "auto":
            return bool(loss.is_increasing or is_increasing(function))
        return self.case == 1

    @property
    def _traits(self) -> SurrogateTraits:  # type: ignore[override]
        return SurrogateTraits(
            # By Proposition 8, case 1 is a sum over elements; case 2 is not.
            is_separable=self.loss._traits.is_count and self.case != 2,
            takes_multiplicity=self.loss._traits.takes_multiplicity,
            # Ratios do not depend on the number of negatives that violate no margin.
            ignores_safe_negatives=self.case != 2 and self.loss._fraction is not None,
        )

    def _polymatroids(self, labels: Labels) -> tuple[Polymatroids, float] | None:
        """Return the polymatroids of case 1, whose greedy vertices attain the maximum."""
        loss, factor = self.loss._unscaled()
        family = None if self.case == 2 else loss._family_of(labels)
        found = None if family is None else family.polymatroids()
        return None if found is None else (found, factor)

    def _with_multiplicity(self, weights: FloatArray) -> LovaszHinge:
        return LovaszHinge(self.loss._with_multiplicity(weights), case=self.case)

    def general_properties(self) -> Properties:
        submodular, increasing = self.loss.is_submodular, self.loss.is_increasing
        return Properties(
            is_convex=submodular and (self.case != 1 or increasing),
            is_extension=increasing or self.case == 1,
            is_upper_bound=increasing and self.case != 2,
            is_exact=submodular,
        )

    def properties_of(self, positive: BoolArray) -> Properties:
        function = self.loss.function_of(positive)
        submodular = self.loss.is_submodular or function.is_submodular
        increasing = self.loss.is_increasing or is_increasing(function)
        componentwise = self.case == 1 or (self.case == "auto" and increasing is True)
        if componentwise:
            convex = submodular if increasing else (None if increasing is None else False)
            return Properties(convex, True, increasing or None, submodular)
        return Properties(
            submodular, is_nonnegative(function), self._bound_by_sum(function), submodular
        )

    @staticmethod
    def _bound_by_sum(function: SetFunction) -> bool | None:
        """Return False if a single mistake can have a value below its loss."""
        if function.n > 4096:
            return None
        masks = np.vstack([np.zeros(function.n), np.ones(function.n), np.eye(function.n)])
        none, whole, *singles = function._values(masks > 0)
        costs = np.array(singles) - none
        # differences within rounding are ignored; not tuned
        slack = 1e-9 * max(abs(none), abs(whole))
        sinks = (costs > 0) & (costs < whole - none - slack)
        return False if sinks.any() else None


def abstains(scores: FloatArray, offsets: IntArray) -> BoolArray:
    r"""Return a mask of the elements on which to abstain; set i is [offsets[i], offsets[i + 1]).

    The Lovász hinge of an increasing submodular f is consistent not for f but for

    .. math:: l_{abs}(v) = f(\{v y < 0\}) + f(\{v y \le 0\}), \qquad v \in \{-1, 0, 1\}^p,

    where 0 means to abstain (Finocchiaro, Frongillo and Nueve, arXiv 2203.08645). The link function
    clips :math:`|u|` at 1, sorts it, and cuts at the largest of the p + 1 gaps between 1 and 0. It
    keeps the signs above the cut and abstains below. With prefixes v_j of the sorted signs and gaps
    g_j the hinge of the clipped scores is :math:`\sum_j g_j \, l_{abs}(v_j)`, so that the regret in
    l_abs is at most p + 1 times that of the hinge. Of equal gaps the first is used, which abstains
    more often. The cost is O(p log p).
    """
    open_ = np.zeros(len(scores), np.bool_)
    sizes = np.abs(np.clip(scores, -1.0, 1.0))
    for begin, end in pairwise(offsets.tolist()):
        order = np.argsort(-sizes[begin:end], kind="stable")
        levels = np.concatenate([[1.0], sizes[begin:end][order], [0.0]])
        cut = int(np.argmax(-np.diff(levels)))
        open_[begin + order[cut:]] = True
    return open_
