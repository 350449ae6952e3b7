"""What workers do for a classifier of sets: look at rows, hold them as sets, ask a surrogate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from setwise._foundation._arguments import FloatArray
from setwise._foundation._sample_weights import as_sample_weights
from setwise.dask._partitions import check_lengths
from setwise.estimators._sets._label_encoding import Encoding
from setwise.estimators._sets._set_risk import ShardRisk, cut, linear_scores, slope_of
from setwise.learning import tree_sum
from setwise.losses import Loss
from setwise.losses._scoring._layout import Arrangement, Sets, arrange
from setwise.losses._scoring._score import worst_losses
from setwise.surrogates import Surrogate

_FEW = 5  # values of a matrix of labels that a refusal shows


@dataclass(frozen=True, eq=False)
class Rows:
    """A part of the sample, checked: features, labels, weights and groups of the same rows.

    ``kept`` is what the rounds of one fit find out about them once; it does not travel.
    """

    X: Any
    y: NDArray[Any]
    weight: FloatArray
    groups: NDArray[Any] | None
    names: list[str] | None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[type[Rows], tuple[Any, ...]]:
        return Rows, (self.X, self.y, self.weight, self.groups, self.names)


@dataclass(frozen=True, eq=False)
class Seen:
    """What the client must know of a part: sizes, labels and how often each is there, groups."""

    n: int
    width: int
    n_outputs: int
    names: list[str] | None
    labels: NDArray[Any]
    counts: NDArray[np.int64]
    counted: int
    groups: NDArray[Any] | None


def read_rows(part: Mapping[str, Any], place: int) -> Rows:
    """A part of a dask collection, as rows that are checked; sparse ones stay sparse."""
    n = check_lengths(part, place)
    X = part["X"]
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=np.float64,
        order="C",
        ensure_min_samples=0,
        ensure_min_features=1,
        input_name="X",
    )
    y = part["y"]
    y = y.toarray() if issparse(y) else np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1 and hasattr(part["y"], "columns"):
        y = y[:, 0]
    weight = as_sample_weights(_plain(part.get("sample_weight")), n)
    return Rows(X, y, weight, _plain(part.get("groups")), names)


def look(rows: Rows) -> Seen:
    """What the client must know of a part."""
    labels, counts = np.unique(rows.y, return_counts=True)
    few = slice(None) if rows.y.ndim == 1 else slice(_FEW)
    return Seen(
        n=len(rows.y),
        width=rows.X.shape[1],
        n_outputs=rows.y.shape[1] if rows.y.ndim == 2 else 0,
        names=rows.names,
        labels=labels[few],
        counts=counts[few],
        counted=int(np.count_nonzero(rows.weight)),
        groups=None if rows.groups is None else np.unique(rows.groups),
    )


@dataclass(frozen=True, eq=False)
class Reading:
    """How rows become sets: which labels are positive, what is one set, what a class weighs."""

    encoding: Encoding
    sets: Sets
    class_weights: Mapping[Any, float] | None
    separate: bool

    def positive(self, rows: Rows) -> NDArray[np.bool_]:
        """Which labels of a part are positive."""
        return self.encoding.encode(rows.y)

    def weight(self, rows: Rows) -> FloatArray:
        """What each row counts."""
        if self.class_weights is None:
            return rows.weight
        of_class = np.array([self.class_weights[label] for label in self.encoding.classes.tolist()])
        return np.asarray(of_class[np.searchsorted(self.encoding.classes, rows.y)] * rows.weight)

    def arranged(self, rows: Rows) -> Arrangement:
        """The sets of a part: each lies in one part."""
        return arrange(
            self.positive(rows),
            self.sets,
            rows.groups,
            self.weight(rows),
            separate=self.separate,
        )


@dataclass(frozen=True, eq=False)
class ChunkRisk:
    """(rows, W) -> the risk of the sets of a part, and a subgradient in W, (p, columns).

    The sets are cut as a processor's cache wants them, and kept with the rows under the name of
    the fit. So is the surrogate, with what it finds out about the truths.
    """

    fit: str
    reading: Reading
    surrogate: Surrogate
    intercept: bool

    def __call__(self, rows: Rows, W: FloatArray) -> tuple[float, FloatArray]:
        if not rows.weight.any():
            return 0.0, np.zeros(W.shape)
        if self.fit not in rows.kept:
            sets = self.reading.arranged(rows)
            whole = len(sets.order) == len(rows.y) and bool((np.diff(sets.order) == 1).all())
            X = rows.X if whole else rows.X[sets.order]
            rows.kept.clear()
            rows.kept[self.fit] = cut(X, sets), ShardRisk(self.surrogate, self.intercept)
        shards, part = rows.kept[self.fit]
        total: tuple[float, FloatArray] = tree_sum(part(shard, W) for shard in shards)
        return total


def scores_of_rows(rows: Rows, W: FloatArray, intercept: bool) -> FloatArray:
    """The scores of a part, (n, p)."""
    return linear_scores(rows.X, W, intercept)


def slope_of_rows(rows: Rows, intercept: bool, slopes: FloatArray) -> FloatArray:
    """The slope in W of slopes in the scores of a part."""
    return slope_of(rows.X, slopes, intercept)


def labels_of_rows(rows: Rows, reading: Reading) -> tuple[Any, ...]:
    """Which labels are positive, and what each row counts: for sets over the whole sample."""
    return reading.positive(rows), reading.weight(rows)


def truths(rows: Rows, reading: Reading, loss: Loss) -> list[NDArray[np.bool_]]:
    """A truth for each kind that the loss tells apart."""
    if not rows.weight.any():
        return []
    return list(reading.arranged(rows).distinct(loss._key))


def worst(rows: Rows, reading: Reading, loss: Loss) -> float:
    """The sum of the losses of everything wrong."""
    if not rows.weight.any():
        return 0.0
    sets = reading.arranged(rows)
    return float(sets.weights @ worst_losses(loss, sets))


def counted_score(
    rows: Rows, reading: Reading, loss: Loss, W: FloatArray, sign: float
) -> tuple[float, float]:
    """The weighted sum of the shares that are lost, and of the weights."""
    if not rows.weight.any():
        return 0.0, 0.0
    scores = linear_scores(rows.X, W, True)
    predicted = scores > 0 if sign > 0 else scores < 0
    sets = reading.arranged(rows)
    found = predicted if rows.y.ndim == 2 else predicted[:, 0]
    losses = loss(sets.positive, sets.gather(found), offsets=sets.ragged_offsets)
    most = worst_losses(loss, sets)
    shares = np.divide(losses, most, out=np.zeros(sets.n_sets), where=most > 0)
    return float(sets.weights @ shares), float(sets.weights.sum())


def merged(found: Sequence[NDArray[np.bool_]]) -> Arrangement:
    """Truths as sets of their own, for questions about truths alone."""
    ends = np.concatenate([[0], np.cumsum([len(truth) for truth in found])])
    flat = np.concatenate([*found, np.zeros(0, np.bool_)])
    return Arrangement("groups", flat, np.arange(len(flat)), ends, np.ones(len(found)))


def _plain(values: Any) -> NDArray[Any] | None:
    return None if values is None else np.asarray(values)
