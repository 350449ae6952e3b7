"""Readers that validate arguments once, with one sentence about what was wrong.

A wrong type is a ``TypeError``, a wrong value a ``ValueError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from inspect import signature
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# The largest number that is accepted: sums of a hundred million such numbers stay finite.
LARGEST = 1e300
# The largest number that may enter products: a sum of a hundred million products of three such
# numbers stays finite.
SQUARABLE = 1e100
# The most entries of a temporary array: 8 MB of floats. It limits the memory and does not change
# results. Chosen by hand; no measurement is on record.
BATCH = 1 << 20
# The most entries of an array whose size follows from a few numbers, such as a weight that repeats
# an element. Linux may grant an allocation beyond the memory of the machine, so the check cannot
# rely on its failure. Smaller arrays that do not fit raise a MemoryError.
MOST_ENTRIES = 1 << 30
# The same for arrays that are results which a caller asks for: half a terabyte of numbers.
MOST_RESULTS = 1 << 36
# The most axes of an array: NumPy 1 has 32, and some arrays need one for directions or tables.
MOST_AXES = 31

_MASKED = np.ma.MaskedArray


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return the values as an array. Masked arrays raise an error, as masks would be lost."""
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        # Torch raises a RuntimeError for a tensor that requires a gradient.
        ragged = "inhomogeneous" in str(error)
        what = "rows of different lengths" if ragged else f"{type(values).__name__}: {error}"
        raise TypeError(f"{name} must be an array of numbers, got {what}") from None


def refuse_masked(values: object, name: str) -> None:
    """Raise a ``TypeError`` for masked arrays and sequences of them: NumPy would drop the masks."""
    if type(values) is np.ndarray:
        return  # the usual case is fast: a call for one small set takes a few microseconds
    kinds = {type(values)}
    if isinstance(values, list | tuple):
        kinds.update(map(type, values))
    if any(issubclass(kind, _MASKED) for kind in kinds):
        raise TypeError(f"{name} must be a plain array, got a masked one: fill it first")


def as_flag(value: object, name: str) -> bool:
    """Return True or False. A string such as "no" raises an error, although it is truthy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {_shown(value)}")
    return bool(value)


def as_answer(value: object, name: str) -> bool | None:
    """Return True, False, or None for unknown."""
    if value is not None and not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True, False or None, got {_shown(value)}")
    return None if value is None else bool(value)


def as_function(value: object, name: str, *called_with: str) -> Callable[..., Any]:
    """Return a callable that accepts as many arguments as ``called_with`` names."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {type(value).__name__}")
    if called_with:
        try:
            own = signature(value)
        except (TypeError, ValueError):  # many compiled functions have no signature
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
    """Raise a ``TypeError`` unless ``callback`` is None or accepts one argument."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None, got {type(callback).__name__}")
    if callback is not None:
        as_function(callback, "callback", "progress")


def _short(value: int | np.integer[Any]) -> str:
    """Return an integer as text, also a very long one, which Python refuses to convert."""
    return str(value) if abs(int(value)) < 10**30 else "a number of more than 30 digits"


def _shown(value: object) -> str:
    """Return the repr of a string, and the type of anything else, whose repr may be long."""
    return repr(value) if isinstance(value, str) else type(value).__name__


def as_list(values: object, name: str, what: str) -> list[Any]:
    """Return the entries of a sequence, which must not be a string or a number."""
    if not isinstance(values, str | bytes | Mapping) and isinstance(values, Iterable):
        try:
            return list(values)
        except TypeError:  # an array without dimensions cannot be iterated
            pass
    raise TypeError(f"{name} must be a sequence of {what}, got {type(values).__name__}")


def as_count(value: object, name: str, *, least: int = 0, most: int | None = None) -> int:
    """Return an integer between ``least`` and ``most``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {_short(value)}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, got {_short(value)}")
    return int(value)


