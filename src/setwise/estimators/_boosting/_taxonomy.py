"""Taxonomies: classes as nodes of a tree, their code by ancestors, and the tree loss."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray, IntArray, as_array, refuse_masked


@dataclass(frozen=True, eq=False)
class LabelCode:
    """The code by which classes share scores, and the costs of confusing them.

    Attributes
    ----------
    code : array of shape (k, s)
        Gamma: class y has the score sum_s code[y, s] f_s.
    cost : array of shape (k, k)
        Delta, row by true class; zero diagonal.
    """

    code: FloatArray
    cost: FloatArray


def label_code(taxonomy: Any, classes: NDArray[Any], *, augmented: bool = False) -> LabelCode:
    r"""Return the code and cost of classes in a taxonomy, or in the flat case if it is None.

    In the flat case the code is the unit matrix, and any confusion costs 1. In a tree the code
    marks a class and its ancestors (equation (19)), and the cost is the height of the first common
    ancestor, which is the length of its longest path down to a leaf. Nodes above all classes, or
    above the same classes as another node, are redundant and left out, so that a tree of one level
    has the flat code. Two classes need one score, of which each takes a half with opposite signs
    (Section 3.1), unless the code augments the features.

    Parameters
    ----------
    taxonomy : None, nested lists, parent array or graph
        As in ``StructBoostClassifier``.
    classes : (k,) array
        Sorted labels.
    """
    k = len(classes)
    if taxonomy is None:
        code, cost = np.eye(k), 1.0 - np.eye(k)
    else:
        parents, nodes = _read(taxonomy, classes)
        ancestors = _ancestors(parents)
        heights = _heights(ancestors)
        marks = ancestors[nodes]
        cost = np.array([np.where(own & marks, heights, np.inf).min(axis=1) for own in marks])
        np.fill_diagonal(cost, 0.0)
        code = _distinct(marks)
    if k == 2 and not augmented:
        code = np.array([[-0.5], [0.5]])
    return LabelCode(code, cost)


def _read(taxonomy: Any, classes: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return the parent of each node, -1 for the root, and the node of each class."""
    refuse_masked(taxonomy, "taxonomy")
    if isinstance(taxonomy, dict):
        raise TypeError(
            "taxonomy must be nested lists of labels, a parent array of integers or a graph, got a "
            "dict: write {'animal': ['cat', 'dog'], 'plant': ['oak']} as [['cat', 'dog'], ['oak']]"
        )
    if isinstance(taxonomy, list | tuple) and any(
        isinstance(part, list | tuple | str) for part in taxonomy
    ):
        parents, names = _read_lists(taxonomy)
    elif hasattr(taxonomy, "nodes") and hasattr(taxonomy, "edges"):
        parents, names = _read_graph(taxonomy)
    else:
        parents = _read_parents(taxonomy, len(classes))
        return parents, np.arange(len(classes))
    nodes = []
    for label in classes.tolist():
        if label not in names:
            raise ValueError(f"taxonomy must hold every class, got none that is {label!r}")
        nodes.append(names[label])
    return parents, np.array(nodes)


def _read_lists(tree: list[Any] | tuple[Any, ...]) -> tuple[IntArray, dict[Hashable, int]]:
    parents: list[int] = []
    names: dict[Hashable, int] = {}

    def visit(node: Any, parent: int) -> None:
        own = len(parents)
        parents.append(parent)
        if isinstance(node, list | tuple):
            if not node:
                raise ValueError("taxonomy must have no empty list, got one")
            for child in node:
                visit(child, own)
            return
        label = node.item() if isinstance(node, np.generic) else node
        if not isinstance(label, Hashable):
            raise TypeError(
                f"taxonomy must be nested lists of labels, got a {type(label).__name__} in them"
            )
        if label in names:
            raise ValueError(f"taxonomy must hold a class once, got {label!r} twice")
        names[label] = own

    try:
        visit(tree, -1)
    except RecursionError:
        raise ValueError(
            "taxonomy must be nested lists of moderate depth, got too many in one another"
        ) from None
    return np.array(parents), names


def _read_graph(graph: Any) -> tuple[IntArray, dict[Hashable, int]]:
    """Read a graph whose edges lead from parent to child, as in a networkx.DiGraph."""
    if not getattr(graph, "is_directed", lambda: True)():
        raise ValueError(
            "taxonomy must be a directed graph, parent to child, got an undirected one"
        )
    names = {node: place for place, node in enumerate(graph.nodes)}
    parents = np.full(len(names), -1)
    for parent, child, *_ in graph.edges:
        for end in (parent, child):
            if end not in names:
                raise ValueError(f"taxonomy must have edges between its nodes, got one of {end!r}")
        if parents[names[child]] >= 0:
            raise ValueError(f"taxonomy must be a tree, got two parents of {child!r}")
        parents[names[child]] = names[parent]
    return _checked(parents), names


def _read_parents(taxonomy: Any, k: int) -> IntArray:
    parents = as_array(taxonomy, "taxonomy")
    if parents.ndim != 1 or parents.dtype.kind not in "iu":
        raise TypeError(
            "taxonomy must be nested lists of labels, a parent array of integers or a graph, got "
            f"{type(taxonomy).__name__}"
        )
    if len(parents) <= k:
        raise ValueError(
            f"taxonomy must have a node for each of {k} classes and at least one above them when "
            f"it is a parent array, got {len(parents)} nodes"
        )
    parents = _checked(parents.astype(np.int64))
    # If a class did not occur in y, the parent array would assign later classes to the wrong nodes.
    leaves = np.setdiff1d(np.arange(k, len(parents)), parents)
    if len(leaves):
        raise ValueError(
            f"taxonomy must have all its leaves among the first {k} nodes, the classes of y, when "
            f"it is a parent array, got the leaf {leaves[0]}: nested lists may hold further classes"
        )
    return parents


def _checked(parents: IntArray) -> IntArray:
    if len(parents) and (parents.min() < -1 or parents.max() >= len(parents)):
        bad = parents.min() if parents.min() < -1 else parents.max()
        raise ValueError(f"taxonomy must name parents between -1 and {len(parents) - 1}, got {bad}")
    roots = int(np.count_nonzero(parents == -1))
    if roots != 1:
        raise ValueError(f"taxonomy must have one root, a node without a parent, got {roots}")
    return parents


def _ancestors(parents: IntArray) -> NDArray[np.bool_]:
    """Return a matrix whose entry [i, j] is true if j is i or an ancestor of i."""
    n = len(parents)
    above = np.eye(n, dtype=np.bool_)
    now = np.arange(n)
    for _ in range(n):
        now = np.where(now >= 0, parents[now], -1)
        there = np.flatnonzero(now >= 0)
        if len(there) == 0:
            return above
        above[there, now[there]] = True
    raise ValueError("taxonomy must be a tree, got a circle")


def _heights(ancestors: NDArray[np.bool_]) -> FloatArray:
    """Return the height of each node: the largest depth below it minus its own depth."""
    depths = ancestors.sum(axis=1)
    heights: FloatArray = np.where(ancestors, depths[:, None], 0).max(axis=0) - depths.astype(float)
    return heights


def _distinct(marks: NDArray[np.bool_]) -> FloatArray:
    """Return the distinct columns that distinguish classes, those of single classes first."""
    columns = np.unique(marks[:, ~marks.all(axis=0)], axis=1)
    columns = columns[:, columns.any(axis=0)]
    order = np.lexsort((columns.argmax(axis=0), columns.sum(axis=0)))
    return columns[:, order].astype(np.float64)
