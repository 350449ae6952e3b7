"""The search for labellings that differ from all earlier ones if weights find none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from setwise._foundation._arguments import BATCH, FloatArray, IntArray
from setwise._foundation._search import completed
from setwise.diversities._alternatives import Alternatives
from setwise.fields._field import Field
from setwise.inference._diverse._path._medians import edges_of, largest_part
from setwise.inference._map._enumerate import FEW_LABELINGS, all_labelings, count_labelings
from setwise.inference._map._solve_map import solve_map

# The most centres of regions that are tried. A quarter or four times as many give lists of equal
# energies.
_REGIONS = 64
_ENTRIES = 4 * BATCH  # the entries of labellings compared at once, 32 MiB; not tuned


class WiderSearch:
    """A search for alternatives without weights for the variables that differ.

    A weight per differing variable has no effect if every label of a variable occurs equally often
    in the list. If there are few labellings, all are evaluated. Otherwise connected regions of the
    best labelling take another label, and the other variables are optimised given this. As a last
    resort, single variables of an item change their labels.
    """

    def __init__(self, field: Field, wanted: Alternatives, n_jobs: int | None) -> None:
        n = field.n_variables
        self._field, self._n_jobs = field, n_jobs
        self._edges = edges_of(field)
        self._difference, self._part = wanted.least_difference * n, wanted.least_part * n
        self._orders: IntArray | None = None
        self._all: tuple[IntArray, FloatArray] | None = None
        count = count_labelings(field)
        self.sees_all = count <= FEW_LABELINGS and count * n <= _ENTRIES

    @property
    def description(self) -> str:
        """A description of the labellings found, which follows the words "no weight did, and"."""
        if self.sees_all:
            return "the best of all labellings that differ as much was taken"
        return "connected regions, or single variables, of an item were given another label"

    def differs(self, labels: IntArray, earlier: IntArray, share: float = 1.0) -> bool:
        """Return whether a labelling differs by a share of the required differences, and at all."""
        changed = earlier != labels
        if (changed.sum(axis=1) < max(share * self._difference, 1.0)).any():
            return False
        part = share * self._part
        return part <= 1.0 or all(largest_part(row, self._edges) >= part for row in changed)

    def enough(self, earlier: IntArray) -> IntArray | None:
        """Return a labelling that differs enough from all ``earlier`` ones, or None."""
        return self._of_share(earlier, 1.0)

    def less(self, earlier: IntArray) -> IntArray | None:
        """Return a new labelling that differs by less than required; None if there is none."""
        share, size = 0.5, max(self._difference, self._part)
        while share * size > 1.0:
            found = self._of_share(earlier, share)
            if found is not None:
                return found
            share *= 0.5
        return self._of_share(earlier, 0.0) if self.sees_all else self._changed_once(earlier)

    def _of_share(self, earlier: IntArray, share: float) -> IntArray | None:
        if self.sees_all:
            if self._all is None:
                labelings = all_labelings(self._field)
                self._all = labelings, self._field._energies(labelings)
            k = self._cheapest(*self._all, earlier, share)
            return None if k is None else self._all[0][k].copy()
        return self._changed_region(earlier, share)

    def _cheapest(
        self, labelings: IntArray, energies: FloatArray, earlier: IntArray, share: float
    ) -> int | None:
        """Return the index of the cheapest labelling that differs by this share, if any."""
        for k in np.argsort(energies, kind="stable").tolist():
            if not np.isfinite(energies[k]):
                break
            if self.differs(labelings[k], earlier, share):
                return int(k)
        return None

    def _changed_region(self, earlier: IntArray, share: float) -> IntArray | None:
        """Return the best labelling after a connected region took another label."""
        best, field = earlier[0], self._field
        size = int(np.ceil(max(share * self._difference, share * self._part, 1.0)))
        cheapest, least, region = None, np.inf, np.zeros(0, np.int64)
        for regions, label in self._regions(best, size):
            labelings = np.repeat(best[None], len(regions), axis=0)
            np.put_along_axis(labelings, regions, label, axis=1)
            energies = field._energies(labelings)
            energies[energies >= least] = np.inf
            k = self._cheapest(labelings, energies, earlier, share)
            if k is not None:
                cheapest, least, region = labelings[k], float(energies[k]), regions[k]
        if cheapest is None:
            return None
        unary = field.unary.copy()
        kept = unary[region, cheapest[region]]
        unary[region] = np.inf
        unary[region, cheapest[region]] = kept
        forced = field._over(unary)
        settled = completed(
            solve_map(forced, tol=np.inf, init=cheapest, n_jobs=self._n_jobs)
        ).labels
        better = float(field._energies(settled[None])[0]) < least
        return settled if better and self.differs(settled, earlier, share) else cheapest

    def _regions(self, best: IntArray, size: int) -> Iterator[tuple[IntArray, int]]:
        """Yield regions (K, size) around K centres, and a label that their variables may take."""
        if self._orders is None:
            self._orders = self._around_centres()
        for label in range(self._field.n_labels):
            free = (best != label) & np.isfinite(self._field.unary[:, label])
            if np.count_nonzero(free) >= size:
                yield np.stack([order[free[order]][:size] for order in self._orders]), label

    def _around_centres(self) -> IntArray:
        """Return all variables, those nearest to each of K centres first, (K, N)."""
        n, edges = self._field.n_variables, self._edges
        graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
        count = min(n, max(_ENTRIES // (n * self._field.n_labels), 4), _REGIONS)
        orders = np.empty((count, n), np.int64)
        for k, centre in enumerate(np.linspace(0, n - 1, count).astype(np.int64)):
            near = breadth_first_order(graph, centre, directed=False, return_predecessors=False)
            apart, following = np.full(n, True), np.roll(np.arange(n), -centre)
            apart[near] = False
            orders[k] = np.concatenate([near, following[apart[following]]])
        return orders

    def _changed_once(self, earlier: IntArray) -> IntArray | None:
        """Return an item with one variable changed, so that it is not in the list.

        Every labelling can be reached by such changes, unless potentials forbid labellings.
        """
        field = self._field
        n, n_labels = field.unary.shape
        width = max(len(earlier) + 1, _ENTRIES // n)
        for item in earlier:
            added = field.unary - field.unary[np.arange(n), item][:, None]
            added[np.arange(n), item] = np.inf
            order = np.argsort(added, axis=None, kind="stable")
            order = order[: np.count_nonzero(np.isfinite(added))]
            for start in range(0, len(order), width):
                chosen = order[start : start + width]
                labelings = np.repeat(item[None], len(chosen), axis=0)
                labelings[np.arange(len(chosen)), chosen // n_labels] = chosen % n_labels
                energies = field._energies(labelings)
                k = self._cheapest(labelings, energies, earlier, 0.0)
                if k is not None:
                    labels: IntArray = labelings[k].copy()
                    return labels
        return None
