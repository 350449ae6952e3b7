"""Two labels on a large grid with functions of counts: cuts of the grid alone decide most labels.

Let f(k) be concave in the number k of ones in a region, let all best labellings contain the ones of
L and no ones outside U, and let the region have m voxels in U but not in L.

1. Replace every f by a line of the slope (f(m) - f(j)) / (m - j), where j is the count of the least
   minimiser x. Among any other voxels a region costs at least that much for each, so some best
   labelling has no ones outside x, and x becomes U.
2. Replace every f by a line of the slope (f(j) - f(0)) / j, where x is again the least minimiser.
   To add voxels of x never costs more, so every best labelling contains x, and x becomes L.

In step 1 the slopes fall while x grows from L, in step 2 they rise while x shrinks from U; both end
at an x that has its own slopes. With lines in place of functions the energy is that of a grid, and
a region may have any shape and size. Voxels between L and U are solved at the end with all others
fixed. Costs and weights are multiples of a unit, and slopes are rounded to the safe side.

Label costs do not take part: the best labelling is that without them, or one label everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, prod

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.fields._edges import grid_of
from setwise.fields._field import Field
from setwise.fields._pixels._grid import pair_slices
from setwise.fields._terms import CountTerm, LabelTerm, PottsTerm
from setwise.inference._flows._energy_as_cut import MOST_ARCS, cut_with_counts
from setwise.inference._flows._potts_cut import joined

_OPEN = 2
# The edges and functions of a voxel cost less than 2**_DIGITS units in all. Kernels compute in 62
# bits, and a cost may be four times as large.
_DIGITS = 57
# Give up if more than one voxel in _FEW_OPEN stays open: then most of the work is done twice.
_FEW_OPEN = 8
# The most cuts of the grid. Each takes less time than the one before; usually there are about ten.
_MOST_CUTS = 100


@dataclass(frozen=True, eq=False)
class _CountedLayer:
    """Disjoint regions with a concave function of the number of ones in each."""

    regions: IntArray
    """(N,), -1 for none"""
    starts: IntArray
    heights: FloatArray
    """h(k) + h(size - k) for each region"""

    @classmethod
    def of(cls, term: CountTerm) -> _CountedLayer:
        ends = np.cumsum(np.diff(term.starts))
        numbers = np.arange(len(term.table))
        begins = np.repeat(term.starts[:-1], np.diff(term.starts))
        mirrored = np.repeat(ends, np.diff(term.starts)) - 1 - (numbers - begins)
        return cls(term.regions, term.starts, term.table + term.table[mirrored])

    def count(self, labels: NDArray[np.uint8], label: int) -> IntArray:
        """Return the number of voxels with a label in each region."""
        chosen = self.regions[(labels == label) & (self.regions >= 0)]
        return np.bincount(chosen, minlength=len(self.starts) - 1)

    def at(self, counts: IntArray) -> FloatArray:
        return np.asarray(self.heights[self.starts[:-1] + counts])

    def slopes(
        self, bounds: NDArray[np.uint8], x: NDArray[np.uint8], unit: float, *, growing: bool
    ) -> IntArray:
        """Return the slope for each region in units, rounded down in step 1 and up in step 2."""
        low = self.count(bounds, 1)
        high = low + self.count(bounds, _OPEN)
        now = self.count(x, 1)
        begin, end = (now, high) if growing else (low, now)
        # The last slope (or the first) is safe for a region that x has taken (or left) wholly.
        begin = np.where(growing & (begin == end) & (begin > low), begin - 1, begin)
        end = np.where((not growing) & (begin == end) & (end < high), end + 1, end)
        steps = np.maximum(end - begin, 1)
        rise = (self.at(end) - self.at(begin)) / unit
        slope = rise / steps
        margin = 2 + 4 * EPS * np.abs(slope)
        safe = np.floor(slope - margin) if growing else np.ceil(slope + margin)
        # A slope that is a whole number of units needs no margin, and ties are decided by it.
        is_whole = (np.abs(rise) < 2.0**62) & (rise == np.rint(rise))
        units = np.where(is_whole, rise, 1.0).astype(np.int64)
        nearest = np.where(is_whole, np.rint(slope), 0.0).astype(np.int64)
        return np.asarray(np.where(nearest * steps == units, nearest, safe.astype(np.int64)))


@dataclass(frozen=True, eq=False)
class SlopesCut:
    """The least minimiser of a field of two labels, in units."""

    labels: IntArray
    lost: float
    """by how much another labelling may be better because of digits below the unit"""
    rounding: float
    """the rounding error of the functions of counts"""
    n_cuts: int


@dataclass(frozen=True, eq=False)
class _Grid:
    """Unaries and Potts terms of a grid in whole units."""

    sides: IntArray
    steps: IntArray
    costs: IntArray
    """(N,)"""
    weights: IntArray
    r"""(K, \*sides)"""
    unit: float

    def solve(self, tilt: IntArray, known: NDArray[np.uint8], n_threads: int) -> None:
        """Write the labels of the open voxels."""
        arrays = self.costs + tilt, self.sides, self.steps, self.weights
        _core.cut_open(*arrays, known, n_threads)


def cut_by_slopes(field: Field, n_threads: int) -> SlopesCut | None:
    """Return the least minimiser without label costs, or None if other methods are needed.

    That is so unless the field has two labels, the edges of one grid, and functions of counts, and
    if the functions leave too much open.
    """
    _, unary, rest = field._folded()
    terms = [term for _, term in rest if not isinstance(term, LabelTerm)]
    pairs = [(term.edges, term.weights) for term in terms if isinstance(term, PottsTerm)]
    layers = [_CountedLayer.of(term) for term in terms if isinstance(term, CountTerm)]
    if field.n_labels != 2 or not pairs or len(pairs) + len(layers) < len(terms):
        return None
    edges, weights = joined(pairs)
    grid = _as_grid(unary, edges, weights, layers)
    if grid is None:
        return None
    bounds = np.full(len(unary), _OPEN, np.uint8)
    n_cuts = 0
    while n_cuts < _MOST_CUTS:
        before = int(np.count_nonzero(bounds == _OPEN))
        for growing in (True, False):
            is_open = bounds == _OPEN
            gained = int(growing)
            found = np.where(is_open, 1 - gained, bounds).astype(np.uint8)
            slopes: list[IntArray] = []
            x = None
            while x is None or not np.array_equal(found, x):
                x = found
                now = [layer.slopes(bounds, x, grid.unit, growing=growing) for layer in layers]
                # Rounding must not turn the slopes round, because x keeps what it has gained.
                monotone = np.minimum if growing else np.maximum
                slopes = [monotone(*pair) for pair in zip(now, slopes or now, strict=True)]
                tilt = np.zeros(len(unary), np.int64)
                for layer, slope in zip(layers, slopes, strict=True):
                    tilt += np.append(slope, 0)[layer.regions]
                found = np.where(is_open & (x != gained), _OPEN, x).astype(np.uint8)
                grid.solve(tilt, found, n_threads)
                n_cuts += 1
                if n_cuts >= _MOST_CUTS:
                    return None
            bounds[is_open & (found != gained)] = 1 - gained
        if (left := int(np.count_nonzero(bounds == _OPEN))) in (0, before):
            break
    if left * _FEW_OPEN > len(unary):
        return None
    lost = _solve_rest(unary, edges, weights, layers, bounds, n_threads) if left else 0.0
    if lost is None:
        return None
    lost += _lost(unary, edges, weights, bounds, grid.unit)
    heights = sum(float(np.abs(layer.heights).max()) * len(layer.starts) for layer in layers)
    return SlopesCut(
        bounds.astype(np.int64), lost, FEW_ROUNDINGS * EPS * heights, n_cuts + bool(left)
    )


def _as_grid(
    unary: FloatArray, edges: IntArray, weights: FloatArray, layers: list[_CountedLayer]
) -> _Grid | None:
    grid = grid_of(edges)
    if grid is None or prod(grid.sides) != len(unary):
        return None
    sides = np.array(grid.sides, np.int64)
    steps = np.array(grid.steps, np.int64).reshape(-1, len(sides))
    steepest = sum(float(np.abs(np.diff(layer.heights)).max(initial=0.0)) for layer in layers)
    largest = float(weights.max(initial=0.0))
    decisive = 2 * len(steps) * largest + 2 * steepest
    unit = 2.0 ** (frexp(decisive)[1] - _DIGITS)
    if not np.isfinite(decisive) or not 1e-290 < unit < 1e290:
        return None
    whole = np.zeros((len(steps), *grid.sides), np.int64)
    begin = 0
    for row, step in zip(whole, grid.steps, strict=True):
        part = row[pair_slices(grid.sides, step)[0]]
        flat = weights[begin : begin + part.size]
        part[...] = (flat / unit).astype(np.int64).reshape(part.shape)
        begin += part.size
    most = 2 * decisive / unit
    with np.errstate(over="ignore"):
        costs = np.clip((unary[:, 1] - unary[:, 0]) / unit, -most, most).astype(np.int64)
    if len(steps) not in (1, 2, 3, 4, 13):
        return None
    return _Grid(sides, steps, costs, whole, unit)


def _lost(
    unary: FloatArray,
    edges: IntArray,
    weights: FloatArray,
    labels: NDArray[np.uint8],
    unit: float,
) -> float:
    """Return what the labelling pays in digits below the unit."""
    paid = unary[np.arange(len(unary)), labels] - unary.min(axis=1)
    cut = weights[labels[edges[:, 0]] != labels[edges[:, 1]]]
    return float(sum(np.modf(part / unit)[0].sum() * unit for part in (paid, cut)))


def _solve_rest(
    unary: FloatArray,
    edges: IntArray,
    weights: FloatArray,
    layers: list[_CountedLayer],
    bounds: NDArray[np.uint8],
    n_threads: int,
) -> float | None:
    """Solve the open voxels with all others fixed. Return the rounding error of the flow.

    Return None if the functions of counts need too many auxiliary nodes.
    """
    rest = np.flatnonzero(bounds == _OPEN)
    number = np.full(len(bounds), -1)
    number[rest] = np.arange(len(rest))
    costs = unary[rest, 1] - unary[rest, 0]
    touching = (bounds[edges] == _OPEN).any(axis=1)
    edges, weights = edges[touching], weights[touching]
    both = (bounds[edges] == _OPEN).all(axis=1)
    for mine, other in (edges.T, edges.T[::-1]):
        border = (bounds[mine] == _OPEN) & ~both
        favour = np.where(bounds[other[border]] == 1, -weights[border], weights[border])
        np.add.at(costs, number[mine[border]], favour)
    counts: list[tuple[IntArray, FloatArray]] = []
    n_arcs = 0
    for layer in layers:
        ones = layer.count(bounds, 1)
        mine = layer.regions[rest]
        order = np.argsort(mine, kind="stable")
        order = order[mine[order] >= 0]
        names, begins = np.unique(mine[order], return_index=True)
        for r, members in zip(names, np.split(order, begins[1:]), strict=True):
            begin = layer.starts[r] + ones[r]
            counts.append((members, layer.heights[begin : begin + len(members) + 1]))
            n_arcs += len(members) ** 2
    if n_arcs > MOST_ARCS:
        return None
    inside = both.nonzero()[0]
    own = weights[inside]
    cut = cut_with_counts(costs, number[edges[inside]], own, own, counts)
    kernel = _core.make_changing_cut(cut.costs, cut.edges, cut.there, cut.back)
    ones_of_rest, answer = np.empty(len(rest), np.bool_), np.zeros(3)
    kernel.solve(np.zeros(len(rest)), 0.0, False, ones_of_rest, answer, n_threads)
    bounds[rest] = ones_of_rest
    return float(answer[2])
