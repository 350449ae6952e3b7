"""scikit-learn estimators."""

from setwise.estimators._field_boost import FieldBoost
from setwise.estimators._field_svm import FieldSVM
from setwise.estimators._set_classifier import SetClassifier

__all__ = ["FieldBoost", "FieldSVM", "SetClassifier"]
