"""Bags with one linear model for all elements, learned by cutting planes: what B_D's tables share.

A bag is a set of elements with a label each; the model is one weight vector, so that a bag may have
any number of elements. The last feature is a constant 1: the intercept, penalised like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

import setwise as sw
from experiments.shared.report import Estimate, estimate

TOLERANCE = 1e-3
ROUNDS = 150
GREEDY_ROWS = {
    "S, greedy": "the authors' search, one pass in index order",
    "S, published code": "the same search started from minus infinity, and a plane whose margins "
    "the loss does not multiply, as in the program the authors put online",
}
"""What is to be said of two of the rows."""


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
        """Some of the bags, in the order given."""
        parts = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in which]
        rows = np.concatenate(parts)
        return Bags(self.X[rows], self.y[rows], np.cumsum([0, *map(len, parts)]))


def surrogates(loss: sw.losses.Loss) -> dict[str, Surrogate]:
    """The rows of the paper's tables, and two more."""
    return {
        "B_D": sw.surrogates.DecomposedHinge(loss),
        "0-1": sw.surrogates.LovaszHinge("hamming"),
        "S, greedy": GreedySlack(loss),
        "S, published code": GreedySlack(loss, published=True),
        "S, exact": sw.surrogates.SlackRescaling(loss),
    }


def risk(surrogate: Surrogate, bags: Bags) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """w -> the sum of the surrogate over the bags, and a subgradient.

    A sum below 0, which the planes of the published program can have, counts as 0: so says the
    constraint that the slack is not negative.
    """

    def oracle(w: np.ndarray) -> tuple[float, np.ndarray]:
        values, slopes = surrogate.value_and_gradient(bags.y, bags.X @ w, offsets=bags.offsets)
        total = float(np.sum(values))
        return (total, slopes @ bags.X) if total >= 0 else (0.0, np.zeros_like(w))

    return oracle


def fit(surrogate: Surrogate, bags: Bags, C: float, rounds: int = ROUNDS) -> sw.learning.Fit:
    """min 1/2 |w|^2 + C times the sum over the bags, to a relative gap of 1e-3 or ``rounds``."""
    oracle = risk(surrogate, bags)
    return sw.learning.one_slack(oracle, bags.X.shape[1], C, tol=TOLERANCE, max_iter=rounds)


def losses(loss: sw.losses.Loss, bags: Bags, w: np.ndarray) -> np.ndarray:
    """The loss of each bag under the signs of the scores."""
    return np.asarray(loss(bags.y, bags.X @ w > 0, offsets=bags.offsets))


class GreedySlack:
    r"""Slack rescaling as the authors of B_D compute it: one pass over a bag in index order.

    An element joins the set I of mistakes if that does not lower l(I) (1 - 2 sum_I g y). This is
    ``sw.surrogates.SlackRescaling(loss, maximizer="greedy")`` for losses of counts, with plain
    numbers instead of set functions, which takes a twentieth of the time.

    ``published`` makes two more choices of the published program. The pass starts from minus
    infinity, so that the first element is always in I, and a bag whose first element is right by
    far counts as 0 whatever the others do. And the plane of a bag is l(I) - 2 sum_I g y: the loss
    does not multiply the margins, as slack rescaling says it should.
    """

    def __init__(self, loss: sw.losses.Loss, *, published: bool = False) -> None:
        self.loss, self.published = loss, published
        self._tables: dict[tuple[int, int], tuple[list[float], int]] = {}

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray, *, offsets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """One value a bag, and the gradient with respect to the scores."""
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
        """The set, its loss and the sum of its margins."""
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
        """l at (n, q), n of the m positives and q of the others wrong, stored at n step + q."""
        if (p, m) not in self._tables:
            step = p - m + 1
            function = self.loss.set_function(np.arange(p) < m)
            n, q = np.divmod(np.arange((m + 1) * step), step)
            element = np.arange(p)
            wrong = (element < n[:, None]) | ((element >= m) & (element < m + q[:, None]))
            self._tables[p, m] = np.asarray(function(wrong)).tolist(), step
        return self._tables[p, m]


def require_same_greedy(loss: sw.losses.Loss, bags: Bags) -> None:
    """An error if ``GreedySlack`` is not the library's greedy slack rescaling on these bags."""
    scores = np.random.default_rng(0).standard_normal(len(bags.y))
    library = sw.surrogates.SlackRescaling(loss, maximizer="greedy")
    expected = library.value_and_gradient(bags.y, scores, offsets=bags.offsets)
    ours = GreedySlack(loss).value_and_gradient(bags.y, scores, offsets=bags.offsets)
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def difference(a: Sequence[float], b: Sequence[float]) -> tuple[Estimate, str]:
    """a - b, paired over the repeats, and in a word which is lower: by over two standard errors."""
    of = estimate(np.asarray(a) - np.asarray(b))
    if of.error is None or abs(of.mean) <= 2 * of.error:
        return of, "no clear difference"
    return of, "lower" if of.mean < 0 else "higher"
