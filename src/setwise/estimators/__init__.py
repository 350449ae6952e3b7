"""scikit-learn estimators."""

from setwise.estimators._set_classifier import SetClassifier

__all__ = ["SetClassifier"]
