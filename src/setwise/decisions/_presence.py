r"""Distributions of the truth: independent elements, with or without a given presence.

With a probability :math:`\pi` that a set is not empty, and probabilities :math:`p_i` of its
elements,

.. math:: P(\emptyset) = 1 - \pi, \qquad
    P(y) = \frac{1}{c} \prod_{i \in y} c p_i \prod_{i \notin y} (1 - c p_i), \quad y \ne \emptyset,

elements are independent given that the set is not empty. The probability of each element is
:math:`p_i` for every c, and one c gives the presence :math:`\pi`:

.. math:: c \, \pi = 1 - \prod_i (1 - c \, p_i).

The right-hand side is concave in c, so that c > 0 is unique; it exists for :math:`\max p_i \le \pi
< \sum p_i`. If :math:`\pi` is the presence of independent elements, c = 1. Above it c < 1, and in
the limit c = 0, at the sum of the probabilities, there is never more than one element. The
expectation of a function that is 0 for an empty truth is 1 / c times that under independent
elements of c p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS, MANY_ROUNDINGS

# The least c, about 1e-13. The probability that two elements occur at once is proportional to c. At
# this value it is smaller than the rounding error of the probability of one element.
LEAST_SCALE = FEW_ROUNDINGS * MANY_ROUNDINGS * EPS
# A set with a smaller presence counts as empty, since c is up to 1 / presence, which must not
# overflow.
LEAST_PRESENCE = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Law:
    """The distribution of the truth of one set: ``p``, ``scale``, and the chance of an empty set.

    ``scale`` is the c of the docstring of the module. If ``empty`` is None, elements are
    independent and c is 1.
    """

    p: FloatArray
    scale: float = 1.0
    empty: float | None = None

    def __len__(self) -> int:
        return len(self.p)

    @property
    def chances(self) -> FloatArray:
        """The probabilities c p of the independent elements in expectations."""
        return self.p if self.empty is None else np.minimum(self.scale * self.p, 1.0)

    def draws(self, rng: np.random.Generator, rows: int) -> BoolArray:
        """Draw truths, (rows, n)."""
        r = self.chances
        truths: BoolArray = rng.random((rows, len(r))) < r
        if self.empty is None or not len(r):
            return truths
        # The first element of a nonempty set is drawn first; later elements are independent of it.
        with np.errstate(divide="ignore"):
            by_then = -np.expm1(np.cumsum(np.log1p(-r)))
        first = np.searchsorted(by_then, rng.random(rows) * by_then[-1], side="right")
        first = np.minimum(first, len(r) - 1)
        truths[np.arange(len(r)) < first[:, None]] = False
        truths[np.arange(rows), first] = True
        truths[rng.random(rows) < self.empty] = False
        return truths


def believed(
    p: FloatArray, number: NDArray[np.intp], presence: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return probabilities that agree with ``presence``, the c of each set, and its presence.

    ``number`` is the set of each element. If the two contradict each other, the presence takes
    precedence: probabilities are at most the presence, and probabilities whose sum is smaller are
    raised in proportion. A set whose elements all have probability 0 is empty.
    """
    n = len(presence)

    def sums(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(number, values, minlength=n), np.float64)

    presence = np.where(presence >= LEAST_PRESENCE, presence, 0.0)
    p = np.minimum(p, presence[number])
    total = sums(p)
    presence = np.where(total > 0, presence, 0.0)
    short = (total <= presence * (1 + LEAST_SCALE)) & (total > 0)
    # Divide by the sum first, since it may be the smallest positive number.
    p = p / np.where(short, total, 1.0)[number] * np.where(short, presence, 1.0)[number]
    scale = np.ones(n)
    scale[short] = LEAST_SCALE
    active = (presence > 0) & ~short
    scale[active] = 1 / presence[active]
    # Newton's method starts to the right of the root of a concave function, so c decreases. It ends
    # because a larger step than half a rounding changes c. 47 steps were enough for 6000 sets.
    while active.any():
        at = active[number]
        where, some = number[at], p[at]
        r = np.minimum(scale[where] * some, 1.0)
        with np.errstate(divide="ignore"):
            logs = np.bincount(where, np.log1p(-r), minlength=n)
        product = np.exp(logs)
        value = -np.expm1(logs) - scale * presence
        odds = some / np.maximum(1 - r, 1e-200)
        slope = product * np.bincount(where, odds, minlength=n) - presence
        step = np.where(active & (value < 0) & (slope < 0), value / np.minimum(slope, -1e-300), 0.0)
        scale = np.where(active, np.maximum(scale - step, LEAST_SCALE), scale)
        active = active & (step > EPS / 2 * scale) & (scale > LEAST_SCALE)
    return p, scale, presence
