"""Random fields that a method of moves takes, and the best answer to the offers of a move."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from setwise import fields


def random_field(
    rng: np.random.Generator, method: str, n: int, n_labels: int, idle: int = 0
) -> fields.Field:
    """A mixture of the potentials that a method takes; `idle` variables more just want label 0."""
    unary = rng.normal(0.0, rng.choice([0.3, 1.0, 3.0]), (n, n_labels))
    if rng.random() < 0.3:
        unary = np.round(unary)
    if rng.random() < 0.3:
        unary[rng.random(unary.shape) < 0.3] = np.inf
        unary[np.arange(n), rng.integers(n_labels, size=n)] = 0.0
    rest = np.full((idle, n_labels), 1000.0)
    rest[:, 0] = 0.0
    field = fields.Field(np.concatenate([unary, rest]))
    pairs = np.array(list(combinations(range(n), 2)), int).reshape(-1, 2)
    steps = np.abs(np.subtract.outer(np.arange(n_labels), np.arange(n_labels)))

    def links() -> np.ndarray:
        return pairs[rng.random(len(pairs)) < 0.4]

    wanted = rng.random(6) < 0.4
    if wanted[0]:
        edges = links()
        field += fields.Potts(edges, rng.exponential(size=len(edges)))
    if wanted[1]:
        edges = links()
        tables = np.minimum(steps, rng.integers(1, 4, (len(edges), 1, 1)))
        tables = tables * rng.exponential(size=(len(edges), 1, 1))
        tables += rng.normal(size=(len(edges), n_labels, 1))
        field += fields.Pairwise(edges, tables + rng.normal(size=(len(edges), 1, n_labels)))
    if wanted[2]:
        regions = rng.integers(-1, 3, n + idle)
        field += fields.RegionConsistency(regions, rng.exponential(), rng.choice([0.5, 0.8, 1.0]))
    if wanted[3]:
        field += fields.LabelCost(rng.exponential(size=n_labels))
        group = np.flatnonzero(rng.random(n_labels) < 0.6)
        if len(group):
            field += fields.LabelCost(float(rng.exponential()), labels=group)
    if wanted[4]:
        table = np.cumsum(np.r_[0.0, np.sort(rng.normal(size=n + idle))[::-1]])
        center = np.full(n + idle, rng.integers(n_labels))
        field += fields.CardinalityPotential(center, table)
    if wanted[5]:
        truncation = 1.0 if method == "expansion" else rng.choice([1.0, 1.5, 2.0, 3.3])
        field += fields.RobustPn(rng.integers(-1, 2, n + idle), rng.exponential(), truncation)
    return field


def least(field: fields.Field, offers: list[list[int]], idle: int = 0) -> float:
    """The least energy over every choice of the labels offered; idle variables have label 0."""
    choices = np.array(list(product(*offers)), int)
    rest = np.zeros((len(choices), idle), int)
    return float(field.energy(np.concatenate([choices, rest], axis=1)).min())
