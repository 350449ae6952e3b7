"""The margin-rescaled risk of a field: wrong labellings against the true one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._fields._couplings import Couplings
from setwise.estimators._fields._graphs import Graphs, graph_of
from setwise.estimators._fields._potts_maps import PottsMaps


class FieldRisk:
    r"""The risk of scores on nodes and edges, by a labelling of least energy for each graph.

    With scores :math:`f_{pl}` of node p and label l, and :math:`g_e \ge 0` of edge e, the energy of
    labels z is :math:`E(z) = -\sum_p f_{p z_p} + \sum_{e = (p, q)} g_e [z_p \ne z_q]` plus the
    terms of regions and used labels (``Couplings``). The risk is

    .. math:: R(f, g) = \frac1n \sum_i \max_z \sum_p c_p [z_p \ne y_p] + E_i(y_i) - E_i(z) ,

    equations (25) and (26) of the paper. The maximum is attained by a best labelling of a field
    whose unaries include the loss, equation (30). The plane of the labels that were found is
    returned, which is below the risk even if they are not the best.

    With two labels there is one segment of node scores, :math:`f_p = f_{p1}` with :math:`f_{p0} =
    0`; with L labels there are L segments. One segment follows for the edges, and one each for
    regions and for the labels that each graph uses, if there are any. A call costs the labellings
    and O(M L + E).

    Parameters
    ----------
    graphs : Graphs
    labels : (M,)
        The truth, 0..L-1.
    n_labels : int
        L, at least 2.
    node_weights : (M,)
        c, not negative.
    maps : PottsMaps
        Solvers for the couplings, whose weights are those of the edges, the regions and the labels.
    couplings : Couplings, optional
        By default only the edges.
    """

    def __init__(
        self,
        graphs: Graphs,
        labels: IntArray,
        n_labels: int,
        node_weights: FloatArray,
        maps: PottsMaps,
        couplings: Couplings | None = None,
    ) -> None:
        self._graphs, self._truth, self._maps = graphs, labels, maps
        self._couplings = couplings or Couplings(graphs, n_labels)
        self._kinds = 1 if n_labels == 2 else n_labels
        every = np.arange(len(labels))
        self._loss = np.repeat(node_weights[:, None], n_labels, axis=1)
        self._loss[every, labels] = 0.0
        self._every, self._true_cut = every, self._couplings(labels)
        self.wrong = float(node_weights.sum())  # n R(0), where all nodes count as wrong

    @property
    def exact(self) -> bool:
        """Whether every answer is the exact risk and not a plane below it."""
        return self._maps.exact

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The offsets (n_segments + 1,): node segments by kind of score, then the couplings."""
        nodes = len(self._truth)
        ends = np.cumsum(self._couplings.lengths)
        return np.concatenate([np.arange(self._kinds + 1) * nodes, self._kinds * nodes + ends])

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk and a subgradient."""
        risks, labels = self._violations(scores)
        return float(risks.mean()), self._slopes(labels) / len(risks)

    def each(self, scores: FloatArray) -> tuple[FloatArray, csr_array]:
        """Return the risk of each graph, and its subgradients as rows."""
        risks, labels = self._violations(scores)
        slopes = self._slopes(labels)
        graphs = self._graphs
        of_nodes = np.tile(graph_of(graphs.node_starts), self._kinds)
        row = np.concatenate([of_nodes, self._couplings.graph_of])
        at = np.flatnonzero(slopes)
        return risks, csr_array((slopes[at], (row[at], at)), shape=(len(graphs), len(slopes)))

    def afresh(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk and a subgradient, with labels that are searched from another start."""
        unary, weights = self._energies(scores)
        risks, labels = self._better_than_truth(unary, scores, self._maps.afresh(unary, weights))
        return float(risks.mean()), self._slopes(labels) / len(risks)

    def prove(self, scores: FloatArray) -> tuple[float, FloatArray, float]:
        """Return the risk and a subgradient by a full search, and an upper bound of the risk."""
        unary, weights = self._energies(scores)
        found, bounds = self._maps.prove(unary, weights)
        risks, labels = self._better_than_truth(unary, scores, found)
        truth = self._couplings.sums(unary[self._every, self._truth], self._true_cut * weights)
        most = np.maximum(truth - bounds, risks)  # the loss of the truth is 0
        return float(risks.mean()), self._slopes(labels) / len(risks), float(most.mean())

    def at_most(self, scores: FloatArray) -> float:
        """Return an upper bound of the risk from the least unaries, without a search."""
        unary, weights = self._energies(scores)
        nodes = unary[self._every, self._truth] - unary.min(axis=1)
        return float(self._couplings.sums(nodes, self._true_cut * weights).mean())

    def _energies(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return unaries (M, L) minus the loss, and weights of the couplings."""
        n = self._kinds * len(self._truth)
        of_labels = scores[:n].reshape(self._kinds, -1).T
        unary = -self._loss
        unary[:, -self._kinds :] -= of_labels
        # A solver's weights may be negative by rounding, which cuts do not accept.
        return unary, np.maximum(scores[n:], 0.0)

    def _violations(self, scores: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the risks (n,) and the labels (M,) that attain them."""
        unary, weights = self._energies(scores)
        return self._better_than_truth(unary, scores, self._maps(unary, weights))

    def _better_than_truth(
        self, unary: FloatArray, scores: FloatArray, labels: IntArray
    ) -> tuple[FloatArray, IntArray]:
        """Return the risks at these labels, or at the truth where they are no better."""
        truth = self._truth
        gains = unary[self._every, truth] - unary[self._every, labels]
        weights = scores[self._kinds * len(truth) :]
        risks = self._couplings.sums(gains, (self._true_cut - self._couplings(labels)) * weights)
        # The truth itself has risk 0, so a worse labelling is replaced by it.
        keep = np.repeat(risks > 0, np.diff(self._graphs.node_starts))
        return np.maximum(risks, 0.0), np.where(keep, labels, truth)

    def _slopes(self, labels: IntArray) -> FloatArray:
        """Return the subgradient of the sum of the risks."""
        if self._kinds == 1:
            nodes = (labels - self._truth).astype(np.float64)
        else:
            kinds = np.arange(self._kinds)[:, None]
            nodes = (labels == kinds).astype(np.float64).ravel()
            nodes -= (self._truth == kinds).ravel()
        return np.concatenate([nodes, self._true_cut - self._couplings(labels)])
