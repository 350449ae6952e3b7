"""Labels of many graphs in one call: those of each alone, for any number of threads."""

import numpy as np
import pytest
import reference
from scipy.spatial import Delaunay

import setwise as sw
from setwise._core import FieldBatch
from setwise.estimators._fields._graphs import read_graphs
from setwise.estimators._fields._potts_maps import BatchMaps, RegionTables


def superpixels(sizes, seed=0):
    """Graphs of neighbouring points in the plane, laid end to end."""
    rng, X = np.random.default_rng(seed), []
    for n in sizes:
        edges = [(i, i + 1) for i in range(n - 1)]
        if n > 4:
            corners = Delaunay(rng.random((n, 2))).simplices
            pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
            edges = np.unique(np.sort(pairs, axis=1), axis=0)
        X.append((np.zeros((n, 1)), np.array(edges).reshape(-1, 2), np.ones((len(edges), 1))))
    return read_graphs(X)


def costs(graphs, n_labels, rng, weight=0.8):
    unary = rng.normal(size=(len(graphs.nodes), n_labels))
    return unary, weight * rng.random(len(graphs.edges))


def fields(graphs, unary, weights):
    for i in range(len(graphs)):
        at, between = slice(*graphs.node_starts[i : i + 2]), slice(*graphs.edge_starts[i : i + 2])
        edges = graphs.edges[between] - graphs.node_starts[i]
        yield at, sw.fields.Field(unary[at]) + sw.fields.Potts(edges, weights[between])


SIZES = [1, 2, 40, 7, 60, 25, 90, 3]


@pytest.mark.parametrize("n_labels", [2, 3, 7])
def test_labels_are_those_of_each_graph_alone(n_labels):
    graphs, rng = superpixels(SIZES), np.random.default_rng(1)
    maps, last = BatchMaps(graphs, n_labels, 2), None
    for _ in range(3):
        unary, weights = costs(graphs, n_labels, rng)
        labels = maps(unary, weights)
        for at, field in fields(graphs, unary, weights):
            start = None if last is None or n_labels == 2 else last[at]
            alone = sw.solve_map(
                field, "cut" if n_labels == 2 else "expansion", tol=np.inf, init=start
            )
            np.testing.assert_array_equal(labels[at], alone.labels)
        last = labels


@pytest.mark.parametrize("n_labels", [2, 5])
def test_answers_do_not_depend_on_the_threads(n_labels):
    graphs = superpixels(SIZES)
    answers = []
    for n_jobs in (1, 2, 3):
        rng, maps, seen = np.random.default_rng(2), BatchMaps(graphs, n_labels, n_jobs), []
        for _ in range(2):
            unary, weights = costs(graphs, n_labels, rng)
            seen += [maps(unary, weights), maps.afresh(unary, weights), *maps.prove(unary, weights)]
        answers.append(seen)
    for other in answers[1:]:
        for ours, theirs in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_bounds_are_below_all_labels_and_rise_to_the_best(n_labels):
    graphs, rng = superpixels(SIZES), np.random.default_rng(3)
    maps = BatchMaps(graphs, n_labels, 1)
    for _ in range(3):  # the second and third go on from the messages of the one before
        unary, weights = costs(graphs, n_labels, rng, 0.5)
        labels, bounds = maps.prove(unary, weights)
        for (at, field), bound in zip(fields(graphs, unary, weights), bounds, strict=True):
            best = sw.solve_map(field, n_jobs=1)
            value = field.energy(labels[at])
            assert bound <= value
            assert bound <= best.value + 1e-12 * abs(best.value)
            assert value <= best.value + 1e-9
            assert value - bound <= 2 * best.gap + 1e-6


def test_few_labelings_are_all_tried():
    """A frustrated triangle, whose relaxation leaves a gap."""
    graphs = read_graphs([(np.zeros((3, 1)), [[0, 1], [1, 2], [0, 2]], np.ones((3, 1)))])
    unary = np.array([[0.0, 0.0, 9.0], [0.0, 9.0, 0.0], [9.0, 0.0, 0.0]])
    labels, bounds = BatchMaps(graphs, 3, 1).prove(unary, np.ones(3))
    assert bounds.tolist() == [2.0]
    assert len(set(labels.tolist())) == 2


