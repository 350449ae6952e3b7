"""Taxonomies: codes and costs against ancestors walked one by one."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setwise.estimators._boosting._taxonomy import label_code

ANIMALS = np.array(["bus", "car", "cat", "dog", "fox"])
NESTED = [["cat", ["dog", "fox"]], ["car", "bus"]]


def path(node, parents):
    """The node and those above it, up to the root."""
    while node >= 0:
        yield node
        node = parents[node]


def height(node, parents):
    children = [child for child, parent in enumerate(parents) if parent == node]
    return 1 + max(height(child, parents) for child in children) if children else 0


@st.composite
def trees(draw):
    """Parents of n nodes, the leaves first; the classes are the first k, leaves or not."""
    n = draw(st.integers(4, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    place = rng.permutation(n)
    parents = np.full(n, -1)
    for t in range(1, n):
        parents[place[t]] = place[rng.integers(0, t)]
    leaves = np.setdiff1d(np.arange(n), parents)
    order = np.concatenate([leaves, np.setdiff1d(np.arange(n), leaves)])
    at = np.append(np.argsort(order), -1)  # the last is where the root's parent, -1, looks
    return at[parents[order]], draw(st.integers(max(3, len(leaves)), n - 1))


@given(trees())
def test_costs_and_codes(tree):
    parents, k = tree
    coding = label_code(parents, np.arange(k))
    for a in range(k):
        for b in range(k):
            common = next(node for node in path(a, parents) if node in set(path(b, parents)))
            assert coding.cost[a, b] == (0 if a == b else height(common, parents))
    # A node stands for the set of classes at or below it.
    below = {
        frozenset(y for y in range(k) if node in set(path(y, parents)))
        for node in range(len(parents))
    }
    wanted = {classes for classes in below if 0 < len(classes) < k}
    columns = [frozenset(np.flatnonzero(column).tolist()) for column in coding.code.T]
    assert set(columns) == wanted
    assert len(columns) == len(wanted)


def test_nested_lists_array_and_graph_agree():
    by_lists = label_code(NESTED, ANIMALS)
    # bus car cat dog fox, vehicles, canines, animals, root
    by_array = label_code([5, 5, 7, 6, 6, 8, 7, 8, -1], ANIMALS)
    names = [*ANIMALS.tolist(), "vehicle", "canine", "animal", "thing"]
    edges = [(8, 5), (8, 7), (5, 0), (5, 1), (7, 2), (7, 6), (6, 3), (6, 4)]
    graph = SimpleNamespace(
        nodes=names[::-1],
        edges=[(names[a], names[b]) for a, b in edges],
        is_directed=lambda: True,
    )
    for other in (by_array, label_code(graph, ANIMALS)):
        assert np.array_equal(by_lists.code, other.code)
        assert np.array_equal(by_lists.cost, other.cost)
    assert by_lists.cost[ANIMALS.tolist().index("cat")].tolist() == [3, 3, 0, 2, 2]
    # Classes that were not met leave the heights as they are.
    some = label_code(NESTED, ANIMALS[[0, 2, 3]])
    assert some.cost.tolist() == [[0, 3, 3], [3, 0, 2], [3, 2, 0]]


def test_networkx():
    networkx = pytest.importorskip("networkx", reason="a graph library that is no dependency")
    graph = networkx.DiGraph([("thing", "bus"), ("thing", "animal"), ("animal", "cat")])
    graph.add_edge("animal", "dog")
    coding = label_code(graph, np.array(["bus", "cat", "dog"]))
    assert coding.cost.tolist() == [[0, 2, 2], [2, 0, 1], [2, 1, 0]]
    with pytest.raises(ValueError, match="taxonomy must be a directed graph"):
        label_code(graph.to_undirected(), np.array(["bus", "cat"]))


def test_one_level_is_flat():
    flat = label_code(None, np.arange(4))
    for tree in ([[0, 3, 1, 2]], [4, 4, 4, 4, -1], [[0], [1], [2], [3]]):
        coding = label_code(tree, np.arange(4))
        assert np.array_equal(coding.code, flat.code)
        assert np.array_equal(coding.cost > 0, flat.cost > 0)
    assert np.array_equal(label_code([4, 4, 4, 4, -1], np.arange(4)).cost, flat.cost)
    words = label_code(["b", "a", "c"], np.array(["a", "b", "c"]))  # a list of names is one level
    assert np.array_equal(words.code, np.eye(3))


def test_two_classes_share_a_score():
    assert label_code(None, np.arange(2)).code.tolist() == [[-0.5], [0.5]]
    assert label_code([2, 2, -1], np.arange(2)).code.tolist() == [[-0.5], [0.5]]
    assert label_code(None, np.arange(2), augmented=True).code.tolist() == [[1, 0], [0, 1]]


def _deep(levels):
    tree = ["cat"]
    for _ in range(levels):
        tree = [tree]
    return tree


@pytest.mark.parametrize(
    ("taxonomy", "error", "message"),
    [
        (
            [["cat", "dog"], ["car"]],
            ValueError,
            "every class, got none that is 'bus'",
        ),
        ([["cat", "cat"]], ValueError, "taxonomy must hold a class once, got 'cat' twice"),
        ([["cat"], []], ValueError, "taxonomy must have no empty list"),
        ([["cat", {}]], TypeError, "nested lists of labels, got a dict in them"),
        (_deep(5000), ValueError, "taxonomy must be nested lists of moderate depth"),
        (
            SimpleNamespace(nodes=[0, 1], edges=[(0, 2)]),
            ValueError,
            "taxonomy must have edges between its nodes, got one of 2",
        ),
        ("tree", TypeError, "taxonomy must be nested lists of labels, .* got str"),
        ([0.5, 1.0], TypeError, "taxonomy must be nested lists of labels, .* got list"),
        ([5, 5, 5, 5, -1], ValueError, "at least one above them .* got 5 nodes"),
        (
            [6, 6, 6, 6, 6, 6, -1],  # of six classes, one of which does not occur
            ValueError,
            "all its leaves among the first 5 nodes, .* got the leaf 5: nested lists",
        ),
        ([5, 5, 5, 5, 9, -1], ValueError, "parents between -1 and 5, got 9"),
        ([5, 5, 5, -1, 5, -1], ValueError, "taxonomy must have one root, .* got 2"),
        ([6, 6, 6, 6, 5, -1, 7, 6], ValueError, "taxonomy must be a tree, got a circle"),
        (
            SimpleNamespace(nodes=[0, 1], edges=[], is_directed=lambda: False),
            ValueError,
            "taxonomy must be a directed graph",
        ),
        (
            SimpleNamespace(nodes=[0, 1, 2], edges=[(0, 2), (1, 2)]),
            ValueError,
            "taxonomy must be a tree, got two parents of 2",
        ),
    ],
)
def test_bad_taxonomies(taxonomy, error, message):
    with pytest.raises(error, match=message):
        label_code(taxonomy, ANIMALS)
