"""The separation oracle of a linear field, and the best weights that are proved."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._field_risk import FieldRisk
from setwise.estimators._fields._graphs import Graphs

Plane = tuple[float, FloatArray]
_ROUNDING = 1e-9  # of P(0): how far a relaxation is asked to go


class Proved(NamedTuple):
    """Weights, a number that their objective is not above, and whether it is the objective."""

    w: FloatArray
    value: float
    exact: bool


class FullSearch(NamedTuple):
    """The answer of a full search: a plane, and bounds on the objective of the weights."""

    plane: Plane
    least: float
    most: float


class FieldOracle:
    r"""w -> the sum of the risks of all graphs and a subgradient, for scores that are linear in w.

    A cut finds the most violated labels, moves only some that are violated: then the answer is a
    plane below the risk, and its height is no upper bound of the objective. So weights count as an
    answer to the whole problem only where the labels were searched for in full, with a bound on
    what was missed: ``prove`` does that, and ``best`` keeps the least objective that is certain.

    Moves start from the labels of the last call and may settle there. With ``thorough`` set, the
    labels of weights that would be the best so far are looked for again: from another start, and if
    no violated labelling speaks against these weights, in full.
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
        """Begin with numbers of segments, of weights of each, and of weights of the couplings."""
        self._kinds, self.C = kinds, C
        self.first_coupling = kinds * columns
        self._cuts = self.first_coupling + np.cumsum([0, *widths])  # where each part begins
        self.dimension = int(self._cuts[-1])
        self.zero = C * wrong  # no scores: everything is wrong
        self.best = Proved(np.zeros(self.dimension), self.zero, exact=True)
        self.proved: list[float] = []  # the best value after each call
        self._thorough, self._least = False, np.inf

    @property
    def exact(self) -> bool:
        """Whether every answer is the risk itself."""
        return self._risk.exact

    def start(self, *, thorough: bool) -> None:
        """Begin a search for the best weights; what is proved stays."""
        self._thorough = thorough
        self._least = np.inf  # of all objectives that were answered

    def parts(self, w: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return weights of the nodes, (K, d), and of the features of each coupling's part."""
        W = w[: self.first_coupling].reshape(self._kinds, -1)
        return W, [w[begin:end].copy() for begin, end in pairwise(self._cuts)]

    def __call__(self, w: FloatArray) -> Plane:
        """Return the sum of the risks as far as it was found, and the plane of these labels."""
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
        """Search in full, and keep the weights if no others are known to be better."""
        plane, most = self._ask_in_full(w)
        least, most = (self._objective(w, risk) for risk in (plane[0], most))
        self._keep(w, least, most)
        if self.proved:
            self.proved[-1] = min(self.proved[-1], self.best.value)
        return FullSearch(plane, least, most)

    def at_most(self, w: FloatArray) -> float:
        """Return an upper bound of the objective, without a search."""
        return self._objective(w, self._ask_at_most(w))

    # The sums over all graphs, which may also be made elsewhere.

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
            self.best = Proved(w.copy(), most, most - least <= _ROUNDING * self.zero)

    def _objective(self, w: FloatArray, risk: float) -> float:
        return 0.5 * float(w @ w) + self.C * risk

    def _scores(self, w: FloatArray) -> FloatArray:
        """Return scores and weights flat, as the risk takes them."""
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
