"""Arguments, checked once where they enter: one sentence says what was wrong with which.

A wrong type is a ``TypeError``, a wrong value a ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# So that sums of a hundred million of them stay finite.
LARGEST = 1e300
SQUARABLE = 1e100  # sums of products of such numbers stay finite, however many there are

_MASKED = np.ma.MaskedArray


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """What NumPy makes of the values; masked arrays are refused, as their masks would be lost."""
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        # A RuntimeError is how torch refuses a tensor that requires a gradient.
        ragged = "inhomogeneous" in str(error)
        what = "rows of different lengths" if ragged else f"{type(values).__name__}: {error}"
        raise TypeError(f"{name} must be an array of numbers, got {what}") from None


def refuse_masked(values: object, name: str) -> None:
    """Raise a ``TypeError`` for a masked array, or rows of them: NumPy would drop the masks."""
    if type(values) is np.ndarray:
        return  # as most are: a call for one small set is a few microseconds
    kinds = {type(values)}
    if isinstance(values, list | tuple):
        kinds.update(map(type, values))
    if any(issubclass(kind, _MASKED) for kind in kinds):
        raise TypeError(f"{name} must be a plain array, got a masked one: fill it first")


def as_flag(value: object, name: str) -> bool:
    """True or False: a word such as "no" is true to Python, and a mistake here."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {_shown(value)}")
    return bool(value)


def as_answer(value: object, name: str) -> bool | None:
    """True, False, or None where that is not known."""
    if value is not None and not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True, False or None, got {_shown(value)}")
    return None if value is None else bool(value)


def as_function(value: object, name: str, *called_with: str) -> Callable[..., Any]:
    """Something that can be called; where the names of its arguments are given, with so many."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {type(value).__name__}")
    if called_with:
        try:
            own = signature(value)
        except (TypeError, ValueError):  # many compiled functions do not tell
            return value
        try:
            own.bind(*called_with)
        except TypeError as error:
            raise TypeError(
                f"{name} must be a function that is called as {name}({', '.join(called_with)}), "
                f"got {getattr(value, '__name__', 'one')}{own}: {error}"
            ) from None
    return value


def check_callback(callback: object) -> None:
    """Raise a ``TypeError`` unless it can be called with what a round tells, or is None."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None, got {type(callback).__name__}")
    if callback is not None:
        as_function(callback, "callback", "progress")


def _short(value: int | np.integer[Any]) -> str:
    """A whole number; Python itself refuses to write out a very long one."""
    return str(value) if abs(int(value)) < 10**30 else "a number of more than 30 digits"


def _shown(value: object) -> str:
    """A word as it is, anything else by its type: its own words may be long."""
    return repr(value) if isinstance(value, str) else type(value).__name__


def as_list(values: object, name: str, what: str) -> list[Any]:
    """The entries of a sequence; a word is none, and neither is a single number."""
    if not isinstance(values, str | bytes | Mapping) and isinstance(values, Iterable):
        try:
            return list(values)
        except TypeError:  # an array without dimensions
            pass
    raise TypeError(f"{name} must be a sequence of {what}, got {type(values).__name__}")


def as_count(value: object, name: str, *, least: int = 0, most: int | None = None) -> int:
    """A whole number that is at least ``least`` and at most ``most``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {_short(value)}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, got {_short(value)}")
    return int(value)


def as_choice(value: object, name: str, choices: Iterable[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    known = list(choices)
    if value not in known:
        listed, near = ", ".join(map(repr, known)), did_you_mean(value, known)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}{near}")
    return value


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The end of a refusal: the word that is nearest to what was given, if one is near."""
    spelt = {own.lower(): own for own in known}
    near = get_close_matches(word.lower()[:100], spelt, 1) if isinstance(word, str) else []
    return f": did you mean {spelt[near[0]]!r}?" if near else ""


def as_number(
    value: object,
    name: str,
    *,
    positive: bool = False,
    nonnegative: bool = False,
    largest: float = LARGEST,
    smallest: float = 1 / LARGEST,
) -> float:
    """A finite real number, no larger than ``largest``; where positive, none below ``smallest``."""
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
    if positive and value < smallest:
        raise ValueError(f"{name} must be at least {smallest:g}, got {value:g}")
    if nonnegative and value < 0:
        raise ValueError(f"{name} must not be negative, got {value}")
    if abs(value) > largest:
        raise ValueError(f"{name} must be at most {largest:g} in size, got {value:g}")
    return value


def as_numbers(
    values: ArrayLike,
    name: str,
    *,
    shape: tuple[int | None, ...] | None = (None,),
    nonnegative: bool = False,
    largest: float = LARGEST,
) -> FloatArray:
    """Finite real numbers of a given shape (``None``: any, any length), as a new float64 array.

    None may be larger than ``largest``: sums of them then stay finite.
    """
    array = as_array(values, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    fits = shape is None or (
        len(shape) == array.ndim
        and all(want is None or want == have for want, have in zip(shape, array.shape, strict=True))
    )
    if shape is not None and not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}")
    array = as_float64(array)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    if nonnegative and array.size and array.min() < 0:
        raise ValueError(f"{name} must not be negative, got {array.min():g}")
    most = max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))
    if most > largest:
        raise ValueError(f"{name} must be at most {largest:g} in size, got {most:g}")
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
    """``formula`` of whole arrays: one call, its answer checked for shape and finiteness.

    It is given copies: a formula may write into them. What it raises passes through, but for the
    TypeError or ValueError of a formula of numbers, which is explained.
    """
    shape = np.broadcast_shapes(*(np.shape(array) for array in arrays))
    copies = [np.array(array) for array in arrays]
    try:
        answer = as_array(formula(*copies), f"what {name} returns")
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{name} must take arrays and return an array (np.minimum instead of min, "
            f"np.where instead of if), got: {error}"
        ) from error
    if answer.dtype.kind not in "fiub":
        raise TypeError(f"{name} must return real numbers, got dtype {answer.dtype}")
    with np.errstate(over="ignore"):
        values = answer.astype(np.float64, copy=False)
    if values.shape != shape:
        if values.shape:
            raise ValueError(f"{name} must return shape {shape}, got {values.shape}")
        values = np.full(shape, values)
    if not np.isfinite(values).all():
        bad = values[~np.isfinite(values)][0]
        raise ValueError(f"{name} must return finite numbers, got {bad}")
    most = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if most > LARGEST:
        raise ValueError(f"{name} must return at most {LARGEST:g} in size, got {most:g}")
    return values
