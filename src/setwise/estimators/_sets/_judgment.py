"""What is known of a surrogate on the sets at hand and of a fit, and what their loss is."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from setwise.estimators._sets._set_layout import Arrangement
from setwise.learning import Fit
from setwise.losses import Loss
from setwise.surrogates import Surrogate


def mean_share(loss: Loss, sets: Arrangement, predicted: NDArray[np.bool_]) -> float:
    """The mean over the sets of (loss / loss of everything wrong)."""
    offsets = None if sets.kind == "rows" else sets.offsets
    losses = loss(sets.positive, predicted[sets.order], offsets=offsets)
    worst = loss(sets.positive, ~sets.positive, offsets=offsets)
    shares = np.divide(losses, worst, out=np.zeros(sets.n_sets), where=np.asarray(worst) > 0)
    return float(np.average(shares, weights=sets.weights))


def is_certified(surrogate: Surrogate, sets: Arrangement) -> bool:
    """Whether the surrogate is exact and convex for all sets at hand; warns if it is not exact."""
    if surrogate.is_exact and surrogate.is_convex:
        return True
    certified = True
    for truth in sets.distinct(surrogate.loss._key):
        known = surrogate.properties(truth)
        certified = certified and known.is_exact is True and known.is_convex is True
        if known.is_exact is False:
            warnings.warn(
                f"{type(surrogate).__name__} of {surrogate.loss!r} has no exact maximiser for "
                f"{len(truth)} elements: a greedy search stands for it, and gap_ is no certificate",
                UserWarning,
                stacklevel=3,
            )
            return False
    return certified


def warn_of_gap(fit: Fit, tol: float, max_iter: int) -> None:
    """Say so if a fit ended above its tolerance and nobody asked it to end there."""
    if fit.converged or fit.interrupted:
        return
    if fit.reason.startswith("time_limit"):
        remedy = f"{fit.reason}, raise it or tol"
    elif fit.n_iter == max_iter:
        remedy = "raise max_iter or tol"
    else:
        remedy = "its gap stands still: bring the features to one scale, lower C or raise tol"
    warnings.warn(
        f"SetClassifier stopped after {fit.n_iter} rounds at a relative gap of "
        f"{fit.relative_gap:.1e}, above tol={tol:g}: {remedy}",
        ConvergenceWarning,
        stacklevel=4,
    )
