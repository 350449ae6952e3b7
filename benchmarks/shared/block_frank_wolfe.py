"""Block-coordinate Frank-Wolfe for structured SVMs, with the results of the library's learners.

S. Lacoste-Julien, M. Jaggi, M. Schmidt, P. Pletscher, Block-coordinate Frank-Wolfe optimization for
structural SVMs, 2013. For a random example i the oracle gives a plane (a, b) at the current w. With
w_s = -C a and l_s = C b the dual rises most by the step w_i += gamma (w_s - w_i), with gamma in [0,
1] from a line search. After every ``passes`` sweeps one more sweep without steps gives the primal
value.
"""

from __future__ import annotations

import numpy as np

from setwise.learning._cutting_planes._blocks import ExampleOracle, evaluate
from setwise.learning._cutting_planes._fit import Fit
from setwise.learning._cutting_planes._learner import Learner


def block_frank_wolfe(
    oracle: ExampleOracle,
    n: int,
    dimension: int,
    C: float = 1.0,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    passes: int = 5,
    rng: int = 0,
) -> Fit:
    """Minimise 1/2 |w|^2 + C sum_i risk_i(w) one example at a time, with its duality gap."""
    learner = _BlockFrankWolfe(dimension, C, tol, max_iter, None)
    learner.start(oracle, n, passes, np.random.default_rng(rng))
    return learner.fit()


class _BlockFrankWolfe(Learner):
    """A search that steps on single examples and computes the gap after some sweeps."""

    name = "block_frank_wolfe"

    def start(
        self, oracle: ExampleOracle, n: int, sweeps: int, random: np.random.Generator
    ) -> None:
        """Set up the parts of the weights, all zero."""
        self._oracle, self._sweeps, self._random = oracle, sweeps, random
        self._parts, self._heights = np.zeros((n, len(self.best))), np.zeros(n)
        self._w = np.zeros(len(self.best))
        self._is_first = True

    def step(self) -> bool:
        n = len(self._heights)
        for _ in range(0 if self._is_first else self._sweeps):
            for i in self._random.permutation(n):
                self._improve(int(i))
            self._w = self._parts.sum(
                axis=0
            )  # the rounding errors of many small steps do not accumulate
        evaluate(self._oracle, n, self._w, self)
        self.know_blocks(self._heights, self._w)
        self._is_first = False
        return False

    def _improve(self, i: int) -> None:
        """Make the best step for block i."""
        w, parts, heights, C = self._w, self._parts, self._heights, self.C
        height, slope = self.ask(self._oracle, w, i)
        offset = height - float(slope @ w)
        direction = -C * slope - parts[i]
        rise = C * offset - heights[i]
        curvature = float(direction @ direction)
        if curvature <= 0:
            heights[i] += max(rise, 0.0)
            return
        gamma = min(1.0, max(0.0, (rise - float(w @ direction)) / curvature))
        parts[i] += gamma * direction
        heights[i] += gamma * rise
        w += gamma * direction
