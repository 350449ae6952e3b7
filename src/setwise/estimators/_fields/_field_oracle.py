"""The separation oracle of a linear field, and the best weights with a proved objective."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._graphs import Graphs
from setwise.inference._conditioning._magnitude import NEGLIGIBLE

Plane = tuple[float, FloatArray]


class Proved(NamedTuple):
    """Weights, an upper bound of their objective, and whether the bound is exact."""

    w: FloatArray
    value: float
    exact: bool


class FullSearch(NamedTuple):
    """The answer of a full search: a plane, and bounds on the objective of the weights."""

    plane: Plane
    least: float
    most: float


class FieldOracle:
    r"""The oracle that maps w to the sum of the risks of all graphs and a subgradient.

    The scores are linear in w. Cuts find the most violated labels; moves find only some violated
    labels. The answer is then a plane below the risk, and its value is no upper bound of the
    objective. Therefore weights can become the result only after a full search of the labels, with
    a bound on the violation that it missed. ``prove`` makes this search, and ``best`` holds the
    weights of the least proved objective.

    Moves start from the labels of the last call and may end there. If ``thorough`` is set and the
    weights seem to be the best so far, their labels are searched again: from another start, and
    then in full if no violated labelling shows that the weights are worse.
    """

    def __init__(
        self, graphs: Graphs, couplings: Couplings, risk: FieldRisk, C: float, *, intercept: bool
    ) -> None:
        nodes = graphs.nodes
        self._nodes = np.column_stack([nodes, np.ones(len(nodes))]) if intercept else nodes
        self._couplings, self._risk, self._n = couplings, risk, len(graphs)
        kinds = len(risk.offsets) - 1 - len(couplings.features)
        widths = [features.shape[1] for features in couplings.features]
        self._begin(kinds, self._nodes.shape[1], widths, C, risk.wrong)

    def _begin(self, kinds: int, columns: int, widths: list[int], C: float, wrong: float) -> None:
        """Begin with the numbers of segments, of weights per segment, and of coupling weights."""
        self._kinds, self.C = kinds, C
        self.first_coupling = kinds * columns
        self._cuts = self.first_coupling + np.cumsum([0, *widths])  # the start of each part
        self.dimension = int(self._cuts[-1])
        self.zero = C * wrong  # the objective at w = 0, where all nodes count as wrong
        self.best = Proved(np.zeros(self.dimension), self.zero, exact=True)
        self.proved: list[float] = []  # the best value after each call
        self._thorough, self._least = False, np.inf

    @property
    def exact(self) -> bool:
        """Whether every answer is the risk itself."""
        return self._risk.exact

    def start(self, *, thorough: bool) -> None:
        """Begin a search for the best weights. Weights that are already proved are kept."""
        self._thorough = thorough
        self._least = np.inf  # the least of all returned objectives

    def parts(self, w: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the weights of the nodes, (K, d), and those of each kind of coupling."""
        W = w[: self.first_coupling].reshape(self._kinds, -1)
        return W, [w[begin:end].copy() for begin, end in pairwise(self._cuts)]

    def __call__(self, w: FloatArray) -> Plane:
        """Return the sum of the risks at the labels found, and the plane of these labels."""
        plane = self._ask(w)
        if self.exact:
            objective = self._objective(w, plane[0])
            self._keep(w, objective, objective)
        elif self._thorough and self._objective(w, plane[0]) < self._least:
            plane = self._ask_afresh(w)
            if self._objective(w, plane[0]) < self._least:
                plane = self.prove(w).plane
        self._least = min(self._least, self._objective(w, plane[0]))
        self.proved.append(self.best.value)
        return plane

    def prove(self, w: FloatArray) -> FullSearch:
        """Make a full search, and store the weights if they are the best proved ones so far."""
        plane, most = self._ask_in_full(w)
        least, most = (self._objective(w, risk) for risk in (plane[0], most))
        self._keep(w, least, most)
        if self.proved:
            self.proved[-1] = min(self.proved[-1], self.best.value)
        return FullSearch(plane, least, most)

    def at_most(self, w: FloatArray) -> float:
        """Return an upper bound of the objective, without a search."""
        return self._objective(w, self._ask_at_most(w))

    # These sums over all graphs may also be computed by other processes.

    def _ask(self, w: FloatArray) -> Plane:
        return self._plane(self._risk(self._scores(w)))

    def _ask_afresh(self, w: FloatArray) -> Plane:
        return self._plane(self._risk.afresh(self._scores(w)))

    def _ask_in_full(self, w: FloatArray) -> tuple[Plane, float]:
        risk, slope, most = self._risk.prove(self._scores(w))
        return self._plane((risk, slope)), self._n * most

    def _ask_at_most(self, w: FloatArray) -> float:
        return self._n * self._risk.at_most(self._scores(w))

    def _keep(self, w: FloatArray, least: float, most: float) -> None:
        if most < self.best.value:
            self.best = Proved(w.copy(), most, most - least <= NEGLIGIBLE * self.zero)

    def _objective(self, w: FloatArray, risk: float) -> float:
        return 0.5 * float(w @ w) + self.C * risk

    def _scores(self, w: FloatArray) -> FloatArray:
        """Return scores and weights as the flat array that the risk takes."""
        W, coefficients = self.parts(w)
        weights = self._couplings.weights(coefficients)
        return np.concatenate([(W @ self._nodes.T).ravel(), weights])

    def _plane(self, of_scores: Plane) -> Plane:
        """Return the sum of the risks and its slope in w, from the mean and its slope in scores."""
        value, slopes = of_scores
        of_nodes, *of_couplings = np.split(slopes, self._risk.offsets[self._kinds : -1])
        slope = [(of_nodes.reshape(self._kinds, -1) @ self._nodes).ravel()]
        for part, features in zip(of_couplings, self._couplings.features, strict=True):
            slope.append(part @ features)
        return self._n * value, self._n * np.concatenate(slope)
