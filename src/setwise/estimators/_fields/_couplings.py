"""The couplings of a learnt field: cut edges, divided regions and used labels."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._fields._graphs import Graphs, graph_of
from setwise.estimators._fields._potts_maps import RegionTables, cut
from setwise.fields import Field, LabelCost, Potts, RobustPn


class Couplings:
    r"""The potentials of a learnt field other than its unaries, each with a weight >= 0.

    .. math:: \chi_e(z) = [z_p \ne z_q] , \qquad
        \chi_S(z) = \min\bigl(\theta |S|, \; |S| - \max_l |\{p \in S : z_p = l\}|\bigr) , \qquad
        \chi_{il}(z) = [\exists p : z_p = l]

    for the edges, for the regions S and, if ``label_costs`` are learnt, for every label l of every
    graph i. All are submodular for :math:`\theta \le 1/2`. The F couplings are concatenated: first
    those of edges, then of regions, then of labels.

    Parameters
    ----------
    graphs : Graphs
    n_labels : int
    truncation : float
        :math:`\theta`, above 0 and at most 1/2.
    label_costs : bool
    """

    def __init__(
        self, graphs: Graphs, n_labels: int, truncation: float = 0.5, *, label_costs: bool = False
    ) -> None:
        self._graphs, self._n_labels, self._priced = graphs, n_labels, label_costs
        regions = graphs.regions
        sizes = np.bincount(regions[regions >= 0], minlength=len(graphs.region_layers))
        self._sizes, self._limits = sizes, truncation * sizes
        # For each part: the graph of each potential, and the features in which its weight is
        # linear.
        parts = [(graph_of(graphs.edge_starts), graphs.pairs)]
        if regions.shape[1]:
            parts.append((graph_of(graphs.region_starts), graphs.layers))
        if label_costs:
            of_label = np.repeat(np.arange(len(graphs)), n_labels)
            parts.append((of_label, np.tile(np.eye(n_labels), (len(graphs), 1))))
        self.graph_of = np.concatenate([part[0] for part in parts])
        self.features = [part[1] for part in parts]

    @property
    def lengths(self) -> list[int]:
        """The number of potentials of each part."""
        return [len(part) for part in self.features]

    @property
    def edges_alone(self) -> bool:
        """Whether there are no regions and no label costs."""
        return len(self.features) == 1

    @property
    def region_tables(self) -> RegionTables | None:
        r"""The regions as sums over labels of concave functions of counts; None without regions.

        With :math:`t = \theta |S| \le |S| / 2` at most one label has more than |S| - t nodes, so
        that :math:`\chi_S = \sum_l \min(t, |S| - n_l) - t (L - 1) / L`.
        """
        if not self._graphs.regions.shape[1]:
            return None
        share = (self._n_labels - 1) / self._n_labels
        tables = [
            np.minimum(limit, np.arange(size, -1.0, -1.0)) - limit * share
            for size, limit in zip(self._sizes.tolist(), self._limits.tolist(), strict=True)
        ]
        flat = np.concatenate([*tables, np.zeros(0)])
        return RegionTables(self._graphs.regions.T, self._graphs.region_starts, flat)

    def __call__(self, labels: IntArray) -> FloatArray:
        """Return the potentials (F,) of labels (M,), each with a weight of 1."""
        graphs, n_labels = self._graphs, self._n_labels
        parts = [cut(graphs, labels)]
        if graphs.regions.shape[1]:
            node, layer = np.nonzero(graphs.regions >= 0)
            at = graphs.regions[node, layer] * n_labels + labels[node]
            counts = np.bincount(at, minlength=len(self._sizes) * n_labels).reshape(-1, n_labels)
            parts.append(np.minimum(self._limits, self._sizes - counts.max(axis=1, initial=0)))
        if self._priced:
            at = graph_of(graphs.node_starts) * n_labels + labels
            parts.append((np.bincount(at, minlength=len(graphs) * n_labels) > 0).astype(float))
        return np.concatenate(parts)

    def sums(self, of_nodes: FloatArray, of_couplings: FloatArray) -> FloatArray:
        """Sum over the nodes and couplings of each graph, (n,)."""
        n = len(self._graphs)
        total: FloatArray = np.zeros(n)
        total += np.bincount(graph_of(self._graphs.node_starts), of_nodes, n)
        total += np.bincount(self.graph_of, of_couplings, n)
        return total

    def weights(self, coefficients: list[FloatArray]) -> FloatArray:
        """Return the weights (F,) from the coefficients of the features of each part."""
        parts = zip(self.features, coefficients, strict=True)
        return np.concatenate([features @ v for features, v in parts])

    def field(self, i: int, unary: FloatArray, weights: FloatArray) -> Field:
        """Return graph i with unaries (M, L) and weights (F,) of all graphs, as a field."""
        graphs = self._graphs
        at = slice(*graphs.node_starts[i : i + 2])
        between = slice(*graphs.edge_starts[i : i + 2])
        edges = graphs.edges[between] - graphs.node_starts[i]
        field = Field(unary[at]) + Potts(edges, weights[between])
        first, last = graphs.region_starts[i : i + 2]
        start = len(graphs.edges)
        for layer in range(graphs.regions.shape[1]):
            own = first + np.flatnonzero(graphs.region_layers[first:last] == layer)
            if len(own):
                limits = self._limits[own]
                prices = weights[start + own] * limits
                field += RobustPn(graphs.regions[at, layer], prices, limits)
        if self._priced:
            start += len(graphs.region_layers) + i * self._n_labels
            field += LabelCost(weights[start : start + self._n_labels])
        return field
