"""Arguments, checked once where they enter: one sentence says what was wrong with which.

A wrong type is a ``TypeError``, a wrong value a ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """What NumPy makes of the values; masked arrays are refused, as their masks would be lost."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a plain array, got a masked one: fill it first")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError) as error:
        ragged = "inhomogeneous" in str(error)
        what = "rows of different lengths" if ragged else f"{type(values).__name__}: {error}"
        raise TypeError(f"{name} must be an array of numbers, got {what}") from None


def as_count(value: object, name: str, *, least: int = 0) -> int:
    """A whole number that is at least ``least``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def as_choice(value: object, name: str, choices: Iterable[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    known = list(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    return value


def as_number(
    value: object, name: str, *, positive: bool = False, nonnegative: bool = False
) -> float:
    """A finite real number."""
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        value = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be below 1.8e308, got a larger integer") from None
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    if positive and value <= 0:
        raise ValueError(f"{name} must be positive, got {value}")
    if nonnegative and value < 0:
        raise ValueError(f"{name} must not be negative, got {value}")
    return value


def as_numbers(
    values: ArrayLike,
    name: str,
    *,
    shape: tuple[int | None, ...] = (None,),
    nonnegative: bool = False,
) -> FloatArray:
    """Finite real numbers of a given shape (``None``: any length), as a new float64 array."""
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    fits = len(shape) == array.ndim and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}")
    array = as_float64(array)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    if nonnegative and array.size and array.min() < 0:
        raise ValueError(f"{name} must not be negative, got {array.min():g}")
    return array


def as_float64(array: NDArray[Any]) -> FloatArray:
    """A new float64 array; what is beyond its range becomes infinite, without a warning."""
    with np.errstate(over="ignore"):
        return np.array(array, dtype=np.float64, order="C")


def as_integers(values: ArrayLike, name: str, *, below: int) -> IntArray:
    """Integers in ``[0, below)`` of any shape."""
    array = as_array(values, name)
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    low, high = array.min(), array.max()
    if low < 0 or high >= below:
        bad = low if low < 0 else high
        raise ValueError(f"{name} must lie between 0 and {below - 1}, got {bad}")
    return array.astype(np.int64)


def as_order(order: ArrayLike, n: int, name: str = "order") -> IntArray:
    """Distinct elements of ``{0, ..., n-1}``: a permutation or the beginning of one."""
    array = as_array(order, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    array = as_integers(array, name, below=n)
    seen = np.zeros(n, np.bool_)
    seen[array] = True
    if np.count_nonzero(seen) != len(array):
        twice = np.flatnonzero(np.bincount(array, minlength=n) > 1)[0]
        raise ValueError(f"{name} must hold distinct elements, got {twice} more than once")
    return array


def as_subset(subset: ArrayLike, n: int, name: str) -> IntArray:
    """Elements of ``{0, ..., n-1}``, given as indices or as a boolean mask of length n."""
    array = as_array(subset, name)
    if array.dtype == np.bool_:
        if array.shape != (n,):
            raise ValueError(f"{name} must have shape ({n},) when boolean, got {array.shape}")
        return np.flatnonzero(array)
    return as_order(array, n, name)


def as_masks(mask: ArrayLike, n: int) -> tuple[BoolArray, bool]:
    """Subsets as a boolean (m, n) array, and whether a single one was given."""
    array = as_array(mask, "mask")
    if array.dtype != np.bool_ and array.size:
        raise TypeError(f"mask must be boolean, got dtype {array.dtype}")
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise ValueError(f"mask must have shape ({n},) or (m, {n}), got {array.shape}")
    masks = array.astype(np.bool_, copy=False)
    return (masks[None, :], True) if array.ndim == 1 else (masks, False)


def call_on_arrays(formula: Callable[..., ArrayLike], name: str, *arrays: ArrayLike) -> FloatArray:
    """``formula`` of whole arrays: one call, its answer checked for shape and finiteness."""
    shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
    try:
        values = np.asarray(formula(*arrays), dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise type(error)(
            f"{name} must take arrays and return an array (np.minimum instead of min, "
            f"np.where instead of if), got: {error}"
        ) from error
    if values.shape != shape:
        if values.shape:
            raise ValueError(f"{name} must return shape {shape}, got {values.shape}")
        values = np.full(shape, values)
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise ValueError(f"{name} must return finite numbers, got {bad}")
    return values