def with_regions(graphs, rng):
    """Two layers of regions with robust prices, some nodes in none."""
    starts, so_many, rows = [0], 0, [[], []]
    for size in np.diff(graphs.node_starts):
        for row in rows:
            own = rng.integers(-1, 2, size)
            row.append(np.where(own >= 0, own + so_many, -1))
            so_many += 2
        starts.append(so_many)
    layers = np.array([np.concatenate(row) for row in rows])
    sizes = np.bincount(layers[layers >= 0], minlength=so_many)
    tables = [np.minimum(0.5 * n, n - np.arange(n + 1.0)) - 0.5 * n for n in sizes]
    return RegionTables(layers, np.array(starts), np.concatenate(tables)), tables


def higher_energy(graphs, i, z, unary, weights, regions, tables):
    """Unaries, cut edges, tables of counts and used labels of one graph, by the definition."""
    begin, end = graphs.node_starts[i : i + 2]
    total = unary[np.arange(begin, end), z].sum()
    for e in range(*graphs.edge_starts[i : i + 2]):
        p, q = graphs.edges[e] - begin
        total += weights[e] * (z[p] != z[q])
    n_labels, first = unary.shape[1], len(graphs.edges)
    for r in range(*regions.region_starts[i : i + 2]):
        inside = (regions.regions[:, begin:end] == r).any(axis=0)
        counts = np.bincount(np.asarray(z)[inside], minlength=n_labels)
        total += weights[first + r] * sum(tables[r][count] for count in counts)
    prices = weights[first + regions.region_starts[-1] :].reshape(-1, n_labels)
    return total + prices[i, np.unique(z)].sum()


@pytest.mark.parametrize("n_labels", [2, 3])
def test_regions_and_label_costs_are_charged(n_labels):
    graphs, rng = superpixels([4, 5, 1]), np.random.default_rng(4)
    regions, tables = with_regions(graphs, rng)
    maps = BatchMaps(graphs, n_labels, 2, regions)
    for _ in range(4):
        unary, edges = costs(graphs, n_labels, rng)
        more = rng.random(regions.region_starts[-1] + len(graphs) * n_labels)
        weights = np.concatenate([edges, more])
        found = [maps(unary, weights), maps.afresh(unary, weights)]
        if n_labels == 2:
            labels, bounds = maps.prove(unary, weights)
            found.append(labels)
        for i in range(len(graphs)):
            at = slice(*graphs.node_starts[i : i + 2])

            def energy(z, i=i, unary=unary, weights=weights):
                return higher_energy(graphs, i, z, unary, weights, regions, tables)

            every = reference.all_labelings(at.stop - at.start, n_labels)
            least = min(map(energy, every))
            for labels in found:
                here = energy(labels[at])
                if n_labels == 2:
                    assert here == pytest.approx(least, abs=1e-9)
                for a in range(n_labels):  # no expansion to a is better
                    offers = [z for z in every if ((z == labels[at]) | (np.array(z) == a)).all()]
                    assert here <= min(map(energy, offers)) + 1e-9
            if n_labels == 2:
                assert bounds[i] == pytest.approx(least, abs=1e-9)


def test_the_kernel_refuses_what_does_not_fit():
    starts, edges = np.array([0, 2, 3]), np.array([0, 1])
    with pytest.raises(ValueError, match="two nodes of its graph"):
        FieldBatch(starts, np.array([0, 0, 1]), edges, 2)
    batch = FieldBatch(starts, np.array([0, 1, 1]), edges, 2)
    none, answers = np.empty(0), (np.empty(2), np.empty(2))
    with pytest.raises(ValueError, match="a label must lie"):
        batch.search(np.zeros(6), np.ones(1), none, none, np.full(3, 2), *answers, False, 1)
    with pytest.raises(ValueError, match="not negative"):
        batch.search(np.zeros(6), -np.ones(1), none, none, np.zeros(3, int), *answers, False, 1)
    with pytest.raises(ValueError, match="a region must be one of its graph"):
        batch.add_regions(np.array([[0, 0, 0]]), np.array([0, 1, 1]), np.array([0, 4]), np.zeros(4))
