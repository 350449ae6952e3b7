"""Terms: the few standard forms in which potentials are passed to inference.

A potential is converted to terms for a field of N variables and L labels, and a method declares
which kinds of terms it supports. So a new potential works with every method that supports its
terms, and a new method does not depend on the potentials.
"""

from setwise.fields._terms._base import Term, distinct, rounding_of_heights
from setwise.fields._terms._cliques import CliqueTerm
from setwise.fields._terms._fold import Folded, fold, sum_constants
from setwise.fields._terms._label_counts import CardinalityTerm, LabelTerm
from setwise.fields._terms._merged import MergedPairs, merge_pairs
from setwise.fields._terms._pairs import PottsTerm, TransitionTerm
from setwise.fields._terms._region_counts import CountTerm, RobustTerm
from setwise.fields._terms._singles import ConstantTerm, UnaryTerm
from setwise.fields._terms._tables import TableTerm

KINDS: tuple[type[Term], ...] = (
    ConstantTerm,
    UnaryTerm,
    PottsTerm,
    TableTerm,
    CountTerm,
    RobustTerm,
    LabelTerm,
    TransitionTerm,
    CardinalityTerm,
    CliqueTerm,
)

__all__ = [
    "KINDS",
    "CardinalityTerm",
    "CliqueTerm",
    "ConstantTerm",
    "CountTerm",
    "Folded",
    "LabelTerm",
    "MergedPairs",
    "PottsTerm",
    "RobustTerm",
    "TableTerm",
    "Term",
    "TransitionTerm",
    "UnaryTerm",
    "distinct",
    "fold",
    "merge_pairs",
    "rounding_of_heights",
    "sum_constants",
]
