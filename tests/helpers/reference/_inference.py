"""Minima, relaxations, cuts, partition functions and lists, over all labellings."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from scipy.optimize import linprog

from reference._fields import all_labelings, field_energy
from reference._functions import all_masks
from setwise import fields
from setwise.fields import _terms


def least_energy(field: fields.Field) -> float:
    """The minimum over all labellings."""
    labelings = all_labelings(field.n_variables, field.n_labels)
    return min(field_energy(field, labels) for labels in labelings)


def count_min_marginals(table: np.ndarray, costs: np.ndarray) -> tuple[float, np.ndarray]:
    """min over b of table[|b|] + <costs, b>, and min with b_i = 1 minus min with b_i = 0: O(n^2).

    With one element in or out, the best of every size takes the cheapest others.
    """
    rises = []
    for i, cost in enumerate(costs):
        others = np.append(0.0, np.cumsum(np.sort(np.delete(costs, i))))
        rises.append((table[1:] + others).min() + cost - (table[:-1] + others).min())
    best = (table + np.append(0.0, np.cumsum(np.sort(costs)))).min()
    return float(best), np.array(rises)


def enumerated_min_marginals(table: np.ndarray, costs: np.ndarray) -> tuple[float, np.ndarray]:
    """The same by trying all b."""
    masks = all_masks(len(costs))
    energies = table[masks.sum(axis=1)] + masks @ costs
    rises = [energies[mask].min() - energies[~mask].min() for mask in masks.T]
    return float(energies.min()), np.array(rises)


def pairwise_relaxation(field: fields.Field) -> float:
    """The linear programming bound of unaries and pairwise terms (the local polytope)."""
    n, n_labels = field.n_variables, field.n_labels
    tables = []
    constant, cost = 0.0, list(field.unary.ravel())
    for _, term in field._terms():
        if isinstance(term, _terms.ConstantTerm):
            constant += term.value
        elif isinstance(term, _terms.UnaryTerm):
            cost = list(np.array(cost) + term.unary.ravel())
        elif isinstance(term, _terms.PottsTerm):
            tables += [
                (i, j, weight * (1.0 - np.eye(n_labels)))
                for (i, j), weight in zip(term.edges, term.weights, strict=True)
            ]
        else:
            assert isinstance(term, _terms.TableTerm)
            scaled = term.weights[:, None, None] * term.tables
            tables += [(i, j, t) for (i, j), t in zip(term.edges, scaled, strict=True)]
    square = n_labels**2
    width = n * n_labels + len(tables) * square
    rows, sides = [], []
    for i in range(n):
        row = np.zeros(width)
        row[i * n_labels : (i + 1) * n_labels] = 1.0
        rows.append(row)
        sides.append(1.0)
    for e, (i, j, table) in enumerate(tables):
        cost += list(table.ravel())
        pair = n * n_labels + e * square + np.arange(square).reshape(n_labels, n_labels)
        for end, across in ((i, pair), (j, pair.T)):
            for x in range(n_labels):
                row = np.zeros(width)
                row[across[x]] = 1.0
                row[end * n_labels + x] = -1.0
                rows.append(row)
                sides.append(0.0)
    answer = linprog(cost, A_eq=np.array(rows), b_eq=sides, bounds=(0, None), method="highs")
    assert answer.status == 0
    return float(answer.fun) + constant


def smallest_cut(n, edges, capacities, reverse, source, sink):
    """The least cost over all 2^n sets on the source side: what a largest flow must equal."""
    best = np.inf
    for bits in range(1 << n):
        a = np.array([bool(bits >> v & 1) for v in range(n)], bool)
        cost = source[~a].sum() + sink[a].sum()
        for (i, j), there, back in zip(edges, capacities, reverse, strict=True):
            cost += there * (a[i] and not a[j]) + back * (a[j] and not a[i])
        best = min(best, cost)
    return best


def log_weights(field: fields.Field, temperature: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Every labelling, and -E / t of each."""
    labelings = all_labelings(field.n_variables, field.n_labels)
    energies = np.array([field_energy(field, x) for x in labelings])
    return labelings, -energies / temperature


def log_partition(field: fields.Field, temperature: float = 1.0) -> float:
    """log sum_x exp(-E(x) / t)."""
    return float(np.logaddexp.reduce(log_weights(field, temperature)[1]))


def exact_marginals(field: fields.Field, temperature: float = 1.0) -> np.ndarray:
    """(N, L), by the definition."""
    labelings, logs = log_weights(field, temperature)
    probabilities = np.exp(logs - np.logaddexp.reduce(logs))
    one_hot = labelings[:, :, None] == np.arange(field.n_labels)
    return np.einsum("m,mij->ij", probabilities, one_hot.astype(float))


def log_factorized(q: np.ndarray, labelings: np.ndarray) -> np.ndarray:
    """log Q(x) of each labelling."""
    with np.errstate(divide="ignore"):
        logs = np.log(q)
    return np.array([sum(logs[i, x] for i, x in enumerate(row)) for row in labelings], float)


def factorized_bound(field: fields.Field, q: np.ndarray, temperature: float = 1.0) -> float:
    """H(Q) - E_Q[E] / t, a sum over all labellings."""
    labelings, logs = log_weights(field, temperature)
    own = log_factorized(q, labelings)
    met = np.isfinite(own)
    return float((np.exp(own[met]) * (logs[met] - own[met])).sum())


def best_step(field: fields.Field, diversity: object, earlier: np.ndarray) -> float:
    """The least E(y) - d(y | S) over all labellings y."""
    every = all_labelings(*field.unary.shape)
    energies = field.energy(every)
    gains = np.array([diversity.gain_of(y, earlier, field.n_labels) for y in every])
    return float((energies - gains).min())


def best_list(field: fields.Field, diversity: object, m: int, shift: float) -> float:
    """The largest sum of (shift - E) plus d over all lists of at most m items, repeats allowed."""
    every = all_labelings(*field.unary.shape)
    every = every[np.isfinite(field.energy(every))]
    energies = field.energy(every)
    best = 0.0
    for size in range(1, m + 1):
        for items in combinations_with_replacement(range(len(every)), size):
            chosen = list(items)
            value = diversity._value(every[chosen], field.n_labels)
            best = max(best, size * shift - float(energies[chosen].sum()) + value)
    return best
