"""The best labelling of two labels, by one minimum cut or a few."""

from __future__ import annotations

import numpy as np

from setwise.fields._field import Field
from setwise.inference._map._moves._terms import start_moves
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult


def cut(field: Field, options: MapOptions) -> MapResult:
    r"""The labelling of least energy of a field of at most two labels.

    Edges need :math:`\theta(0, 0) + \theta(1, 1) \le \theta(0, 1) + \theta(1, 0)`; functions of
    counts must be concave. Each is bounded from below by a function that is linear between a few
    counts, which a cut minimises with one auxiliary node a count; the counts of its answer
    refine the bound, until the two meet. Terms with few kinks, and edges alone, need one cut.

    The bound is the least value of the last function that the cuts minimised, before the first of
    them the sum of the least values of all terms; ``n_iter`` counts cuts.
    """
    return best_of_two(field, "cut", options)


def best_of_two(field: Field, method: str, options: MapOptions) -> MapResult:
    """The search of ``cut``, under the name of a method that comes down to it."""
    kernel, labels = start_moves(field, options.init)
    options.watch.lap("set-up")
    start = float(field.energy(labels))
    value, bound = start, options.scale.trivial
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
                bound = min(value, max(bound, start + kernel.bound()))
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
