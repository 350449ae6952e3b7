"""What workers do for a linear field: hold graphs, and label them anew for every question."""

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
from setwise.estimators._fields._higher_maps import best_maps
from setwise.estimators._fields._potts_maps import BatchMaps, BoundedLabels
from setwise.learning import Executor
from setwise.learning._cutting_planes._parted_oracle import PartedOracle

Widths = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class GraphRows:
    """Some graphs with the labels and weights of their nodes; ``kept`` does not travel."""

    X: list[Any]
    Y: list[Any]
    node_weights: list[Any] | None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[type[GraphRows], tuple[Any, ...]]:
        return GraphRows, (self.X, self.Y, self.node_weights)

    def read(self, widths: Widths | None = None) -> tuple[Graphs, NDArray[Any], FloatArray]:
        """Graphs, labels and weights of the nodes, checked."""
        graphs = read_graphs(self.X, widths)
        refuse_missing(graphs)
        return (
            graphs,
            read_of_nodes(self.Y, graphs, "Y"),
            read_node_weights(self.node_weights, graphs),
        )


def rows_of_graphs(X: Any, Y: Any, node_weights: Any = None) -> GraphRows:
    """A partition: bags may hand theirs over as iterators."""
    weights = None if node_weights is None else list(node_weights)
    return GraphRows(list(X), list(Y), weights)


class SeenGraphs(NamedTuple):
    """What the client must know of a partition; None for its widths where it is empty."""

    widths: Widths | None
    labels: NDArray[Any]
    wrong: float


def look_at_graphs(rows: GraphRows) -> SeenGraphs:
    """Widths, labels, and what all mistakes together cost."""
    if not rows.X:
        return SeenGraphs(None, np.zeros(0, np.int64), 0.0)
    graphs, labels, weights = rows.read()
    return SeenGraphs(graphs.widths, np.unique(labels), float(weights.sum()))


class ColdMaps:
    """Best labellings that do not depend on those before.

    A search that goes on from the last flow is faster, and which of two equally good labellings it
    gives depends on what it was asked before: another worker would answer with another one.
    """

    def __init__(self, graphs: Graphs, couplings: Couplings, n_labels: int) -> None:
        self._make: Callable[[], BatchMaps] = partial(best_maps, graphs, couplings, n_labels, 1)
        self.exact = n_labels == 2

    def __call__(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """(M,) labels."""
        return self._make()(unary, weights)

    def afresh(self, unary: FloatArray, weights: FloatArray) -> IntArray:
        """The same: every start is a new one."""
        return self._make()(unary, weights)

    def prove(self, unary: FloatArray, weights: FloatArray) -> BoundedLabels:
        """The best labels that any search finds, with what none is below."""
        return self._make().prove(unary, weights)


@dataclass(frozen=True, eq=False)
class FieldPart:
    """(rows, w) -> what the graphs of a partition add to an answer of the oracle."""

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


class SpreadFieldOracle(FieldOracle):
    """The oracle of a linear field whose graphs lie on workers: sums over partitions."""

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
        """With two labels."""
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
