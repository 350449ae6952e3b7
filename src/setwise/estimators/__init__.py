"""scikit-learn estimators."""

from setwise.estimators._set_classifier import SetClassifier
from setwise.estimators._struct_boost_classifier import StructBoostClassifier

__all__ = ["SetClassifier", "StructBoostClassifier"]
