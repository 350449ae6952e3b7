"""The multi-label problems of the Lovász hinge paper's Sections 6.3 and 6.4.

They have labels that occur together, samples balanced over the number of labels present, and the
losses (51) to (56) with the paper's constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

import setwise as sw
from experiments.lovasz_hinge._greedy_rescaling import GreedyRescaling
from experiments.lovasz_hinge._linear_models import Surrogate
from experiments.shared.data import Sample, multilabel, standardized

SUPPORT = 0.1
ZERO_ONE = sw.losses.Hamming()


@dataclass(frozen=True)
class Setting:
    """The number of labels, and for k = 0, 1, ... the number of training examples with k labels."""

    size: int
    counts: tuple[int, ...]
    losses: tuple[str, ...]


SETTINGS = {
    "Table 3": Setting(3, (150, 150, 150, 30), ("Δ2", "Δ3")),
    "Table 4": Setting(6, (150,) * 7, ("Δ4", "Δ5", "Δ6")),
}


def common_itemset(Y: np.ndarray, size: int) -> list[int]:
    """Return the labels that most often occur together, most frequent label first.

    If several sets tie (no example may have six labels), return the one whose labels occur most.
    """
    frequency = Y.sum(axis=0)

    def rank(items: tuple[int, ...]) -> tuple[int, int]:
        return int(Y[:, items].all(axis=1).sum()), int(frequency[list(items)].sum())

    best = max(combinations(range(Y.shape[1]), size), key=rank)
    return sorted(best, key=lambda j: (-frequency[j], j))


def balanced_split(
    present: np.ndarray, counts: tuple[int, ...], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test examples, balanced over the number of labels present.

    ``present`` (n,) is the number of labels of each example. Of the examples with k labels,
    counts[k] are drawn for training and half as many for the test. If there are too few, two thirds
    of them are for training and one third for the test.
    """
    train, test = [], []
    for k, count in enumerate(counts):
        rows = rng.permutation(np.flatnonzero(present == k))
        taken = min(count, 2 * len(rows) // 3)
        train.append(rows[:taken])
        test.append(rows[taken : taken + count // 2])
    return rng.permutation(np.concatenate(train)), rng.permutation(np.concatenate(test))


@cache
def sample(name: str, size: int) -> tuple[Sample, list[str]]:
    """Return training and test part together, y in {-1, +1}, and the names of the chosen labels."""
    data = multilabel(name)
    pooled = data.pooled()
    items = common_itemset(pooled.y, size)
    return Sample(pooled.X, 2 * pooled.y[:, items] - 1), [data.labels[j] for j in items]


def draw(name: str, setting: Setting, repeat: int, seed: int) -> tuple[Sample, Sample]:
    """Draw a training and a test sample, with standardised features and a constant one."""
    everything, _ = sample(name, setting.size)
    rng = np.random.default_rng([seed, repeat])
    rows, others = balanced_split(np.sum(everything.y > 0, axis=1), setting.counts, rng)
    train, test = everything.take(rows), everything.take(others)
    parts = standardized(train.X, test.X)
    X, X_test = (np.column_stack([part, np.ones(len(part))]) for part in parts)
    return Sample(X, train.y), Sample(X_test, test.y)


def make_loss(name: str, Y: np.ndarray) -> sw.losses.Loss:
    """Return the loss of a name with the paper's constants. Δ6 mines its itemsets from Y."""
    beta = {3: [1.0, 0.5, 0.2], 6: [1.0, 0.8, 0.7, 0.6, 0.5, 0.4]}[Y.shape[1]]
    if name == "Δ2":
        return sw.losses.TruncatedModular(1.3, beta)
    if name == "Δ4":
        return sw.losses.Exponential()
    if name == "Δ6":
        counts = sw.losses.ItemsetLoss.from_labels(Y, min_support=SUPPORT).weights
        return sw.losses.ItemsetLoss(counts / counts.sum())
    return sw.losses.Exponential() + sw.losses.Hamming(beta)


def make_surrogate(method: str, loss: sw.losses.Loss) -> Surrogate:
    """Return the surrogate that a row of the tables trains with."""
    if method == "0-1":
        return sw.surrogates.LovaszHinge(ZERO_ONE)
    if method == "L":
        return sw.surrogates.LovaszHinge(loss)
    if method.endswith("exact"):
        slack = method.startswith("S")
        return (sw.surrogates.SlackRescaling if slack else sw.surrogates.MarginRescaling)(loss)
    return GreedyRescaling(loss, slack=method[0] == "S", published=method.endswith("published"))
