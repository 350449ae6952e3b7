"""scikit-learn estimators."""

from setwise.estimators._thinning._thinned_ensemble import ThinnedEnsemble

__all__ = [
    "ThinnedEnsemble",
]
