"""The best labelling by enumeration of all labellings."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from setwise._foundation._arguments import BATCH, IntArray
from setwise.fields._field import Field
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._search import MapSearch

# The most labellings that enumeration visits if it is requested. Not tuned.
MOST_LABELINGS = 20_000_000
# Up to this number of labellings, enumeration is preferred to a method without a guarantee. Not
# tuned.
FEW_LABELINGS = 1 << 14


def enumerate_labels(field: Field, options: MapOptions) -> MapResult:
    """Return the best of all labellings without forbidden labels, which is exact for any potential.

    If several labellings are best, the first in lexicographic order is returned. The cost is the
    product of the numbers of allowed labels, at most 2e7, times the cost of one energy; memory is
    bounded. The callback is called after each chunk of labellings. If it ends the search, the bound
    is the sum of the least values of all terms.
    """
    return _Enumeration(field, options).run()


class _Enumeration(MapSearch):
    method = "enumerate"

    def __init__(self, field: Field, options: MapOptions) -> None:
        super().__init__(field, options)
        self._allowed = [np.flatnonzero(np.isfinite(row)) for row in field.unary]
        self._rows = max(1, BATCH // max(1, field.n_variables))
        self._tried, self._total, self.limit = 0, int(count_labelings(field)), inf
        # The first labelling is the initial answer.
        first = np.array([labels[0] for labels in self._allowed], np.int64)
        self.best = first, float(field._energies(first[None])[0])

    def step(self) -> bool:
        stop = min(self._tried + self._rows, self._total)
        labels = _labelings(self._allowed, self._tried, stop)
        energies = self.field._energies(labels)
        k = int(np.argmin(energies))
        if energies[k] < self.best[1]:
            self.best = labels[k].copy(), float(energies[k])
        self._tried = stop
        if stop < self._total:
            return False
        if self.best[1] == inf:
            raise ValueError("field must have a labelling of finite energy, got none")
        self.bound, self.converged = self.best[1], True
        return True


def count_labelings(field: Field) -> float:
    """Return the number of labellings without forbidden labels; ``inf`` if above 1e15."""

    def count() -> float:
        finite = np.isfinite(field.unary)
        free = np.count_nonzero(finite) - field.n_variables
        if free > 50 * (field.n_labels - 1):  # more than 50 variables have several labels
            return np.inf
        choices = finite.sum(axis=1)
        return prod(choices.tolist()) if np.log10(choices).sum() <= 15 else np.inf

    return field._remember("labellings", count)


def most_items(field: Field, m: int) -> int:
    """Return the smaller of m and the number of labellings."""
    return int(min(m, count_labelings(field)))


def all_labelings(field: Field) -> IntArray:
    """Return all labellings without forbidden labels, in lexicographic order, one per row."""
    allowed = [np.flatnonzero(np.isfinite(row)) for row in field.unary]
    return _labelings(allowed, 0, int(count_labelings(field)))


def _labelings(allowed: list[IntArray], start: int, stop: int) -> IntArray:
    """Return labellings start..stop-1 in lexicographic order, one per row."""
    rest = np.arange(start, stop)
    labels = np.empty((stop - start, len(allowed)), np.int64)
    for i in range(len(allowed) - 1, -1, -1):
        rest, digit = np.divmod(rest, len(allowed[i]))
        labels[:, i] = allowed[i][digit]
    return labels
