"""Folding: the constants and unaries of all terms are added up, so that methods get one array."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from setwise._foundation._arguments import FloatArray
from setwise.fields._terms._base import Term
from setwise.fields._terms._singles import ConstantTerm, UnaryTerm


class Folded(NamedTuple):
    """An energy as the sum of a constant, unaries, and terms of more than one variable."""

    constant: float
    unary: FloatArray
    terms: tuple[tuple[Any, Term], ...]
    """pairs of a potential and one of its terms"""


def fold(unary: FloatArray, terms: Iterable[tuple[Any, Term]]) -> Folded:
    """Add constants and unaries in terms to unaries (N, L), and keep the other terms."""
    constant = 0.0
    rest: list[tuple[Any, Term]] = []
    for potential, term in terms:
        if isinstance(term, ConstantTerm):
            constant += term.value
        elif isinstance(term, UnaryTerm):
            unary = unary + term.unary
        else:
            rest.append((potential, term))
    return Folded(constant, unary, tuple(rest))


def sum_constants(terms: Iterable[tuple[Any, Term]], constant_of: Callable[[Term], float]) -> float:
    """Sum the constants, including those of ``constant_of``, in the order of the terms."""
    total = 0.0
    for _, term in terms:
        total += term.value if isinstance(term, ConstantTerm) else constant_of(term)
    return total
