"""Lists of alternatives that differ visibly, without settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._clock import Stopwatch
from setwise._foundation._search import Control, completed
from setwise.diversities._alternatives import Alternatives
from setwise.diversities._hamming import DivMBest
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._diverse._list_search import Item, ListSearch, with_end, with_limit
from setwise.inference._diverse._path._bias_cuts import BiasCuts, default_max_bias
from setwise.inference._diverse._path._medians import DifferentPieces, edges_of
from setwise.inference._diverse._path._nested_path import BiasPath
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._diverse._result import DiverseProgress, DiverseResult
from setwise.inference._diverse._step import GreedyStep
from setwise.inference._diverse._wider_search import WiderSearch
from setwise.inference._map._enumerate import most_items
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map

# A path has up to one breakpoint per variable, and needs two cuts for each. It is followed
# completely if these cuts visit at most this number of variables and edges in total, as on grids of
# up to about 2,500 pixels. A quarter or four times as many change nothing on grids of 900 pixels.
_WHOLE_PATH = 40_000_000
# On larger fields the cuts visit _PART_OF_PATH variables and edges in total, but at least
# _CUTS_PER_ITEM cuts are made per item. On a grid of 100 x 100, a quarter of the first number
# leaves out most pieces (17 cuts instead of 68) and changes the energies of the list by a tenth.
# Four times as much (269 cuts) changes them by 0.3 per cent.
_PART_OF_PATH = 2_000_000
_CUTS_PER_ITEM = 2
# If the path up to the default max_bias has fewer pieces than the list has items, it is followed up
# to this multiple of the default. Not tuned.
_FARTHER = 4.0
# The weights that a step tries, as multiples of the default max_bias of the field. The range is
# wide enough: with all weights four times as large or as small, the lists of grids are the same.
_WEIGHTS = 2.0 ** np.arange(-6.0, 4.0)


def alternative_list(
    field: Field,
    m: int,
    wanted: Alternatives,
    n_jobs: int | None,
    control: Control[DiverseProgress],
    watch: Stopwatch,
) -> DiverseResult:
    """Return what :func:`diverse` returns without a diversity, from checked arguments."""
    most = most_items(field, m)
    cuts = BiasCuts.of(field, n_jobs)
    search: _OnPath | _ByWeights
    if cuts is None:
        search = _ByWeights(field, most, wanted, n_jobs, watch)
    else:
        search = _OnPath(field, most, wanted, cuts, watch)
    watch.lap("set-up")
    ending = search.grow(control)
    result = search.result(None, "", ending)
    # The first item is then the labelling of least unaries, and the list ends.
    if search.best.interrupted:
        result = replace(result, reason="the list was ended before its first item was there")
    else:
        result = search.described(result)
    result, listed = with_limit(result, ending), len(search)
    if listed < m and not ending.cut_short:
        why = (search.searched(),) if listed < most else ()
        result = with_end(result, listed, *why)
    return replace(result, timings=watch.timings("answer"))


class _OnPath(ListSearch):
    """Lists for two labels: medians of the path of all biases."""

    def __init__(
        self, field: Field, m: int, wanted: Alternatives, cuts: BiasCuts, watch: Stopwatch
    ) -> None:
        super().__init__(field, cuts.base, m, watch)
        self._cuts, self._wanted = cuts, wanted
        self._enough, self._wider = True, ""
        self._path: BiasPath | None = None
        self._likely: BiasPath | None = None
        self._numbers: IntArray = np.zeros(0, np.int64)
        self._max_bias = cuts.default_max_bias() if wanted.max_bias is None else wanted.max_bias

    def first(self) -> MapResult:
        self._middle = self._cuts.end(0.0, None, None)
        return self._cuts.certified(self._middle)

    def another(self) -> Item | None:
        """Return the next item by increasing energy."""
        if self._path is None:
            self._choose()
        assert self._path is not None
        if len(self) == len(self._numbers):
            return None
        piece = self._cuts.piece(self._path, int(self._numbers[len(self)]))
        return self._cuts.certified(piece), -piece.bias * piece.size

    def _choose(self) -> None:
        """Follow the path, and choose the pieces for the list, the best labelling first."""
        n, m, most = self.field.n_variables, self.m, self._most_cuts()
        path = None
        for farther in (1.0, _FARTHER) if self._wanted.max_bias is None else (1.0,):
            if path is None or path.n_pieces < m:
                self._max_bias *= farther
                if farther > 1.0:
                    self._wider = f" ({farther:g} times the default, which has too few)"
                path = self._cuts.path(self._max_bias, 1.0, most, self._middle)
                if farther == 1.0:  # larger biases only serve to find more items
                    self._likely = path
        assert path is not None
        through = int(np.abs(path.sizes - self._middle.size).argmin())
        wanted, pieces = self._wanted, DifferentPieces(self.base.field, path)
        chosen, self._enough = pieces.choose(
            m, through, wanted.least_difference * n, wanted.least_part * n
        )
        order = np.argsort(path.values[chosen], kind="stable")
        order = np.concatenate([order[chosen[order] == through], order[chosen[order] != through]])
        self._path, self._numbers = path, chosen[order]

    def _most_cuts(self) -> int:
        """Return the largest number of cuts, enough for the complete path if that is affordable."""
        n = self.field.n_variables
        whole, visited = 2 * n + 3, n + len(edges_of(self.base.field))
        if whole * visited <= _WHOLE_PATH:
            return whole
        return max(_CUTS_PER_ITEM * self.m, _PART_OF_PATH // visited)

    def described(self, result: DiverseResult) -> DiverseResult:
        """Return the list with biases, shares, probabilities and a description in words."""
        m, path, likely = len(result.values), self._path, self._likely
        biases, shares = np.zeros(1), np.ones(1)
        rise = float(result.values.max() - result.values.min())
        reason = (
            f"each item is the best labelling under a bias of at most {self._max_bias:.3g}"
            f"{self._wider}, and none is more than {rise:.3g} above the best"
        )
        if path is not None:
            kept = self._numbers[:m]
            biases = np.concatenate([biases, path.biases[kept[1:]]])
            nearest = np.abs(path.sizes[kept][:, None] - path.sizes).argmin(axis=0)
            shares = np.bincount(nearest, path.shares, minlength=m).astype(np.float64)
            if not self._enough:
                reason += (
                    f"; {_too_alike(self._wanted)}: of {path.n_pieces} labellings on the path no "
                    f"{len(self._numbers)}, the best one among them, do"
                )
        result = replace(result, biases=biases, shares=shares)
        if likely is not None:
            result = replace(
                result,
                probabilities=likely.probabilities,
                probability_gaps=likely.probability_gaps,
            )
            if not likely.whole:
                reason += (
                    f"; {likely.n_cuts} cuts do not find the whole path: probabilities are off by "
                    f"up to {likely.probability_gaps.max():.3g}"
                )
        return replace(result, reason=reason)

    def searched(self) -> str:
        """Return why the list has fewer items than there are labellings."""
        path = self._path
        if path is None or not path.whole:
            return f"a path of {self._cuts.n_cuts} cuts has no more labellings"
        return (
            f"under each bias of at most {self._max_bias:.3g} one of them is a best labelling, and "
            "no others are searched for"
        )


class _ByWeights(ListSearch):
    """Lists for any field: each item has the least weight that makes it differ."""

    def __init__(
        self, field: Field, m: int, wanted: Alternatives, n_jobs: int | None, watch: Stopwatch
    ) -> None:
        super().__init__(field, Conditioned.of(field), m, watch)
        field = self.base.field
        self._wanted, self._n_jobs = wanted, n_jobs
        self._steps = GreedyStep("auto", n_jobs)
        self._wider = WiderSearch(field, wanted, n_jobs)
        # For each item after the first: whether the wider search found it, and whether it differs
        # enough from the earlier items.
        self._widened: list[bool] = []
        self._enough: list[bool] = []
        two = np.partition(field.unary, min(1, field.n_labels - 1), axis=1)
        apart = two[:, min(1, two.shape[1] - 1)] - two[:, 0]
        own = default_max_bias(field, apart) or 1.0
        self._weights = (own if wanted.max_bias is None else wanted.max_bias) * _WEIGHTS

    def first(self) -> MapResult:
        self._alone = StepProblem.of(self.base.field)
        return self._alone.within_digits(self._steps.first(self._alone), 0.0)

    def another(self) -> Item | None:
        earlier = self.labelings
        item, widened = self._by_weight(earlier), False
        labels = item[0].labels
        enough = self._wider.differs(labels, earlier)
        if not enough:
            found = self._wider.enough(earlier)
            enough = found is not None
            if found is None and (earlier == labels).all(axis=1).any():
                found = self._wider.less(earlier)
                if found is None:
                    return None
            if found is not None:
                item, widened = self._candidate(found), True
        self._widened.append(widened)
        self._enough.append(enough)
        return item

    def _by_weight(self, earlier: IntArray) -> Item:
        """Return the item of the least weight that makes it differ enough, or of the largest."""
        weights = self._weights / len(earlier)
        for weight in weights[self._least_weight(weights, earlier) :].tolist():
            diversity = DivMBest(weight)
            addition = diversity.addition(earlier, self.base.field.n_labels)
            problem = StepProblem.of(self.base.field, addition)
            found = completed(self._steps.next(problem, [earlier[0], earlier[-1]][: len(earlier)]))
            if self._wider.differs(found.labels, earlier):
                break
        gain = diversity.gain_of(found.labels, earlier, self.base.field.n_labels)
        return problem.within_digits(found, gain), gain

    def _least_weight(self, weights: FloatArray, earlier: IntArray) -> int:
        """Return the index of the first weight whose labelling differs enough, by bisection."""
        low, high = -1, len(weights) - 1
        while high - low > 1:
            middle = (low + high) // 2
            found = self._tried(float(weights[middle]), earlier)
            differs = self._wider.differs(found, earlier)
            low, high = (low, middle) if differs else (middle, high)
        return high

    def _tried(self, weight: float, earlier: IntArray) -> IntArray:
        tilted = DivMBest(weight)._augment(self.base.field, earlier)
        return completed(solve_map(tilted, tol=np.inf, init=earlier[0], n_jobs=self._n_jobs)).labels

    def _candidate(self, labels: IntArray) -> Item:
        """Return a labelling as a step without a gain, with the bound of the best labelling."""
        value = float(self.base.field._energies(labels[None])[0])
        found = MapOptions.read(self.base.field).result(
            labels, value, self.best.bound, method="candidate", n_iter=1, converged=True
        )
        return self._alone.within_digits(found, 0.0), 0.0

    def described(self, result: DiverseResult) -> DiverseResult:
        """Return the list with a description in words."""
        m = len(result.values)
        rise = float(result.values.max() - result.values.min())
        reason = (
            "each item has the least energy less a weight for each variable that differs, up to "
            "its gap, the least weight that makes it differ enough, and none is more than "
            f"{rise:.3g} above the best"
        )
        if widened := sum(self._widened[: m - 1]):
            reason += f"; for {widened} no weight did, and {self._wider.description}"
        if not all(self._enough[: m - 1]):
            some = "no labelling does" if self._wider.sees_all else "none was found that does"
            reason += f"; {_too_alike(self._wanted)}: {some} so from all items before it"
        return replace(result, reason=reason)

    def searched(self) -> str:
        """Return why the list has fewer items than there are labellings."""
        if self._wider.sees_all:
            return "no other labelling has a finite energy"
        return "no other labelling of finite energy differs from one of them in one variable"


def _too_alike(wanted: Alternatives) -> str:
    return (
        f"not every two differ by {wanted.least_difference:.3g} of the variables and in a part of "
        f"{wanted.least_part:.3g} of them"
    )
