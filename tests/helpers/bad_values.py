"""Other ways to write a good value, and bad values: what the law of bad input puts in its place.

``alternatives(value)`` are the same value in another form: a call must answer as before, or
refuse. ``hostile(value)`` are no good values: a call must refuse, or give a sound answer.
"""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import torch

Made = dict[str, Callable[[], Any]]


class Trouble(Exception):
    """What a caller's own function raises: it passes through."""


# ------------------------------------------------------------------------------- the same, written


def alternatives(value: Any) -> Made:
    """The value in other forms, by name."""
    if isinstance(value, np.ndarray):
        return dict(_forms(value))
    if isinstance(value, bool):
        return {"numpy bool": lambda: np.bool_(value)}
    if isinstance(value, int):
        return {
            "int16": lambda: np.int16(value),
            "int64": lambda: np.int64(value),
            "big-endian": lambda: np.array([value], ">i4")[0],
            "0-d": lambda: np.array(value),
            "whole float": lambda: float(value),
            "tensor": lambda: torch.tensor(value),
        }
    if isinstance(value, float):
        forms: Made = {
            "float64": lambda: np.float64(value),
            "longdouble": lambda: np.longdouble(value),
            "0-d": lambda: np.array(value),
            "tensor": lambda: torch.tensor(value, dtype=torch.float64),
            "fraction": lambda: fractions.Fraction(value),
            "decimal": lambda: decimal.Decimal(value),
        }
        if float(np.float16(value)) == value:
            forms |= {"float16": lambda: np.float16(value), "float32": lambda: np.float32(value)}
        if value.is_integer():
            forms["int"] = lambda: int(value)
        return forms
    if isinstance(value, str):
        return {"numpy str": lambda: np.str_(value)}
    if isinstance(value, (list, tuple)):
        return dict(_sequences(value))
    return {}


def _forms(array: np.ndarray) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "list", array.tolist
    yield "tuple", lambda: _tuples(array.tolist())
    yield "list of scalars", lambda: list(array)
    yield "read-only", lambda: _read_only(array)
    yield "big-endian", lambda: array.astype(array.dtype.newbyteorder(">"))
    yield "negative strides", lambda: _reversed(array)
    yield "every other", lambda: np.repeat(array, 2, axis=-1)[..., ::2]
    yield "Fortran", lambda: np.asfortranarray(array)
    yield "subclass", lambda: array.view(Plain)
    yield "nothing masked", lambda: np.ma.masked_array(array)
    yield "tensor", lambda: torch.from_numpy(array.copy())
    if array.ndim == 1:
        yield "pandas", lambda: pd.Series(array, index=np.arange(len(array))[::-1])
        yield "polars", lambda: pl.Series(array)
        yield "pandas column", lambda: pd.DataFrame({"a": array})["a"]
        yield "memoryview", lambda: memoryview(np.ascontiguousarray(array))
    if array.ndim == 2:
        yield "pandas", lambda: pd.DataFrame(array)
        yield "polars", lambda: pl.DataFrame(array)
        yield "rows", lambda: [row.copy() for row in array]
    if array.dtype.kind == "i":
        for kind in ("i1", "i2", "i4", ">i8") + (("u1", "u8") if array.min(initial=0) >= 0 else ()):
            yield kind, lambda kind=kind: array.astype(kind)
        if array.ndim < 3:
            yield "pandas nullable", lambda: _nullable(array, "Int64")
    if array.dtype.kind == "f":
        for kind in ("f2", "f4", "g"):
            yield kind, lambda kind=kind: array.astype(kind)
        if np.all(array == np.floor(array)):
            yield "integers", lambda: array.astype(np.int64)
        if array.ndim < 3:
            yield "pandas nullable", lambda: _nullable(array, "Float64")
    if array.dtype.kind == "b":
        yield "pandas nullable", lambda: _nullable(array, "boolean")


class Plain(np.ndarray):
    """A subclass that changes nothing."""


def _nullable(array: np.ndarray, dtype: str) -> Any:
    return pd.Series(array, dtype=dtype) if array.ndim == 1 else pd.DataFrame(array, dtype=dtype)


