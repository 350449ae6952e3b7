"""Risk control: the boldest level of a nested family at which the risk is at most alpha."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, log1p

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_number,
    as_numbers,
    as_order,
)
from setwise._foundation._base_classes import Record
from setwise._foundation._keywords import hints_at_names

# The relative tolerance for comparing sums of losses with limits, which is above their rounding
# error. Not tuned.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class RiskControl(Record):
    r"""A level of a nested family, and the guarantee for its risk.

    Attributes
    ----------
    level : float or None
        The boldest certified level; None if no level is certified.
    alpha : float or tuple of float
        The risk that was requested; a tuple for several risks at once.
    delta : float or None
        The probability with which a guarantee "in probability" may fail; None for one in
        expectation.
    n_examples : int
        The number of calibration examples.
    risk : float, tuple of float or None
        The mean loss of the calibration examples at the level; None without a level.
    bound : float, tuple of float or None
        The least alpha for which the level would have been certified: (n risk + 1) / (n + 1) in
        expectation, an upper confidence bound on the risk in probability; None without a level.
    certified_levels : array of float
        All certified levels, in increasing order. In probability, the guarantee holds for all of
        them at once, so that any of them may be chosen.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> losses = np.linspace(1.0, 0.0, 11) * np.ones((99, 1))  # 11 levels, 99 examples
    >>> control = sw.conformal.control_risk(losses, 0.3)
    >>> control.level, round(control.bound, 3), control.sense
    (8.0, 0.208, 'expectation')
    >>> print(control.words.replace(", ", ",\n"))
    The risk is at most 0.3 on average over draws of 99 calibration examples and a new one,
    if all 100 are exchangeable.
    """

    level: float | None
    alpha: float | tuple[float, ...]
    delta: float | None
    n_examples: int
    risk: float | tuple[float, ...] | None
    bound: float | tuple[float, ...] | None
    certified_levels: FloatArray

    _printed = "level alpha delta n_examples risk bound sense assumption"

    @property
    def sense(self) -> str:
        """The sense in which the guarantee holds, "expectation" or "probability"."""
        return "expectation" if self.delta is None else "probability"

    @property
    def assumption(self) -> str:
        """The assumption on the calibration examples and new ones."""
        return "exchangeable" if self.delta is None else "independent, of one distribution"

    @property
    def words(self) -> str:
        """The guarantee in a sentence."""
        n, several = self.n_examples, isinstance(self.alpha, tuple)
        if self.level is None:
            return f"Nothing is certified: no level passed the test with {n} examples."
        shown = self.alpha if isinstance(self.alpha, tuple) else (self.alpha,)
        risk = "The risks are" if several else "The risk is"
        most = f"{risk} at most {', '.join(f'{a:g}' for a in shown)}"
        if self.delta is None:
            return (
                f"{most} on average over draws of {n} calibration examples and a new one, if all "
                f"{n + 1} are exchangeable."
            )
        return (
            f"With probability {1 - self.delta:g} over draws of {n} calibration examples, "
            f"{most[0].lower()}{most[1:]} for new ones, if all are independent and of one "
            "distribution."
        )


def as_alpha(alpha: object, name: str = "alpha") -> float:
    """Return a risk between 0 and 1, both excluded."""
    value = as_number(alpha, name, positive=True)
    if value >= 1:
        raise ValueError(f"{name} must be below 1, got {value:g}")
    return value


def as_delta(delta: object) -> float | None:
    """Return a probability between 0 and 1, both excluded, or None."""
    return None if delta is None else as_alpha(delta, "delta")


def least_examples(alpha: float, delta: float | None) -> int:
    r"""Return the number of examples below which no level can be certified.

    :math:`n \ge 1 / \alpha - 1` in expectation, :math:`(1 - \alpha)^n \le \delta` in probability.
    """
    if delta is None:
        return max(ceil((1 / alpha - 1) * (1 - _ROUNDING)), 1)
    return max(ceil(log(delta) / log1p(-alpha) * (1 - _ROUNDING)), 1)


def require_examples(n: int, alpha: float, delta: float | None, name: str, which: str = "") -> None:
    """Raise a ``ValueError`` if there are too few examples for any guarantee."""
    least = least_examples(alpha, delta)
    if n < least:
        why = "1 / alpha - 1" if delta is None else "log(delta) / log(1 - alpha)"
        given = f"alpha={alpha:g}" + ("" if delta is None else f" and delta={delta:g}")
        raise ValueError(
            f"{name} must hold at least {least} examples{which} for {given} (n >= {why}), got {n}"
        )


def p_values(sums: FloatArray, n: int, alpha: float) -> FloatArray:
    r"""Return Hoeffding-Bentkus p-values of "the risk exceeds alpha" for sums of n losses.

    .. math:: \min\{\exp(-n \, kl(\min(R, \alpha), \alpha)), \;
        e \, P(\text{Bin}(n, \alpha) \le \lceil n R \rceil)\}, \qquad R = \text{sum} / n.
    """
    from scipy.special import bdtr, rel_entr

    r = np.minimum(sums / n, alpha)
    kl = rel_entr(r, alpha) + rel_entr(1 - r, 1 - alpha)
    k = np.ceil(np.minimum(sums, n) * (1 - _ROUNDING))
    with np.errstate(under="ignore"):
        tail = np.where(k >= n, 1.0, bdtr(np.minimum(k, n - 1), n, alpha))
        return np.asarray(np.minimum(np.minimum(np.exp(-n * kl), np.e * tail), 1.0))


def passes(sums: FloatArray, n: int, alpha: float, delta: float | None) -> BoolArray:
    """Return whether levels with these sums of n losses are certified: True up to some sum."""
    if delta is None:
        return np.asarray(sums + 1 <= alpha * (n + 1) * (1 + _ROUNDING))
    return np.asarray(p_values(sums, n, alpha) <= delta)


def bound_of(total: float, n: int, delta: float | None) -> float:
    """Return the least alpha for which a sum of n losses is certified."""
    if delta is None:
        return (total + 1) / (n + 1)
    low, high = min(total / n, 1.0), 1.0
    for _ in range(60):  # bisection to the last bit, because p-values decrease in alpha
        middle = (low + high) / 2
        if 0 < middle < 1 and p_values(np.array([total]), n, middle)[0] <= delta:
            high = middle
        else:
            low = middle
    return high


@hints_at_names
def control_risk(
    losses: ArrayLike,
    alpha: float | ArrayLike,
    *,
    levels: ArrayLike | None = None,
    delta: float | None = None,
    order: ArrayLike | None = None,
) -> RiskControl:
    r"""Find the boldest level of a family whose risk is at most alpha, from calibration examples.

    Levels go from the boldest to the most cautious. Without ``delta`` this is conformal risk
    control (Angelopoulos, Bates, Fisch, Lei and Schuster): no example's loss may increase along the
    levels, and

    .. math:: \hat t = \min \Big\{ t : \frac{1 + \sum_i L_i(t)}{n + 1} \le \alpha \Big\}
        \quad \text{has} \quad E \, L_{n+1}(\hat t) \le \alpha,

    on average over the calibration examples and the new one, which must be exchangeable. If the
    examples are independent and the losses do not jump, the risk is at least alpha - 2 / (n + 1).

    With ``delta`` this is learn-then-test: levels are tested by Hoeffding-Bentkus p-values in the
    given order, which must not depend on these examples, until a p-value exceeds delta. With
    probability 1 - delta, all levels that passed have a risk of at most alpha. The losses need not
    be monotone, as for Jaccard, but the examples must be independent.

    Parameters
    ----------
    losses : array-like of shape (n, K) or (R, n, K)
        Losses in [0, 1] of n examples at K levels; for R risks at once, R such matrices.
    alpha : float or array-like of shape (R,)
        The risk to guarantee, or that of each matrix, between 0 and 1.
    levels : array-like of shape (K,), optional
        Numbers of the levels, increasing; by default 0 to K - 1.
    delta : float, optional
        The probability that a guarantee may fail; None for a guarantee in expectation.
    order : array-like of int, optional
        The positions of the levels in the order of the tests, chosen on other data; it may leave
        levels out. By default from the last level to the first. For losses that first fall and then
        rise, start with the level at which they are least on other data: from either end nothing
        would be certified.

    Returns
    -------
    RiskControl

    Raises
    ------
    ValueError
        If there are too few examples for alpha (``n >= 1 / alpha - 1``), or a loss increases along
        the levels and delta is None, or no level reaches alpha in expectation; the message names
        the least alpha that is possible. In probability, the answer has no level instead.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(99)
    >>> levels = np.arange(101) / 100
    >>> losses = scores[:, None] > levels  # wrong until the level reaches the score
    >>> sw.conformal.control_risk(losses, 0.1, levels=levels).level
    0.95
    >>> sw.conformal.control_risk(losses, 0.1, levels=levels, delta=0.1).level
    0.98
    """
    array = as_numbers(losses, "losses", shape=None)
    single = array.ndim == 2
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise ValueError(
            f"losses must have shape (n, K) or (R, n, K), none of them 0, got {array.shape}"
        )
    stack = array[None] if single else array
    n_risks, n, n_levels = stack.shape
    wrong = (stack < 0) | (stack > 1)
    if wrong.any():
        raise ValueError(f"losses must lie in [0, 1], got {stack[wrong][0]:g}")
    alphas = _as_alphas(alpha, n_risks, single)
    failing = as_delta(delta)
    numbers = np.arange(n_levels, dtype=np.float64)
    if levels is not None:
        numbers = as_numbers(levels, "levels", shape=(n_levels,))
        if np.any(np.diff(numbers) <= 0):
            raise ValueError("levels must increase, got two that do not")
    if order is not None and failing is None:
        raise ValueError("order must be None without delta: it is for learn-then-test")
    steps = np.arange(n_levels)[::-1] if order is None else as_order(order, n_levels)
    if failing is None:
        _require_nested(stack)
    for a in alphas:
        require_examples(n, a, failing, "losses")
    sums = stack.sum(axis=1)
    passed = np.all([passes(s, n, a, failing) for s, a in zip(sums, alphas, strict=True)], axis=0)
    certified = np.sort(steps[np.logical_and.accumulate(passed[steps])])
    if failing is None and not certified.size:
        least = [bound_of(float(s[-1]), n, None) for s in sums]
        shown = f"{least[0]:.3g}" if single else str([float(f"{a:.3g}") for a in least])
        raise ValueError(
            f"alpha must be at least {shown} for these losses, whose last level is the most "
            f"cautious one, got {alphas[0] if single else list(alphas)}"
        )
    return control_of(sums, n, alphas, failing, numbers, certified, single)


def control_of(
    sums: FloatArray,
    n: int,
    alphas: tuple[float, ...],
    delta: float | None,
    levels: FloatArray,
    certified: IntArray,
    single: bool,
    chosen: int | None = None,
) -> RiskControl:
    """Return the record for sums (R, K); ``chosen`` is by default the first certified level."""
    alpha = alphas[0] if single else alphas
    if not certified.size:
        return RiskControl(None, alpha, delta, n, None, None, levels[certified])
    k = int(certified[0]) if chosen is None else chosen
    risks = tuple(float(s[k]) / n for s in sums)
    bounds = tuple(bound_of(float(s[k]), n, delta) for s in sums)
    return RiskControl(
        level=float(levels[k]),
        alpha=alpha,
        delta=delta,
        n_examples=n,
        risk=risks[0] if single else risks,
        bound=bounds[0] if single else bounds,
        certified_levels=levels[certified],
    )


def highest_threshold(
    scores: FloatArray,
    weights: FloatArray,
    n: int,
    alpha: float,
    delta: float | None,
) -> RiskControl:
    r"""Return the highest certified threshold; a set holds the elements that score at least this.

    The loss of an example is the sum of the weights of its elements below the threshold, at most 1.
    It falls as the threshold falls, so the largest threshold is a score or infinite, and is found
    exactly, without a grid of levels. ``scores`` and ``weights`` are those of all examples
    together; elements without a weight may be left out.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    below = np.concatenate([[0.0], np.cumsum(weights[order])])
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    starts = starts[: len(ordered)]
    levels = np.concatenate([ordered[starts], [np.inf]])
    sums = np.concatenate([below[starts], below[-1:]])
    if len(ordered) and ordered[-1] == np.inf:
        levels, sums = levels[:-1], sums[:-1]  # elements of infinite scores are in every set
    good = np.flatnonzero(passes(sums, n, alpha, delta))
    k = int(good[-1]) if good.size else 0
    return control_of(sums[None], n, (alpha,), delta, levels, good[-1:], True, chosen=k)


def _as_alphas(alpha: object, n_risks: int, single: bool) -> tuple[float, ...]:
    if single:
        return (as_alpha(alpha),)
    array = as_array(alpha, "alpha")  # type: ignore[arg-type]
    if array.ndim == 0:
        return (as_alpha(alpha),) * n_risks
    values = as_numbers(array, "alpha", shape=(n_risks,))
    return tuple(as_alpha(a) for a in values.tolist())


def _require_nested(stack: FloatArray) -> None:
    """Raise a ``ValueError`` if a loss increases along the levels."""
    increases = np.diff(stack, axis=2) > _ROUNDING
    if increases.any():
        _, i, k = np.argwhere(increases)[0]
        raise ValueError(
            "losses must not increase along the levels when delta is None, as those of nested sets "
            f"do not, got a larger one for example {i} at level {k + 1} than at level {k}: give "
            "delta for losses that are not monotone"
        )
