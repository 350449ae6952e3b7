"""Jaccard, Dice and F-beta as one formula of the counts, with exact small differences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_array, as_choice, as_count, as_number
from setwise._foundation._base_classes import Versioned
from setwise._foundation._certificate import INTEGERS

Part = Literal["whole", "submodular", "supermodular"]

# The range of beta. For a smaller beta, 1 + beta^2 would lose the digits of beta^2. For a larger
# one, the cubes of m beta^2 could overflow.
BETAS = 1e-3, 1e15


@dataclass(frozen=True)
class Ratio(Versioned):
    r"""A linear-fractional loss of n false negatives and q false positives, given m positives.

    .. math:: l(n, q) = \frac{a n + q}{c m - d n + q}, \qquad l = \min(1, q) \text{ if } m = 0.

    Jaccard is (a, c, d) = (1, 1, 0); F-beta is (b, 1 + b, 1) with :math:`b = \beta^2`; Dice is
    F-1. Differences are computed in closed form: the values are near 1 and their differences near
    1/m, so a subtraction would lose half of the digits at a million elements.

    For d = 0, and for F-beta with :math:`\beta \ge 1`, the decomposition of the B_D paper is
    closed too. The second difference of l is largest, for each n, at q = 0, so that

    .. math:: g(n, q) = G(n) = l(n, 0) - n\, l(1, 0) = \frac{a d n (n-1)}{(c m - d n)(c m - d)}

    is below every feasible g and itself feasible.

    Parameters
    ----------
    m : int
        The number of positives.
    beta : float, optional
        The beta of F-beta, between 1e-3 and 1e15; None for Jaccard.
    part : {"whole", "submodular", "supermodular"}
        l, f = l - g or g.

    Examples
    --------
    >>> import setwise as sw
    >>> dice = sw.functions.Ratio(m=3, beta=1.0)
    >>> f, g = dice.parts()
    >>> float(dice(1, 1)), round(float(g(2, 0)), 3)
    (0.3333333333333333, 0.1)
    """

    m: int
    beta: float | None = None
    part: Part = "whole"

    def __post_init__(self) -> None:
        as_count(self.m, "m")
        if self.beta is not None:
            as_beta(self.beta)
        as_choice(self.part, "part", get_args(Part))

    @property
    def _constants(self) -> tuple[float, float, float]:
        """The constants a, c and d for the kernels."""
        if self.beta is None:
            return 1.0, 1.0, 0.0
        b = float(self.beta) * float(self.beta)
        return b, 1.0 + b, 1.0

    def __call__(self, n: ArrayLike, q: ArrayLike) -> FloatArray:
        """Evaluate l at counts, elementwise: n between 0 and m, q nonnegative."""
        return self._at(*self._counts(n, q, self.m))

    def _at(self, n: FloatArray, q: FloatArray) -> FloatArray:
        """Evaluate l at float64 counts that are valid."""
        if self.part == "supermodular":
            return self._convex(n + 0.0 * q)
        if self.m == 0:
            return np.minimum(1.0, q + 0.0 * n)
        ratio: FloatArray = (self._constants[0] * n + q) / self._below(n, q)
        return ratio if self.part == "whole" else ratio - self._convex(n)

    def _below(self, n: FloatArray, q: FloatArray) -> FloatArray:
        """Return c m - d n + q, computed without differences of large numbers because c = a + d."""
        a, _, d = self._constants
        return a * self.m + d * (self.m - n) + q

    def step_negative(self, n: ArrayLike, q: ArrayLike) -> FloatArray:
        """Return l(n + 1, q) - l(n, q), without cancellation: n between 0 and m - 1."""
        if self.m == 0:
            raise ValueError("m must be positive for a false negative, got 0")
        return self._step_negative(*self._counts(n, q, self.m - 1))

    def _step_negative(self, n: FloatArray, q: FloatArray) -> FloatArray:
        if self.part == "supermodular":
            return self._convex_step(n) + 0.0 * q
        a, _, d = self._constants
        below = self._below(n, q)
        step: FloatArray = (a * below + d * (a * n + q)) / (below * self._below(n + 1.0, q))
        return step if self.part == "whole" else step - self._convex_step(n)

    def step_positive(self, n: ArrayLike, q: ArrayLike) -> FloatArray:
        """Return l(n, q + 1) - l(n, q), without cancellation."""
        return self._step_positive(*self._counts(n, q, self.m))

    def _counts(self, n: ArrayLike, q: ArrayLike, most: int) -> tuple[FloatArray, FloatArray]:
        """Return counts of one shape; q is at most 2**53, up to which floats are exact."""
        first, second = as_counts(n, "n", most), as_counts(q, "q", int(INTEGERS))
        try:
            np.broadcast_shapes(first.shape, second.shape)
        except ValueError:
            raise ValueError(
                f"n and q must have shapes that fit, got {first.shape} and {second.shape}"
            ) from None
        return first, second

    def _step_positive(self, n: FloatArray, q: FloatArray) -> FloatArray:
        if self.part == "supermodular":
            return np.zeros(np.broadcast_shapes(np.shape(n), np.shape(q)))
        if self.m == 0:
            return np.where(q > 0, 0.0, 1.0) + 0.0 * n
        below = self._below(n, q)
        step: FloatArray = self._constants[1] * (self.m - n) / (below * (below + 1.0))
        return step

    def _largest_step(self, r: int) -> float:
        """Return the largest step: of a positive at q = 0, or of a negative at n = m - 1, q = 0."""
        n = np.arange(self.m + 1.0)
        zero = np.zeros_like(n)
        largest = -np.inf
        if r > 0:
            largest = float(self._step_positive(n, zero).max())
        if self.m > 0:
            largest = max(largest, float(self._step_negative(n[:-1], zero[:-1]).max()))
        return largest

    def _convex(self, n: FloatArray) -> FloatArray:
        a, c, d = self._constants
        x = c * self.m
        with np.errstate(divide="ignore", invalid="ignore"):
            values = a * d * n * (n - 1) / ((x - d * n) * (x - d))
        return np.where(n < 2, 0.0, values)

    def _convex_step(self, n: FloatArray) -> FloatArray:
        a, c, d = self._constants
        x = c * self.m
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = (a * d * n * (2 * x - d * (n + 1))) / (
                (x - d * n) * (x - d * (n + 1)) * (x - d)
            )
        return np.where(n < 1, 0.0, steps)

    def parts(self) -> tuple[Ratio, Ratio] | None:
        """Return (f, g) = (l - Dl, Dl) if the closed form holds, else None."""
        if self.part == "whole" and (self.beta is None or self._constants[0] >= 1):
            return replace(self, part="submodular"), replace(self, part="supermodular")
        return None

    def is_submodular(self, r: int) -> bool | None:
        """Return whether the set function with r negatives is submodular."""
        as_count(r, "r")
        if self.part == "submodular" or self.m <= 1 or (self.part == "whole" and self.beta is None):
            return True
        if self.part == "supermodular":
            return self.beta is None or self.m < 2
        # With F-beta and two positives the second false negative costs more than the first.
        return False

    def is_supermodular(self, r: int) -> bool | None:
        """Return whether the set function with r negatives is supermodular."""
        as_count(r, "r")
        if self.part == "supermodular":
            return True
        if self.m == 0:
            return r <= 1
        if self.part == "whole" and r == 0:
            return True
        return None

    def is_increasing(self, r: int) -> bool | None:
        """Return whether the set function with r negatives is increasing: O(m) for the part f."""
        as_count(r, "r")
        if self.part != "submodular" or self.m == 0:
            return True
        # The false-negative step of f is least at q = r; the false-positive step is that of l.
        n = np.arange(self.m, dtype=np.float64)
        return bool(np.all(self._step_negative(n, np.float64(r) + 0.0 * n) >= 0))


def as_beta(beta: object) -> float:
    """Return a valid beta of F-beta, else raise."""
    return as_number(beta, "beta", positive=True, smallest=BETAS[0], largest=BETAS[1])


def as_counts(values: ArrayLike, name: str, most: int) -> FloatArray:
    """Return integers between 0 and ``most``, of any shape, as float64."""
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold counts, got dtype {array.dtype}")
    counts = array.astype(np.float64, copy=False)
    good = (counts >= 0) & (counts <= most)
    if not good.all():
        raise ValueError(f"{name} must lie between 0 and {most}, got {counts[~good].flat[0]:g}")
    return counts
