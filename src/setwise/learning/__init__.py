"""Learners: cutting planes for any convex risk, boosting, and executors for oracles."""

from setwise._foundation._progress import Progress
from setwise.learning._boosting._boost_fit import BoostFit, BoostHistory, BoostProgress
from setwise.learning._boosting._options import BoostOptions
from setwise.learning._boosting._problem import Column, ExamplewiseRisk, Risk, WeakLearnerSearch
from setwise.learning._boosting._struct_boost import struct_boost
from setwise.learning._cutting_planes._fit import Fit, Planes
from setwise.learning._cutting_planes._n_slack import n_slack
from setwise.learning._cutting_planes._one_slack import one_slack
from setwise.learning._executors import Executor, Serial, Threads
from setwise.learning._history import History
from setwise.learning._tree_sum import tree_sum
from setwise.learning._weak_learners._category_stumps import CategoryStump
from setwise.learning._weak_learners._classifiers import ClassifierSearch, WeakClassifier
from setwise.learning._weak_learners._perceptrons import Perceptron, PerceptronSearch
from setwise.learning._weak_learners._steps import Step, StepSearch
from setwise.learning._weak_learners._stumps import Stump, StumpSearch

__all__ = [
    "BoostFit",
    "BoostHistory",
    "BoostOptions",
    "BoostProgress",
    "CategoryStump",
    "ClassifierSearch",
    "Column",
    "ExamplewiseRisk",
    "Executor",
    "Fit",
    "History",
    "Perceptron",
    "PerceptronSearch",
    "Planes",
    "Progress",
    "Risk",
    "Serial",
    "Step",
    "StepSearch",
    "Stump",
    "StumpSearch",
    "Threads",
    "WeakClassifier",
    "WeakLearnerSearch",
    "n_slack",
    "one_slack",
    "struct_boost",
    "tree_sum",
]
