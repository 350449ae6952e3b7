"""scikit-learn estimators."""

from setwise.estimators._boosting._struct_boost_classifier import StructBoostClassifier
from setwise.estimators._boosting._struct_boost_ranker import StructBoostRanker
from setwise.estimators._fields._field_boost import FieldBoost
from setwise.estimators._fields._field_svm import FieldSVM
from setwise.estimators._sets._set_classifier import SetClassifier
from setwise.estimators._sets._set_classifier_cv import SetClassifierCV
from setwise.estimators._sets._set_decision import SetDecision
from setwise.estimators._thinning._thin import thin
from setwise.estimators._thinning._thinned_ensemble import ThinnedEnsemble
from setwise.estimators._tracking._struct_boost_tracker import StructBoostTracker

__all__ = [
    "FieldBoost",
    "FieldSVM",
    "SetClassifier",
    "SetClassifierCV",
    "SetDecision",
    "StructBoostClassifier",
    "StructBoostRanker",
    "StructBoostTracker",
    "ThinnedEnsemble",
    "thin",
]
