"""The base class of methods for the best labelling."""

from __future__ import annotations

from math import inf

from setwise._foundation._arguments import IntArray
from setwise._foundation._search import Control, Ending, Search, drive
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Sums
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult


class MapSearch(Search[MapProgress]):
    """A method for the best labelling, which ``run`` drives.

    A step sets ``best``, ``bound`` and ``converged``. The driver polls, calls the callback, and
    ends the search at Ctrl-C, at the time limit, and after ``limit`` rounds.
    """

    has_answer = True
    method: str
    best: tuple[IntArray, float]
    """The best labelling so far, and its energy."""
    sums: Sums | None = None
    """The summands of the bound, if they are not the numbers of the field."""
    converged = False
    """Whether the gap is within the tolerance, or the method has ended by itself."""

    def __init__(self, field: Field, options: MapOptions) -> None:
        self.field, self.options = field, options
        self.bound = options.problem.trivial
        self.limit: float = inf if options.max_iter is None else options.max_iter

    def run(self) -> MapResult:
        """Drive the search to its end, and return its result."""
        options = self.options
        control = Control(options.tol, self.limit, options.callback, options.deadline)
        return self.result(drive(self, control))

    def has_converged(self, tol: float) -> bool:
        return self.converged

    def progress(self, n_iter: int, seconds: float) -> MapProgress | None:
        return self.options.progress(n_iter, self.best[1], self.bound, self.sums)

    def result(self, ending: Ending[MapProgress]) -> MapResult:
        """Return the record of the search, given how it ended."""
        labels, value = self.best
        return self.options.result(
            labels,
            value,
            self.bound,
            method=self.method,
            n_iter=ending.n_iter,
            converged=ending.converged,
            interrupted=ending.cut_short,
            sums=self.sums,
        )
