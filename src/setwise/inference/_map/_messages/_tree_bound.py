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
from setwise.inference._map._rise import Rise

AT_LIMIT = "the bound is at the limit of its relaxation, above tol"
_PASSES = 400
_LOOK = 4  # passes between decoded labellings


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

    Sequential sweeps over the variables (Kolmogorov, 2006) raise the bound of the linear relaxation
    in which pairs agree on single variables, or end a little below it. Labels that alone cost more
    than the labelling in hand are left out. Every fourth pass a labelling is decoded; the best of
    them is improved by ``moves`` in the end, where it beats the one in hand, so that the answer
    remains a local optimum of theirs.

    Ends once the gap is within ``tol``, or when the bound's rise, extrapolated, leaves more than
    that and can close a tenth of the gap at most; after 400 passes else. With ``max_iter`` it
    makes that many passes if ``tol`` asks for them. A pass is O(E L) for Potts, O(E L^2) for
    tables.
    """
    value, labels, bound, paid = result.value, result.labels, result.bound, 0.0
    limit = _PASSES if options.max_iter is None else options.max_iter
    rise, settled, at_limit, interrupted = Rise(), False, False, False
    try:
        sweeps = TreeSweeps(field, _reach(options, value))
        for n_iter in range(1, limit + 1):
            raised = sweeps.advance()
            if n_iter % _LOOK and n_iter != limit:
                continue
            before = value - bound
            bound, paid = max(bound, raised), sweeps.paid()
            found = sweeps.decode()
            energy = float(field._energies(found[None])[0])
            if energy < value:
                value, labels = energy, found
            bound = min(bound, value)
            settled = options.settled(value, bound, paid, before)
            rise.note(n_iter, bound)
            goal = min(options.tol, 1.0) * (value - options.scale.floor)
            at_limit = options.max_iter is None and rise.is_over(value - bound, goal)
            interrupted = options.ends(result.n_iter, value, bound) and not settled
            if settled or at_limit or interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
    better = result
    if value < result.value:
        better = replace(result, labels=labels, value=value, exact=False)
        if not (interrupted or options.scale.is_exact(value, bound, paid)):
            better, interrupted = _moved(field, better, options, moves)
    if at_limit:
        better = replace(better, reason=AT_LIMIT)
    better = options.improved(better, bound, interrupted, paid)
    return replace(better, reason="") if options.close_enough(better.value, bound) else better


def _moved(
    field: Field,
    result: MapResult,
    options: MapOptions,
    moves: Callable[[Field, MapOptions], MapResult],
) -> tuple[MapResult, bool]:
    """The labelling of a result improved by moves, and whether they were interrupted."""
    again = replace(options, init=result.labels, callback=None)
    try:
        found = moves(field, again)
    except KeyboardInterrupt:
        return result, True
    n_iter = result.n_iter + found.n_iter
    if found.value > result.value:
        return replace(result, n_iter=n_iter), found.interrupted
    result = replace(result, labels=found.labels, value=found.value, n_iter=n_iter)
    return replace(result, converged=found.converged), found.interrupted


def _reach(options: MapOptions, value: float) -> float:
    """What a label may cost above its row's least in a labelling no worse than the one in hand."""
    scale = options.scale
    return (value - scale.trivial) + scale.rounding(value, 0.0)


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