def as_choice(value: object, name: str, choices: Iterable[str]) -> str:
    """Return a string that is one of ``choices``."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {type(value).__name__}")
    known = list(choices)
    if value not in known:
        listed, near = ", ".join(map(repr, known)), did_you_mean(value, known)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}{near}")
    return value


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return the end of an error message that suggests the nearest known word, if one is near."""
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
    """Return a finite number of size at most ``largest``, and at least ``smallest`` if positive."""
    if type(value) is not float:
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, int | float | np.integer | np.floating
        ):
            raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
        try:
            value = float(value)
        except OverflowError:
            raise ValueError(f"{name} must be below 1.8e308, got a larger integer") from None
    if not isfinite(value):
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
    """Return finite numbers of a given shape as a new float64 array.

    None in ``shape`` stands for any length, and None for ``shape`` for any shape. Numbers must be
    at most ``largest`` in size, so that sums of them stay finite.
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
    """Return a new float64 array. Numbers beyond its range become infinite without a warning."""
    with np.errstate(over="ignore"):
        return np.array(array, dtype=np.float64, order="C")


def as_integers(values: ArrayLike, name: str, *, below: int) -> IntArray:
    """Return integers in ``[0, below)`` of any shape."""
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
    """Return distinct elements of ``{0, ..., n-1}``: a permutation or the beginning of one."""
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
    """Return elements of ``{0, ..., n-1}``, given as indices or as a boolean mask of length n."""
    array = as_array(subset, name)
    if array.dtype == np.bool_:
        if array.shape != (n,):
            raise ValueError(f"{name} must have shape ({n},) when boolean, got {array.shape}")
        return np.flatnonzero(array)
    return as_order(array, n, name)


def as_masks(mask: ArrayLike, n: int) -> tuple[BoolArray, bool]:
    """Return subsets as a boolean (m, n) array, and whether a single one was given."""
    array = as_array(mask, "mask")
    if array.dtype != np.bool_ and array.size:
        raise TypeError(f"mask must be boolean, got dtype {array.dtype}")
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise ValueError(f"mask must have shape ({n},) or (m, {n}), got {array.shape}")
    masks = array.astype(np.bool_, copy=False)
    return (masks[None, :], True) if array.ndim == 1 else (masks, False)


def call_on_arrays(formula: Callable[..., ArrayLike], name: str, *arrays: ArrayLike) -> FloatArray:
    """Return ``formula(*arrays)`` after checking the shape and the finiteness of the result.

    The formula gets copies, because it may write into its arguments. Its errors pass through,
    except that a TypeError or ValueError explains that the formula must accept arrays.
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


def as_generator(source: object, name: str = "rng") -> np.random.Generator:
    """Return a generator: a new one for None or an integer seed, else the given one."""
    check_randomness(source, name)
    if isinstance(source, np.random.Generator):
        return source
    if source is None:
        return np.random.default_rng()
    if isinstance(source, np.random.RandomState):
        return np.random.default_rng(source.randint(2**31, size=4))
    assert isinstance(source, int | np.integer)
    return np.random.default_rng(int(source))


def check_randomness(source: object, name: str = "rng") -> None:
    """Raise an error unless ``source`` is a source of randomness. Nothing is drawn from it."""
    if source is None or isinstance(source, np.random.Generator | np.random.RandomState):
        return
    if isinstance(source, bool | np.bool_) or not isinstance(source, int | np.integer):
        raise TypeError(
            f"{name} must be None, an integer or a numpy generator, got {type(source).__name__}"
        )
    if source < 0:
        raise ValueError(f"{name} must not be negative, got {source}")


def as_sample_weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Return finite nonnegative weights (n,). A number is for every sample, None means 1."""
    if sample_weight is None:
        return np.ones(n)
    weights = as_numbers(
        sample_weight, "sample_weight", shape=None, nonnegative=True, largest=np.inf
    )
    if weights.ndim == 0:
        return np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    return weights


def require_some(weights: FloatArray) -> None:
    """Raise an error unless some weight is positive."""
    if not weights.any():
        raise ValueError("sample_weight must not be zero for every sample, got only zeros")


def without_unit(weights: FloatArray) -> FloatArray:
    """Return the weights divided by a power of two, with the largest in [1/2, 1) unless all are 0.

    This causes no rounding errors, and sums and products then cannot overflow for any unit.
    """
    _, exponent = np.frexp(weights.max(initial=0.0))
    scaled: FloatArray = np.ldexp(weights, -exponent)
    return scaled
