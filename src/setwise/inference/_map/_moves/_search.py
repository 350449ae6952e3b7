"""Moves one after the other until none of them makes the energy fall."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from setwise import _core
from setwise._core import Moves
from setwise._foundation._progress import is_heard
from setwise.fields._field import Field
from setwise.inference._map._moves._terms import start_moves
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult


def search_moves(
    field: Field,
    method: str,
    moves: Sequence[tuple[int, ...]],
    make: Callable[[Moves, tuple[int, ...]], float],
    options: MapOptions,
) -> MapResult:
    """Sweeps over the moves; ``make`` makes one and returns the change of the energy, <= 0.

    A local optimum is reached when all moves have failed since the energy last fell. Moves come
    in the order given, or in a new random order each sweep when there is a generator. The bound is
    the sum of the least values of all terms.
    """
    kernel, start = start_moves(field, options.init)
    options.watch.lap("set-up")
    bound = options.scale.trivial
    labels = start.copy()
    failed: set[tuple[int, ...]] = set()
    n_iter, converged, interrupted = 0, not moves, False
    random = options.random
    try:
        while not converged and not interrupted and n_iter != options.max_iter:
            order = range(len(moves)) if random is None else random.permutation(len(moves))
            for k in order:
                if make(kernel, moves[k]) < 0:
                    failed.clear()
                failed.add(moves[k])  # a move is the best of its kind: again, it would fail
                if len(failed) == len(moves):
                    converged = True
                    break
            n_iter += 1
            _core.poll()
            if is_heard(options.callback):
                kernel.read(labels)
                value = float(field.energy(labels))
                interrupted = options.ends(n_iter, value, min(bound, value)) and not converged
    except KeyboardInterrupt:
        interrupted = True
    kernel.read(labels)
    value = float(field.energy(labels))
    return options.result(
        labels,
        value,
        bound,
        method=method,
        n_iter=n_iter,
        converged=converged,
        interrupted=interrupted,
    )
