"""Moves one after the other until none of them makes the energy fall."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numpy.typing import ArrayLike

from setwise._core import Moves
from setwise.fields._field import Field
from setwise.functions._arguments import as_count, as_number
from setwise.functions._randomness import as_generator
from setwise.inference._move_terms import Method, start_moves, trivial_bound
from setwise.inference._result import MapProgress, MapResult


def search_moves(
    field: Field,
    method: Method,
    moves: Sequence[tuple[int, ...]],
    make: Callable[[Moves, tuple[int, ...]], float],
    *,
    tol: float,
    max_iter: int | None,
    init: ArrayLike | None,
    random_state: object,
    callback: Callable[[MapProgress], object] | None,
) -> MapResult:
    """Sweeps over the moves; ``make`` makes one and returns the change of the energy, <= 0.

    A local optimum is reached when all moves have failed since the energy last fell. Moves come
    in the order given, or in a new random order each sweep when there is a ``random_state``.
    """
    tol = as_number(tol, "tol", nonnegative=True)
    most = None if max_iter is None else as_count(max_iter, "max_iter")
    random = None if random_state is None else as_generator(random_state)
    kernel, start = start_moves(field, method, init)
    bound = trivial_bound(field)
    labels = start.copy()
    failed: set[tuple[int, ...]] = set()
    n_iter, converged, interrupted = 0, not moves, False
    try:
        while not converged and not interrupted and n_iter != most:
            order = range(len(moves)) if random is None else random.permutation(len(moves))
            for k in order:
                if make(kernel, moves[k]) < 0:
                    failed.clear()
                failed.add(moves[k])  # a move is the best of its kind: again, it would fail
                if len(failed) == len(moves):
                    converged = True
                    break
            n_iter += 1
            if callback is not None or tol > 0:
                kernel.read(labels)
                value = float(field.energy(labels))
                converged = converged or value - bound <= tol * max(1.0, abs(value))
                progress = MapProgress(n_iter, value, min(bound, value))
                stop = callback is not None and callback(progress) is True
                interrupted = stop and not converged
    except KeyboardInterrupt:
        interrupted = True
    kernel.read(labels)
    value = float(field.energy(labels))
    return MapResult(
        labels=labels,
        value=value,
        bound=min(bound, value),
        method=method,
        reason=f"{method} was asked for",
        n_iter=n_iter,
        converged=converged,
        interrupted=interrupted,
    )
