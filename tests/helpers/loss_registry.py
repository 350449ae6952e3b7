"""Every loss, beside its definition as a function of sets: what is listed here is tested.

A definition takes the set I of the mistakes, the set P of the positives in the truth and the number
p of elements, and is written from the papers' equations, not from the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import exp, log1p, sqrt

import numpy as np

from setwise import functions, losses

Elements = frozenset[int]
Definition = Callable[[Elements, Elements, int], float]


@dataclass(frozen=True)
class Listed:
    """A loss, its definition, and the sizes of the sets it is tested on."""

    loss: losses.Loss
    definition: Definition
    sizes: tuple[int, ...] = (0, 1, 2, 3, 4)

    def truths(self, most: int = 4) -> Iterator[np.ndarray]:
        """Every ground truth of every size up to ``most``, as booleans."""
        for p in self.sizes:
            if p <= most:
                for positive in product([False, True], repeat=p):
                    yield np.array(positive, bool)

    def table(self, positive: np.ndarray) -> np.ndarray:
        """The definition on all sets of mistakes, in bit order."""
        p = len(positive)
        truth = frozenset(np.flatnonzero(positive).tolist())
        sets = (frozenset(i for i in range(p) if index >> i & 1) for index in range(1 << p))
        return np.array([self.definition(mistakes, truth, p) for mistakes in sets])


# ----------------------------------------------------------------- formulas that losses are made of


def hill(total):
    return total * (3.0 - total)


def rises_then_falls(k, p):
    return k * (1.5 * p - k) / p


def squared(k, p):
    return (k / p) ** 2


def staircase(k, p):
    return np.ceil(k / 2) + 5.0


def falls_below_zero(k, p):
    return 1.2 * np.minimum(k, 1) - k / 2


def balanced(n, q, m, r):
    return (n / max(m, 1) + q / max(r, 1)) / 2


def roots(n, q, m, r):
    return np.sqrt(n) + 2.0 * np.sqrt(q) + 1.0


def mixed(n, q, m, r):
    return n * q / (m + r + 1) + np.minimum(n, 1) + 0.25 * q


def all_right_or_not(mistakes, positive):
    return float(mistakes.any())


def pairs_of_positives(mistakes, positive):
    """Neither submodular nor supermodular, and dependent on the truth."""
    n, q = np.count_nonzero(mistakes & positive), np.count_nonzero(mistakes & ~positive)
    return n * (n - 1) / 2 + np.sqrt(q) + 3.0


# --------------------------------------------------------------------- definitions, from the papers


def count(mistakes, positives, p):
    return len(mistakes)


def weighted(weights):
    return lambda mistakes, positives, p: sum(weights[i] for i in mistakes)


def jaccard(mistakes, positives, p):
    """(42): one minus intersection over union of the truth and the prediction."""
    predicted = positives ^ mistakes
    union = positives | predicted
    return 1 - len(positives & predicted) / len(union) if union else 0.0


def f_beta(beta):
    """(28) for beta = 1: from hits, false negatives and false positives."""

    def loss(mistakes, positives, p):
        predicted = positives ^ mistakes
        hits = (1 + beta**2) * len(positives & predicted)
        wrong = beta**2 * len(positives - predicted) + len(predicted - positives)
        return wrong / (hits + wrong) if hits + wrong else 0.0

    return loss


def weighted_jaccard(weights):
    """(42) with the measure of the weights in the place of the number of elements."""

    def loss(mistakes, positives, p):
        predicted = positives ^ mistakes
        union = sum(weights[i] for i in positives | predicted)
        return 1 - sum(weights[i] for i in positives & predicted) / union if union else 0.0

    return loss


def weighted_f_beta(beta, weights):
    """(28) likewise."""

    def loss(mistakes, positives, p):
        predicted = positives ^ mistakes
        hits = (1 + beta**2) * sum(weights[i] for i in positives & predicted)
        missed = sum(weights[i] for i in positives - predicted)
        wrong = beta**2 * missed + sum(weights[i] for i in predicted - positives)
        return wrong / (hits + wrong) if hits + wrong else 0.0

    return loss


def early(rate, fraction):
    """(49) and (50): sum over times i = 1..p of e^(-rate i) min(|I_i|, fraction i)."""

    def loss(mistakes, positives, p):
        so_far = [sum(1 for j in mistakes if j < i) for i in range(1, p + 1)]
        return sum(exp(-rate * i) * min(k, fraction * i) for i, k in enumerate(so_far, start=1))

    return loss


def truncated(limit, weights=None):
    """(51)."""
    return lambda mistakes, positives, p: min(
        limit, sum(1.0 if weights is None else weights[i] for i in mistakes)
    )


def exponential(alpha):
    """(53)."""
    return lambda mistakes, positives, p: 1 - exp(-alpha * len(mistakes))


def curve(function, weights=None):
    def loss(mistakes, positives, p):
        total = sum(1.0 if weights is None else weights[i] for i in mistakes)
        return float(function(total)) - float(function(0.0))

    return loss


def of_size(formula):
    return lambda mistakes, positives, p: (
        float(formula(len(mistakes), p) - formula(0, p)) if p else 0.0
    )


def of_counts(formula):
    def loss(mistakes, positives, p):
        m, n = len(positives), len(mistakes & positives)
        values = [formula(a, b, m, p - m) for a, b in ((n, len(mistakes) - n), (0, 0))]
        return float(values[0] - values[1])

    return loss


def face_track(kind, alpha=None):
    """(33)-(36) as the notes read them with the authors' code: k mistakes among n frames."""

    def loss(mistakes, positives, p):
        k, n = len(mistakes), max(p, 1)
        if kind == 1:
            return max(min(k, n / 3), k - n / 3) / (n / 3)
        if kind == 2:
            return min(max(min(k, n / 4), k - n / 4) / (n / 4), alpha or 2)
        if kind == 3:
            return min(max(0, k - n / 3) / (n / 3), alpha or 1)
        slope = (1 + (alpha or 0.5)) / 2
        return (slope * max(0, k - n / 3) - max(0, k - 2 * n / 3)) / (n / 3)

    return loss


