"""Aligned parts of dask arrays and DataFrames: rows of features with their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed


def as_collection(values: Any, name: str) -> Any:
    """Return a dask array, DataFrame or Series. Zarr and xarray arrays become dask arrays."""
    if type(values).__module__.startswith("zarr."):
        return da.from_zarr(values)
    inner = getattr(values, "data", None)
    if type(values).__module__.startswith("xarray.") and isinstance(inner, da.Array):
        return inner
    if isinstance(values, da.Array) or is_frame(values):
        return values
    raise TypeError(
        f"{name} must be a dask array, DataFrame or Series, got {type(values).__name__}: "
        "dask.array.from_array makes one of an array"
    )


def is_frame(values: Any) -> bool:
    """Return whether ``values`` is a DataFrame or Series of dask."""
    return is_dask_collection(values) and hasattr(values, "map_partitions")


def row_parts(X: Any, **others: Any) -> list[dict[str, Delayed]]:
    """Return the row chunks of X with the same rows of the others, skipping those that are None.

    Chunks may be uneven, empty and of unknown size. If all sizes are known, the others are
    rechunked like X. Otherwise they must have as many chunks as X, and ``check_lengths`` compares
    the lengths on the workers.
    """
    X = as_collection(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n, d), got {X.ndim} dimensions")
    columns = {"X": _delayed(X)}
    for name, values in others.items():
        if values is None:
            continue
        own = as_collection(values, name)
        if own.ndim > (2 if name == "y" else 1):
            shape = "(n,) or (n, p)" if name == "y" else "(n,)"
            raise ValueError(f"{name} must have shape {shape}, got {own.ndim} dimensions")
        own = _cut_alike(own, X, name)
        columns[name] = _delayed(own)
        if len(columns[name]) != len(columns["X"]):
            raise ValueError(
                f"{name} must have as many chunks as X, {len(columns['X'])}, where chunk sizes are "
                f"unknown, got {len(columns[name])}: repartition it, or call "
                "compute_chunk_sizes() on both"
            )
    return [dict(zip(columns, own, strict=True)) for own in zip(*columns.values(), strict=True)]


def _delayed(values: Any) -> list[Delayed]:
    """Return the chunks of rows, each with all columns."""
    if is_frame(values):
        return list(values.to_delayed())
    if values.ndim == 2 and len(values.chunks[1]) > 1:
        values = values.rechunk({1: -1})
    return list(values.to_delayed().ravel())


def _cut_alike(values: Any, X: Any, name: str) -> Any:
    """Rechunk an array like the rows of X, if the chunks of both are known."""
    if not (isinstance(values, da.Array) and isinstance(X, da.Array)):
        return values
    known = [not np.isnan(array.chunks[0]).any() for array in (values, X)]
    if not all(known):
        return values
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"{name} must have {X.shape[0]} rows, as X has, got {values.shape[0]}")
    return values if values.chunks[0] == X.chunks[0] else values.rechunk({0: X.chunks[0]})


def check_lengths(part: Mapping[str, Any], place: int) -> int:
    """Return the number of rows of a part. Raise an error if its arrays differ in length."""
    n = part["X"].shape[0]
    for name, values in part.items():
        if values.shape[0] != n:
            raise ValueError(
                f"{name} must have the rows of X in every chunk, got {values.shape[0]} rows beside "
                f"{n} in chunk {place}: repartition both alike, as by compute_chunk_sizes()"
            )
    return int(n)


def lazily(X: Any, function: Any, *, columns: int | None, dtype: Any) -> da.Array:
    """Apply ``function`` to each chunk of rows. Returns a dask array (n,) or (n, columns)."""
    X = as_collection(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n, d), got {X.ndim} dimensions")
    if is_frame(X):
        parts = X.to_delayed()
        lengths: tuple[float, ...] = (np.nan,) * len(parts)
    else:
        parts = (X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X).to_delayed().ravel()
        lengths = X.chunks[0]
    call = delayed(function, pure=False)
    tail = () if columns is None else (columns,)
    answers = [
        da.from_delayed(call(part), shape=(length, *tail), dtype=dtype)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return da.concatenate(answers, allow_unknown_chunksizes=True)
