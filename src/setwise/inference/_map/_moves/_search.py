"""The search by moves, which ends when no move decreases the energy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from setwise._core import Moves
from setwise._foundation._arguments import IntArray
from setwise._foundation._search import Ending
from setwise.fields._field import Field
from setwise.inference._map._messages._tree_sweeps import TreeSweeps, has_pairs_only
from setwise.inference._map._moves._terms import start_moves
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult
from setwise.inference._map._search import MapSearch

# The passes of messages before the first move. On stereo pairs (benchmarks/metrics.py) moves from
# there end at lower energies than from the least unaries, in less time; with one or two passes they
# end higher, and eight take longer than they save.
_PASSES = 4


class MoveSearch(MapSearch):
    """Sweeps over the moves; ``make`` makes one and returns the change of the energy, <= 0.

    A local optimum is reached when all moves have failed since the last decrease of the energy.
    Moves are made in the given order, or in a new random order per sweep if there is a generator.
    In a field of pairs they start from labels that a few passes of messages have decoded, and the
    bound is that of the messages; otherwise they start from the labels of least unary energy, and
    the bound is the sum of the least values of all terms.
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
        init = options.init
        if init is None and moves and has_pairs_only(field) and field._folded().terms:
            init = self._decoded()
        self._kernel, start = start_moves(field, init)
        self._labels = start.copy()
        self._failed: set[tuple[int, ...]] = set()
        if not moves:
            self.converged, self.limit = True, 0
        options.watch.lap("set-up")

    def _decoded(self) -> IntArray:
        """Return labels that messages have decoded, and keep their bound."""
        sweeps = TreeSweeps(self.field, inf)
        raised = [sweeps.advance() for _ in range(_PASSES)][-1]
        if raised > self.bound:
            self.bound, self.sums = raised, sweeps.sums()
        return sweeps.decode()

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
        return self.options.progress(n_iter, value, min(self.bound, value), self.sums)

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        self.best = self._read()
        return super().result(ending)

    def _read(self) -> tuple[IntArray, float]:
        """Return the labels that the kernel has reached, and their energy."""
        self._kernel.read(self._labels)
        return self._labels, float(self.field.energy(self._labels))