def from_masks(function):
    def loss(mistakes, positives, p):
        def at(elements):
            masks = [np.isin(np.arange(p), list(side)) for side in (elements, positives)]
            return function(*masks)

        return at(mistakes) - at(frozenset())

    return loss


def entry(values):
    return lambda mistakes, positives, p: values[sum(1 << i for i in mistakes)] - values[0]


def total(*terms):
    return lambda mistakes, positives, p: sum(
        scale * term(mistakes, positives, p) for scale, term in terms
    )


# The three cases of Section 4.4 of the Lovász hinge paper, and a table on three elements.
INCREASING, NON_MONOTONE, SUPERMODULAR = [0, 1, 1, 1.2], [0, 1, 1, 0.4], [0, 1, 1, 2.8]
ANY_TABLE = [1.0, 2.0, 1.5, 3.5, 1.0, 2.0, 4.0, 4.5]
SIGNED = [1.0, -0.5, 0.25]
FIXED_GRID = [[0.0, 1.0], [0.5, 2.0], [2.0, 2.5]]
BETA = [1.0, 0.5, 0.2, 0.7]
ITEMS = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]]
# In 2 of the 5 rows: 0, 1, 2, 3, 01, 02, 12, 13, 23, 012 and 123.
ITEM_COUNTS = [4, 6, 6, 4]

