"""Decisions: the set of least expected loss, from the probabilities of any model."""

from setwise.decisions._decision import Decision

__all__ = ["Decision"]
