"""Learners: cutting planes for any convex risk, boosting, and executors for oracles."""

from setwise.learning._boosting._options import BoostOptions
from setwise.learning._boosting._problem import Column
from setwise.learning._boosting._struct_boost import struct_boost
from setwise.learning._cutting_planes._n_slack import n_slack
from setwise.learning._cutting_planes._one_slack import one_slack
from setwise.learning._executors import Serial, Threads
from setwise.learning._tree_sum import tree_sum
from setwise.learning._weak_learners._classifiers import ClassifierSearch
from setwise.learning._weak_learners._perceptrons import PerceptronSearch
from setwise.learning._weak_learners._steps import StepSearch
from setwise.learning._weak_learners._stumps import StumpSearch

__all__ = [
    "BoostOptions",
    "ClassifierSearch",
    "Column",
    "PerceptronSearch",
    "Serial",
    "StepSearch",
    "StumpSearch",
    "Threads",
    "n_slack",
    "one_slack",
    "struct_boost",
    "tree_sum",
]
