"""Displays in the style of scikit-learn's, which need matplotlib (``setwise[plot]``)."""

from setwise.plots._decomposition import DecompositionDisplay
from setwise.plots._diverse import DiverseDisplay
from setwise.plots._marginals import MarginalsDisplay
from setwise.plots._reliability import ReliabilityDisplay
from setwise.plots._surrogate import SurrogateDisplay

__all__ = [
    "DecompositionDisplay",
    "DiverseDisplay",
    "MarginalsDisplay",
    "ReliabilityDisplay",
    "SurrogateDisplay",
]
