r"""The lower bound on log Z of a factorised distribution, for any field.

.. math:: \log \sum_x \exp(-E(x) / t) \ge H(Q) - E_Q[E] / t, \qquad Q(x) = \prod_i q_{i x_i}

Unaries and pairs have their expectation in closed form, a label cost is :math:`c\,(1 - \prod_i (1 -
q_{iG}))`, a function of a count is a sum over a Poisson binomial distribution. An expectation that
cannot be computed is replaced by an upper bound on it, so the result is still a lower bound:

- a count over more than 4,096 variables: h(E K) >= E h(K) for the least concave h above the table;
- label transitions: the same for the number of edges that join two labels;
- a table that forbids a labelling with positive probability: infinite, so there is no bound;
- a robust term: weight min(1, (size - n_j) / truncation) of the label j that is the most common at
  the start, which is never less than the least over all labels.
"""

from __future__ import annotations

from copy import copy
from math import inf
from typing import Any, NamedTuple

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import EPS
from setwise._foundation._threads import Pool
from setwise.fields._field import Field
from setwise.fields._terms import (
    CardinalityTerm,
    CliqueTerm,
    CountTerm,
    LabelTerm,
    PottsTerm,
    RobustTerm,
    TableTerm,
    Term,
    TransitionTerm,
    sum_constants,
)
from setwise.inference._conditioning._magnitude import largest_energy, rounding_of_logs

# The largest number of variables in a block whose distribution of counts is updated during sweeps,
# at O(n) per variable. Sweeps replace larger blocks by their means, and still end near the same
# bound.
SMALL = 48
# The largest number of sweeps of a lower bound. With two sweeps the bound is lower; more than ten
# were never needed.
SWEEPS = 10
# The number of sweeps after which several starts are compared. Not tuned.
TRIAL = 3
# A sweep that gains less than this share of the interval is the last. A quarter or four times this
# share changes the number of sweeps by at most one. Above LARGE entries, where a sweep takes as
# long as a pass of the upper bound, the share is ten times as large.
SETTLED = 1e-3
# Up to this number of entries of the unaries, or of messages in one direction, a field is small
# enough for work that costs as much as many passes: a third start near the best labelling, and
# chosen forests that cover a graph, without which the interval would be about a sixth wider.
LARGE = 20_000
# The largest number of variables in a block whose expectation is computed exactly at the end, in
# O(n^2). Not tuned.
EXACT = 4096
_NONE: IntArray = np.zeros(0, np.int64)


Terms = tuple[tuple[Any, Term], ...]


