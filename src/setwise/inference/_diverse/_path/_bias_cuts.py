"""The cuts of a field of two labels under biases, and the path that they find."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise._foundation._certificate import EPS, relative_gap
from setwise._foundation._threads import as_threads
from setwise.diversities._addition import Addition
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._conditioning._conditioned import Conditioned, Sums
from setwise.inference._conditioning._magnitude import NEGLIGIBLE, rounding_of, rounding_of_costs
from setwise.inference._diverse._path._nested_path import BiasPath
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._flows._two_label_cut import TwoLabelCut
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import Found, MapResult

# The default max_bias is the quantile _SHARE_OUTWEIGHED of the absolute differences of the
# variables' unaries. It determines how far the items of a list may be from the best labelling, and
# ``bias_path`` documents it. Differences above _SEED times their median count as seeds and are left
# out. Four times the multiple changes no list of fields with normal unaries; a quarter of it leaves
# out some variables of such fields.
_SHARE_OUTWEIGHED = 0.75
_SEED = 16.0


class Piece(NamedTuple):
    """A labelling of the path: a bias for which it is optimal, its ones and its energy.

    ``lost`` bounds the gap to other labellings that is due to rounding of the flow.
    """

    bias: float
    ones: BoolArray
    size: int
    value: float
    lost: float = 0.0


class BiasCuts:
    """The cuts of one field of two labels under biases, each started from the last flow."""

    def __init__(self, field: Field, n_jobs: int | None = None) -> None:
        if field.n_labels != 2:
            raise ValueError(f"field must have two labels for a path, got {field.n_labels}")
        self.base = Conditioned.of(field)
        self._constant = self.base.constant
        self._costs = self.base.field.unary[:, 1] - self.base.field.unary[:, 0]
        self._cut = TwoLabelCut(self.base.field, as_threads(n_jobs))
        self._rounding = rounding_of_costs(self.base.field, by_cut=True)
        # The rounding errors of the flow of each bias, which sums of energies have too.
        self._lost: dict[float, float] = {}
        self._share = field.n_variables * EPS
        self.n_cuts = 0

    @classmethod
    def of(cls, field: Field, n_jobs: int | None = None) -> BiasCuts | None:
        """Return the cuts of a field, or None if it does not have two labels or is no cut."""
        try:
            return cls(field, n_jobs) if field.n_labels == 2 else None
        except ValueError:  # the energy is not submodular, or the cut needs too many arcs
            return None

    def piece(self, path: BiasPath, number: int) -> Piece:
        """Return a piece of a path of these cuts, as it was found."""
        bias, value = float(path.biases[number]), float(path.values[number]) - self._constant
        ones = path.last >= number
        return Piece(bias, ones, int(path.sizes[number]), value, self._lost.get(bias, 0.0))

    def certified(self, end: Piece) -> MapResult:
        """Return a labelling as the answer to its own problem, the field with its bias."""
        shift = end.bias * end.size
        gap_scale = end.value - self.base.floor + abs(shift)
        if max(self._rounding, rounding_of(end.bias), end.lost) <= NEGLIGIBLE * gap_scale:
            lost = 0.0
            if not (self.base.adds_exactly(end.bias) and self.base.adds_exactly(shift)):
                lost = self.base.slack(end.value, end.value, Sums(gap_scale))
            return Found(
                labels=end.ones.astype(np.int64),
                value=end.value + shift,
                bound=end.value + shift - end.lost,
                method="cut",
                reason="",
                n_iter=1,
                converged=True,
                interrupted=False,
                relative_gap=relative_gap(end.lost, gap_scale),
                exact=True,
                lost=lost,
            )
        # Large costs increase the rounding errors of energies, by an amount that depends on the
        # field with the bias.
        ones = np.ones(len(self._costs), np.int64)
        problem = StepProblem.of(self.base.field, Addition(prices=[(ones, end.bias)]))
        value = end.value + end.bias * end.size
        labels = end.ones.astype(np.int64)
        options = MapOptions.read(problem.field)
        found = options.result(
            labels, value, value - end.lost, method="cut", n_iter=1, converged=True
        )
        return problem.within_digits(found, -end.bias * end.size)

    def default_max_bias(self) -> float:
        """Return the bias that exceeds three quarters of the unary differences, without seeds."""
        return default_max_bias(self.base.field, np.abs(self._costs))

    def end(self, bias: float, above: BoolArray | None, below: BoolArray | None) -> Piece:
        """Return the best labelling for a bias, with ones within ``above`` and at all of ``below``.

        Optimal labellings are nested. The two limits enforce this in spite of rounding.
        """
        ones = self._cut.ones(self._costs + bias, self._share)
        if above is not None and below is not None:
            ones = (ones & above) | below
        self.n_cuts += 1
        self._lost[bias] = self._cut.lost
        value = float(self.base.field._energies(ones.astype(np.int64)[None])[0])
        return Piece(bias, ones, int(np.count_nonzero(ones)), value, self._cut.lost)

    def path(
        self, max_bias: float, difference: float, most: int, best: Piece | None = None
    ) -> BiasPath:
        """Follow the path, without cuts between labellings that differ in few variables.

        Labellings that differ in at most ``difference`` variables count as neighbours. ``best`` is
        the optimal labelling without a bias, if it is known.
        """
        n, before = len(self._costs), self.n_cuts
        middle = self.end(0.0, None, None) if best is None else best
        everyone, nobody = np.full(n, True), np.full(n, False)
        first = self.end(-max_bias, everyone, middle.ones) if max_bias > 0.0 else middle
        final = self.end(max_bias, middle.ones, nobody) if max_bias > 0.0 else middle
        ends = [first, middle, final]
        # The widest difference comes first, so that an incomplete path is the best one of its
        # length.
        waiting: list[tuple[int, int]] = []
        for k in range(2):
            if ends[k].size > ends[k + 1].size:
                heappush(waiting, (ends[k + 1].size - ends[k].size, k))
        following: dict[int, int] = {0: 1, 1: 2}
        crossing: dict[int, float] = {}
        neighbours: set[int] = set()
        while waiting:
            _, k = heappop(waiting)
            upper, lower = ends[k], ends[following[k]]
            bias = (lower.value - upper.value) / (upper.size - lower.size)
            bias = min(max(bias, -max_bias), max_bias)
            crossing[k] = bias
            if upper.size - lower.size <= max(difference, 1.0):
                if upper.size - lower.size <= 1:
                    neighbours.add(k)
                continue
            if self.n_cuts - before >= most:
                continue
            between = self.end(bias, upper.ones, lower.ones)
            if between.size in (upper.size, lower.size) or not _below(between, upper, bias):
                neighbours.add(k)
                continue
            ends.append(between)
            new = len(ends) - 1
            following[k], following[new] = new, following[k]
            heappush(waiting, (between.size - upper.size, k))
            heappush(waiting, (lower.size - between.size, new))
        return self._put_together(ends, following, crossing, neighbours, max_bias, before)

    def _put_together(
        self,
        ends: list[Piece],
        following: dict[int, int],
        crossing: dict[int, float],
        neighbours: set[int],
        max_bias: float,
        before: int,
    ) -> BiasPath:
        chain, breaks, slacks, k = [ends[0]], [], [], 0
        while k in following:
            upper, end = ends[k], ends[following[k]]
            if end.size < chain[-1].size:
                bias = crossing[k]
                breaks.append(bias)
                known = k in neighbours
                slacks.append(0.0 if known else max(bias - upper.bias, end.bias - bias))
                chain.append(end)
            # Of equal labellings, keep the one that is optimal without a bias.
            elif end.bias == 0.0:
                chain[-1] = end
            k = following[k]
        last = np.full(len(self._costs), -1, np.int64)
        for number, end in enumerate(chain):
            last[end.ones] = number
        # Rounding may swap two crossings of nearly equal lines.
        breakpoints = np.maximum.accumulate(np.array(breaks, np.float64))
        return BiasPath(
            breakpoints=breakpoints,
            last=last,
            sizes=np.array([end.size for end in chain], np.int64),
            values=np.array([end.value for end in chain]) + self._constant,
            biases=np.array([end.bias for end in chain]),
            max_bias=max_bias,
            whole=not any(slacks),
            slacks=np.array(slacks, np.float64),
            n_cuts=self.n_cuts - before,
        )


def _below(between: Piece, end: Piece, bias: float) -> bool:
    """Return whether a labelling is below the crossing of two lines by more than rounding."""
    crossing, lowest = end.value + bias * end.size, between.value + bias * between.size
    size = abs(end.value) + abs(bias) * end.size + abs(between.value) + abs(bias) * between.size
    return lowest < crossing - 1e-13 * size


def default_max_bias(field: Field, preferences: FloatArray) -> float:
    """Return the default ``max_bias``, given the unary differences (N,) of a field."""
    preferring = preferences[preferences > 0.0]
    return max_bias_of(preferences) or _weight_of_pairs(field) or max_bias_of(preferring)


def _weight_of_pairs(field: Field) -> float:
    """Return the mean weight of the pairs of a variable."""
    total = 0.0
    for _, term in field._terms():
        if isinstance(term, PottsTerm):
            total += float(np.sum(term.weights))
        elif isinstance(term, TableTerm):
            total += float((term.weights * np.ptp(term._distinct, axis=(1, 2))).sum())
    return 2.0 * total / max(field.n_variables, 1)


def max_bias_of(preferences: FloatArray) -> float:
    """Return the upper quartile of |u1 - u0| (N,), seeds and forbidden labels left out.

    A seed is more than 16 times the median of all.
    """
    finite = preferences[np.isfinite(preferences)]
    if finite.size == 0:
        return 0.0
    middle = np.partition(finite, len(finite) // 2)[len(finite) // 2]
    usual = finite[finite <= _SEED * middle]
    place = int(_SHARE_OUTWEIGHED * (len(usual) - 1))
    return float(np.partition(usual, place)[place]) if usual.size else 0.0
