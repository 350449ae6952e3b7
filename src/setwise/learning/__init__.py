"""Learners: cutting planes for any convex risk, and where its oracle runs."""

from setwise.learning._executors import Executor, Serial, Threads
from setwise.learning._fit import Fit, History, Planes, Progress
from setwise.learning._one_slack import one_slack

__all__ = [
    "Executor",
    "Fit",
    "History",
    "Planes",
    "Progress",
    "Serial",
    "Threads",
    "one_slack",
]
