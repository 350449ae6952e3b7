"""The part of a classifier of sets on the workers: rows, their sets, and the surrogate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from setwise._foundation._arguments import FloatArray, as_sample_weights
from setwise.dask._partitions import check_lengths
from setwise.estimators._sets._label_encoding import Encoding
from setwise.estimators._sets._set_risk import ShardRisk, cut, linear_scores, slope_of
from setwise.learning import tree_sum
from setwise.losses import Loss
from setwise.losses._scoring._layout import Arrangement, Sets, arrange
from setwise.losses._scoring._score import worst_losses
from setwise.surrogates import Surrogate


@dataclass(frozen=True, eq=False)
class SetRows:
    """A validated part of the sample: features, labels, weights and groups of the same rows.

    ``kept`` is a cache for the rounds of one fit. It is not sent to other machines.
    """

    X: Any
    y: NDArray[Any]
    weight: FloatArray
    groups: NDArray[Any] | None
    names: list[str] | None
    kept: dict[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[type[SetRows], tuple[Any, ...]]:
        return SetRows, (self.X, self.y, self.weight, self.groups, self.names)


@dataclass(frozen=True, eq=False)
class SetSummary:
    """A summary of a part for the client: sizes, labels with their counts, and groups."""

    n: int
    width: int
    n_outputs: int
    names: list[str] | None
    labels: NDArray[Any]
    counts: NDArray[np.int64]
    counted: int
    groups: NDArray[Any] | None


def read_rows(part: Mapping[str, Any], place: int) -> SetRows:
    """Validate one part of a dask collection and return its rows. Sparse rows stay sparse."""
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
    return SetRows(X, y, weight, _plain(part.get("groups")), names)


def summarize(rows: SetRows) -> SetSummary:
    """Return the summary of a part."""
    labels, counts = np.unique(rows.y, return_counts=True)
    # For a matrix they are needed in messages only.
    few = slice(None) if rows.y.ndim == 1 else slice(5)
    return SetSummary(
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
    """A rule that turns rows into sets: the positive class, the kind of sets, class weights."""

    encoding: Encoding
    sets: Sets
    class_weights: Mapping[Any, float] | None
    separate: bool

    def positive(self, rows: SetRows) -> NDArray[np.bool_]:
        """Return a mask of the positive labels of a part."""
        return self.encoding.encode(rows.y)

    def weight(self, rows: SetRows) -> FloatArray:
        """Return the weight of each row, multiplied by its class weight."""
        if self.class_weights is None:
            return rows.weight
        of_class = np.array([self.class_weights[label] for label in self.encoding.classes.tolist()])
        return np.asarray(of_class[np.searchsorted(self.encoding.classes, rows.y)] * rows.weight)

    def arranged(self, rows: SetRows) -> Arrangement:
        """Return the sets of a part."""
        return arrange(
            self.positive(rows),
            self.sets,
            rows.groups,
            self.weight(rows),
            separate=self.separate,
        )


@dataclass(frozen=True, eq=False)
class ChunkRisk:
    """A function (rows, W) -> the risk of the sets of a part, and a subgradient (p, columns).

    The sets are cut into pieces that fit the cache of a processor. The pieces and the surrogate,
    which caches values that depend on the truths, are kept with the rows under the name of the fit.
    """

    fit: str
    reading: Reading
    surrogate: Surrogate
    intercept: bool

    def __call__(self, rows: SetRows, W: FloatArray) -> tuple[float, FloatArray]:
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


def scores_of_rows(rows: SetRows, W: FloatArray, intercept: bool) -> FloatArray:
    """Return the scores (n, p) of a part."""
    return linear_scores(rows.X, W, intercept)


def slope_of_rows(rows: SetRows, intercept: bool, slopes: FloatArray) -> FloatArray:
    """Return the gradient in W, given the gradient in the scores of a part."""
    return slope_of(rows.X, slopes, intercept)


def labels_of_rows(rows: SetRows, reading: Reading) -> tuple[Any, ...]:
    """Return the mask of positive labels and the weight of each row."""
    return reading.positive(rows), reading.weight(rows)


def truths(rows: SetRows, reading: Reading, loss: Loss) -> list[NDArray[np.bool_]]:
    """Return one truth per class of truths on which the loss depends in the same way."""
    if not rows.weight.any():
        return []
    return list(reading.arranged(rows).distinct(loss._key))


def counted_score(
    rows: SetRows, reading: Reading, loss: Loss, W: FloatArray
) -> tuple[float, float]:
    """Return the weighted sum of loss / worst loss over the sets, and the sum of the weights."""
    if not rows.weight.any():
        return 0.0, 0.0
    predicted = linear_scores(rows.X, W, True) > 0
    sets = reading.arranged(rows)
    found = predicted if rows.y.ndim == 2 else predicted[:, 0]
    losses = loss(sets.positive, sets.gather(found), offsets=sets.ragged_offsets)
    most = worst_losses(loss, sets)
    shares = np.divide(losses, most, out=np.zeros(sets.n_sets), where=most > 0)
    return float(sets.weights @ shares), float(sets.weights.sum())


def merged(found: Sequence[NDArray[np.bool_]]) -> Arrangement:
    """Return an arrangement with one set per truth."""
    ends = np.concatenate([[0], np.cumsum([len(truth) for truth in found])])
    flat = np.concatenate([*found, np.zeros(0, np.bool_)])
    return Arrangement("groups", flat, np.arange(len(flat)), ends, np.ones(len(found)))


def _plain(values: Any) -> NDArray[Any] | None:
    return None if values is None else np.asarray(values)
