"""Learners: cutting planes for any convex risk, and where its oracle runs."""

from setwise.learning._executors import Executor, Serial, Threads
from setwise.learning._fit import Fit, History, Planes, Progress
from setwise.learning._frank_wolfe import block_frank_wolfe
from setwise.learning._n_slack import n_slack
from setwise.learning._one_slack import one_slack
from setwise.learning._stumps import Stump, Stumps

__all__ = [
    "Executor",
    "Fit",
    "History",
    "Planes",
    "Progress",
    "Serial",
    "Stump",
    "Stumps",
    "Threads",
    "block_frank_wolfe",
    "n_slack",
    "one_slack",
]