SMALL = (2,)
LOSSES: dict[str, Listed] = {
    "hamming": Listed(losses.Hamming(), count),
    "weighted hamming": Listed(losses.Hamming(BETA), weighted(BETA), (4,)),
    "jaccard": Listed(losses.Jaccard(), jaccard),
    "dice": Listed(losses.Dice(), f_beta(1.0)),
    "f-1.5": Listed(losses.FBeta(1.5), f_beta(1.5)),
    "f-2": Listed(losses.FBeta(2.0), f_beta(2.0)),
    "f-1/2": Listed(losses.FBeta(0.5), f_beta(0.5)),
    "early detection": Listed(losses.EarlyDetection(), early(1.0, 0.5)),
    "slow detection": Listed(losses.EarlyDetection(0.1, 0.3), early(0.1, 0.3)),
    "truncated": Listed(losses.TruncatedModular(1.3, BETA), truncated(1.3, BETA), (4,)),
    "truncated count": Listed(losses.TruncatedModular(2.5), truncated(2.5)),
    "exponential": Listed(losses.Exponential(), exponential(1.0)),
    "slow exponential": Listed(losses.Exponential(0.2), exponential(0.2)),
    "exponential + hamming": Listed(
        losses.Exponential() + losses.Hamming(BETA),
        total((1, exponential(1.0)), (1, weighted(BETA))),
        (4,),
    ),
    "itemsets": Listed(losses.ItemsetLoss(ITEM_COUNTS), curve(sqrt, ITEM_COUNTS), (4,)),
    "concave of the count": Listed(losses.ConcaveLoss(np.log1p), curve(log1p)),
    "hill of a sum": Listed(losses.ConcaveLoss(hill, BETA), curve(hill, BETA), (4,)),
    "rises then falls": Listed(losses.CardinalityLoss(rises_then_falls), of_size(rises_then_falls)),
    "squared": Listed(losses.CardinalityLoss(squared), of_size(squared)),
    "staircase": Listed(losses.CardinalityLoss(staircase), of_size(staircase)),
    "falls below zero": Listed(losses.CardinalityLoss(falls_below_zero), of_size(falls_below_zero)),
    "face track 1": Listed(losses.FaceTrack(1), face_track(1)),
    "face track 2": Listed(losses.FaceTrack(2), face_track(2)),
    "face track 3": Listed(losses.FaceTrack(3), face_track(3)),
    "face track 4": Listed(losses.FaceTrack(4), face_track(4)),
    "face track 2, low": Listed(losses.FaceTrack(2, 0.8), face_track(2, 0.8)),
    "face track 4, rising": Listed(losses.FaceTrack(4, 1.2), face_track(4, 1.2)),
    "balanced": Listed(losses.CountsLoss(balanced), of_counts(balanced)),
    "roots of counts": Listed(losses.CountsLoss(roots), of_counts(roots)),
    "mixed counts": Listed(losses.CountsLoss(mixed), of_counts(mixed)),
    "increasing pair": Listed(
        losses.SetLoss(functions.Table(INCREASING)), entry(INCREASING), SMALL
    ),
    "non-monotone pair": Listed(
        losses.SetLoss(functions.Table(NON_MONOTONE)), entry(NON_MONOTONE), SMALL
    ),
    "supermodular pair": Listed(
        losses.SetLoss(functions.Table(SUPERMODULAR)), entry(SUPERMODULAR), SMALL
    ),
    "table": Listed(losses.SetLoss(functions.Table(ANY_TABLE)), entry(ANY_TABLE), (3,)),
    "signed modular": Listed(losses.SetLoss(functions.Modular(SIGNED)), weighted(SIGNED), (3,)),
    "cardinality": Listed(
        losses.SetLoss(functions.Cardinality([0.0, 2.0, 3.0, 3.5])),
        lambda mistakes, positives, p: [0.0, 2.0, 3.0, 3.5][len(mistakes)],
        (3,),
    ),
    "counts of a fixed split": Listed(
        losses.SetLoss(functions.Counts(FIXED_GRID, [True, False, True])),
        lambda mistakes, positives, p: (
            FIXED_GRID[len(mistakes & {0, 2})][len(mistakes & {1})] - FIXED_GRID[0][0]
        ),
        (3,),
    ),
    "all right or not": Listed(
        losses.SetLoss(all_right_or_not, submodular=True, increasing=True),
        from_masks(all_right_or_not),
    ),
    "pairs of positives": Listed(
        losses.SetLoss(pairs_of_positives), from_masks(pairs_of_positives), (0, 1, 2, 3)
    ),
    "jaccard + hamming": Listed(
        0.5 * losses.Jaccard() + 0.25 * losses.Hamming(), total((0.5, jaccard), (0.25, count))
    ),
    "scaled jaccard": Listed(3.0 * losses.Jaccard(), total((3, jaccard))),
    "scaled dice": Listed(0.5 * losses.Dice(), total((0.5, f_beta(1.0)))),
    "dice + hamming": Listed(
        losses.Dice() + 0.5 * losses.Hamming(BETA),
        total((1, f_beta(1.0)), (0.5, weighted(BETA))),
        (4,),
    ),
    "early detection + hamming": Listed(
        2.0 * losses.EarlyDetection() + losses.Hamming(BETA),
        total((2, early(1.0, 0.5)), (1, weighted(BETA))),
        (4,),
    ),
    "face track + hamming": Listed(
        losses.FaceTrack(1) + losses.Hamming(BETA),
        total((1, face_track(1)), (1, weighted(BETA))),
        (4,),
    ),
    "weighted jaccard": Listed(losses.Jaccard(BETA), weighted_jaccard(BETA), (4,)),
    "jaccard with a weight of 0": Listed(
        losses.Jaccard([2.0, 0.0, 1e-9, 3.0]), weighted_jaccard([2.0, 0.0, 1e-9, 3.0]), (4,)
    ),
    "weighted dice": Listed(losses.Dice(BETA), weighted_f_beta(1.0, BETA), (4,)),
    "weighted f_beta": Listed(losses.FBeta(0.5, BETA), weighted_f_beta(0.5, BETA), (4,)),
    "weighted jaccard + hamming": Listed(
        losses.Jaccard(BETA) + 0.5 * losses.Hamming(BETA),
        total((1, weighted_jaccard(BETA)), (0.5, weighted(BETA))),
        (4,),
    ),
    "jaccard + exponential": Listed(
        losses.Jaccard() + losses.Exponential(), total((1, jaccard), (1, exponential(1.0)))
    ),
}
