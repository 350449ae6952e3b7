"""A table whose columns lie in blocks on workers, and the exact stump search over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.utils import check_array

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray, as_sample_weights
from setwise.dask._partitions import check_lengths, row_parts
from setwise.dask._placement import BLOCKS_PER_THREAD
from setwise.estimators._boosting._distinct_rows import _STRANGE, _filled, _projection
from setwise.learning import Column, StumpSearch
from setwise.learning._executors import Executor
from setwise.learning._weak_learners._one_feature import rounding_of
from setwise.learning._weak_learners._rows import as_segments


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Validated rows of a table. Sparse rows stay sparse; NaN stands for a missing value."""

    X: Any
    y: NDArray[Any]
    weight: FloatArray
    groups: NDArray[Any] | None
    names: list[str] | None


class RowsSummary(NamedTuple):
    """The columns of some rows that the client keeps: all but the features, and a hash per row."""

    y: NDArray[Any]
    weight: FloatArray
    groups: NDArray[Any] | None
    names: list[str] | None
    width: int
    projection: FloatArray
    hashes: NDArray[np.uint64]


def read_rows_of_table(part: Mapping[str, Any], place: int) -> FeatureRows:
    """Validate one part of a dask collection and return its rows."""
    n = check_lengths(part, place)
    X = part["X"]
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=np.float64,
        order="C",
        ensure_all_finite="allow-nan",
        ensure_min_samples=0,
        input_name="X",
    )
    y = np.asarray(part["y"])
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {y.ndim} dimensions")
    groups = part.get("groups")
    weight = part.get("sample_weight")
    return FeatureRows(
        X,
        y,
        as_sample_weights(None if weight is None else np.asarray(weight), n),
        None if groups is None else np.asarray(groups),
        names,
    )


def summarize_rows(rows: FeatureRows) -> RowsSummary:
    """Return what the client keeps of the rows."""
    return RowsSummary(
        rows.y,
        rows.weight,
        rows.groups,
        rows.names,
        rows.X.shape[1],
        _projection(_filled(rows.X, _STRANGE)),
        _hashes(rows.X),
    )


def _hashes(X: Any) -> NDArray[np.uint64]:
    """Return hashes of shape (n, 2). Two different rows collide with probability about 2^-120.

    A hash is a linear function of the bits of the row, with random odd factors, modulo 2^64.
    Zeros add nothing, so that a sparse row has the same hash as the equal dense row.
    """
    factors = np.random.default_rng(1).integers(0, 1 << 63, size=(2, X.shape[1]), dtype=np.uint64)
    factors = 2 * factors + 1
    values = _filled(X, np.inf)
    if not issparse(values):
        bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        return np.stack([(bits * own).sum(axis=1, dtype=np.uint64) for own in factors], axis=1)
    bits = np.ascontiguousarray(values.data + 0.0).view(np.uint64)
    ones = np.ones(X.shape[1], np.uint64)
    words = []
    for own in factors:
        parts = bits * own[values.indices], values.indices, values.indptr
        words.append(csr_array(parts, shape=values.shape) @ ones)
    return np.stack(words, axis=1)