def _sequences(value: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "list", lambda: list(value)
    yield "tuple", lambda: tuple(value)
    yield "iterator", lambda: iter(list(value))
    yield "deepened", lambda: [alternative_of(part) for part in value]


def alternative_of(part: Any) -> Any:
    """Arrays inside a sequence as lists."""
    if isinstance(part, np.ndarray):
        return part.tolist()
    return type(part)(map(alternative_of, part)) if isinstance(part, (list, tuple)) else part


def _tuples(nested: Any) -> Any:
    return tuple(map(_tuples, nested)) if isinstance(nested, list) else nested


def _read_only(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _reversed(array: np.ndarray) -> np.ndarray:
    turned = (slice(None, None, -1),) * array.ndim
    return array[turned].copy()[turned]


# -------------------------------------------------------------------------------------------- bad


def raises(*arguments: Any, **named: Any) -> Any:
    raise Trouble


def raises_value_error(*arguments: Any, **named: Any) -> Any:
    raise ValueError("of my own")


def no_arguments() -> float:
    return 0.0


ANYTHING: Made = {
    "None": lambda: None,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "1e308": lambda: 1e308,
    "-1e308": lambda: -1e308,
    "denormal": lambda: 5e-324,
    "0": lambda: 0,
    "0.0": lambda: 0.0,
    "-1": lambda: -1,
    "2**31": lambda: 2**31,
    "2**63": lambda: 2**63,
    "-2**63-1": lambda: -(2**63) - 1,
    "10**400": lambda: 10**400,
    "True": lambda: True,
    "False": lambda: False,
    "no": lambda: "no",
    "empty string": lambda: "",
    "a number's string": lambda: "1.0",
    "bytes": lambda: b"no",
    "complex": lambda: 1.0 + 2.0j,
    "object": object,
    "type": lambda: int,
    "module": lambda: np,
    "empty list": list,
    "empty tuple": tuple,
    "empty dict": dict,
    "set": lambda: {1, 2},
    "dict": lambda: {"a": 1},
    "range": lambda: range(3),
    "generator": lambda: (k for k in range(3)),
    "ragged": lambda: [[1.0], [2.0, 3.0]],
    "nested None": lambda: [None, 1.0],
    "list of strings": lambda: ["a", "b"],
    "list of huge": lambda: [10**400, 1],
    "list of 2**63": lambda: [2**63, 1],
    "list of both ends": lambda: [2**63, -1],
    "date": lambda: np.datetime64("2020-01-01"),
    "dates": lambda: np.array(["2020-01-01", "2020-01-02"], "M8[D]"),
    "no dimension": lambda: np.array(1.0),
    "no dimension of object": lambda: np.array(None),
    "empty": lambda: np.zeros(0),
    "empty rows": lambda: np.zeros((0, 2)),
    "empty columns": lambda: np.zeros((2, 0)),
    "three axes": lambda: np.ones((2, 2, 2)),
    "structured": lambda: np.zeros(2, [("a", float), ("b", int)]),
    "tensor with gradient": lambda: torch.ones(3, requires_grad=True),
    "sparse tensor": lambda: torch.eye(3).to_sparse(),
    "raising function": lambda: raises,
    "function that raises ValueError": lambda: raises_value_error,
    "function of nothing": lambda: no_arguments,
    "lambda of None": lambda: lambda *arguments, **named: None,
    "function of a string": lambda: lambda *arguments, **named: "no",
    "function of nan": lambda: lambda *arguments, **named: float("nan"),
    "function of a complex": lambda: lambda *arguments, **named: 1.0 + 1.0j,
    "function of a wrong shape": lambda: lambda *arguments, **named: np.ones((2, 7)),
    "function of objects": lambda: lambda *arguments, **named: np.array([None, "a"]),
    "function of ragged": lambda: lambda *arguments, **named: [[1.0], [2.0, 3.0]],
    "function of huge": lambda: lambda *arguments, **named: 1e308,
    "function of 10**400": lambda: lambda *arguments, **named: 10**400,
}


def hostile(value: Any) -> Made:
    """Bad values for the place of a good one, by name."""
    made = dict(ANYTHING)
    if isinstance(value, np.ndarray):
        made |= _spoilt(value)
    if callable(value) and not isinstance(value, type) and not hasattr(value, "gains"):
        made["a function that writes"] = lambda: _writing(value)
    if isinstance(value, (list, tuple)):
        made |= {
            "one less": lambda: value[:-1],
            "one more": lambda: [*value, None],
            "doubled": lambda: [*value, *value],
            "nested": lambda: [value],
        }
        for k, part in enumerate(value):
            for name, make in hostile(part).items() if isinstance(part, np.ndarray) else ():
                made[f"[{k}]: {name}"] = lambda k=k, make=make: _with(value, k, make())
            if isinstance(part, tuple):
                for name, make in hostile(part).items():
                    if "[" in name:
                        made[f"[{k}]{name}"] = lambda k=k, make=make: _with(value, k, make())
    return made


def _with(value: Any, k: int, part: Any) -> Any:
    return type(value)([*value[:k], part, *value[k + 1 :]])


def _writing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which then spoils the arrays that it was given."""

    class Writing:
        def __getattr__(self, name: str) -> Any:
            return getattr(function, name)

        def __call__(self, *arguments: Any) -> Any:
            answer = function(*[np.array(a) if isinstance(a, np.ndarray) else a for a in arguments])
            for argument in arguments:
                if isinstance(argument, np.ndarray) and argument.flags.writeable:
                    argument[...] = 1
            return answer

    return Writing()


def _spoilt(array: np.ndarray) -> Made:
    made: Made = {
        "one entry less": lambda: array[:-1],
        "one entry more": lambda: np.concatenate([array, array[:1]]),
        "one axis more": lambda: array[None],
        "transposed": lambda: array.T if array.ndim > 1 else array[:, None],
        "nothing": lambda: array[:0],
        "complex": lambda: array.astype(complex),
        "of objects": lambda: array.astype(object),
        "strings": lambda: array.astype(str),
        "one None": lambda: _put(array.astype(object), None),
        "one string": lambda: _put(array.astype(object), "a"),
        "masked": lambda: np.ma.masked_array(array, _put(np.zeros(array.shape, bool), True)),
        "masked, as list": lambda: [np.ma.masked_array(a, True) for a in array],
        "negative": lambda: -1 * array,
        "booleans": lambda: array.astype(bool),
        "matrix of ones": lambda: np.ones((3, 3)),
        "requires grad": lambda: torch.tensor(array.astype(float), requires_grad=True),
        "pandas with a gap": lambda: _gap(array),
        "polars with a gap": lambda: pl.Series([None] + [1.0] * max(len(array) - 1, 0)),
    }
    for name, number in {
        "nan": np.nan,
        "inf": np.inf,
        "-inf": -np.inf,
        "1e308": 1e308,
        "-1e308": -1e308,
        "1e200": 1e200,
        "denormal": 5e-324,
        "half": 0.5,
    }.items():
        made[f"one {name}"] = lambda number=number: _put(array.astype(float), number)
        made[f"all {name}"] = lambda number=number: np.full(array.shape, number)
    for name, number in {
        "2**63 - 1": 2**63 - 1,
        "2**31": 2**31,
        "-1": -1,
        "-2**63": -(2**63),
    }.items():
        made[f"one {name}"] = lambda number=number: _put(_whole(array, np.int64), number)
    made["one 2**64 - 1"] = lambda: _put(_whole(np.abs(array), np.uint64), 2**64 - 1)
    made["one 10**400"] = lambda: _put(array.astype(object), 10**400).tolist()
    return made


def _put(array: np.ndarray, entry: Any) -> np.ndarray:
    """A copy with another last entry."""
    copy = array.copy()
    if copy.size:
        copy[(-1,) * copy.ndim] = entry
    return copy


def _gap(array: np.ndarray) -> Any:
    """Rows or entries as pandas keeps them, the last one missing."""
    if array.ndim != 2:
        return pd.Series([*array.ravel()[:-1].tolist(), pd.NA], dtype="Float64")
    columns = {
        k: pd.array([*column[:-1].tolist(), pd.NA], "Float64") for k, column in enumerate(array.T)
    }
    return pd.DataFrame(columns)


def _whole(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array as whole numbers, any for what is none."""
    with np.errstate(invalid="ignore"):
        return array.astype(dtype)
