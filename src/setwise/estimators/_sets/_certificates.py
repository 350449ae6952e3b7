"""Certificates of a surrogate on given sets and of a fit, with warnings."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

from setwise._foundation._warnings import callers_level
from setwise.learning._cutting_planes._fit import Fit
from setwise.losses._scoring._layout import Arrangement
from setwise.surrogates import Surrogate


def is_certified(surrogate: Surrogate, sets: Arrangement, *, warn: bool = True) -> bool:
    """Return whether the surrogate is exact and convex for these sets; warn if not exact."""
    if surrogate.is_exact and surrogate.is_convex:
        return True
    certified = True
    for truth in sets.distinct(surrogate.loss._key):
        known = surrogate.properties(truth)
        certified = certified and known.is_exact is True and known.is_convex is True
        if known.is_exact is False:
            if warn:
                _warn_of_greed(surrogate, len(truth))
            return False
    return certified


def _warn_of_greed(surrogate: Surrogate, size: int) -> None:
    warnings.warn(
        f"{type(surrogate).__name__} of {surrogate.loss!r} has no exact maximiser for {size} "
        "elements: a greedy search stands for it, and gap_ is no certificate",
        UserWarning,
        stacklevel=callers_level(),
    )


def warn_of_gap(name: str, fit: Fit, tol: float, max_iter: int) -> None:
    """Warn if a fit ended above its tolerance although nobody asked it to stop."""
    if fit.converged or fit.interrupted:
        return
    if fit.reason.startswith("time_limit"):
        remedy = f"{fit.reason}, raise it or tol"
    elif fit.n_iter == max_iter:
        remedy = "raise max_iter or tol"
    else:
        remedy = "its gap stands still: bring the features to one scale, lower C or raise tol"
    warnings.warn(
        f"{name} stopped after {fit.n_iter} rounds at a relative gap of "
        f"{fit.relative_gap:.1e}, above tol={tol:g}: {remedy}",
        ConvergenceWarning,
        stacklevel=callers_level(),
    )


def warn_of_no_positive(
    name: str, surrogate: Surrogate, gap: float, *, zero: bool, rows: bool
) -> None:
    """Warn that the minimiser predicts no positive label, which is due to the surrogate."""
    where = "all weights are zero" if zero else "every score is negative or zero"
    balance = "" if rows else "class_weight='balanced', "
    warnings.warn(
        f"{name} predicts no positive on the sample it was fitted to, {where}: the minimum of "
        f"{surrogate!r} lies there (relative gap {gap:.1e}); try another surrogate, such as "
        f"'hinge', a larger C, {balance}or a threshold below 0 on decision_function",
        UserWarning,
        stacklevel=callers_level(),
    )
