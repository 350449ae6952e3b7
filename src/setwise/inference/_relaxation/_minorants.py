r"""Lower bounds of terms that have a convex relaxation, so that the relaxation bounds every field.

A lower bound on a smaller energy is a lower bound on the energy. Each term that is not a submodular
function of the pairs (variable, label) is replaced by a term that is at most as large for every
labelling:

- a table of two variables by unaries plus the largest Potts term below the rest;
- label transitions by a Potts term, by the chord of the concave function;
- a robust term with a truncation above half its region by a scaled term truncated at half;
- a cardinality table that is not concave by its lower convex hull;
- a table of several variables by unaries, equal shares of the least entry of each label.

The tests check every formula against all labellings of small fields.
"""

from __future__ import annotations

import numpy as np

from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._terms import (
    CardinalityTerm,
    CliqueTerm,
    ConstantTerm,
    CountTerm,
    PottsTerm,
    RobustTerm,
    TableTerm,
    Term,
    TransitionTerm,
    UnaryTerm,
    rounding_of_heights,
)
from setwise.inference._relaxation._count_tables import convex_hull


def relaxable_minorant(field: Field) -> tuple[list[tuple[Potential, Term]], bool]:
    """Return relaxable terms whose sum is at most the field's, and whether the sums are equal.

    Each term is paired with the potential it comes from, as the terms of a field are.
    """
    terms: list[tuple[Potential, Term]] = []
    equal = True
    for potential, term in field._terms():
        if term.is_submodular:
            terms.append((potential, term))
            continue
        below, same = _below(term, field)
        terms.extend((potential, part) for part in below)
        equal = equal and same
    return terms, equal


def _below(term: Term, field: Field) -> tuple[list[Term], bool]:
    match term:
        case TableTerm():
            return _below_tables(term, field.n_variables)
        case TransitionTerm():
            return _below_transitions(term), False
        case RobustTerm():
            return _below_robust(term), False
        case CardinalityTerm():
            return _below_cardinality(term)
        case CliqueTerm():
            return [_below_cliques(term, *field.unary.shape)], False
        case _:
            raise TypeError(f"no submodular term below a {type(term).__name__} is known")


def _below_tables(term: TableTerm, n: int) -> tuple[list[Term], bool]:
    r"""Bound theta(a, b) >= alpha_a + beta_b + w [a != b] for each edge; equal at a = b if w > 0.

    alpha_a = theta(a, a) / 2 + gamma_a and beta_b = theta(b, b) / 2 - gamma_b are tight on the
    diagonal for every gamma. With the best gamma, w is the least mean of theta minus its diagonal
    over the cycles of labels. Half the difference of the row and column means is that gamma for two
    labels, and for any table that is a Potts term plus unaries; so the bound is equal there. If w
    would be negative, w is set to 0 and the unaries are lowered until they are below the table.
    """
    tables, which, factors = term._distinct, term._which, term.weights
    n_labels = tables.shape[1]
    half = np.einsum("eaa->ea", tables) / 2
    rest = tables - half[:, :, None] - half[:, None, :]
    gamma = (rest.mean(axis=2) - rest.mean(axis=1)) / 2
    alpha, beta = half + gamma, half - gamma
    off_diagonal = 1.0 - np.eye(n_labels)
    rest = tables - alpha[:, :, None] - beta[:, None, :]
    weights = np.where(off_diagonal > 0, rest, np.inf).min(axis=(1, 2), initial=np.inf)
    weights = np.where(np.isfinite(weights), np.maximum(weights, 0.0), 0.0)
    rest -= weights[:, None, None] * off_diagonal
    raised = rest.min(axis=2)
    rest -= raised[:, :, None]
    lifted = rest.min(axis=1)
    rest -= lifted[:, None, :]
    unary = np.zeros((n, n_labels))
    np.add.at(unary, term.edges[:, 0], factors[:, None] * (alpha + raised)[which])
    np.add.at(unary, term.edges[:, 1], factors[:, None] * (beta + lifted)[which])
    scale = float(np.abs(tables).max(initial=0.0))
    equal = float(np.abs(rest).max(initial=0.0)) <= 1e-12 * scale
    return [UnaryTerm._of(unary), PottsTerm._of(term.edges, factors * weights[which])], equal


def _below_transitions(term: TransitionTerm) -> list[Term]:
    """Bound h(c) >= c h(E) / E for 0 <= c <= E, h concave, h(0) = 0; costs[a, b] >= the least."""
    n_edges, n_labels = len(term.edges), len(term.costs)
    if n_edges == 0 or n_labels < 2:
        return []
    whole = np.array([float(n_edges)])
    height = np.asarray(term._heights(whole))
    least = term.costs[~np.eye(n_labels, dtype=np.bool_)].min()
    chord = max(float(height[0]), 0.0) / n_edges
    return [PottsTerm._of(term.edges, np.full(n_edges, least * chord))]


def _below_robust(term: RobustTerm) -> list[Term]:
    r"""Bound by c (1 + sum_j min(0, 1 - 2 n_j / S)) = c min(1, 2 r), r = (S - max_j n_j) / S.

    At most one label has more than half of the region, and only this label has a negative summand.
    The term is weight min(1, r S / Q) with the truncation Q > S / 2. Up to r = 1/2 it equals
    c min(1, 2 r) with c = weight S / (2 Q); beyond, it is at least c. A truncation of at most half
    is not changed: c = weight, and Q replaces S / 2.
    """
    inside = term.regions[term.regions >= 0]
    sizes = np.bincount(inside, minlength=len(term.weights))
    halves = np.minimum(term.truncation, sizes / 2)
    scales = term.weights * halves / term.truncation
    tables = [np.zeros(0)]
    for size, scale, half in zip(sizes, scales, halves, strict=True):
        missing = size - np.arange(size + 1)
        tables.append(scale * np.minimum(0.0, missing / half - 1.0) if size else np.zeros(1))
    starts = np.concatenate([[0], np.cumsum(sizes + 1)])
    counts = CountTerm._of(term.regions, starts, np.concatenate(tables))
    return [counts, ConstantTerm._of(float(scales.sum()))]


def _below_cliques(term: CliqueTerm, n: int, n_labels: int) -> Term:
    """Bound finite tables theta(x) by unaries: the mean over i of the least theta with x_i."""
    k = term.cliques.shape[1]
    unary = np.zeros((n, n_labels))
    for axis, side in enumerate(term.sides.tolist()):
        others = tuple(other + 1 for other in range(k) if other != axis)
        np.add.at(unary[:, :side], term.cliques[:, axis], term.tables.min(axis=others) / k)
    return UnaryTerm._of(unary)


def _below_cardinality(term: CardinalityTerm) -> tuple[list[Term], bool]:
    """Return the lower convex hull of the table, in O(N)."""
    below = convex_hull(term.table)
    same = bool(np.allclose(below, term.table, 1e-12, rounding_of_heights(term.table)))
    return [CardinalityTerm._of(term.center, below)], same
