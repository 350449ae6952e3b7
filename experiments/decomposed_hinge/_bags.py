"""Bags of elements, and one linear model of all elements, learned by cutting planes.

A bag is a set of elements with a label each. The model is one weight vector, so that a bag may have
any number of elements. The last feature is a constant 1: its weight is the intercept, which is
penalised like the other weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

import setwise as sw
from experiments.shared.report import Estimate, estimate
from setwise.learning._cutting_planes._fit import Fit

TOLERANCE = 1e-3
ROUNDS = 150
GREEDY_ROWS = {
    "S, greedy": "the authors' search, one pass in index order",
    "S, published code": "the same search started from minus infinity, and a plane whose margins "
    "the loss does not multiply, as in the program the authors put online",
}
"""Notes on two of the rows."""


class Surrogate(Protocol):
    """Anything with a value and a gradient for bags."""

    def value_and_gradient(self, y: Any, scores: Any, *, offsets: Any) -> tuple[Any, Any]: ...


@dataclass(frozen=True, eq=False)
class Bags:
    """Features (N, d) and labels (N,) of all elements; bag i is [offsets[i], offsets[i + 1])."""

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, which: Iterable[int]) -> Bags:
        """Return the given bags, in the given order."""
        parts = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in which]
        rows = np.concatenate(parts)
        return Bags(self.X[rows], self.y[rows], np.cumsum([0, *map(len, parts)]))


def surrogates(loss: sw.losses.Loss) -> dict[str, Surrogate]:
    """Return the surrogates of the paper's rows, and two more."""
    return {
        "B_D": sw.surrogates.DecomposedHinge(loss),
        "0-1": sw.surrogates.LovaszHinge("hamming"),
        "S, greedy": GreedySlack(loss),
        "S, published code": GreedySlack(loss, published=True),
        "S, exact": sw.surrogates.SlackRescaling(loss),
    }


def risk(surrogate: Surrogate, bags: Bags) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return an oracle that maps w to the sum of the surrogate over the bags and a subgradient.

    With the planes of the published program the sum can be negative. It then counts as 0, because
    the slack variable is constrained to be at least 0.
    """

    def oracle(w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = surrogate.value_and_gradient(bags.y, bags.X @ w, offsets=bags.offsets)
        total = float(np.sum(values))
        return (total, slopes @ bags.X) if total >= 0 else (0.0, np.zeros_like(w))

    return oracle


def fit(surrogate: Surrogate, bags: Bags, C: float, rounds: int = ROUNDS) -> Fit:
    """Minimise 1/2 |w|^2 + C times the sum over the bags, to TOLERANCE or for ``rounds`` rounds."""
    oracle = risk(surrogate, bags)
    return sw.learning.one_slack(oracle, bags.X.shape[1], C, tol=TOLERANCE, max_iter=rounds)


def losses(loss: sw.losses.Loss, bags: Bags, w: np.ndarray) -> np.ndarray:
    """Return the loss of each bag when labels are predicted by the signs of the scores."""
    return np.asarray(loss(bags.y, bags.X @ w > 0, offsets=bags.offsets))


class GreedySlack:
    r"""Slack rescaling with the greedy search of B_D's authors: one pass over a bag in index order.

    An element joins the set I of mistakes if that does not lower l(I) (1 - 2 sum_I g y). For losses
    of counts this equals ``sw.surrogates.SlackRescaling(loss, maximizer="greedy")``. It uses plain
    numbers instead of set functions and takes a twentieth of the time.

    ``published`` follows the published program in two more choices. First, the pass starts from
    minus infinity. The first element is therefore always in I, and a bag whose first element is
    right by a large margin counts as 0, whatever the other elements do. Second, the plane of a bag
    is l(I) - 2 sum_I g y: the loss does not multiply the margins, although slack rescaling requires
    it.
    """

    def __init__(self, loss: sw.losses.Loss, *, published: bool = False) -> None:
        self.loss, self.published = loss, published
        self._tables: dict[tuple[int, int], tuple[list[float], int]] = {}

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray, *, offsets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return one value per bag, and the gradient with respect to the scores."""
        signs = np.where(y, 1.0, -1.0)
        margins = (signs * scores).tolist()
        values, gradient = np.zeros(len(offsets) - 1), np.zeros(len(scores))
        for i, (begin, end) in enumerate(pairwise(offsets.tolist())):
            chosen, loss, total = self._search(y[begin:end], margins[begin:end])
            if not chosen or loss * (1 - 2 * total) <= 0:
                continue
            factor = 1.0 if self.published else loss
            values[i] = loss - 2 * factor * total
            members = begin + np.array(chosen)
            gradient[members] = -2 * factor * signs[members]
        return values, gradient

    def _search(self, y: np.ndarray, margins: list[float]) -> tuple[list[int], float, float]:
        """Return the set, its loss and the sum of its margins."""
        table, step = self._table(len(y), int(np.count_nonzero(y)))
        best = -np.inf if self.published else 0.0
        at, total, chosen = 0, 0.0, []
        for j, positive in enumerate(y.tolist()):
            candidate = at + (step if positive else 1)
            value = table[candidate] * (1 - 2 * (total + margins[j]))
            if value >= best:
                best, at, total = value, candidate, total + margins[j]
                chosen.append(j)
        return chosen, table[at], total

    def _table(self, p: int, m: int) -> tuple[list[float], int]:
        """Return a table of l(n, q), for n wrong positives and q wrong negatives, and its step.

        The value l(n, q) is stored at n step + q.
        """
        if (p, m) not in self._tables:
            step = p - m + 1
            function = self.loss.set_function(np.arange(p) < m)
            n, q = np.divmod(np.arange((m + 1) * step), step)
            element = np.arange(p)
            wrong = (element < n[:, None]) | ((element >= m) & (element < m + q[:, None]))
            self._tables[p, m] = np.asarray(function(wrong)).tolist(), step
        return self._tables[p, m]


def require_same_greedy(loss: sw.losses.Loss, bags: Bags) -> None:
    """Raise an error unless ``GreedySlack`` equals the library's greedy slack rescaling."""
    scores = np.random.default_rng(0).standard_normal(len(bags.y))
    library = sw.surrogates.SlackRescaling(loss, maximizer="greedy")
    expected = library.value_and_gradient(bags.y, scores, offsets=bags.offsets)
    ours = GreedySlack(loss).value_and_gradient(bags.y, scores, offsets=bags.offsets)
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def difference(a: Sequence[float], b: Sequence[float]) -> tuple[Estimate, str]:
    """Return a - b, paired over the repeats, and a word for its sign.

    The word says that there is no clear difference if |a - b| is at most two standard errors.
    """
    of = estimate(np.asarray(a) - np.asarray(b))
    if of.error is None or abs(of.mean) <= 2 * of.error:
        return of, "no clear difference"
    return of, "lower" if of.mean < 0 else "higher"
