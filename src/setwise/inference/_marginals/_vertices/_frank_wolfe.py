"""The least upper bound on log Z by Frank-Wolfe: only greedy vertices are asked for."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._certificate import EPS, gap_over_value
from setwise.fields._field import Field
from setwise.inference._map._largest_energy import rounding_of_logs
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._marginals._vertices._line_search import least_along
from setwise.inference._relaxation._relaxation import Relaxation


class Vertices:
    """s in the base polytope at a temperature, and the greedy vertex that s should move to."""

    def __init__(self, field: Field, options: Options) -> None:
        self.relaxation = Relaxation(field)
        self.temperature = options.temperature
        self.threads = options.n_threads
        unary = self.relaxation.finite_unary(options.temperature)
        self.kernel = self.relaxation.fill(_core.FrankWolfeState, unary)
        shape = self.relaxation.unary.shape
        self.p: FloatArray = np.empty(shape)
        self.s: FloatArray = np.empty(shape)
        self.vertex: FloatArray = np.empty(shape)
        self._least = float(self.relaxation.unary.min(axis=1).sum())
        self._rounding = rounding_of_logs(field, options.temperature)
        self._looks = 0
        if options.start is not None:
            self.kernel.vertex(options.start, self.vertex, self.threads)
            self.kernel.set_scores(self.vertex)
        self.gap = self.relative_gap = inf
        self.history: list[float] = []

    def look(self) -> None:
        """p, the vertex x that maximises <p, x>, and the gap <s - x, grad> = <x - s, p>."""
        objective, _ = self.kernel.evaluate(self.temperature, self.threads)
        self._looks += 1
        self.kernel.probabilities(self.temperature, self.p, self.threads)
        self.kernel.vertex(self.p, self.vertex, self.threads)
        self.kernel.scores(self.s)
        # a step rounds s, each on top of those before
        sizes = np.maximum(np.abs(self.s), np.abs(self.vertex)).max(axis=1)
        self.lost = (8.0 + 4.0 * self._looks) * EPS * float(sizes.sum()) / self.temperature
        bound = (objective - self.relaxation.constant) / self.temperature
        self.history.append(bound + self._rounding + self.lost)
        self.gap = max(0.0, -self.slope(self.vertex - self.s, 0.0))
        value = objective + self._least
        self.relative_gap = gap_over_value(self.gap, value, self.temperature)

    def slope(self, direction: FloatArray, step: float) -> float:
        """The derivative of the objective along a direction."""
        return float(self.kernel.slope(direction, step, self.temperature, self.threads))

    def shift(self, direction: FloatArray, step: float) -> None:
        """s + step direction."""
        self.kernel.shift(direction, step, self.threads)

    def descend(self, move: Callable[[int], bool], most: int, options: Options) -> Solution:
        """Moves, until one is of no use, the gap is within ``tol`` or ``most`` are made.

        ``move`` is told how many there were, and whether it moved is its answer.
        """
        n_iter, interrupted = 0, False
        limit = most if options.max_iter is None else options.max_iter
        try:
            while self.relative_gap > options.tol and n_iter < limit and not interrupted:
                if not move(n_iter):
                    break
                n_iter += 1
                self.look()
                gap = self.gap / self.temperature + self.lost
                interrupted = options.report(n_iter, self.history[-1], self.relative_gap, gap)
        except KeyboardInterrupt:
            self.look()
            interrupted = True
        return Solution(
            probabilities=self.p,
            upper=self.history[-1],
            gap=self.gap / self.temperature + self.lost,
            relative_gap=self.relative_gap,
            n_iter=n_iter,
            converged=self.relative_gap <= options.tol,
            interrupted=interrupted,
            history=self.history,
        )


def frank_wolfe(field: Field, options: Options, *, line_search: bool = False) -> Solution:
    r"""Algorithm 1: :math:`s \leftarrow s + \gamma_k (x - s)` with x the greedy vertex at p.

    .. math:: x = \arg\max_{x \in B(F)} \langle p, x \rangle, \qquad \gamma_k = 2 / (k + 2),
       \quad k = 0, 1, \dots

    The gap is :math:`\langle s - x, \nabla g(s) \rangle = \langle x - s, p \rangle` (printed with
    the other sign) and falls as O(1 / (t k)), Claim 3. With ``line_search`` the step is the best
    one on the way to x. A start gives the p of the first vertex. Memory: 5 arrays of N L
    numbers, beside the groups' own.
    """
    vertices = Vertices(field, options)
    vertices.look()

    def move(n_iter: int) -> bool:
        direction = vertices.vertex - vertices.s
        step = least_along(vertices, direction, 1.0) if line_search else 2.0 / (n_iter + 2.0)
        vertices.shift(direction, step)
        return True

    return vertices.descend(move, 10_000, options)


def line_search_frank_wolfe(field: Field, options: Options) -> Solution:
    """``frank_wolfe`` with the best step on the way to each vertex."""
    return frank_wolfe(field, options, line_search=True)
