"""Decisions: the set of least expected loss, from anybody's probabilities."""

from setwise.decisions._decide import decide
from setwise.decisions._decision import Decision

__all__ = ["Decision", "decide"]
