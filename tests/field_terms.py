"""Fields made of given terms, their energies by the definition, and random terms of every kind."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from setwise.fields import _terms as t
from setwise.fields._base import Potential
from setwise.fields._field import Field


def term_energy(term: t.Term, x: np.ndarray, n_labels: int) -> float:
    """The definition of a term, one labelling at a time."""
    match term:
        case t.ConstantTerm():
            return term.value
        case t.UnaryTerm():
            return sum(term.unary[i, label] for i, label in enumerate(x))
        case t.PottsTerm():
            return sum(
                w for (i, j), w in zip(term.edges, term.weights, strict=True) if x[i] != x[j]
            )
        case t.TableTerm():
            return sum(
                table[x[i], x[j]] for (i, j), table in zip(term.edges, term.tables, strict=True)
            )
        case t.CountTerm():
            counts = _counts(term.regions, x, n_labels, len(term.starts) - 1)
            return sum(
                term.table[start + n]
                for start, row in zip(term.starts[:-1], counts, strict=True)
                for n in row
            )
        case t.RobustTerm():
            counts = _counts(term.regions, x, n_labels, len(term.weights))
            return sum(
                w * min(1.0, (row.sum() - row.max()) / q)
                for row, w, q in zip(counts, term.weights, term.truncation, strict=True)
            )
        case t.LabelTerm():
            return term.cost * any(term.labels[label] for label in x)
        case t.TransitionTerm():
            h = (lambda n: np.minimum(n, 1.0)) if term.concave is None else term.concave
            total = 0.0
            for a, b in combinations(range(n_labels), 2):
                met = sum({x[i], x[j]} == {a, b} for i, j in term.edges)
                total += term.costs[a, b] * float(h(np.array([float(met)]))[0])
            return total
        case t.CardinalityTerm():
            return term.table[int((x != term.center).sum())]
    raise TypeError(type(term).__name__)


def _counts(regions: np.ndarray, x: np.ndarray, n_labels: int, n_regions: int) -> np.ndarray:
    counts = np.zeros((n_regions, n_labels), int)
    for region, label in zip(regions, x, strict=True):
        if region >= 0:
            counts[region, label] += 1
    return counts


class Given(Potential):
    """The sum of given terms."""

    def __init__(self, *terms: t.Term) -> None:
        self._set(given=terms)

    @property
    def is_submodular(self) -> bool | None:
        return all(term.is_submodular for term in self.given)

    def _check(self, n_variables: int, n_labels: int) -> None:
        pass

    def _energies(self, labels: np.ndarray, n_labels: int) -> np.ndarray:
        return np.array(
            [sum(term_energy(term, x, n_labels) for term in self.given) for x in labels], float
        )

    def _terms(self, n_variables: int, n_labels: int) -> tuple[t.Term, ...]:
        return self.given


def all_labellings(n: int, n_labels: int) -> np.ndarray:
    return np.array(list(product(range(n_labels), repeat=n)), np.int64).reshape(-1, n)


def random_term(kind: str, n: int, n_labels: int, rng: np.random.Generator) -> t.Term:
    pairs = rng.integers(0, n, (max(n, 2) if n > 1 else 0, 2))
    edges = pairs[pairs[:, 0] != pairs[:, 1]]
    regions = rng.integers(-1, 2, n)
    sizes = np.array([(regions == r).sum() for r in range(2)])
    center = rng.integers(0, n_labels, n)
    match kind:
        case "potts":
            return t.PottsTerm(edges, rng.random(len(edges)) * 2)
        case "tables":
            tables = rng.normal(size=(len(edges), n_labels, n_labels))
            return t.TableTerm(edges, tables)
        case "count":
            tables = [concave(size, rng) for size in sizes]
            starts = np.concatenate([[0], np.cumsum(sizes + 1)])
            return t.CountTerm(regions, starts, np.concatenate(tables))
        case "robust":
            truncation = np.maximum(sizes, 1) * (0.3 + rng.random(2))
            return t.RobustTerm(regions, rng.random(2) * 3, truncation)
        case "label":
            label = np.arange(n_labels) == rng.integers(n_labels)
            return t.LabelTerm(rng.random() * 3, label)
        case "labels":
            return t.LabelTerm(rng.random() * 3, rng.random(n_labels) < 0.6)
        case "transition":
            costs = rng.random((n_labels, n_labels)) * 2
            costs = (costs + costs.T) * (1 - np.eye(n_labels))
            return t.TransitionTerm(edges, costs, np.sqrt if rng.random() < 0.5 else None)
        case "concave cardinality":
            return t.CardinalityTerm(center, concave(n, rng))
        case "concave cardinality of one label":
            label = int(rng.integers(n_labels))
            return t.CardinalityTerm(np.full(n, label, np.int64), concave(n, rng))
        case "cardinality":
            return t.CardinalityTerm(center, rng.normal(size=n + 1) * 2)
    raise ValueError(kind)


def concave(size: int, rng: np.random.Generator) -> np.ndarray:
    gains = np.sort(rng.normal(size=size))[::-1]
    return np.concatenate([[0.0], np.cumsum(gains)]) + rng.normal()


BY_LABEL = ["potts", "count", "label", "labels", "concave cardinality of one label"]
SUBMODULAR = [*BY_LABEL, "concave cardinality"]
ANY = [*SUBMODULAR, "tables", "robust", "transition", "cardinality"]


def random_field(
    kinds: list[str], n: int, n_labels: int, seed: int, *, forbidden: float = 0.0
) -> Field:
    """Unaries, some of them infinite, plus one to three terms of the given kinds."""
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(n, n_labels)) * rng.choice([0.5, 2.0])
    banned = rng.random((n, n_labels)) < forbidden
    banned[np.arange(n), rng.integers(0, n_labels, n)] = False
    unary[banned] = np.inf
    chosen = rng.choice(kinds, rng.integers(1, 4))
    return Field(unary) + Given(*(random_term(kind, n, n_labels, rng) for kind in chosen))


def least_energy(field: Field) -> float:
    return float(field._energies(all_labellings(field.n_variables, field.n_labels)).min())
