"""Settings of boosted estimators that few fits change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from setwise._foundation._base_classes import Record


@dataclass(frozen=True, eq=False, repr=False)
class BoostOptions(Record):
    r"""Settings of boosted estimators that few fits change.

    ``StructBoostClassifier`` takes all of them. ``StructBoostRanker`` and the estimators of
    ``setwise.dask`` take those that apply to them, and raise an error if another option is set. An
    options object is an ordinary parameter: ``clone`` keeps it, and a grid search over settings is
    a search over options objects.

    Parameters
    ----------
    penalty : {"auto", "l1", "group"}, default="auto"
        The penalty on the weights of a learner that all classes share: the sum of their absolute
        values, as in the paper, or their Euclidean norm, :math:`\sum_j \|w_j\|_2` in place of
        :math:`1^\top w`, which needs the logistic surrogate. With the norm a learner has weights
        for all classes, with the sum only for a few. "auto" is the norm for "step", otherwise the
        sum. With a single score, as for two classes, a learner has one weight, and both are equal.
    label_form : {"coded", "augmented"}, default="coded"
        "coded" means weights for each node of the code. "augmented" means weak learners on the
        label-augmented features :math:`x \otimes \Gamma(y)` with a single w (Section 3.4).
    slack : {"auto", "one", "example"}, default="auto"
        One slack for the mean loss, or one per example. Both have the same optimum. The second
        program is larger. For classes it is faster up to 1,000 scores (samples times columns of the
        code), for which "auto" chooses it. For rankings, "example" gives every pair its own slack,
        and "auto" is one slack for all.
    columns : {"shared", "class"}, default="shared"
        With "shared", a weak learner has a weight of any sign for every column of the code, as in
        the paper. With "class", it has one nonnegative weight for one column, so that more classes
        need more learners. The optimum over all weak learners is the same. Two classes and the
        augmented form have a single score, and one weight per learner.
    columns_per_round : int, default=None
        The largest number of weak learners that are added per round. A larger number needs fewer
        rounds, and a smaller one chooses better learners. None: one per 60,000 scores (samples
        times columns of the code), at least 1 and at most 8.
    validation_fraction : float or int, default=0.1
        The share or the number of rows that early stopping holds out, or of groups, if there are
        groups, which stay whole. No rows are held out if there is an ``eval_set``. Held-out rows
        are not fitted.
    n_iter_no_change : int, default=10
        The number of rounds without improvement after which early stopping ends the fit.
    n_folds : int, default=None
        The number of folds, of whole groups, that choose C and calibrate. None: 3 folds, and above
        1000 rows one held-out third.
    scoring : str or callable, default=None
        The score on held-out rows: a scikit-learn scorer that needs ``predict`` or
        ``decision_function``, or its name. None means the estimator's ``score``.
    categorical_features : "from_dtype", None, mask, indices or names, default="from_dtype"
        The columns whose values are categories. A stump on such a column is 1 on a subset of the
        categories and -1 on the others; the best subset is found exactly. "from_dtype" takes the
        columns of a table that have a categorical dtype. For stumps only.
    monotonic_cst : array of shape (n_features,) or dict of names, default=None
        1 for features in which the score may only increase, -1 for decrease, 0 for either; missing
        values are not constrained. For stumps only, and for a single score: rankings, or two
        classes without a taxonomy.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import setwise as sw
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> options = sw.learning.BoostOptions(monotonic_cst=[-1] * 30)
    >>> model = sw.StructBoostClassifier(C=10.0, options=options).fit(X, y)
    >>> model.score(X, y) > 0.9, model.options.columns
    (True, 'shared')
    """

    penalty: str = "auto"
    label_form: str = "coded"
    slack: str = "auto"
    columns: str = "shared"
    columns_per_round: int | None = None
    validation_fraction: float | int = 0.1
    n_iter_no_change: int = 10
    n_folds: int | None = None
    scoring: str | Callable[..., float] | None = None
    categorical_features: Any = "from_dtype"
    monotonic_cst: Any = None


DEFAULTS = BoostOptions()


def read_options(options: object, kind: str, taken: tuple[str, ...] = ()) -> BoostOptions:
    """Return the options, by default ``DEFAULTS``.

    Raise an error if an option that the estimator does not have differs from its default. ``taken``
    holds the names of the options that it has; if empty, it has all.
    """
    if options is None:
        return DEFAULTS
    if not isinstance(options, BoostOptions):
        raise TypeError(
            f"options must be a BoostOptions of sw.learning or None, got {type(options).__name__}"
        )
    for name in (own.name for own in fields(options)):
        value, usual = getattr(options, name), getattr(DEFAULTS, name)
        same = value is usual or (isinstance(value, str | int | float) and value == usual)
        if taken and name not in taken and not same:
            raise ValueError(f"options.{name} must be {usual!r} for {kind}, got {value!r}")
    return options
