"""Diversities of lists of labellings, and the potentials that their greedy steps add."""

from setwise.diversities._addition import Addition
from setwise.diversities._alternatives import Alternatives
from setwise.diversities._balls import BallCoverage, BallCoverageBound
from setwise.diversities._base import Diversity
from setwise.diversities._concatenated import Concatenated
from setwise.diversities._groups import GroupCoverage, LabelDiversity
from setwise.diversities._hamming import DivMBest, HammingBall
from setwise.diversities._transitions import TransitionDiversity
from setwise.diversities._variables import VariableCoverage

__all__ = [
    "Addition",
    "Alternatives",
    "BallCoverage",
    "BallCoverageBound",
    "Concatenated",
    "DivMBest",
    "Diversity",
    "GroupCoverage",
    "HammingBall",
    "LabelDiversity",
    "TransitionDiversity",
    "VariableCoverage",
]
