"""Decisions by samples of the truth, for large sets and losses without a formula."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, log, sqrt

import numpy as np

from setwise._foundation._arguments import BATCH, BoolArray, FloatArray
from setwise.decisions._answers import Answers
from setwise.decisions._enumeration import ignores_truth
from setwise.decisions._presence import Law
from setwise.functions import SetFunction
from setwise.losses import Loss
from setwise.losses._labels import Labels

# The probability that the true error exceeds the reported one. The error grows only with the square
# root of its logarithm, so a small value costs little.
_FAILURE = 1e-6
# The number of truths in each of the two samples of a decision. Four times as many halve the error.
# Chosen by hand; no measurement is on record.
_SAMPLES = 2000
# The largest number of sizes of candidate sets. Each size costs one evaluation of the loss on all
# samples. With up to 64 elements all sizes are tried. Not tuned.
_MOST_SIZES = 65
# The largest number of samples times elements for which a change of each single element is tried:
# 1048 elements with 2000 samples. It takes n evaluations of the loss on all samples. Not tuned.
_SEARCHED = 1 << 21


class Sampler:
    """A source of samples of the truth.

    By Hoeffding's inequality the mean of M losses in a range of width R is further than
    R sqrt(log(2 / delta) / (2 M)) from its expectation with a probability of at most delta.
    """

    def __init__(self, n_samples: int = _SAMPLES) -> None:
        self.rng, self.n_samples = np.random.default_rng(0), n_samples

    def draws(self, law: Law) -> Iterator[BoolArray]:
        """Yield batches of samples, each of shape (m, n)."""
        at_once = max(1, BATCH // max(len(law), 1))
        for start in range(0, self.n_samples, at_once):
            rows = min(at_once, self.n_samples - start)
            yield law.draws(self.rng, rows)

    def width(self, events: int = 1) -> float:
        """Return the error bound of a mean relative to the range, for ``events`` means at once."""
        return sqrt(log(2 * events / _FAILURE) / (2 * self.n_samples))

    def expected_of_mistakes(self, function: SetFunction, wrong: FloatArray) -> tuple[float, float]:
        """Return the mean of an increasing function of independent mistakes, and its error."""
        total = sum(float(function._values(mistakes).sum()) for mistakes in self.draws(Law(wrong)))
        largest = float(function._values(np.ones((1, len(wrong)), np.bool_))[0])
        return total / self.n_samples, largest * self.width()

    def decide(self, loss: Loss, law: Law) -> Answers:
        """Find a good set with one half of the samples, and estimate its loss with the other half.

        Candidates are the k most probable elements and, if that is affordable, changes of single
        elements of the best candidate. An increasing loss is at least the loss of any single
        mistake, which gives a bound for every set.
        """
        truths = np.concatenate(list(self.draws(law))) if len(law) else np.zeros((1, 0), np.bool_)
        mask = self._search(loss, law.p, truths)
        values = np.concatenate([_values(loss, fresh, mask) for fresh in self.draws(law)])
        spread = _range(loss, len(law))
        error = spread * self.width()
        bound = -inf
        if loss.is_increasing:
            bound = self._single_mistakes(loss, truths, spread)
        expected = float(values.mean()) if values.size else 0.0
        return Answers(
            mask,
            np.array([expected]),
            np.array([min(bound, expected)]),
            np.array([error]),
            np.zeros(1, np.bool_),
        )

    def _search(self, loss: Loss, p: FloatArray, truths: BoolArray) -> BoolArray:
        n = len(p)
        order = np.argsort(-p, kind="stable")
        sizes = np.unique(np.linspace(0, n, min(n + 1, _MOST_SIZES)).round().astype(int))
        sizes = np.unique(np.append(sizes, np.count_nonzero(p > 0.5)))
        best, least = np.zeros(n, np.bool_), inf
        for k in sizes:
            mask = np.zeros(n, np.bool_)
            mask[order[:k]] = True
            risk = float(_values(loss, truths, mask).mean())
            if risk < least:
                best, least = mask, risk
        if truths.size > _SEARCHED:
            return best
        for i in order:
            changed = best.copy()
            changed[i] = not changed[i]
            risk = float(_values(loss, truths, changed).mean())
            if risk < least:
                best, least = changed, risk
        return best

    def _single_mistakes(self, loss: Loss, truths: BoolArray, spread: float) -> float:
        """Return max_i min(E l_y({i}) [y_i], E l_y({i}) [not y_i]), a bound for every set."""
        n = truths.shape[1]
        if spread == inf or truths.size > _SEARCHED:
            return 0.0
        least = 0.0
        slack = spread * self.width(2 * n)
        for i in range(n):
            single = np.zeros(n, np.bool_)
            single[i] = True
            costs = loss._values(_labels(truths), np.tile(single, len(truths)))
            there = truths[:, i]
            least = max(least, float(min((costs * there).mean(), (costs * ~there).mean())) - slack)
        return least


def _labels(truths: BoolArray) -> Labels:
    m, n = truths.shape
    flat = np.ascontiguousarray(truths).reshape(-1).view(np.uint8)
    return Labels(flat, np.arange(m + 1) * n, "rows", truths.shape)


def _values(loss: Loss, truths: BoolArray, mask: BoolArray) -> FloatArray:
    """Return the loss of one decision for each truth."""
    return loss._values(_labels(truths), (truths != mask).reshape(-1))


def _range(loss: Loss, n: int) -> float:
    """Return the range of the losses of n elements; inf if it is not known."""
    if loss._fraction is not None:
        return 1.0
    if loss.is_increasing and ignores_truth(loss, n):
        function = loss.function_of(np.zeros(n, np.bool_))
        return float(function._values(np.ones((1, n), np.bool_))[0])
    return inf
