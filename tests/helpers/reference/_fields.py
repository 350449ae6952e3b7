"""Energies of labellings, and submodular terms on all sets of pairs, by their definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from reference._functions import all_masks
from setwise import fields
from setwise.fields import _terms


def all_labelings(n: int, n_labels: int) -> np.ndarray:
    """Every labelling of n variables as a row, (n_labels^n, n)."""
    return np.array(list(product(range(n_labels), repeat=n)), int).reshape(n_labels**n, n)


def field_energy(field: fields.Field, labels: Sequence[int]) -> float:
    """The definition: unaries plus potentials, one variable after the other."""
    total = sum(float(field.unary[i, label]) for i, label in enumerate(labels))
    return total + sum(
        potential_energy(potential, labels, field.n_labels) for potential in field.potentials
    )


def rational_energy(field: fields.Field, labels: Sequence[int]) -> Fraction:
    """The energy without any rounding, of a labelling that nothing forbids.

    Numbers are what the field holds; those of a power of counts are the table that is kept.
    """
    x = [int(label) for label in labels]
    paid = [field.unary[i, label] for i, label in enumerate(x)]
    total = Fraction(0)
    for potential in field.potentials:
        match potential:
            case fields.RegionConsistency():
                heights, start = potential._term().table, 0
                for _, inside in _by_region(potential.weight, potential.regions, x):
                    paid += [heights[start + inside.count(j)] for j in set(inside)]
                    start += len(inside) + 1
            case fields.RobustPn():
                regions = _by_region(potential.weight, potential.regions, x)
                for (weight, inside), limit in zip(regions, potential.truncation, strict=True):
                    outside = min(len(inside) - inside.count(j) for j in set(inside))
                    share = min(Fraction(1), outside / Fraction(float(limit)))
                    total += Fraction(weight) * share
            case fields.LabelTransition():
                for a, b in combinations(range(len(potential.costs)), 2):
                    met = sum({x[i], x[j]} == {a, b} for i, j in potential.edges.tolist())
                    concave = potential.concave
                    height = min(1, met) if concave is None else concave(np.array([float(met)]))[0]
                    total += Fraction(float(potential.costs[a, b])) * Fraction(float(height))
            case fields.Potts():
                weighted = zip(potential.edges.tolist(), potential.weights, strict=True)
                paid += [weight for (i, j), weight in weighted if x[i] != x[j]]
            case fields.Pairwise():
                tables = _each(potential)
                for e, (i, j) in enumerate(potential.edges.tolist()):
                    weight = Fraction(float(potential.weights[e]))
                    total += weight * Fraction(float(tables[e, x[i], x[j]]))
            case fields.TruncatedLinear() | fields.TruncatedQuadratic():
                power = 1 if isinstance(potential, fields.TruncatedLinear) else 2
                for (i, j), weight in zip(potential.edges.tolist(), potential.weights, strict=True):
                    cost = Fraction(min(abs(x[i] - x[j]) ** power, potential.truncation))
                    total += Fraction(float(weight)) * cost
            case fields.CliquePotential():
                scopes = potential.cliques
                sides = potential.tables.shape[-scopes.shape[1] :]
                tables = np.broadcast_to(potential.tables, (len(scopes), *sides))
                paid += [tables[(c, *(x[i] for i in s))] for c, s in enumerate(scopes.tolist())]
            case fields.LabelCost() if potential.labels is None:
                paid += [potential.costs[j] for j in set(x)]
            case _:  # a single number
                paid.append(potential_energy(potential, x, field.n_labels))
    return total + sum(map(Fraction, map(float, paid)))


def potential_energy(potential: fields.Potential, labels: Sequence[int], n_labels: int) -> float:
    """Each potential as its docstring defines it, from its public attributes."""
    x = [int(label) for label in labels]
    match potential:
        case fields.Potts():
            weighted = zip(potential.edges.tolist(), potential.weights.tolist(), strict=True)
            return sum(weight for (i, j), weight in weighted if x[i] != x[j])
        case fields.Pairwise():
            tables, weights = _each(potential), potential.weights.tolist()
            edges = enumerate(potential.edges.tolist())
            return sum(weights[e] * float(tables[e, x[i], x[j]]) for e, (i, j) in edges)
        case fields.TruncatedLinear() | fields.TruncatedQuadratic():
            power = 1 if isinstance(potential, fields.TruncatedLinear) else 2
            most = potential.truncation
            weighted = zip(potential.edges.tolist(), potential.weights.tolist(), strict=True)
            return sum(weight * min(abs(x[i] - x[j]) ** power, most) for (i, j), weight in weighted)
        case fields.RegionConsistency():
            total = 0.0
            for weight, inside in _by_region(potential.weight, potential.regions, x):
                size, alpha = len(inside), potential.alpha
                power = sum(float(size - inside.count(j)) ** alpha for j in range(n_labels))
                total += weight * (power - (n_labels - 1) * size**alpha)
            return total
        case fields.RobustPn():
            return _robust(potential.regions, potential.weight, potential.truncation, x)
        case fields.LabelCost():
            if potential.labels is None:
                return sum(float(potential.costs[j]) for j in set(x))
            return float(potential.costs[0]) if set(x) & set(potential.labels.tolist()) else 0.0
        case fields.LabelTransition():
            return _transitions(potential.edges, potential.costs, potential.concave, x)
        case fields.CardinalityPotential():
            differ = sum(a != b for a, b in zip(x, potential.center.tolist(), strict=True))
            return float(potential.table[differ])
        case fields.CliquePotential():
            count, k = potential.cliques.shape
            tables = np.broadcast_to(potential.tables, (count, *[n_labels] * k))
            cliques = enumerate(potential.cliques.tolist())
            return sum(float(tables[(c, *(x[i] for i in clique))]) for c, clique in cliques)
    raise TypeError(f"no definition of {type(potential).__name__}")


def _each(pairwise: fields.Pairwise) -> np.ndarray:
    n_labels = pairwise.tables.shape[-1]
    return np.broadcast_to(pairwise.tables, (len(pairwise.edges), n_labels, n_labels))


def term_energy(term: object, labels: Sequence[int]) -> float:
    """Each term as its docstring defines it."""
    x = [int(label) for label in labels]
    match term:
        case _terms.ConstantTerm():
            return term.value
        case _terms.UnaryTerm():
            return sum(float(term.unary[i, label]) for i, label in enumerate(x))
        case _terms.PottsTerm():
            weighted = zip(term.edges.tolist(), term.weights.tolist(), strict=True)
            return sum(weight for (i, j), weight in weighted if x[i] != x[j])
        case _terms.TableTerm():
            edges = enumerate(term.edges.tolist())
            return sum(float(term.weights[e] * term.tables[e, x[i], x[j]]) for e, (i, j) in edges)
        case _terms.CountTerm():
            total = 0.0
            for r in range(len(term.starts) - 1):
                heights = term.table[term.starts[r] : term.starts[r + 1]]
                inside = [label for label, of in zip(x, term.regions, strict=True) if of == r]
                assert len(heights) == len(inside) + 1
                # A label that no variable takes adds h(0): the number of labels must not matter.
                assert heights[0] == 0.0
                total += sum(float(heights[inside.count(j)]) for j in set(inside))
            return total
        case _terms.RobustTerm():
            return _robust(term.regions, term.weights, term.truncation, x)
        case _terms.LabelTerm():
            return term.cost if any(term.labels[label] for label in x) else 0.0
        case _terms.TransitionTerm():
            return _transitions(term.edges, term.costs, term.concave, x)
        case _terms.CardinalityTerm():
            differ = sum(a != b for a, b in zip(x, term.center.tolist(), strict=True))
            return float(term.table[differ])
        case _terms.CliqueTerm():
            cliques = enumerate(term.cliques.tolist())
            return sum(float(term.tables[(c, *(x[i] for i in clique))]) for c, clique in cliques)
    raise TypeError(f"no definition of {type(term).__name__}")


def lifted(term: object, n: int, n_labels: int) -> np.ndarray:
    """A submodular term as a function of all sets of pairs (variable, label), in bit order.

    Pair (i, j) is element i L + j. On the sets that hold one pair of each variable this must be the
    term's energy of that labelling.
    """
    sets = [mask.reshape(n, n_labels) for mask in all_masks(n * n_labels)]
    return np.array([_lifted_value(term, chosen) for chosen in sets])


def _lifted_value(term: object, chosen: np.ndarray) -> float:
    match term:
        case _terms.ConstantTerm():
            return term.value
        case _terms.UnaryTerm():
            return float(term.unary[chosen].sum())
        case _terms.PottsTerm():  # half a cut for each label
            first, second = chosen[term.edges[:, 0]], chosen[term.edges[:, 1]]
            return float(((first != second).sum(axis=1) * term.weights).sum() / 2)
        case _terms.CountTerm():
            total = 0.0
            for r in range(len(term.starts) - 1):
                heights = term.table[term.starts[r] : term.starts[r + 1]]
                total += float(heights[chosen[term.regions == r].sum(axis=0)].sum())
            return total
        case _terms.LabelTerm():
            return term.cost * float(chosen[:, term.labels].any())
        case _terms.CardinalityTerm():
            differ = chosen.sum() - chosen[np.arange(len(chosen)), term.center].sum()
            last = len(term.table) - 1
            beyond = max(int(differ) - last, 0)  # more than one pair of a variable: straight on
            slope = term.table[-1] - term.table[-2] if last else 0.0
            return float(term.table[min(int(differ), last)] + beyond * slope)
    raise TypeError(f"{type(term).__name__} claims nothing")


def _by_region(
    weights: np.ndarray, regions: np.ndarray, x: list[int]
) -> Iterator[tuple[float, list[int]]]:
    for r, weight in enumerate(weights.tolist()):
        yield weight, [label for label, of in zip(x, regions, strict=True) if of == r]


def _robust(
    regions: np.ndarray, weights: np.ndarray, truncation: np.ndarray, x: list[int]
) -> float:
    total = 0.0
    for (weight, inside), limit in zip(_by_region(weights, regions, x), truncation, strict=True):
        outside = min(len(inside) - inside.count(j) for j in set(inside))
        total += weight * min(1.0, outside / float(limit))
    return total


def _transitions(
    edges: np.ndarray,
    costs: np.ndarray,
    concave: Callable[[np.ndarray], np.ndarray] | None,
    x: list[int],
) -> float:
    total = 0.0
    for a, b in combinations(range(len(costs)), 2):
        met = sum({x[i], x[j]} == {a, b} for i, j in edges.tolist())
        height = min(1, met) if concave is None else float(concave(np.array([float(met)]))[0])
        total += float(costs[a, b]) * height
    return total