def distinct(seen: RowsSummary, y: IntArray, weight: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the indices and weights of the distinct rows, in the order of ``distinct_rows``."""
    some = np.flatnonzero(weight)
    order = some[np.lexsort((seen.projection[some], y[some]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(y[order]) != 0) | (np.diff(seen.hashes[order], axis=0) != 0).any(axis=1)
    starts = np.flatnonzero(first)
    return order[starts], np.add.reduceat(weight[order], starts)


class ColumnTable:
    """A table whose rows lie on workers, with a summary of all rows on the client."""

    def __init__(self, executor: Executor, X: Any, **others: Any) -> None:
        self._executor = executor
        read = delayed(read_rows_of_table, pure=False)
        self._tasks = [read(part, k) for k, part in enumerate(row_parts(X, **others))]
        self.rows: Sequence[Any] = executor.place(self._tasks)
        parts = [part for part in executor.map(summarize_rows, self.rows) if len(part.y)]
        if not parts:
            raise ValueError("X must have at least one row, got 0 in all chunks")
        if len(kinds := {(part.width, str(part.names)) for part in parts}) > 1:
            raise ValueError(f"X must have the same columns in all chunks, got {kinds}")
        y, weight, projection, hashes = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("y", "weight", "projection", "hashes")
        )
        grouped = [part.groups for part in parts if part.groups is not None]
        groups = np.concatenate(grouped) if grouped else None
        one = parts[0]
        self.seen = RowsSummary(y, weight, groups, one.names, one.width, projection, hashes)

    def searched(
        self, kept: IntArray | None, n_columns: int, mask: BoolArray, trends: IntArray
    ) -> DaskStumpSearch:
        """Return a stump search over blocks of columns of the ``kept`` rows (None: of all rows).

        Each part of the rows is cut into blocks of columns, and the pieces of one block are
        stacked, once. A block then holds all rows of some features, sorted, on one worker.
        """
        executor, width = self._executor, self.seen.width
        client = getattr(executor, "client", None)
        threads = 1 if client is None else sum(client.nthreads().values())
        cuts = np.linspace(0, width, min(width, BLOCKS_PER_THREAD * threads) + 1).astype(int)
        take, stack = delayed(_columns_of, pure=False), delayed(_block, pure=False)
        order = delayed(_identity, pure=False)(kept)
        blocks = []
        for begin, end in pairwise(cuts.tolist()):
            parts = [take(rows, begin, end) for rows in self._tasks]
            own = mask[begin:end], trends[begin:end]
            blocks.append(stack(parts, order, begin, n_columns, *own))
        m = len(self.seen.y) if kept is None else len(kept)
        return DaskStumpSearch(executor, executor.place(blocks), n_columns, m)


def _identity(value: Any) -> Any:
    return value


def _columns_of(rows: FeatureRows, begin: int, end: int) -> Any:
    return rows.X[:, begin:end]


class StumpBlock(NamedTuple):
    """A stump search over a block of features, and the index of its first feature."""

    search: StumpSearch
    first: int


def _block(
    parts: list[Any],
    kept: IntArray | None,
    first: int,
    n_columns: int,
    mask: BoolArray,
    trends: IntArray,
) -> StumpBlock:
    X = vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)
    X = X if kept is None else X[kept]
    if not issparse(X):
        X = np.ascontiguousarray(X)
    search = StumpSearch(X, n_columns, categorical_features=mask, monotonic_cst=trends)
    return StumpBlock(search, first)


class BlockStumps(NamedTuple):
    """The best gains (features, segments) of a block, and its best columns."""

    ranks: FloatArray
    columns: list[tuple[int, int, Any, NDArray[np.int8]]]


def best_of_block(block: StumpBlock, segments: FloatArray) -> BlockStumps:
    """Return the gains and the best columns of a block.

    Every column of the block that is among the best of the whole table is also among the best of
    the block, so one query per block is enough. Responses are -1, 0 or 1, stored in one byte each.
    """
    search, first = block
    ranks = search._ranks(segments)
    rounding = rounding_of(segments)
    columns = []
    for feature, segment in search._best_pairs(ranks):
        column = search._column(segments, rounding, feature, segment)
        stump = replace(column.learner, feature=first + column.learner.feature)
        columns.append((first + feature, segment, stump, column.response.astype(np.int8)))
    return BlockStumps(ranks, columns)


class DaskStumpSearch:
    """``StumpSearch`` over blocks of columns on workers, with bitwise the same stumps."""

    exact = True

    def __init__(
        self, executor: Executor, blocks: Sequence[Any], n_columns: int, n_rows: int
    ) -> None:
        self._executor, self._blocks, self._n_rows = executor, blocks, n_rows
        self._pairs = StumpSearch(np.zeros((1, 1)), n_columns)

    def __call__(self, weights: FloatArray) -> list[Column]:
        """Return the best stumps for weights of shape (n_segments m,)."""
        segments = np.ascontiguousarray(as_segments(weights, self._n_rows))
        found = self._executor.map(best_of_block, self._blocks, segments)
        ranks = np.concatenate([own.ranks for own in found])
        known = {(f, s): (stump, r) for own in found for f, s, stump, r in own.columns}
        columns = []
        for feature, segment in self._pairs._best_pairs(ranks):
            stump, response = known[feature, segment]
            columns.append(Column(stump, segment, response.astype(np.float64)))
        return columns
