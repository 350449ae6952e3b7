"""Learners: cutting planes for any convex risk, and where its oracle runs."""

from setwise.learning._executors import Executor, Serial, Threads
from setwise.learning._fit import Fit, History, Planes, Progress
from setwise.learning._frank_wolfe import block_frank_wolfe
from setwise.learning._n_slack import n_slack
from setwise.learning._one_slack import one_slack
from setwise.learning._perceptrons import Perceptron, Perceptrons
from setwise.learning._sklearn_learners import SklearnLearners, WeakClassifier
from setwise.learning._stumps import Stump, Stumps

__all__ = [
    "Executor",
    "Fit",
    "History",
    "Perceptron",
    "Perceptrons",
    "Planes",
    "Progress",
    "Serial",
    "SklearnLearners",
    "Stump",
    "Stumps",
    "Threads",
    "WeakClassifier",
    "block_frank_wolfe",
    "n_slack",
    "one_slack",
]
