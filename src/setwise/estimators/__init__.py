"""scikit-learn estimators."""

from setwise.estimators._field_boost import FieldBoost
from setwise.estimators._field_svm import FieldSVM
from setwise.estimators._set_classifier import SetClassifier
from setwise.estimators._struct_boost_classifier import StructBoostClassifier
from setwise.estimators._struct_boost_ranker import StructBoostRanker
from setwise.estimators._struct_boost_tracker import StructBoostTracker

__all__ = [
    "FieldBoost",
    "FieldSVM",
    "SetClassifier",
    "StructBoostClassifier",
    "StructBoostRanker",
    "StructBoostTracker",
]
