"""Small random fields, by name: what is listed here is tested, by every law over fields.

Each takes a generator and returns a field whose labellings can all be tried, about a thousand of
them at most. Numbers are drawn without ties, unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise import fields

Rng = np.random.Generator
Draw = Callable[[Rng], fields.Field]

FIELDS: dict[str, Draw] = {}


def listed(draw: Draw) -> Draw:
    FIELDS[draw.__name__.replace("_", "-")] = draw
    return draw


def of_seed(name: str, seed: int) -> fields.Field:
    """The field of a name and a seed, the same one every time."""
    return FIELDS[name](np.random.default_rng([seed, *name.encode()]))


def unaries(rng: Rng, n: int, n_labels: int, scale: float = 2.0) -> fields.Field:
    return fields.Field(rng.normal(0.0, scale, (n, n_labels)))


def edges(rng: Rng, n: int, n_edges: int) -> np.ndarray:
    """Random pairs of different variables, repeated ones among them."""
    first = rng.integers(0, n, n_edges)
    return np.stack([first, (first + rng.integers(1, n, n_edges)) % n], axis=1)


def grid(rows: int, columns: int) -> np.ndarray:
    at = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    down = np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def layer(rng: Rng, n: int, n_regions: int) -> np.ndarray:
    """Regions with gaps in their numbers; -1 for some variables."""
    return rng.choice(np.r_[-1, rng.permutation(10)[:n_regions]], n)


# ------------------------------------------------------------------------------- one potential each


@listed
def unaries_alone(rng: Rng) -> fields.Field:
    return unaries(rng, 5, 3)


@listed
def potts_on_two_labels(rng: Rng) -> fields.Field:
    links = edges(rng, 8, 14)
    return unaries(rng, 8, 2) + fields.Potts(links, rng.uniform(0.0, 2.0, len(links)))


@listed
def potts_on_three_labels(rng: Rng) -> fields.Field:
    links = grid(2, 3)
    return unaries(rng, 6, 3) + fields.Potts(links, rng.uniform(0.0, 2.0, len(links)))


@listed
def potts_on_a_tree(rng: Rng) -> fields.Field:
    links = np.array([[rng.integers(0, i), i] for i in range(1, 6)])
    return unaries(rng, 6, 3) + fields.Potts(links, rng.uniform(0.0, 3.0, len(links)))


@listed
def submodular_tables(rng: Rng) -> fields.Field:
    """Two labels: each table leans towards equal labels, and has unaries inside."""
    links = edges(rng, 7, 12)
    tables = rng.normal(0.0, 2.0, (len(links), 2, 2))
    lack = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
    tables[:, 0, 1] += np.maximum(lack, 0.0) + rng.uniform(0.0, 1.0, len(links))
    return unaries(rng, 7, 2) + fields.Pairwise(links, tables)


@listed
def any_tables_on_two_labels(rng: Rng) -> fields.Field:
    links = edges(rng, 7, 12)
    return unaries(rng, 7, 2) + fields.Pairwise(links, rng.normal(0.0, 2.0, (len(links), 2, 2)))


@listed
def any_tables_on_three_labels(rng: Rng) -> fields.Field:
    links = grid(2, 3)
    return unaries(rng, 6, 3) + fields.Pairwise(links, rng.normal(0.0, 2.0, (len(links), 3, 3)))


@listed
def tables_on_a_tree(rng: Rng) -> fields.Field:
    links = np.array([[rng.integers(0, i), i] for i in range(1, 6)])
    return unaries(rng, 6, 3) + fields.Pairwise(links, rng.normal(0.0, 2.0, (len(links), 3, 3)))


@listed
def mixed_tables(rng: Rng) -> fields.Field:
    """Three labels: half of the tables are Potts with unaries inside, half are anything."""
    links = edges(rng, 6, 8)
    tables = rng.normal(0.0, 2.0, (len(links), 3, 3))
    sums = rng.normal(0.0, 1.0, (len(links), 3, 1)) + rng.normal(0.0, 1.0, (len(links), 1, 3))
    sums += rng.uniform(0.0, 2.0, (len(links), 1, 1)) * (1.0 - np.eye(3))
    tables[::2] = sums[::2]
    return unaries(rng, 6, 3) + fields.Pairwise(links, tables)


@listed
def one_table_for_all_edges(rng: Rng) -> fields.Field:
    return unaries(rng, 6, 3) + fields.Pairwise(grid(2, 3), rng.normal(0.0, 1.0, (3, 3)))


@listed
def one_table_times_weights(rng: Rng) -> fields.Field:
    links = edges(rng, 6, 8)
    weights = rng.uniform(0.0, 2.0, len(links))
    return unaries(rng, 6, 3) + fields.Pairwise(links, rng.normal(0.0, 1.0, (3, 3)), weights)


@listed
def one_table_times_weights_of_both_signs(rng: Rng) -> fields.Field:
    links = edges(rng, 7, 10)
    weights = rng.normal(0.0, 1.0, len(links))
    return unaries(rng, 7, 2) + fields.Pairwise(links, [[0.0, 1.0], [1.0, 0.25]], weights)


@listed
def truncated_linear(rng: Rng) -> fields.Field:
    links = grid(2, 3)
    weights = rng.uniform(0.0, 2.0, len(links))
    return unaries(rng, 6, 4) + fields.TruncatedLinear(links, weights, rng.uniform(1.0, 3.0))


@listed
def truncated_quadratic_beside_potts(rng: Rng) -> fields.Field:
    links = grid(2, 3)
    field = unaries(rng, 6, 3) + fields.TruncatedQuadratic(links, rng.uniform(0.0, 1.0), 3.0)
    return field + fields.Potts(links[:3], rng.uniform(0.0, 1.0, 3))


@listed
def region_consistency(rng: Rng) -> fields.Field:
    regions = layer(rng, 6, 2)
    return unaries(rng, 6, 3, 1.0) + fields.RegionConsistency(
        regions, rng.uniform(0.0, 3.0), rng.uniform(0.2, 1.0)
    )


@listed
def region_consistency_on_two_labels(rng: Rng) -> fields.Field:
    return unaries(rng, 8, 2, 1.0) + fields.RegionConsistency(
        np.arange(8) // 4, rng.uniform(0.0, 3.0, 2), 0.5
    )


@listed
def robust_pn(rng: Rng) -> fields.Field:
    """Truncations at most half of a region: sums over labels."""
    regions = rng.permutation([3, 3, 3, 3, 5, 5])
    limits = [rng.uniform(0.5, 2.0), rng.uniform(0.3, 1.0)]
    return unaries(rng, 6, 3, 1.0) + fields.RobustPn(regions, rng.uniform(0.0, 3.0, 2), limits)


@listed
def robust_pn_on_two_labels(rng: Rng) -> fields.Field:
    return unaries(rng, 8, 2, 1.0) + fields.RobustPn(
        layer(rng, 8, 2), rng.uniform(0.0, 3.0), rng.uniform(0.3, 9.0)
    )


@listed
def robust_pn_beyond_half(rng: Rng) -> fields.Field:
    """No sum over labels."""
    return unaries(rng, 6, 3, 1.0) + fields.RobustPn(np.zeros(6, int), rng.uniform(1.0, 3.0), 5.0)


@listed
def robust_pn_of_both_kinds(rng: Rng) -> fields.Field:
    """Four labels; one region is a sum over labels, the other is not."""
    return unaries(rng, 5, 4, 1.0) + fields.RobustPn(
        rng.permutation([2, 2, 2, 2, 8]), rng.uniform(1.0, 3.0, 2), 3.0
    )


@listed
def label_costs(rng: Rng) -> fields.Field:
    return unaries(rng, 5, 3) + fields.LabelCost(rng.uniform(0.0, 3.0, 3))


@listed
def label_costs_of_groups(rng: Rng) -> fields.Field:
    first = fields.LabelCost(rng.uniform(0.0, 4.0), labels=[0, 2])
    return unaries(rng, 5, 4) + first + fields.LabelCost(rng.uniform(0.0, 4.0), labels=[1, 2, 3])


@listed
def label_transitions(rng: Rng) -> fields.Field:
    costs = np.triu(rng.uniform(0.0, 2.0, (3, 3)), 1)
    return unaries(rng, 6, 3) + fields.LabelTransition(grid(2, 3), costs + costs.T)


@listed
def concave_label_transitions(rng: Rng) -> fields.Field:
    costs = np.triu(rng.uniform(0.0, 1.0, (3, 3)), 1)
    return unaries(rng, 6, 3) + fields.LabelTransition(grid(2, 3), costs + costs.T, np.sqrt)


@listed
def any_cardinality(rng: Rng) -> fields.Field:
    center = rng.integers(0, 3, 6)
    return unaries(rng, 6, 3) + fields.CardinalityPotential(center, rng.normal(0.0, 3.0, 7))


@listed
def concave_cardinality(rng: Rng) -> fields.Field:
    table = np.cumsum(np.r_[0.0, np.sort(rng.normal(0.0, 1.0, 8))[::-1]])
    center = rng.integers(0, 2, 8)
    return unaries(rng, 8, 2) + fields.CardinalityPotential(center, table)


@listed
def one_sided_cardinality(rng: Rng) -> fields.Field:
    """Three labels; every variable that leaves its center costs, or every one earns."""
    steps = np.sort(rng.uniform(0.5, 3.0, 6))[::-1] - rng.choice([0.0, 4.0])
    table = np.concatenate([[0.0], np.cumsum(steps)])
    return unaries(rng, 6, 3) + fields.CardinalityPotential(rng.integers(0, 3, 6), table)


# ----------------------------------------------------------------------------- mixtures and corners


@listed
def segmentation(rng: Rng) -> fields.Field:
    """Two labels on a grid, two overlapping layers of regions: submodular."""
    links = grid(3, 3)
    field = unaries(rng, 9, 2) + fields.Potts(links, rng.uniform(0.0, 1.0, len(links)))
    field += fields.RegionConsistency(np.arange(9) // 3, rng.uniform(0.0, 2.0), 0.7)
    return field + fields.RobustPn(np.arange(9) % 3, rng.uniform(0.0, 2.0), 1.5)


@listed
def everything_submodular(rng: Rng) -> fields.Field:
    links = grid(2, 3)
    field = unaries(rng, 6, 3) + fields.Potts(links, rng.uniform(0.0, 1.0, len(links)))
    field += fields.RegionConsistency([4, 4, -1, 0, 0, 0], [1.5, 0.5], 0.4)
    field += fields.RobustPn([0, 1, 1, 0, 1, 0], rng.uniform(0.0, 2.0), 0.5, relative=True)
    field += fields.LabelCost(rng.uniform(0.0, 2.0, 3))
    return field + fields.LabelCost(rng.uniform(0.0, 2.0), labels=[0, 2])


@listed
def everything(rng: Rng) -> fields.Field:
    costs = np.triu(rng.uniform(0.0, 2.0, (3, 3)), 1)
    field = everything_submodular(rng)
    field += fields.Pairwise(edges(rng, 6, 3), rng.normal(0.0, 1.0, (3, 3, 3)))
    field += fields.RobustPn(np.zeros(6, int), 1.0, 4.5)
    field += fields.LabelTransition(grid(2, 3), costs + costs.T)
    return field + fields.CardinalityPotential(rng.integers(0, 3, 6), rng.normal(0.0, 1.0, 7))


@listed
def cliques(rng: Rng) -> fields.Field:
    """Tables of one to four variables, finite."""
    field = unaries(rng, 6, 3) + fields.Potts(grid(2, 3), rng.uniform(0.0, 1.0))
    for k, count in ((1, 2), (2, 2), (3, 3), (4, 1)):
        members = np.stack([rng.permutation(6)[:k] for _ in range(count)])
        field += fields.CliquePotential(members, rng.normal(0.0, 1.0, (count, *[3] * k)))
    return field + fields.CliquePotential([[0, 1, 2], [3, 4, 5]], rng.normal(0.0, 1.0, (3, 3, 3)))


@listed
def hard_cliques(rng: Rng) -> fields.Field:
    """Tables that forbid some labellings, not all: no two neighbours of a path take label 0."""
    field = unaries(rng, 6, 3)
    tables = rng.normal(0.0, 1.0, (2, 3, 3, 3))
    tables[rng.uniform(size=tables.shape) < 0.3] = np.inf
    tables[:, 1, 2, 1] = 0.25
    apart = np.zeros((3, 3))
    apart[0, 0] = np.inf
    path = np.stack([np.arange(5), np.arange(1, 6)], axis=1)
    field += fields.CliquePotential([[0, 1, 2], [2, 5, 4]], tables)
    field += fields.CliquePotential([[3]], [np.inf, 0.0, 1.0])
    return field + fields.CliquePotential(path, apart)


@listed
def forbidden_labels(rng: Rng) -> fields.Field:
    unary = rng.normal(0.0, 2.0, (6, 3))
    unary[rng.uniform(size=unary.shape) < 0.3] = np.inf
    unary[np.arange(6), rng.integers(0, 3, 6)] = 0.5
    links = grid(2, 3)
    return (
        fields.Field(unary)
        + fields.Potts(links, rng.uniform(0.0, 2.0, len(links)))
        + fields.RegionConsistency(layer(rng, 6, 2), 1.0, 0.5)
    )


@listed
def forbidden_labels_on_two_labels(rng: Rng) -> fields.Field:
    unary = rng.normal(0.0, 2.0, (6, 2))
    unary[1, 0] = unary[4, 1] = np.inf
    links = grid(2, 3)
    return fields.Field(unary) + fields.Potts(links, rng.uniform(0.0, 2.0, len(links)))


@listed
def ties(rng: Rng) -> fields.Field:
    """Small integers: many labellings have the same energy."""
    links = grid(2, 3)
    unary = rng.integers(0, 2, (6, 3)).astype(float)
    return fields.Field(unary) + fields.Potts(links, 1.0) + fields.LabelCost([1.0, 1.0, 1.0])


@listed
def whole_numbers(rng: Rng) -> fields.Field:
    """Bounds that a search raises by rounding show."""
    return whole(rng, 6, 3, 9)


def whole(rng: Rng, n: int, n_labels: int, top: int) -> fields.Field:
    """Whole numbers up to about ``top``: unaries, Potts, label costs and regions."""
    links = edges(rng, n, 2 * n) if n > 1 else np.zeros((0, 2), int)
    field = fields.Field(rng.integers(-top, top + 1, (n, n_labels)).astype(float))
    field += fields.Potts(links, rng.integers(0, top + 1, len(links)).astype(float))
    field += fields.LabelCost(rng.integers(0, 3 * top, n_labels).astype(float))
    weight = 2.0 * float(rng.integers(0, top))
    return field + fields.RobustPn(layer(rng, n, 2), weight, rng.choice([1.0, 2.0]))


@listed
def zero_weights(rng: Rng) -> fields.Field:
    field = unaries(rng, 6, 3) + fields.Potts(grid(2, 3), 0.0)
    field += fields.RegionConsistency(np.zeros(6, int), 0.0, 0.5)
    field += fields.RobustPn(np.zeros(6, int), 0.0, 5.0)
    return field + fields.LabelCost([0.0, 0.0, 0.0])


@listed
def large_weights(rng: Rng) -> fields.Field:
    """Potentials that drown the unaries."""
    field = unaries(rng, 6, 3) + fields.Potts(grid(2, 3), 1e4)
    return field + fields.RegionConsistency([0, 0, 0, 1, 1, 1], 1e4, 0.5)


@listed
def no_edges_no_regions(rng: Rng) -> fields.Field:
    field = unaries(rng, 4, 3) + fields.Potts([], 1.0)
    field += fields.Pairwise([], np.zeros((3, 3)))
    field += fields.RegionConsistency([-1, -1, -1, -1], 1.0, 0.5)
    return field + fields.RobustPn([-1, -1, -1, -1], 1.0, 1.0)


@listed
def one_label(rng: Rng) -> fields.Field:
    field = unaries(rng, 4, 1) + fields.Potts(edges(rng, 4, 5), 1.0)
    field += fields.Pairwise(edges(rng, 4, 3), rng.normal(0.0, 1.0, (3, 1, 1)))
    field += fields.RegionConsistency([0, 0, -1, 1], 1.0, 0.5)
    field += fields.RobustPn([0, 0, 0, 0], 1.0, 3.0)
    return field + fields.LabelCost([1.5])


@listed
def one_variable(rng: Rng) -> fields.Field:
    field = unaries(rng, 1, 4) + fields.RegionConsistency([0], 1.0, 0.5)
    field += fields.RobustPn([3], 1.0, 3.0)
    field += fields.LabelCost(rng.uniform(0.0, 2.0, 4))
    return field + fields.CardinalityPotential([2], rng.normal(0.0, 1.0, 2))


@listed
def no_variables(rng: Rng) -> fields.Field:
    field = fields.Field(np.zeros((0, 3))) + fields.Potts([], 1.0)
    field += fields.RegionConsistency([], 1.0, 0.5)
    return field + fields.LabelCost([1.0, 2.0, 3.0]) + fields.CardinalityPotential([], [2.0])
