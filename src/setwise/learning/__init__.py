"""Learners: cutting planes for any convex risk, boosting, and where an oracle runs."""

from setwise._foundation._progress import Progress
from setwise.learning._boosting._boost_fit import BoostFit, BoostHistory, BoostProgress
from setwise.learning._boosting._problem import Column, ExamplewiseRisk, Risk, Search
from setwise.learning._boosting._struct_boost import struct_boost
from setwise.learning._cutting_planes._fit import Fit, Planes
from setwise.learning._cutting_planes._frank_wolfe import block_frank_wolfe
from setwise.learning._cutting_planes._n_slack import n_slack
from setwise.learning._cutting_planes._one_slack import one_slack
from setwise.learning._executors import Executor, Serial, Threads
from setwise.learning._history import History
from setwise.learning._weak_learners._perceptrons import Perceptron, Perceptrons
from setwise.learning._weak_learners._sklearn_learners import SklearnLearners, WeakClassifier
from setwise.learning._weak_learners._stumps import Stump, Stumps

__all__ = [
    "BoostFit",
    "BoostHistory",
    "BoostProgress",
    "Column",
    "ExamplewiseRisk",
    "Executor",
    "Fit",
    "History",
    "Perceptron",
    "Perceptrons",
    "Planes",
    "Progress",
    "Risk",
    "Search",
    "Serial",
    "SklearnLearners",
    "Stump",
    "Stumps",
    "Threads",
    "WeakClassifier",
    "block_frank_wolfe",
    "n_slack",
    "one_slack",
    "struct_boost",
]
