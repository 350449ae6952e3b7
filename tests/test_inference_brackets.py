"""Expansions of layers of regions are the best ones, however cuts without hats bracket them."""

import numpy as np
import pytest
from field_registry import grid
from hypothesis import given
from hypothesis import strategies as st
from move_fields import least
from searches import expansion

from setwise import fields
from setwise.inference import FlowGraph
from setwise.inference._map._moves._terms import start_moves


def layered(rng, shape, n_labels, weights, idle=0):
    """A noisy picture with layers of regions: random ones, the whole field, and single pixels."""
    n = shape[0] * shape[1]
    unary = rng.normal(size=(n, n_labels))
    if rng.random() < 0.4:
        unary = np.round(unary)  # ties
    unary[rng.random(unary.shape) < 0.05] = np.inf
    unary[np.arange(n), rng.integers(n_labels, size=n)] = 0.0
    rest = np.full((idle, n_labels), 1000.0)
    rest[:, 0] = 0.0
    field = fields.Field(np.concatenate([unary, rest]))
    edges = grid(*shape)
    field += fields.Potts(edges, rng.choice([0.0, 0.3, 1.0]) * rng.uniform(size=len(edges)))
    n += idle
    kinds = [rng.integers(-1, 4, n), np.zeros(n, int), np.arange(n), rng.integers(0, 2, n)]
    for regions in (kinds[k] for k in rng.permutation(4)[:3]):
        field += fields.RegionConsistency(regions, rng.choice(weights), rng.choice([0.3, 0.8]))
    return field


def best_expansion(field, labels, target):
    """By one cut with an auxiliary node at every kink of every function of a count."""
    potts, *layers = field.potentials
    n = field.n_variables
    moving = np.flatnonzero(labels != target)
    costs = field.unary[:, target] - field.unary[np.arange(n), labels]
    costs[labels == target] = 0.0
    arcs = []
    for (i, j), w in zip(potts.edges, potts.weights, strict=True):
        t00, t01, t10 = w * (labels[[i, i, j]] != [labels[j], target, target])
        if labels[i] == target or labels[j] == target:
            costs[i] += (t10 - t00) * (labels[i] != target)
            costs[j] += (t01 - t00) * (labels[j] != target)
            continue
        costs[i] += t10 - t00
        costs[j] -= t10
        arcs.append((i, j, t01 + t10 - t00, 0.0))  # paid where j switches and i does not
    n_nodes = n
    for layer in layers:
        starts = np.cumsum(np.r_[0, layer.sizes + 1])
        for r, number in enumerate(np.unique(layer.regions[layer.regions >= 0])):
            region = layer.regions == number
            table = field._terms_of(layer)[0].table[starts[r] : starts[r + 1]]
            for label in range(field.n_labels):
                count = int((region & (labels == label)).sum())
                if label == target:
                    members, values = moving[region[moving]], table[count:]
                else:
                    members = np.flatnonzero(region & (labels == label))
                    values = table[: count + 1][::-1]
                m = len(members)
                if m == 0:
                    continue
                costs[members] += (values[-1] - values[0]) / m
                for q in range(1, m):
                    fall = max(2.0 * values[q] - values[q - 1] - values[q + 1], 0.0)
                    arcs += [(i, n_nodes, fall * q / m, fall * (m - q) / m) for i in members]
                    n_nodes += 1
    tails, heads, there, back = np.array(arcs).reshape(-1, 4).T
    graph = FlowGraph(
        n_nodes, np.stack([tails, heads], axis=1).astype(int), there, back, dtype=float
    )
    costs = np.concatenate([costs, np.zeros(n_nodes - n)])
    graph.set_terminals(np.maximum(costs, 0.0), np.maximum(-costs, 0.0))
    graph.solve()
    return field.energy(np.where(graph.mask[:n], labels, target))


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_expansions_over_layers_are_the_best_of_all_answers(seed, n_labels, is_part):
    """Idle variables lie in the regions too, and make of the rest a part of the field."""
    rng = np.random.default_rng(seed)
    idle = 100 if is_part else 0
    field = layered(rng, (2, 3), n_labels, [0.0, 0.1, 1.0, 10.0], idle)
    kernel, labels = start_moves(field, None)
    for a in rng.integers(n_labels, size=4):
        change = kernel.expand(int(a))
        after = np.empty_like(labels)
        kernel.read(after)
        expected = least(field, [sorted({int(label), int(a)}) for label in labels[:6]], idle)
        assert field.energy(after) == pytest.approx(expected, rel=1e-12, abs=1e-9)
        assert field.energy(after) - field.energy(labels) == pytest.approx(change, abs=1e-9)
        labels = after


@pytest.mark.parametrize("weight", [0.0, 0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(2))
def test_expansions_turn_after_turn_are_cuts_with_every_kink(weight, seed):
    """Flows are kept from one turn of a label to the next, and mended."""
    rng = np.random.default_rng(seed)
    n_labels = 4
    field = layered(rng, (7, 8), n_labels, [weight])
    kernel, labels = start_moves(field, None)
    for a in [*range(n_labels)] * 3:
        expected = best_expansion(field, labels, a)
        kernel.expand(a)
        kernel.read(labels := labels.copy())
        assert field.energy(labels) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_a_region_that_gains_together_switches_together():
    """No pixel alone, nor half of them, would leave label 0; all of them do."""
    unary = np.zeros((40, 3))
    unary[:, 1] = 0.04
    unary[0] = 9.0, 0.0, 9.0
    field = fields.Field(unary) + fields.RegionConsistency(np.zeros(40, int), 2.0, 0.5)
    best = expansion(field)
    assert best.labels.tolist() == [1] * 40
    apart = fields.Field(unary + np.array([0.0, 0.3, 0.0]))
    apart += fields.RegionConsistency(np.zeros(40, int), 2.0, 0.5)
    assert expansion(apart).labels.tolist() == [1] + [0] * 39
