"""The parts of Table 6 of StructBoost that need no photographs."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skimage")
FOLDER = Path(__file__).parent.parent / "experiments"
if not FOLDER.exists():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(FOLDER.parent))

couplings, horses, pots, table = map(
    import_module,
    (
        "experiments.struct_boost._horse_couplings",
        "experiments.struct_boost._horse_graphs",
        "experiments.struct_boost._potentials",
        "experiments.struct_boost.table6_horses",
    ),
)


def horse(counts):
    """A photograph of which only the pixels matter."""
    nothing = np.empty(0)
    return horses.Horse("none", nothing, np.array(counts), *[nothing] * 5)


def test_two_steps_around():
    path = np.array([[0, 1], [1, 2], [2, 3]])
    sums = horses.around(np.eye(4), path)
    assert (sums > 0).astype(int).tolist() == [
        [1, 1, 1, 0],
        [1, 1, 1, 1],
        [1, 1, 1, 1],
        [0, 1, 1, 1],
    ]
    assert set(np.unique(sums)) == {0.0, 1.0}


def test_measures_by_hand():
    one = horse([[6, 0], [1, 3], [0, 10]])  # pixels of background and horse in three superpixels
    counts = table.confusion([one], [np.array([0, 1, 0])])
    assert counts[0].tolist() == [[6.0, 1.0], [10.0, 3.0]]
    assert table.unions(counts).tolist() == [3 / 14, 6 / 17]
    assert table.accuracies(counts).tolist() == [3 / 13, 6 / 7]
    assert table.precision(counts) == 3 / 4


def test_even_out_finds_where_precision_is_recall():
    rng = np.random.default_rng(0)
    truth = rng.random(400) < 0.3
    one = horse(np.column_stack([~truth, truth]).astype(int))
    scores = truth + rng.normal(size=400) - 2.0
    counts = table.even_out([one], table.of_scores([scores])).sum(axis=0)
    precision, recall = counts[1, 1] / counts[:, 1].sum(), counts[1, 1] / counts[1].sum()
    assert precision == pytest.approx(recall, abs=0.01)


def test_ada_boost_learns_an_interval():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    y = ((X[:, 1] > 0.3) & (X[:, 1] < 0.7)).astype(int)
    scores = pots.ada_boost(X[:300], y[:300], 30, X[300:])
    assert np.mean((scores > 0) == y[300:]) > 0.95


def test_nodes_without_edges_keep_their_features():
    X = [(np.ones((3, 2)), np.array([[0, 1]]), np.ones((1, 2)))]
    (nodes, edges, pairs) = table.without_edges(X)[0]
    assert nodes.shape == (3, 2)
    assert edges.shape == pairs.shape == (0, 2)


def test_far_edges_join_like_colours_with_a_weight_of_their_own():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(20, 3)) * 5
    x = np.zeros((20, 1)), np.array([[0, 1], [1, 2]]), np.ones((2, 2))
    _, edges, pairs = couplings._with_far(x, means)
    assert edges[:2].tolist() == [[0, 1], [1, 2]]
    assert pairs[:2].tolist() == [[1.0, 1.0, 0.0]] * 2
    assert not pairs[2:, :2].any()
    far = edges[2:]
    distance = np.linalg.norm(means[far[:, 0]] - means[far[:, 1]], axis=1)
    np.testing.assert_allclose(pairs[2:, 2], np.exp(-distance / 10))
    every = np.linalg.norm(means[:, None] - means, axis=2)
    for i in range(20):  # the nearest in colour are all joined to it, once
        nearest = set(np.argsort(every[i])[1 : couplings.ALIKE + 1].tolist())
        joined = set(far[(far == i).any(axis=1)].ravel().tolist()) - {i}
        assert nearest <= joined
    assert len(np.unique(far, axis=0)) == len(far)
