"""Sets of labels with a guaranteed recall, precision or set loss, on top of any classifier."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from setwise._foundation._arguments import (
    BATCH,
    BoolArray,
    FloatArray,
    as_array,
    as_choice,
    as_flag,
)
from setwise._foundation._keywords import hints_at_names
from setwise.conformal._calibrated import Conformal
from setwise.decisions._risk_control import (
    RiskControl,
    as_alpha,
    as_delta,
    control_of,
    highest_threshold,
    passes,
    require_examples,
)
from setwise.estimators._checked import checked_labels, naming_x
from setwise.estimators._sets._folds import CANDIDATES
from setwise.estimators._sets._label_encoding import learn_encoding
from setwise.estimators._sets._probability_models import first_estimator, positive_probabilities
from setwise.losses import Loss, get

_RECALL, _PRECISION = "false_negative_rate", "precision"


class ConformalLabels(Conformal):
    r"""Sets of labels with a guaranteed recall, precision or set loss, for any classifier.

    The set of a row holds the labels whose score is at least a level that conformal risk control
    chooses on labelled rows (``sw.conformal.control_risk``). The guarantee needs no assumption
    about the classifier; better probabilities make the sets smaller.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=None
        A multi-label classifier or pipeline, fitted before or by ``fit``. None: the rows of X are
        probabilities themselves.
    alpha : float, default=0.1
        The risk to guarantee.
    risk : str or Loss, default="false_negative_rate"
        "false_negative_rate": on average at least 1 - alpha of a row's labels are in its set.
        "precision": on average at least 1 - alpha of a set are labels of its row. A loss in [0, 1]
        or its name, such as "jaccard" or "dice": its mean is at most alpha. The last two need
        ``delta``, and ``fit`` on other rows.
    delta : float, default=None
        The probability that the guarantee may fail. With it, the guarantee holds in probability and
        the rows must be independent. None: on average over calibration sets and new rows.
    order : {"auto", "gains", "probability"}, default="auto"
        The scores of the labels of a row. "probability": their marginal probabilities p. "gains":
        the expected share of the row's labels that a label is,

        .. math:: g_j = E\,\frac{[j \in y]}{|y|}
            = p_j \int_0^1 \prod_{k \ne j} (1 - p_k + p_k u) \, du ,

        for independent labels. Among all sets with the same expected recall, those by gains have
        the least expected size. "auto": gains for "false_negative_rate", else probability.
    nonempty : bool, default=False
        A row without labels has a false-negative rate of 0. True leaves such rows out of the
        calibration, so that the guarantee holds on average over rows with labels.

    Attributes
    ----------
    controls_ : dict
        The ``RiskControl`` under "labels"; with groups, one for each group.
    estimator_ : classifier
        The estimator that ``fit`` fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> import setwise as sw
    >>> X, Y = make_multilabel_classification(600, random_state=0)
    >>> model = sw.conformal.ConformalLabels(OneVsRestClassifier(LogisticRegression()), alpha=0.2)
    >>> model = model.fit(X[:300], Y[:300]).conformalize(X[300:500], Y[300:500])
    >>> sets = model.predict_set(X[500:])
    >>> sets.shape, model.controls_["labels"].bound <= 0.2
    ((100, 5), True)
    """

    _stored = ("alpha", "risk", "delta", "order", "nonempty")

    @hints_at_names
    def __init__(
        self,
        estimator: Any = None,
        *,
        alpha: float = 0.1,
        risk: str | Loss = _RECALL,
        delta: float | None = None,
        order: str = "auto",
        nonempty: bool = False,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.risk = risk
        self.delta = delta
        self.order = order
        self.nonempty = nonempty

    @hints_at_names
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the classifier and, for risks that need it, the order in which levels are tested.

        It need not be called for "false_negative_rate" with a fitted classifier or with
        probabilities.

        Parameters
        ----------
        X : n rows in any form that the estimator takes
        y : array of shape (n, p)
            The labels. The rows must not be those of ``conformalize``.

        Returns
        -------
        self
        """
        self._checked()
        positive = _as_rows(y)
        target = positive.astype(np.int64)
        learns = self.estimator is not None and not isinstance(self.estimator, FrozenEstimator)
        if learns:
            with naming_x(X):
                self.estimator_ = first_estimator(self.estimator, matrix=True).fit(X, target)
        if self._is(_RECALL):
            return self
        if learns:
            p = np.zeros(target.shape)
            for train, test in KFold().split(target):
                model = first_estimator(self.estimator, matrix=True)
                model.fit(_safe_indexing(X, train), target[train])
                p[test] = positive_probabilities(model, _safe_indexing(X, test), None)
            scores = self._scores_of(_as_probabilities(p, positive.shape))
        else:
            scores = self._scores(X, positive.shape)
        kept = positive.any(axis=1) if self.nonempty else np.ones(len(positive), np.bool_)
        if not kept.any():
            raise ValueError("y must hold a label for nonempty=True, got empty rows only")
        levels = np.unique(np.quantile(scores[kept], np.linspace(0, 1, CANDIDATES), method="lower"))
        losses = self._losses(positive[kept], scores[kept], levels)
        self._levels_tested = levels.tolist()
        self._order = np.argsort(losses.mean(axis=0), kind="stable").tolist()
        return self

    @hints_at_names
    def conformalize(self, X: Any, y: ArrayLike, *, groups: ArrayLike | None = None) -> Self:
        """Choose the level on labelled rows that neither the classifier nor ``fit`` has seen.

        Parameters
        ----------
        X : n rows in any form that the estimator takes, or probabilities (n, p)
        y : array of shape (n, p)
        groups : array-like of int or str of shape (n,), optional
            The group of each row, known from the input. Each group has its own level and needs
            examples of its own: at least 1 / alpha - 1.

        Returns
        -------
        self
        """
        alpha, delta = self._checked()
        positive = _as_rows(y)
        if not self._is(_RECALL) and not hasattr(self, "_order"):
            raise ValueError(
                f"risk={self.risk!r} needs fit on other rows first, which fixes the order in which "
                "levels are tested"
            )
        scores = self._scores(X, positive.shape)
        calibrate = partial(self._calibrated_level, positive, scores, alpha, delta)
        self._calibrate({"labels": calibrate}, groups, len(positive))
        self._width = positive.shape[1]
        return self

    @hints_at_names
    def predict(self, X: Any) -> BoolArray:
        """Return the labels whose probability exceeds 1/2, (n, p), without a guarantee."""
        self._checked()
        return self._chances(X, None) > 0.5

    @hints_at_names
    def predict_set(self, X: Any, *, groups: ArrayLike | None = None) -> BoolArray:
        """Return the sets of labels with the guarantee, (n, p).

        Parameters
        ----------
        X : n rows in any form that the estimator takes, or probabilities (n, p)
        groups : array-like of int or str of shape (n,), optional
            The group of each row, if there were groups in ``conformalize``.

        Returns
        -------
        boolean array of shape (n, p)

        Raises
        ------
        ValueError
            If no level was certified, which is possible with ``delta``.
        """
        self._calibrated()
        self._checked()
        scores = self._scores(X, (None, self._width))
        levels = self._levels("labels", groups, len(scores))
        if any(level is None for level in levels):
            raise ValueError(
                f"alpha={self.alpha:g} was certified by no level: see controls_ for what was tested"
            )
        return scores >= np.array(levels, np.float64)[:, None]

    def _calibrated_level(
        self,
        positive: BoolArray,
        scores: FloatArray,
        alpha: float,
        delta: float | None,
        chosen: BoolArray,
        which: str,
    ) -> RiskControl:
        if self.nonempty:
            chosen = chosen & positive.any(axis=1)
            which += " whose rows have labels"
        n = int(np.count_nonzero(chosen))
        require_examples(n, alpha, delta, "X", which)
        y, s = positive[chosen], scores[chosen]
        if self._is(_RECALL):
            shares = np.broadcast_to(1 / np.maximum(y.sum(axis=1, keepdims=True), 1), y.shape)
            return highest_threshold(s[y], shares[y], n, alpha, delta)
        levels, order = np.array(self._levels_tested), np.array(self._order)
        sums = self._losses(y, s, levels).sum(axis=0)
        passed = passes(sums, n, alpha, delta)[order]
        certified = np.sort(order[np.logical_and.accumulate(passed)])
        best = None
        if certified.size and not self._is(_PRECISION):
            best = int(certified[sums[certified].argmin()])
        return control_of(sums[None], n, (alpha,), delta, levels, certified, True, best)

    def _losses(self, y: BoolArray, scores: FloatArray, levels: FloatArray) -> FloatArray:
        """Return the losses (n, K) of the sets at levels (K,)."""
        losses = np.empty((len(y), len(levels)))
        for k, level in enumerate(levels):
            sets = scores >= level
            if self._is(_PRECISION):
                wrong = np.count_nonzero(sets & ~y, axis=1)
                losses[:, k] = wrong / np.maximum(np.count_nonzero(sets, axis=1), 1)
            else:
                losses[:, k] = get(self.risk)(y, sets)
        if losses.size and not 0 <= losses.min() <= losses.max() <= 1:
            bad = losses.min() if losses.min() < 0 else losses.max()
            raise ValueError(f"risk must be a loss in [0, 1], got {bad:g} from {self.risk!r}")
        return losses

    def _is(self, risk: str) -> bool:
        return isinstance(self.risk, str) and self.risk == risk

    def _checked(self) -> tuple[float, float | None]:
        alpha, delta = as_alpha(self.alpha), as_delta(self.delta)
        as_choice(self.order, "order", ("auto", "gains", "probability"))
        as_flag(self.nonempty, "nonempty")
        if not (self._is(_RECALL) or self._is(_PRECISION)):
            try:
                get(self.risk)
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"risk must be {_RECALL!r}, {_PRECISION!r} or a loss: {error}"
                ) from None
        if not self._is(_RECALL) and delta is None:
            raise ValueError(
                f"delta must be given for risk={self.risk!r}, which is not monotone in the level, "
                "got None"
            )
        return alpha, delta

    def _chances(self, X: Any, shape: tuple[int | None, int] | None) -> FloatArray:
        model = getattr(self, "estimator_", self.estimator)
        if model is None:
            return _as_probabilities(X, shape)
        if not hasattr(model, "predict_proba"):
            raise TypeError(
                "estimator must be a classifier with predict_proba, got "
                f"{type(model).__name__}: CalibratedClassifierCV gives one to others"
            )
        with naming_x(X):
            return _as_probabilities(positive_probabilities(model, X, None), shape)

    def _scores(self, X: Any, shape: tuple[int | None, int]) -> FloatArray:
        return self._scores_of(self._chances(X, shape))

    def _scores_of(self, p: FloatArray) -> FloatArray:
        by_gains = self.order == "gains" or (self.order == "auto" and self._is(_RECALL))
        return expected_shares(p) if by_gains else p

    def _state(self) -> dict[str, Any]:
        return {"_width": getattr(self, "_width", None)}