class Factorized:
    """A factorised Q and its lower bound on log Z, which sweeps over the variables raise.

    Parameters
    ----------
    field : Field
        Any field.
    q : array of shape (N, L)
        The initial Q; rows sum to 1, with 0 for infinite unaries.
    temperature : float
        t.
    n_threads : int
        For ``bound``; a sweep of a factorised Q runs in one thread.
    small, exact : int
        Blocks of counts up to these sizes are taken exactly, in sweeps and in ``bound``.
    """

    def __init__(
        self,
        field: Field,
        q: FloatArray,
        temperature: float,
        n_threads: int,
        *,
        small: int = SMALL,
        exact: int = EXACT,
    ) -> None:
        self._temperature, self._threads, self._exact = temperature, n_threads, exact
        self._transitions: list[TransitionTerm] = []
        self._robust: dict[int, RobustTerm] = {}  # keyed by their number in the kernel
        self._n_counts = 0

        def constant_of(term: Term) -> float:
            """Return the constant of a term for empty regions and a field of no variables."""
            match term:
                case CountTerm():
                    empty = np.diff(term.starts) == 1
                    return float(term.table[term.starts[:-1]][empty].sum()) * field.n_labels
                case CardinalityTerm() if field.n_variables == 0:
                    return float(term.table[0])
                case _:
                    return 0.0

        self._constant = sum_constants(field._terms(), constant_of)
        self._rounding = rounding_of_logs(field, temperature)
        self._rounding += _rounding_of_counts(field, exact) / temperature
        _, unary, terms = field._folded()
        self._kernel: Any = self._made(np.ascontiguousarray(unary), small)
        for _, term in self._arranged(terms, unary.shape):
            match term:
                case PottsTerm():
                    self._kernel.add_potts(term.edges, term.weights)
                case TableTerm():
                    tables, weights = term._arrays()
                    self._kernel.add_tables(term.edges, tables, term._which, weights)
                case CountTerm():
                    sizes = np.diff(term.starts) - 1
                    full = np.repeat(sizes > 0, sizes + 1)
                    self._add_counts(term.members, sizes, term.table[full], _NONE)
                case RobustTerm():
                    self._add_robust(term)
                case LabelTerm():
                    self._kernel.add_cost(term.cost, term.labels.astype(np.uint8))
                case CardinalityTerm() if field.n_variables > 0:
                    everyone, size = np.arange(field.n_variables), np.array([field.n_variables])
                    self._add_counts(everyone, size, term.table[::-1].copy(), term.center)
                case TransitionTerm():
                    self._transitions.append(term)
                case CliqueTerm():
                    tables = np.ascontiguousarray(term._flat())
                    price = _beyond(field, temperature)
                    self._kernel.add_cliques(term.cliques, term.sides, tables, price)
        for transition in self._transitions:  # after all other tables, because these depend on Q
            count, n_labels = len(transition.edges), field.n_labels
            tables = np.zeros((count, n_labels, n_labels))
            self._kernel.add_tables(transition.edges, tables, np.arange(count), np.ones(count))
        self._kernel.close()
        self._begin(q)

    def _made(self, unary: FloatArray, small: int) -> Any:
        return _core.MeanField(unary, small)

    def _arranged(self, terms: Terms, shape: tuple[int, ...]) -> Terms:
        """Add terms of a field of shape (N, L) to the kernel. Return the other terms."""
        return terms

    def restarted(self, q: FloatArray) -> Factorized:
        """Return the bound of the same field from another start, sharing the translated terms."""
        other = copy(self)
        other._kernel = self._kernel.copy()
        other._begin(q)
        return other

    def _begin(self, q: FloatArray) -> None:
        self._q: FloatArray = np.array(q, np.float64, order="C")
        for which, term in self._robust.items():
            self._kernel.replace_own(which, self._commonest(term))
        self._kernel.set_probabilities(self._q)

    def _add_counts(
        self, members: IntArray, sizes: IntArray, table: FloatArray, own: IntArray
    ) -> None:
        if len(members):
            starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
            self._kernel.add_counts(members, starts, own, table)
            self._n_counts += 1

    def _add_robust(self, term: RobustTerm) -> None:
        if not len(term.members):
            return
        sizes = np.bincount(term.regions[term.members], minlength=len(term.weights))
        tables = [
            weight * np.minimum(1.0, (size - np.arange(size + 1)) / limit)
            for size, weight, limit in zip(sizes, term.weights, term.truncation, strict=True)
            if size
        ]
        self._robust[self._n_counts] = term
        # An initial value, which is replaced when Q is known.
        own = np.zeros(len(term.members), np.int64)
        self._add_counts(term.members, sizes, np.concatenate(tables), own)

    def _commonest(self, term: RobustTerm) -> IntArray:
        """Return the most common label in the region of each of the term's members."""
        inside = term.regions >= 0
        counts = np.zeros((len(term.weights), self._q.shape[1]))
        np.add.at(counts, term.regions[inside], self._q[inside])
        return np.asarray(counts.argmax(axis=1)[term.regions[term.members]])

    def _tangent(self, term: TransitionTerm) -> tuple[FloatArray, float]:
        """Return tables (E, L, L) of a tangent to the term at Q, and the difference there.

        The linear interpolation of h between integers is concave, and equals h at integers.
        """
        n_edges, n_labels = len(term.edges), len(term.costs)
        met = self._q[term.edges[:, 0]].T @ self._q[term.edges[:, 1]]
        met = np.triu(met + met.T, 1)
        whole = np.clip(np.floor(met), 0, max(n_edges - 1, 0))
        low, high = _concave(term, whole), _concave(term, whole + 1)
        slopes = np.triu(term.costs * (high - low), 1)
        lacking = np.triu(term.costs * low, 1) - slopes * whole
        table = slopes + slopes.T
        tables = np.ascontiguousarray(np.broadcast_to(table, (n_edges, n_labels, n_labels)))
        return tables, float(lacking.sum()) if n_edges else 0.0

    def sweep(self) -> float:
        """Raise the bound at every variable in turn. Return the largest change of q."""
        self._follow()
        change = self._swept()
        self._kernel.probabilities(self._q)
        return change

    def _swept(self) -> float:
        return float(self._kernel.sweep(self._temperature))

    def _follow(self) -> float:
        """Set the tables of transitions to tangents at Q. Return the differences there."""
        if not self._transitions:
            return 0.0
        tangents = [self._tangent(term) for term in self._transitions]
        self._kernel.replace_tables(np.concatenate([tables for tables, _ in tangents]))
        return sum(rest for _, rest in tangents)

    def bound(self, exact: int | None = None) -> float:
        """Return H(Q) - E_Q[E] / t, or less if an expectation is replaced: at most log Z.

        The bound is lowered by its rounding error. ``exact`` is the size of the largest block whose
        expectation is exact, by default that of the constructor.
        """
        lacking = self._follow()
        exact = self._exact if exact is None else exact
        entropy, energy = self._kernel.value(exact, self._threads)
        bound = float(entropy - (energy + lacking + self._constant) / self._temperature)
        return bound - self._rounding

    @property
    def probabilities(self) -> FloatArray:
        """A copy of Q, of shape (N, L)."""
        return self._q.copy()


