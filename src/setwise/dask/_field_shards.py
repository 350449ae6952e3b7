"""The oracle of a linear field on the workers, which hold graphs and label them in every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._field_oracle import FieldOracle, Plane
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._graphs import (
    Graphs,
    read_graphs,
    read_node_weights,
    read_of_nodes,
    refuse_missing,
)
from setwise.estimators._fields._higher_order_maps import best_maps
from setwise.estimators._fields._potts_maps import BatchMaps, BoundedLabels
from setwise.learning._cutting_planes._parted_oracle import PartedOracle
from setwise.learning._executors import Executor

Widths = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class GraphRows:
    """Graphs with the labels and weights of their nodes. ``kept`` is a cache that is not sent."""

    X: list[Any]
    Y: list[Any]
    node_weights: list[Any] | None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[type[GraphRows], tuple[Any, ...]]:
        return GraphRows, (self.X, self.Y, self.node_weights)

    def read(self, widths: Widths | None = None) -> tuple[Graphs, NDArray[Any], FloatArray]:
        """Return the validated graphs, and the labels and weights of their nodes."""
        graphs = read_graphs(self.X, widths)
        refuse_missing(graphs)
        return (
            graphs,
            read_of_nodes(self.Y, graphs, "Y"),
            read_node_weights(self.node_weights, graphs),
        )


def rows_of_graphs(X: Any, Y: Any, node_weights: Any = None) -> GraphRows:
    """Return the rows of a partition, whose collections may be iterators."""
    weights = None if node_weights is None else list(node_weights)
    return GraphRows(list(X), list(Y), weights)


class GraphsSummary(NamedTuple):
    """A summary of a partition for the client. ``widths`` is None if the partition is empty."""

    widths: Widths | None
    labels: NDArray[Any]
    wrong: float


def summarize_graphs(rows: GraphRows) -> GraphsSummary:
    """Return the widths, the labels, and the total cost of labelling every node wrongly."""
    if not rows.X:
        return GraphsSummary(None, np.zeros(0, np.int64), 0.0)
    graphs, labels, weights = rows.read()
    return GraphsSummary(graphs.widths, np.unique(labels), float(weights.sum()))


class ColdMaps:
    """Best labellings without a warm start.

    A warm start from the last flow is faster, but which of two equally good labellings it returns
    depends on the calls before. Another worker could then return a different one.
    """

    def __init__(self, graphs: Graphs, couplings: Couplings, n_labels: int) -> None:
        self._make: Callable[[], BatchMaps] = partial(best_maps, graphs, couplings, n_labels, 1)
        self.exact = n_labels == 2

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Return labels of shape (M,)."""
        return self._make()(unary, weights)

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """Return the result of a call, because a call never uses a warm start."""
        return self._make()(unary, weights)

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """Return the best labels that were found, and a lower bound for all labellings."""
        return self._make().prove(unary, weights)


@dataclass(frozen=True, eq=False)
class FieldPart:
    """A function (rows, w) -> the contribution of a partition to the answer of the oracle."""

    fit: str
    question: str
    classes: NDArray[Any]
    widths: Widths
    truncation: float
    priced: bool
    intercept: bool
    dimension: int

    def __call__(self, rows: GraphRows, w: FloatArray) -> Any:
        if not rows.X:
            nothing = {"plane": (0.0, np.zeros(self.dimension)), "at_most": 0.0}
            return nothing.get(self.question, (0.0, np.zeros(self.dimension), 0.0))
        if self.fit not in rows.kept:
            rows.kept.clear()
            rows.kept[self.fit] = self._oracle(rows)
        oracle: FieldOracle = rows.kept[self.fit]
        if self.question == "plane":
            return oracle._ask(w)
        if self.question == "at_most":
            return oracle._ask_at_most(w)
        plane, most = oracle._ask_in_full(w)
        return *plane, most

    def _oracle(self, rows: GraphRows) -> FieldOracle:
        graphs, values, weights = rows.read(self.widths)
        n_labels = len(self.classes)
        labels = np.searchsorted(self.classes, values).astype(np.int64)
        couplings = Couplings(graphs, n_labels, self.truncation, label_costs=self.priced)
        maps = ColdMaps(graphs, couplings, n_labels)
        risk = FieldRisk(graphs, labels, n_labels, weights, maps, couplings)
        return FieldOracle(graphs, couplings, risk, 1.0, intercept=self.intercept)


class DaskFieldOracle(FieldOracle):
    """The oracle of a linear field whose graphs lie on workers, which adds up partitions."""

    def __init__(
        self,
        executor: Executor,
        rows: Sequence[Any],
        ask: Callable[[str, int], FieldPart],
        kinds: int,
        columns: int,
        widths: list[int],
        C: float,
        wrong: float,
        planes: int,
    ) -> None:
        self._begin(kinds, columns, widths, C, wrong)
        self._executor, self._rows, self._exact = executor, rows, kinds == 1
        self._questions = {
            name: ask(name, self.dimension) for name in ("plane", "in_full", "at_most")
        }
        self._parted: PartedOracle | None = None
        if planes > 1:
            self._parted = PartedOracle(
                lambda w: self._executor.sums(self._questions["plane"], self._rows, w, most=planes)
            )
            self._highest = self._parted._highest

    @property
    def exact(self) -> bool:
        """Whether labellings are exact, which holds for two labels."""
        return self._exact

    def _sum(self, question: str, w: FloatArray) -> Any:
        return self._executor.sums(self._questions[question], self._rows, w)[0]

    def _ask(self, w: FloatArray) -> Plane:
        plane: Plane = self._sum("plane", w) if self._parted is None else self._parted(w)
        return plane

    def _ask_afresh(self, w: FloatArray) -> Plane:
        return self._ask(w)

    def _ask_in_full(self, w: FloatArray) -> tuple[Plane, float]:
        risk, slope, most = self._sum("in_full", w)
        return (risk, slope), most

    def _ask_at_most(self, w: FloatArray) -> float:
        return float(self._sum("at_most", w))