def expected_shares(p: FloatArray) -> FloatArray:
    r"""Return :math:`E [j \in y] / |y|` for independent labels with probabilities (n, p).

    The integrand is a polynomial of degree p - 1, for which the Gauss-Legendre rule with p / 2
    nodes is exact.
    """
    n, width = p.shape
    nodes, weights = np.polynomial.legendre.leggauss(max((width + 1) // 2, 1))
    nodes, weights = (nodes + 1) / 2, weights / 2
    found = np.empty((n, width))
    step = max(1, BATCH // max(width * len(nodes), 1))
    for first in range(0, n, step):
        q = p[first : first + step, :, None]
        # The factors are positive inside (0, 1), where the nodes lie, so that logarithms exist.
        logs = np.log1p(-q * (1 - nodes))
        others = np.exp(logs.sum(axis=1, keepdims=True) - logs)
        found[first : first + step] = p[first : first + step] * (others @ weights)
    return found


def _as_rows(y: Any) -> BoolArray:
    if getattr(y, "ndim", 2) == 0:
        raise TypeError("y must be a matrix with a column for each label, got no dimensions")
    labels = checked_labels(y)
    if len(labels.shape) != 2:
        raise ValueError(f"y must be a matrix with a column for each label, got {labels.shape}")
    if 0 in labels.shape:
        raise ValueError(f"y must hold at least one row and one label, got shape {labels.shape}")
    return learn_encoding(labels)[1]


def _as_probabilities(X: Any, shape: tuple[int | None, int] | None) -> FloatArray:
    array = as_array(X, "X")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"X must hold probabilities, got dtype {array.dtype}")
    p = np.array(array, np.float64)
    if p.ndim != 2 or 0 in p.shape:
        raise ValueError(f"X must give probabilities of shape (n, p), got {p.shape}")
    wanted = shape or p.shape
    if (wanted[0] is not None and len(p) != wanted[0]) or p.shape[1] != wanted[1]:
        raise ValueError(f"X and y must give the same rows and labels, got {p.shape} and {wanted}")
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        raise ValueError(f"X must give probabilities in [0, 1], got {p[wrong][0]:g}")
    return p
