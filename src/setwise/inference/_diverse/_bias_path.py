"""All best labellings of two labels over a bias for one of them: a nested chain."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_count,
    as_integers,
    as_number,
)
from setwise._foundation._threads import as_threads
from setwise.diversities._addition import Addition
from setwise.fields._field import Field, as_field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._diverse._items import within_digits
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._flows._potts_cut import as_potts, cut_potts
from setwise.inference._flows._two_label_cut import TwoLabelCut
from setwise.inference._map._energy_scale import NEGLIGIBLE, trivial_of_tables
from setwise.inference._map._ground import ground
from setwise.inference._map._options import MapOptions
from setwise.inference._map._reach import rounding_of, rounding_of_prices
from setwise.inference._map._result import MapResult

# A bias that outweighs so many of the variables' own preferences is the last that is looked at.
_SHARE_OUTWEIGHED = 0.75
# From so many variables on pairs are cut straight from their arrays, each time anew.
_LARGE = 4096
# A preference so many times the median of all is a seed.
_SEED = 16.0
MOST_CUTS = 1 << 16


class Piece(NamedTuple):
    """A labelling of the path: the bias that it is best for, its ones and its energy."""

    bias: float
    ones: BoolArray
    size: int
    value: float


@dataclass(frozen=True, eq=False)
class BiasPath:
    r"""The labellings of least :math:`E(y) + b \, |\{i : y_i = 1\}|`, as b runs from -r to r.

    They are nested: the larger the bias, the smaller the set of ones. Piece k is the best labelling
    from ``breakpoints[k - 1]`` to ``breakpoints[k]``; piece 0 has the most ones.

    Attributes
    ----------
    breakpoints : array of shape (K,)
        Where the best labelling changes, increasing, between -r and r.
    last : array of shape (N,)
        The last piece in which each variable is 1; -1 for none.
    sizes : array of shape (K + 1,)
        How many ones each piece has, decreasing.
    values : array of shape (K + 1,)
        Their energies E, without the bias.
    biases : array of shape (K + 1,)
        A bias for which each piece was found to be the best.
    reach : float
        r.
    whole : bool
        Whether every breakpoint within the reach is there. Otherwise pieces may be missing between
        two that differ by no more variables than ``resolution`` allows, or ``max_cuts`` ran out.
    n_cuts : int
        How many cuts it took, each from the flow of the one before.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, -2.0], [0.0, -1.0], [0.0, 1.0]])
    >>> path = sw.inference.bias_path(field, reach=3.0)
    >>> path.breakpoints.tolist(), path.sizes.tolist()
    ([-1.0, 1.0, 2.0], [3, 2, 1, 0])
    >>> path.labeling(0.5).tolist()
    [1, 1, 0]
    """

    breakpoints: FloatArray
    last: IntArray
    sizes: IntArray
    values: FloatArray
    biases: FloatArray
    reach: float
    whole: bool
    n_cuts: int

    @property
    def n_pieces(self) -> int:
        """K + 1."""
        return len(self.sizes)

    @property
    def shares(self) -> FloatArray:
        """(K + 1,): the share of the biases in [-r, r] for which each piece is the best."""
        ends = np.concatenate([[-self.reach], self.breakpoints, [self.reach]])
        if self.reach == 0.0:
            return np.ones(1)
        return np.asarray(np.diff(ends) / (2.0 * self.reach))

    def pieces(self, numbers: ArrayLike) -> IntArray:
        """The labellings (m, N) of some pieces, given by their numbers (m,)."""
        chosen = as_integers(numbers, "numbers", below=self.n_pieces)
        if chosen.ndim != 1:
            raise ValueError(f"numbers must have shape (m,), got {chosen.shape}")
        return np.asarray(self.last >= chosen[:, None]).astype(np.int64)

    def piece_of(self, bias: float) -> int:
        """The number of the piece that is best for a bias; at a breakpoint that with more ones."""
        return int(np.searchsorted(self.breakpoints, as_number(bias, "bias")))

    def labeling(self, bias: float) -> IntArray:
        """(N,): the best labelling for a bias within the reach."""
        b = as_number(bias, "bias")
        if not -self.reach <= b <= self.reach:
            raise ValueError(f"bias must lie within the path's reach of {self.reach:g}, got {b:g}")
        found: IntArray = self.pieces([self.piece_of(b)])[0]
        return found

    @property
    def probabilities(self) -> FloatArray:
        """(N,): for how large a share of the biases each variable is 1."""
        ones = np.concatenate([[0.0], np.cumsum(self.shares)])
        return np.asarray(np.minimum(ones[self.last + 1], 1.0))


def bias_path(
    field: Field,
    *,
    reach: float | None = None,
    resolution: float = 0.0,
    max_cuts: int = MOST_CUTS,
    n_jobs: int | None = None,
) -> BiasPath:
    r"""All best labellings of two labels as a bias against label 1 runs from -reach to reach.

    :math:`\min_y E(y) + b\,|y|` is concave and piecewise linear in b, and for a submodular E its
    minimisers are nested. Between two labellings of the path the next cut is made at the bias
    where their lines cross; if it finds nothing below, they are neighbours (Eisner and Severance,
    1976). Variables that both agree on are fixed, so that cuts get smaller, and the sets are
    nested to the last bit. 2 K + 3 cuts for K breakpoints at most.

    Parameters
    ----------
    field : Field
        Two labels, and potentials that one cut can take.
    reach : float, optional
        The largest bias, in the units of the energy. By default the upper quartile of
        :math:`|u_{i1} - u_{i0}|` over the variables without a forbidden label or a seed: a bias
        that outweighs the preferences of three variables in four. Where these have none, as with
        seeds alone, what a variable's pairs weigh on average.
    resolution : float
        A share of the variables: two labellings that differ by no more are taken for neighbours. 0
        for every breakpoint.
    max_cuts : int
        The most cuts, at least 3; the largest differences are looked into first.
    n_jobs : int, optional
        Threads of the cuts of large fields of pairs; None for all cores. The answer does not depend
        on it.

    Returns
    -------
    BiasPath
        ``breakpoints``, ``last``, ``sizes``, ``values``; ``labeling(bias)``.

    Raises
    ------
    KeyboardInterrupt
        By Ctrl-C.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> field = sw.fields.Field(rng.normal(size=(600, 2)))
    >>> field = field + sw.fields.Potts(sw.fields.grid_edges((20, 30)), 0.5)
    >>> path = sw.inference.bias_path(field)
    >>> bool((path.labeling(0.0) == sw.solve_map(field).labels).all()), path.whole
    (True, True)
    """
    field = as_field(field)
    share = as_number(resolution, "resolution", nonnegative=True)
    if share > 1.0:
        raise ValueError(f"resolution must be a share of the variables, at most 1, got {share:g}")
    most = as_count(max_cuts, "max_cuts", least=3, most=MOST_CUTS)
    cuts = Cuts(field, n_jobs)
    r = cuts.usual_reach() if reach is None else as_number(reach, "reach", nonnegative=True)
    return cuts.path(r, share * field.n_variables, most)


class Cuts:
    """The cuts of one field of two labels under biases, each from the flow of the last."""

    def __init__(self, field: Field, n_jobs: int | None = None) -> None:
        if field.n_labels != 2:
            raise ValueError(f"field must have two labels for a path, got {field.n_labels}")
        self.base = ground(field)
        self._costs = self.base.field.unary[:, 1] - self.base.field.unary[:, 0]
        self._n_threads = as_threads(n_jobs)
        self._potts = as_potts(self.base.field) if field.n_variables >= _LARGE else None
        self._kept: TwoLabelCut | None = None if self._potts else TwoLabelCut(self.base.field)
        self._rounding = rounding_of_prices(self.base.field, by_cut=True)
        self.n_cuts = 0

    @classmethod
    def of(cls, field: Field, n_jobs: int | None = None) -> Cuts | None:
        """The cuts of a field; None where it has other than two labels, or is no cut."""
        try:
            return cls(field, n_jobs) if field.n_labels == 2 else None
        except ValueError:  # not submodular, or a cut with too many arcs
            return None

    def piece(self, path: BiasPath, number: int) -> Piece:
        """A piece of a path of these cuts, as it was found."""
        value = float(path.values[number]) - self.base.constant
        ones = path.last >= number
        return Piece(float(path.biases[number]), ones, int(path.sizes[number]), value)

    def certified(self, end: Piece) -> MapResult:
        """A labelling as the answer to its own problem, the field with its bias."""
        paid = end.bias * end.size
        room = end.value - trivial_of_tables(self.base.field) + abs(paid)
        if max(self._rounding, rounding_of(end.bias)) <= NEGLIGIBLE * room:
            return MapResult(
                labels=end.ones.astype(np.int64),
                value=end.value + paid,
                bound=end.value + paid,
                method="cut",
                reason="",
                n_iter=1,
                converged=True,
                interrupted=False,
                relative_gap=0.0,
                exact=True,
            )
        # Prices take digits of the energies: how many, is known of the field with the bias.
        ones = np.ones(len(self._costs), np.int64)
        problem = StepProblem.of(self.base.field, Addition(prices=[(ones, end.bias)]))
        value = end.value + end.bias * end.size
        labels = end.ones.astype(np.int64)
        options = MapOptions.read(problem.field)
        found = options.result(labels, value, value, method="cut", n_iter=1, converged=True)
        return within_digits(found, problem, -end.bias * end.size)

    def usual_reach(self) -> float:
        """What outweighs three quarters of the preferences that are no seeds."""
        return usual_reach(self.base.field, np.abs(self._costs))

    def end(self, bias: float, above: BoolArray | None, below: BoolArray | None) -> Piece:
        """The best labelling for a bias, within ``above`` and with all of ``below``."""
        ones = self._at_once(bias)
        if ones is None:
            costs = self._costs + bias
            if above is not None and below is not None:
                costs = np.where(above, np.where(below, -np.inf, costs), np.inf)
            if self._kept is None:
                self._kept = TwoLabelCut(self.base.field)
            ones = self._kept.ones(costs)
        if above is not None and below is not None:
            ones = (ones & above) | below
        self.n_cuts += 1
        value = float(self.base.field._energies(ones.astype(np.int64)[None])[0])
        return Piece(bias, ones, int(np.count_nonzero(ones)), value)

    def _at_once(self, bias: float) -> BoolArray | None:
        """The ones of a large field of pairs, by a cut straight from its arrays; None of another.

        A grid's cut from nothing takes less than a general graph's from the flow of another bias,
        which every variable has a part in. None too where rounding took something from the flow:
        the labels are then not proved best.
        """
        if self._potts is None:
            return None
        unary = self._potts.unary + np.array([0.0, bias])
        found = cut_potts(unary, self._potts.pairs, self._n_threads)
        return None if found is None or found.gap > 0.0 else found.labels.astype(np.bool_)

    def path(
        self, reach: float, difference: float, most: int, best: Piece | None = None
    ) -> BiasPath:
        """The path; neighbours that differ by no more variables than ``difference`` stay so.

        ``best`` is the labelling that is best without a bias, if it is known.
        """
        n, before = len(self._costs), self.n_cuts
        middle = self.end(0.0, None, None) if best is None else best
        everyone, nobody = np.full(n, True), np.full(n, False)
        first = self.end(-reach, everyone, middle.ones) if reach > 0.0 else middle
        final = self.end(reach, middle.ones, nobody) if reach > 0.0 else middle
        ends = [first, middle, final]
        whole = True
        # The widest difference first, so that a path cut short is the best one of its length.
        waiting: list[tuple[int, int]] = []
        for k in range(2):
            if ends[k].size > ends[k + 1].size:
                heappush(waiting, (ends[k + 1].size - ends[k].size, k))
        following: dict[int, int] = {0: 1, 1: 2}
        crossing: dict[int, float] = {}
        while waiting:
            _, k = heappop(waiting)
            upper, lower = ends[k], ends[following[k]]
            bias = (lower.value - upper.value) / (upper.size - lower.size)
            bias = min(max(bias, -reach), reach)
            crossing[k] = bias
            if upper.size - lower.size <= max(difference, 1.0):
                whole = whole and upper.size - lower.size <= 1
                continue
            if self.n_cuts - before >= most:
                whole = False
                continue
            between = self.end(bias, upper.ones, lower.ones)
            if between.size in (upper.size, lower.size) or not _below(between, upper, bias):
                continue
            ends.append(between)
            new = len(ends) - 1
            following[k], following[new] = new, following[k]
            heappush(waiting, (between.size - upper.size, k))
            heappush(waiting, (lower.size - between.size, new))
        return self._put_together(ends, following, crossing, reach, whole, before)

    def _put_together(
        self,
        ends: list[Piece],
        following: dict[int, int],
        crossing: dict[int, float],
        reach: float,
        whole: bool,
        before: int,
    ) -> BiasPath:
        chain, breaks, k = [ends[0]], [], 0
        while k in following:
            end = ends[following[k]]
            if end.size < chain[-1].size:
                breaks.append(crossing[k])
                chain.append(end)
            elif end.bias == 0.0:  # of equal labellings the one that is best without a bias
                chain[-1] = end
            k = following[k]
        last = np.full(len(self._costs), -1, np.int64)
        for number, end in enumerate(chain):
            last[end.ones] = number
        # Rounding may put two crossings of nearly equal lines the wrong way round.
        breakpoints = np.maximum.accumulate(np.array(breaks, np.float64))
        return BiasPath(
            breakpoints=breakpoints,
            last=last,
            sizes=np.array([end.size for end in chain], np.int64),
            values=np.array([end.value for end in chain]) + self.base.constant,
            biases=np.array([end.bias for end in chain]),
            reach=reach,
            whole=whole,
            n_cuts=self.n_cuts - before,
        )


def _below(between: Piece, end: Piece, bias: float) -> bool:
    """Whether a labelling is below the crossing of two lines, beyond what rounding makes."""
    promised, paid = end.value + bias * end.size, between.value + bias * between.size
    size = abs(end.value) + abs(bias) * end.size + abs(between.value) + abs(bias) * between.size
    return paid < promised - 1e-13 * size


def usual_reach(field: Field, preferences: FloatArray) -> float:
    """That of the preferences (N,) of a field; without them of its pairs, or of some variables."""
    preferring = preferences[preferences > 0.0]
    return reach_of(preferences) or _weight_of_pairs(field) or reach_of(preferring)


def _weight_of_pairs(field: Field) -> float:
    """What the pairs of a variable weigh on average."""
    total = 0.0
    for _, term in field._terms():
        if isinstance(term, PottsTerm):
            total += float(np.sum(term.weights))
        elif isinstance(term, TableTerm):
            total += float(np.ptp(term.tables, axis=(1, 2)).sum())
    return 2.0 * total / max(field.n_variables, 1)


def reach_of(preferences: FloatArray) -> float:
    """The upper quartile of |u1 - u0| (N,), seeds and forbidden labels left out.

    A seed is more than 16 times the median of all.
    """
    finite = preferences[np.isfinite(preferences)]
    if finite.size == 0:
        return 0.0
    middle = np.partition(finite, len(finite) // 2)[len(finite) // 2]
    usual = finite[finite <= _SEED * middle]
    place = int(_SHARE_OUTWEIGHED * (len(usual) - 1))
    return float(np.partition(usual, place)[place]) if usual.size else 0.0
