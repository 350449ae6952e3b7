"""The search by moves, which ends when no move decreases the energy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from setwise._core import Moves
from setwise._foundation._arguments import IntArray
from setwise._foundation._search import Ending
from setwise.fields._field import Field
from setwise.inference._map._moves._terms import start_moves
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._map._search import MapSearch


class MoveSearch(MapSearch):
    """Sweeps over the moves; ``make`` makes one and returns the change of the energy, <= 0.

    A local optimum is reached when all moves have failed since the last decrease of the energy.
    Moves are made in the given order, or in a new random order per sweep if there is a generator.
    The bound is the sum of the least values of all terms.
    """

    def __init__(
        self,
        field: Field,
        method: str,
        moves: Sequence[tuple[int, ...]],
        make: Callable[[Moves, tuple[int, ...]], float],
        options: MapOptions,
    ) -> None:
        super().__init__(field, options)
        self.method, self._moves, self._make = method, moves, make
        self._kernel, start = start_moves(field, options.init)
        self._labels = start.copy()
        self._failed: set[tuple[int, ...]] = set()
        if not moves:
            self.converged, self.limit = True, 0
        options.watch.lap("set-up")

    def step(self) -> bool:
        moves, failed, random = self._moves, self._failed, self.options.random
        order = range(len(moves)) if random is None else random.permutation(len(moves))
        for k in order:
            if self._make(self._kernel, moves[k]) < 0:
                failed.clear()
            # A move finds the best labelling of its kind, so repeating it would fail.
            failed.add(moves[k])
            if len(failed) == len(moves):
                self.converged = True
                return True
        return False

    def progress(self, n_iter: int, seconds: float) -> MapProgress:
        value = self._read()[1]
        return self.options.progress(n_iter, value, min(self.bound, value))

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        self.best = self._read()
        return super().result(ending)

    def _read(self) -> tuple[IntArray, float]:
        """Return the labels that the kernel has reached, and their energy."""
        self._kernel.read(self._labels)
        return self._labels, float(self.field.energy(self._labels))
