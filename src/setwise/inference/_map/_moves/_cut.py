"""The best labelling of two labels, by one minimum cut or a few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from setwise._foundation._progress import is_heard
from setwise.fields._field import Field
from setwise.fields._terms import PottsTerm
from setwise.inference._flows._potts_cut import above_least, as_potts, cut_potts
from setwise.inference._map._energy_scale import NEGLIGIBLE, EnergyScale
from setwise.inference._map._ground import difference_below, ground
from setwise.inference._map._moves._terms import start_moves
from setwise.inference._map._options import MapOptions
from setwise.inference._map._reach import rounding_of
from setwise.inference._map._result import MapResult


def cut(field: Field, options: MapOptions) -> MapResult:
    r"""The labelling of least energy of a field of at most two labels.

    Edges need :math:`\theta(0, 0) + \theta(1, 1) \le \theta(0, 1) + \theta(1, 0)`; functions of
    counts must be concave. Each is bounded from below by a function that is linear between a few
    counts, which a cut minimises with one auxiliary node a count; the counts of its answer
    refine the bound, until the two meet. Terms with few kinks, and edges alone, need one cut.

    The bound is the least value of the last function that the cuts minimised, before the first of
    them the sum of the least values of all terms; ``n_iter`` counts cuts. Of edges alone, without a
    start, the best labelling with the fewest ones is found.
    """
    return best_of_two(field, "cut", options)


def cut_at_once(field: Field, read: Callable[..., MapOptions]) -> MapResult | None:
    """The answer of ``cut`` for two labels, Potts and tables alone, from the field as it is.

    Nothing is taken out of the field first: a cut sees differences only, and what it pays is
    counted above the least unaries and entries of tables. ``read`` makes the options of a field.
    None where there is another potential, a start, or no cut to be made, or where prices take the
    digits of others: the answer then is that of ``cut``.
    """
    potts = as_potts(field)
    if potts is None:
        return None
    summands = field.n_variables + sum(len(edges) for edges, _ in potts.pairs)
    options = read(field, scale=EnergyScale(field, 0.0, 0.0, summands))
    if options.init is not None or options.max_iter == 0:
        return None
    if is_heard(options.callback):
        options = replace(options, offset=ground(field).constant)
    options.watch.lap("set-up")
    try:
        found = cut_potts(*potts[:2], options.n_threads)
        options.watch.lap("search")
    except KeyboardInterrupt:
        grounded = ground(field).field
        options = replace(options, scale=EnergyScale.of(grounded))
        return _with_value_in(field, _not_cut(grounded, "cut", options))
    if found is None:
        return None
    paid = found.paid if potts.largest == 0.0 else above_least(field, found.labels)
    if rounding_of(potts.largest) > NEGLIGIBLE * paid:
        return None
    interrupted = False
    try:
        options.ends(1, paid, paid - found.gap)
    except KeyboardInterrupt:
        interrupted = True
    result = options.result(
        found.labels,
        paid,
        paid - found.gap,
        method="cut",
        n_iter=1,
        converged=True,
        interrupted=interrupted,
    )
    if not result.exact:
        return None
    alone = len(potts.pairs) == 1 and potts.unary is field.unary
    return _with_value_in(field, result, found.value if alone else None)


def _with_value_in(field: Field, result: MapResult, value: float | None = None) -> MapResult:
    """The result of a field less what is the same for all labels, of the field itself."""
    value = float(field._energies(result.labels[None])[0]) if value is None else value
    return replace(result, value=value, bound=difference_below(value, result.gap))


def _not_cut(field: Field, method: str, options: MapOptions) -> MapResult:
    """The labels of least unary, and the bound before any cut: what Ctrl-C leaves of it."""
    labels = options.start(field)
    value = float(field._energies(labels[None])[0])
    return options.result(
        labels,
        value,
        options.scale.trivial,
        method=method,
        n_iter=0,
        converged=False,
        interrupted=True,
    )


def best_of_two(field: Field, method: str, options: MapOptions) -> MapResult:
    """The search of ``cut``, under the name of a method that comes down to it."""
    if field.n_labels == 2 and options.init is None and options.max_iter != 0:
        found = _cut_of_edges(field, method, options)
        if found is not None:
            return found
    kernel, labels = start_moves(field, options.init)
    options.watch.lap("set-up")
    start = float(field.energy(labels))
    value, bound = start, options.scale.trivial
    # What a start that pays much takes from the digits of what is told.
    lost = options.scale.rounding(start, 0.0)
    n_iter, done, interrupted = 0, False, False
    if field.n_labels == 1:
        bound, done = value, True
    else:
        kernel.offer_swap(0, 1)
        try:
            while not done and not interrupted and n_iter != options.max_iter:
                done = kernel.round()
                n_iter += 1
                value = min(start, start + kernel.change())
                is_lost = lost > NEGLIGIBLE * (value - options.scale.trivial)
                below = start + kernel.bound() - (lost if is_lost else 0.0)
                bound = min(value, max(bound, below))
                done = done or options.close_enough(value, bound)
                interrupted = options.ends(n_iter, value, bound) and not done
        except KeyboardInterrupt:
            interrupted = True
        gap, change = kernel.gap(), kernel.change()
        gap += kernel.commit() - change  # a gain of rounding only is not taken
        labels = np.empty(field.n_variables, np.int64)
        kernel.read(labels)
        value = float(field._energies(labels[None])[0])
        # From the answer: the start may cost more than the digits hold.
        bound = max(options.scale.trivial, value - gap)
    return options.result(
        labels,
        value,
        bound,
        method=method,
        n_iter=n_iter,
        converged=done,
        interrupted=interrupted,
    )


def _cut_of_edges(field: Field, method: str, options: MapOptions) -> MapResult | None:
    """The one cut of a field whose terms are all unary or Potts; None of another."""
    _, unary, rest = field._folded()
    pairs = [(term.edges, term.weights) for _, term in rest if isinstance(term, PottsTerm)]
    if not pairs or len(pairs) < len(rest):
        return None
    try:
        found = cut_potts(unary, pairs, options.n_threads)
    except KeyboardInterrupt:
        return _not_cut(field, method, options)
    if found is None:
        return None
    value = float(field._energies(found.labels[None])[0])
    bound = max(options.scale.trivial, value - found.gap)
    result = options.result(
        found.labels, value, bound, method=method, n_iter=1, converged=True, interrupted=False
    )
    if not result.exact:  # rounding took more from the flow than there is to be paid
        return None
    try:
        options.ends(1, value, bound)
    except KeyboardInterrupt:
        return replace(result, interrupted=True)
    return result
