"""Frequent itemsets, level by level (Apriori)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import FloatArray, as_count, as_number
from setwise.losses._labels import read_labels

# The most frequent itemsets. Each holds a column of the table in packed bits: a million take
# 1.25 GB for 10,000 rows.
_MOST = 1_000_000

Rows = NDArray[np.uint8]
Itemset = tuple[tuple[int, ...], Rows]


def itemset_counts(Y: ArrayLike, min_support: float, max_size: int | None) -> FloatArray:
    """Return the number of frequent itemsets with each label (Lovász hinge paper, equation (56)).

    A set of labels is frequent if at least ``min_support`` of the rows are positive in all of them.
    Every part of a frequent set is frequent, so sets of k labels come from pairs of sets of k - 1
    that differ in their last label. The cost is O(n) per candidate, with eight rows per byte.
    """
    labels = read_labels(Y, name="Y")
    if labels.layout != "rows" or labels.n == 0:
        raise ValueError(f"Y must have shape (n, p) with n at least 1, got {labels.shape}")
    min_support = as_number(min_support, "min_support")
    if not 0 < min_support <= 1:
        raise ValueError(f"min_support must lie in (0, 1], got {min_support}")
    largest = labels.shape[1] if max_size is None else as_count(max_size, "max_size", least=1)
    least = max(1.0, min_support * labels.n - 1e-9)
    columns = np.packbits(labels.positive.reshape(labels.shape).astype(np.bool_).T, axis=1)
    counts = np.zeros(labels.shape[1])
    level: Iterable[Itemset] = [((j,), column) for j, column in enumerate(columns)]
    found = 0
    for _ in range(largest):
        frequent: list[Itemset] = []
        for items, rows in level:
            if _support(rows) >= least:
                frequent.append((items, rows))
                counts[list(items)] += 1
            if found + len(frequent) > _MOST:
                raise ValueError(
                    f"min_support gives more than {_MOST} frequent itemsets, got {min_support}: "
                    "raise it, or set max_size"
                )
        found += len(frequent)
        if len(frequent) < 2:  # a larger set would come from two of them
            break
        level = _joined(frequent)
    return counts


def _support(rows: Rows) -> int:
    return int(np.bitwise_count(rows).sum())


def _joined(level: list[Itemset]) -> Iterator[Itemset]:
    """Return candidates one label larger, from pairs of sets that differ in their last label."""
    for k, (items, rows) in enumerate(level):
        for others, other_rows in islice(level, k + 1, None):
            if others[:-1] != items[:-1]:
                break
            yield (*items, others[-1]), rows & other_rows
