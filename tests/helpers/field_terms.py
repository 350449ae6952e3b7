"""Fields made of given terms, and random terms of every kind."""

from __future__ import annotations

import numpy as np
from reference import all_labelings, term_energy

from setwise.fields import _terms as t
from setwise.fields._base import Potential
from setwise.fields._field import Field


class Given(Potential):
    """The sum of given terms."""

    def __init__(self, *terms: t.Term) -> None:
        self._set(given=terms)

    @property
    def is_submodular(self) -> bool | None:
        return all(term.is_submodular for term in self.given)

    def energies(self, labels: np.ndarray, n_labels: int) -> np.ndarray:
        return np.array([sum(term_energy(term, x) for term in self.given) for x in labels], float)

    def terms(self, n_variables: int, n_labels: int) -> tuple[t.Term, ...]:
        return self.given


def random_term(kind: str, n: int, n_labels: int, rng: np.random.Generator) -> t.Term:
    pairs = rng.integers(0, n, (max(n, 2) if n > 1 else 0, 2))
    edges = pairs[pairs[:, 0] != pairs[:, 1]]
    regions = rng.integers(-1, 2, n)
    regions = np.unique(np.append(regions, -1), return_inverse=True)[1][:-1] - 1
    sizes = np.bincount(regions[regions >= 0])
    center = rng.integers(0, n_labels, n)
    match kind:
        case "potts":
            return t.PottsTerm(edges, rng.random(len(edges)) * 2)
        case "tables":
            tables = rng.normal(size=(len(edges), n_labels, n_labels))
            return t.TableTerm(edges, tables)
        case "shared table":
            table = rng.normal(size=(n_labels, n_labels))
            return t.TableTerm(edges, table, rng.random(len(edges)))
        case "count":
            tables = [table - table[0] for table in (concave(size, rng) for size in sizes)]
            starts = np.concatenate([[0], np.cumsum(sizes + 1)])
            return t.CountTerm(regions, starts, np.concatenate([np.zeros(0), *tables]))
        case "robust":
            truncation = sizes * (0.3 + rng.random(len(sizes)))
            return t.RobustTerm(regions, rng.random(len(sizes)) * 3, truncation)
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
    return float(field._energies(all_labelings(field.n_variables, field.n_labels)).min())


# What of a potential is an energy, and so changes with the unit.
_ENERGIES = {"cost", "costs", "table", "tables", "weight", "weights"}


def scaled(field: Field, factor: float) -> Field:
    """The same field in another unit."""
    other = Field(field.unary * factor)
    for potential in field.potentials:
        scales = _ENERGIES - {"weights"} if hasattr(potential, "tables") else _ENERGIES
        fields = {
            name: factor * value if name in scales else value
            for name, value in vars(potential).items()
            if not name.startswith("_memo")
        }
        copy = type(potential).__new__(type(potential))
        copy._set(**fields)
        other = other + copy
    return other
