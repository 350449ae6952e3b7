"""scikit-learn estimators."""

from setwise.estimators._set_classifier import SetClassifier
from setwise.estimators._struct_boost_tracker import StructBoostTracker

__all__ = ["SetClassifier", "StructBoostTracker"]
