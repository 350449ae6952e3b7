"""Thinning: the weights of a fitted ensemble's trees by one linear program."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_count,
    as_flag,
    as_number,
    as_sample_weights,
    require_some,
    without_unit,
)
from setwise._foundation._clock import Deadline
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._warnings import callers_level
from setwise.estimators._boosting._path_of_c import PATH_TIME
from setwise.estimators._boosting._taxonomy import label_code
from setwise.estimators._checked import checked_labels
from setwise.estimators._thinning._pool import tree_pool
from setwise.estimators._thinning._program import (
    CostPath,
    Thinning,
    ThinningProblem,
    cross_validated,
)
from setwise.estimators._thinning._thinned_ensemble import ThinnedEnsemble
from setwise.estimators._thinning._training_rows import bags_of, warn_of_seen_rows
from setwise.estimators._thinning._trees import Trees, trees_of


@hints_at_names
def thin(
    ensemble: Any,
    X: Any,
    y: ArrayLike,
    C: float | str = "auto",
    *,
    sample_weight: ArrayLike | None = None,
    oob: bool = False,
    taxonomy: Any = None,
    max_trees: int | None = None,
    tol: float = 1e-2,
    cv: int = 3,
    time_limit: float | None = None,
) -> ThinnedEnsemble:
    r"""Recompute the weights of the trees of a fitted forest or boosting, most of them as zero.

    .. math:: \min_{w \ge 0,\ b}\ \sum_t s_t w_t + \lVert b \rVert_1 + \frac{C}{m} \sum_i
        \max_y\ \Delta(y_i, y) + f_y(x_i) - f_{y_i}(x_i), \qquad f = b + \sum_t w_t h_t

    is StructBoost's linear program with the trees h as its only weak learners, instead of all
    stumps; :math:`s_t` is the largest absolute output of a tree on the rows of X. Every round
    evaluates every tree, so that the bound is a proof. The penalty leaves few trees.

    **Rows that the trees have not seen.** Trees make hardly any mistakes on their own training
    rows, so these rows cannot distinguish the trees or choose C. Pass rows that the ensemble was
    not fitted on, a validation part. For a forest or a bagging with bootstrap samples, ``oob=True``
    takes the rows of ``fit`` instead, and evaluates each tree only on the rows that were not in its
    bag. Boosting has no such rows, because each tree was fitted to residuals of the earlier trees
    on all rows.

    Parameters
    ----------
    ensemble : fitted classifier
        RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier, AdaBoostClassifier,
        GradientBoostingClassifier or HistGradientBoostingClassifier of scikit-learn, LGBMClassifier
        or Booster of LightGBM. It is not changed.
    X : array, sparse matrix or table of shape (m, d)
        Rows of the kind that the ensemble predicts.
    y : array of shape (m,)
        Labels, which must be classes of the ensemble.
    C : float or "auto"
        Weight of the loss. A larger C keeps more trees, up to a point. "auto" takes the one with
        the lowest cross-validated loss on these rows.
    sample_weight : array of shape (m,) or number, optional
        A weight of 2 is equivalent to a repeated row, and 0 to a removed one.
    oob : bool
        Whether X, y are the rows that the ensemble was fitted on, in the same order. The outputs of
        a tree on the rows in its bag are then left out, and the remaining outputs on row i are
        divided by the share of trees that have not seen it. Equal weights then give the out-of-bag
        decision.
    taxonomy : nested lists, parent array or graph, optional
        A tree of classes, as in ``StructBoostClassifier``: a mistake costs the height of the first
        common ancestor. By default each mistake costs 1.
    max_trees : int, optional
        The largest number of trees. Trees of least weight are dropped, a third at a time, and the
        others reweighted. The bound still holds for all trees, so ``gap_`` includes the cost of the
        limit.
    tol : float
        The relative gap: half of it is for the program, half for dropping small weights.
    cv : int
        The number of folds for C="auto", drawn with a fixed seed.
    time_limit : float, optional
        The largest number of seconds, None for no limit. At most half of them are for the choice of
        C. The call then ends with the best weights so far and warns (``ConvergenceWarning``);
        ``gap_`` is valid. The computation of the trees' outputs, the fit with the first C, and a
        linear program are not interrupted.

    Returns
    -------
    ThinnedEnsemble
        A classifier with ``predict``, ``decision_function``, ``classes_``, ``indices_``,
        ``weights_``, ``n_kept``, ``value_``, ``bound_``, ``gap_``.

    Warns
    -----
    UserWarning
        If the trees seem to have seen the rows of X, because they predict those in their bags far
        better than the rest, or all rows without a mistake. Also if all weights are zero at this C.
        A ConvergenceWarning if the call ends above ``tol``, for instance at the time limit.

    Notes
    -----
    The outputs of all trees are held in memory: 8 bytes per row and tree, times the number of
    classes (if there are more than two) for forests, bagging and AdaBoost.

    References
    ----------
    C. Shen, G. Lin, A. van den Hengel, StructBoost: boosting methods for predicting structured
    output variables, 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> import setwise as sw
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = RandomForestClassifier(100, random_state=0).fit(X[:900], y[:900])
    >>> few = sw.thin(forest, X[:900], y[:900], C=20.0, oob=True)
    >>> few.n_kept < 95, few.gap_ <= 1e-2, few.certified_
    (True, True, True)
    >>> round(few.score(X[900:], y[900:]) - forest.score(X[900:], y[900:]), 1)
    0.0
    """
    number = None if isinstance(C, str) else as_number(C, "C", positive=True)
    if number is None and C != "auto":
        raise ValueError(f"C must be 'auto' or a positive number, got {C!r}")
    as_flag(oob, "oob")
    most = None if max_trees is None else as_count(max_trees, "max_trees", least=1)
    tol = as_number(tol, "tol", nonnegative=True)
    cv = as_count(cv, "cv", least=2)
    deadline = Deadline.of(time_limit, armed=False)
    half = Deadline(None if deadline.seconds is None else PATH_TIME * deadline.seconds)
    if isinstance(ensemble, FrozenEstimator):
        ensemble = ensemble.estimator
    trees = trees_of(ensemble)
    labels = _labels(y, trees)
    model = _unweighted(ensemble)
    rows = trees.rows(model, X)
    if rows.shape[0] != len(labels):
        raise ValueError(
            f"X and y must have the same number of rows, got {rows.shape[0]} and {len(labels)}"
        )
    weight = without_unit(as_sample_weights(sample_weight, len(labels)))
    require_some(weight)
    bags = bags_of(ensemble, len(labels), needed=bool(oob))
    share: FloatArray | None = None
    if oob and bags is not None:
        outside = (~bags).sum(axis=0)
        weight = np.where(outside > 0, weight, 0.0)  # a row in every bag has no output
        share = np.where(bags, 0.0, len(bags) / np.maximum(outside, 1))
        if not weight.any():
            raise ValueError("oob=True needs rows outside some bag, got none")
    counted = np.flatnonzero(weight)
    if len(np.unique(labels[counted])) < 2:
        raise ValueError("y must hold two classes, got one")
    pool = tree_pool(trees, rows, len(weight), counted, share)
    labels, weight = labels[counted], weight[counted]
    if not oob:
        warn_of_seen_rows(trees, pool, labels, None if bags is None else bags[:, counted])
    cost = label_code(taxonomy, trees.classes).cost
    problem = ThinningProblem(pool, labels, weight, cost, trees.shared)
    path: CostPath | None = None
    if number is None:
        if len(labels) < cv:
            raise ValueError(f"cv must be at most the number of rows, {len(labels)}, got {cv}")
        path = cross_validated(problem, cv, half)
    C_now = path.best if path is not None else float(number or 0.0)
    if most is None:
        thinning = problem.solve(C_now, tol, deadline=deadline)
    else:
        thinning = problem.limited(C_now, tol, len(trees.members), most, deadline)
    if most is None or deadline.expired:
        _warn_of_gap(thinning, tol, deadline)
    _store(model, trees, pool.scale, thinning, C_now, path)
    return model


def _labels(y: ArrayLike, trees: Trees) -> IntArray:
    """Return the indices of the labels among the classes of the ensemble."""
    labels = checked_labels(y)
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (m,), got {labels.shape}")
    places: IntArray
    try:
        places = np.searchsorted(trees.classes, labels)
    except TypeError as error:
        raise TypeError(f"y must hold labels of the ensemble: {error}") from error
    places = np.minimum(places, len(trees.classes) - 1).astype(np.int64)
    unknown = labels[trees.classes[places] != labels]
    if unknown.size:
        raise ValueError(
            f"y must hold classes of the ensemble, {trees.classes.tolist()}, "
            f"got {unknown.tolist()[0]!r}"
        )
    return places


def _warn_of_gap(thinning: Thinning, tol: float, deadline: Deadline) -> None:
    if thinning.relative_gap > max(tol, 1e-9) and not thinning.fit.interrupted:
        why = (
            f"{deadline.sentence}, raise it or tol"
            if deadline.expired
            else "what is left is within the accuracy of the linear program, lower C or raise tol"
        )
        warnings.warn(
            f"thin stopped at a relative gap of {thinning.relative_gap:.1e}, above tol={tol:g}: "
            f"{why}",
            ConvergenceWarning,
            stacklevel=callers_level(),
        )


def _unweighted(ensemble: Any) -> ThinnedEnsemble:
    """Return a model without weights, which checks the features."""
    model = ThinnedEnsemble()
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(ensemble, name):
            setattr(model, name, getattr(ensemble, name))
    if not hasattr(ensemble, "n_features_in_"):  # a Booster of LightGBM
        model.n_features_in_ = ensemble.num_feature()
    return model


def _store(
    model: ThinnedEnsemble,
    trees: Trees,
    scale: FloatArray,
    thinning: Thinning,
    C: float,
    path: CostPath | None,
) -> None:
    T = len(trees.members)
    kept = np.flatnonzero(thinning.weights[:T])
    model.classes_ = trees.classes
    model.indices_ = kept
    model.weights_ = thinning.weights[kept] / scale[kept]
    model.intercept_ = thinning.weights[T::2] - thinning.weights[T + 1 :: 2]
    model.n_trees_ = T
    model.C_ = C
    model.path_ = {} if path is None else vars(path).copy()
    model.value_, model.bound_ = thinning.value, thinning.fit.bound
    model.gap_, model.certified_ = thinning.relative_gap, thinning.fit.certified
    model.interrupted_ = thinning.fit.interrupted
    model._trees = trees.take(kept)
