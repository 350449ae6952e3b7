"""Decisions: the set of least expected loss, from the probabilities of any model."""

from setwise.decisions._budgets import BudgetDecision
from setwise.decisions._decision import Decision
from setwise.decisions._label_maps._decision import LabelDecision

__all__ = ["BudgetDecision", "Decision", "LabelDecision"]
