"""A bound for fields of pairs by tree-reweighted messages, and the labellings decoded from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from setwise._core import TreeReweighted
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm, TableTerm
from setwise.inference._map._messages._factor_graph import Factors, factors_of
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult
from setwise.inference._map._rise import AT_LIMIT, Rise

_PASSES = 1000
_LOOK = 4  # passes between decoded labellings
_CLOSES = 0.75  # of the gap: passes go on where moves from a decoded labelling left less,
_MUCH = 1e-3  # and more than this share of what there was to gain


def has_pairs_only(field: Field) -> bool:
    """Whether all terms of a field are unaries, Potts terms and tables."""
    _, _, terms = field._folded()
    return all(isinstance(term, PottsTerm | TableTerm) for _, term in terms)


def certify_by_trees(
    field: Field,
    result: MapResult,
    options: MapOptions,
    moves: Callable[[Field, MapOptions], MapResult],
) -> MapResult:
    r"""The result of moves with the bound of tree-reweighted messages, and with their labelling.

    Sequential sweeps over the variables (Kolmogorov, 2006) raise the bound to that of the linear
    relaxation in which pairs agree on single variables, or a little below it. Labels that alone
    cost more than the labelling in hand are left out. Every fourth pass decodes a labelling; moves
    improve the best of them in the end.

    Ends once the gap is within ``tol``, or when the bound's rise, extrapolated, leaves more than
    that and can close a few hundredths of the gap at most (``Rise``), unless moves from a decoded
    labelling have just closed a quarter of a gap that is still large; after 1000 passes else.
    With ``max_iter`` it makes that many passes unless ``tol`` is reached. A pass is O(E L) for
    Potts, O(E L^2) for tables, on one thread.
    """
    search = _Search(field, result, options, moves)
    try:
        search.run()
    except KeyboardInterrupt:
        search.interrupted = True
    return search.answer()


class _Search:
    """Where the passes stand: the best labelling, the bound, and the best labelling decoded."""

    def __init__(
        self,
        field: Field,
        result: MapResult,
        options: MapOptions,
        moves: Callable[[Field, MapOptions], MapResult],
    ) -> None:
        self._field, self._result, self._options, self._moves = field, result, options, moves
        self._value, self._labels, self._is_local = result.value, result.labels, result.converged
        self._bound, self._paid = result.bound, 0.0
        self._decoded: tuple[float, IntArray] | None = None
        self._is_at_limit = False
        self.interrupted = False

    def run(self) -> None:
        """Passes until one of the ends; an interruption leaves the best so far."""
        options, rise = self._options, Rise()
        limit = _PASSES if options.max_iter is None else options.max_iter
        sweeps = TreeSweeps(self._field, self._reach)
        for n_iter in range(1, limit + 1):
            raised = sweeps.advance()
            if n_iter % _LOOK and n_iter != limit:
                continue
            before = self._value - self._bound
            self._bound, self._paid = max(self._bound, raised), sweeps.paid()
            self._meet(sweeps.decode())
            rise.note(n_iter, min(self._bound, self._value))
            if options.settled(self._value, self._bound, self._paid, before):
                if not (self._is_local or self._is_exact):
                    self._improve()
                return
            self.interrupted = options.ends(self._result.n_iter, self._value, self._bound)
            if self.interrupted:
                return
            is_over = options.max_iter is None and rise.is_over(self._gap, self._goal)
            if is_over or n_iter == limit:
                gap = self._gap
                if self._improve() or options.close_enough(self._value, self._bound):
                    return
                if self._gap > _CLOSES * gap or self._gap <= _MUCH * self._room:
                    self._is_at_limit = is_over
                    return

    def answer(self) -> MapResult:
        """The result with the labelling and the bound, and why the search ended."""
        result, options = self._result, self._options
        if self._labels is not result.labels:
            converged = self._is_local or self._is_exact
            result = replace(result, labels=self._labels, value=self._value, converged=converged)
        if self._is_at_limit:
            result = replace(result, reason=AT_LIMIT)
        return options.improved(result, self._bound, self.interrupted, self._paid)

    @property
    def _gap(self) -> float:
        return max(self._value - self._bound, 0.0)

    @property
    def _is_exact(self) -> bool:
        return self._options.scale.is_exact(self._value, self._bound, self._paid)

    @property
    def _goal(self) -> float:
        """The gap that ``tol`` allows."""
        return min(self._options.tol, 1.0) * self._room

    @property
    def _room(self) -> float:
        return self._value - self._options.scale.floor

    @property
    def _reach(self) -> float:
        """What a label may cost above its row's least in a labelling no worse than the best."""
        scale = self._options.scale
        return (self._value - scale.trivial) + scale.rounding(self._value, 0.0)

    def _meet(self, labels: IntArray) -> None:
        """Keep a decoded labelling if it is the best of them, or of all."""
        energy = float(self._field._energies(labels[None])[0])
        if self._decoded is None or energy < self._decoded[0]:
            self._decoded = energy, labels
        if energy < self._value:
            self._value, self._labels, self._is_local = energy, labels, False

    def _improve(self) -> bool:
        """Moves from the best labelling decoded since the last; whether they were interrupted."""
        if self._decoded is None or (
            self._is_local and np.array_equal(self._decoded[1], self._labels)
        ):
            return False
        options, self._decoded = replace(self._options, init=self._decoded[1], callback=None), None
        found = self._moves(self._field, options)
        self.interrupted = found.interrupted
        self._result = replace(self._result, n_iter=self._result.n_iter + found.n_iter)
        if found.value < self._value or (found.value == self._value and not self._is_local):
            self._value, self._labels = found.value, found.labels
            self._is_local = found.converged
        return self.interrupted


class TreeSweeps:
    """The compiled sweeps of a field of unaries and pairs."""

    def __init__(self, field: Field, reach: float) -> None:
        factors = factors_of(field)
        pairs, (n, n_labels) = factors.pairs, factors.unary.shape
        tables, table = pairs.tables, pairs.table
        if len(tables) > 1 and (tables == tables[0]).all():  # a single one stays in the cache
            tables, table = tables[:1], np.minimum(table, 0)
        self._labels: IntArray = np.empty(n, np.int64)
        self._sweeps = TreeReweighted(
            n=n,
            labels=n_labels,
            constant=factors.constant,
            unary=_within(factors, reach).ravel(),
            low=pairs.low,
            high=pairs.high,
            weight=pairs.weights,
            table=table,
            tables=np.ascontiguousarray(tables).ravel(),
        )

    def advance(self) -> float:
        """One pass; returns its bound."""
        return self._sweeps.dual_pass()

    def paid(self) -> float:
        """The sum of the sizes of what the bound is a sum of."""
        return self._sweeps.paid()

    def decode(self) -> IntArray:
        """Each variable's best label given those before it and the messages of those after it."""
        labels: IntArray = np.empty_like(self._labels)
        self._sweeps.decode(labels)
        return labels


def _within(factors: Factors, reach: float) -> FloatArray:
    """The unaries, infinite where they alone put a labelling beyond reach."""
    least = factors.unary.min(axis=1, keepdims=True)
    return np.where(factors.unary - least <= reach, factors.unary, np.inf)
