"""An ensemble of few trees, each with a weight."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._base_classes import Versioned
from setwise.estimators._thinning._trees import Trees


class ThinnedEnsemble(Versioned, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier made of some of the trees of another one, as returned by ``sw.thin``.

    .. math:: f(x) = b + \sum_{t \text{ kept}} w_t h_t(x)

    with h the outputs of the trees: the shares of the classes in a forest's leaf, a vote of
    AdaBoost, the raw score of one class in gradient boosting. ``predict`` takes the class of the
    largest score. It holds only the kept trees, so its size and its prediction time are
    proportional to their number. As for scikit-learn's ``FrozenEstimator``, ``clone`` returns the
    object itself and ``fit`` does not change it. ``CalibratedClassifierCV`` turns its scores into
    probabilities.

    Attributes
    ----------
    classes_ : array of shape (k,)
    indices_ : array of shape (n_kept,)
        The indices of the trees in the ensemble. In gradient boosting a round has one tree per
        class; the tree of round r and class c has index r k + c (r with two classes).
    weights_ : array of shape (n_kept,)
        Positive.
    intercept_ : array of shape (k,) or, with two classes, (1,)
    n_trees_ : int
        The number of trees of the ensemble.
    C_ : float
        The C of the program, as given or as chosen.
    path_ : dict of str to array
        With C="auto" the values "C" that were tried, "loss", the cross-validated mean loss of each,
        and "n_kept", the mean number of trees and constants in use; otherwise empty.
    value_, bound_ : float
        The objective of the weights, and a lower bound for all weights.
    gap_ : float
        The relative gap: (value - bound) divided by (objective without trees - bound) or by the
        value, whichever is smaller.
    certified_ : bool
        Always True: every round evaluates every tree, so that the bound is a proof.
    interrupted_ : bool
        Whether Ctrl-C ended the last fit, with the best weights so far.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> import setwise as sw
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(100, random_state=0).fit(X, y)
    >>> few = sw.thin(forest, X, y, C=20.0, oob=True)
    >>> few.n_kept < 60, few.decision_function(X).shape
    (True, (150, 3))
    """

    classes_: NDArray[Any]
    indices_: IntArray
    weights_: FloatArray
    intercept_: FloatArray
    n_trees_: int
    C_: float
    path_: dict[str, FloatArray]
    value_: float
    bound_: float
    gap_: float
    certified_: bool
    interrupted_: bool
    n_features_in_: int
    _trees: Trees

    @property
    def n_kept(self) -> int:
        """The number of kept trees."""
        check_is_fitted(self, msg=_UNFITTED)
        return len(self.indices_)

    def fit(self, *data: Any, **options: Any) -> Self:
        """Return the ensemble unchanged: its trees are fitted and weighted already."""
        check_is_fitted(self, msg=_UNFITTED)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return class scores (n, k); for two classes one score (n,), positive for the second."""
        check_is_fitted(self, msg=_UNFITTED)
        trees = self._trees
        rows = trees.rows(self, X)
        n, s = rows.shape[0], trees.n_scores
        scores = np.repeat(self.intercept_[:, None], n, axis=1)
        outputs = trees.outputs(rows)
        for weight, segment, output in zip(self.weights_, trees.segments, outputs, strict=True):
            if trees.shared:
                scores += weight * output.reshape(s, n)
            else:
                scores[segment] += weight * output
        return scores[0] if s == 1 else np.ascontiguousarray(scores.T)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of the largest score, (n,)."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[places]
        return labels

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


_UNFITTED = "a %(name)s gets its trees from sw.thin(ensemble, X, y), got one without"