def _beyond(field: Field, temperature: float) -> float:
    """Return a cost of which a thousandth already gives a label probability 0."""
    nats = field.n_variables * np.log(field.n_labels) + 745.0
    return float(1e3 * (2.0 * largest_energy(field) + temperature * nats))


def _rounding_of_counts(field: Field, exact: int) -> float:
    """Bound the rounding errors of expectations of counts, computed in n steps."""
    n, n_labels = field.unary.shape
    lost = 0.0
    for _, term in field._terms():
        match term:
            case CountTerm() | RobustTerm():
                size = int(np.bincount(term.regions[term.members]).max(initial=0))
                steps = 4 * min(size, exact)
            case CardinalityTerm():
                steps = 4 * min(n, exact)
            case LabelTerm():
                steps = (n_labels + 4) * n
            case CliqueTerm():
                steps = 4 * term.cliques.shape[1]
            case _:
                steps = 0
        lost += steps * term._most(n_labels)
    return EPS * lost


def _concave(term: TransitionTerm, counts: FloatArray) -> FloatArray:
    if term.concave is None:
        return np.minimum(counts, 1.0)
    return np.asarray(term.concave(counts), np.float64)


class Raised(NamedTuple):
    """A lower bound on log Z, and the marginals (N, L) of the Q that attains it."""

    bound: float
    probabilities: FloatArray


def raised_bound(
    field: Field,
    q: FloatArray,
    temperature: float,
    n_threads: int,
    *,
    sweeps: int = SWEEPS,
    labels: IntArray | None = None,
    upper: float = inf,
) -> Raised:
    """Raise a lower bound on log Z by a few sweeps from two starts, until q changes by under 1e-3.

    One start is ``q``, the other is near the labelling of q's largest entries: if q is flat, as
    that of the upper bound is in strongly coupled fields, ascent from q may end in a poor mode. A
    third start is near ``labels``, if given. All starts make three sweeps, in parallel if there are
    threads; then only the best one continues. They are compared by a bound that replaces large
    blocks by their means, as the sweeps do, because the exact one costs more than a sweep. The
    search ends if a sweep gains less than a thousandth of the distance to ``upper``, in large
    fields a hundredth: more sweeps would hardly narrow the interval.
    """
    flat = Factorized(field, q, temperature, n_threads)
    starts = [flat, flat.restarted(_near(np.argmax(q, axis=1), q))]
    if labels is not None:
        starts.append(flat.restarted(_near(labels, q)))

    def trial(start: Factorized) -> tuple[float, Factorized, bool]:
        moves = _raise(start, min(sweeps, TRIAL))
        return start.bound(SMALL), start, moves

    if n_threads == 1:
        trials = [trial(start) for start in starts]
    else:  # a sweep runs in one thread; the pool handles Ctrl-C
        with Pool(2) as pool:
            trials = pool.map(trial, starts)
    value, best, moves = max(trials, key=lambda trial: trial[0])
    for _ in range(TRIAL, sweeps):
        if not moves:
            break
        moves = _raise(best, 1)
        if moves and upper < inf:
            before, value = value, best.bound(SMALL)
            moves = value - before > settled(q) * (upper - value)
    return Raised(best.bound(), best.probabilities)


def settled(q: FloatArray) -> float:
    """Return the least gain of a sweep, relative to the interval, for another sweep to follow."""
    return 10 * SETTLED if q.size > LARGE else SETTLED


def _near(labels: IntArray, q: FloatArray) -> FloatArray:
    """Return a mixture of q and the probabilities 0 and 1 of a labelling, mostly the latter."""
    sure = np.zeros_like(q)
    sure[np.arange(len(q)), labels] = 1.0
    return 0.99 * sure + 0.01 * q


def _raise(factorized: Factorized, sweeps: int) -> bool:
    """Make sweeps. Return whether q still changed in the last one."""
    moves = True
    for _ in range(sweeps):  # closing a generator could lose a Ctrl-C
        moves = factorized.sweep() > 1e-3
        if not moves:
            break
    return moves
