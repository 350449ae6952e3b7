"""Base classes: objects whose pickles carry a version, records with short reprs, immutables."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from reprlib import Repr
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex, TypeVar

import numpy as np

from setwise._foundation._warnings import callers_level

T = TypeVar("T")

MADE_BY = "_made_by"


class Versioned:
    """An object whose pickle carries the version of setwise that made it.

    An object of another version may lack attributes. Loading it issues a warning that names them,
    and accessing a missing attribute raises an error that explains why.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {MADE_BY: this_version(), **(state or {})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._restore({name: value for name, value in state.items() if name != MADE_BY})
        made_by = state.get(MADE_BY, "an earlier version")
        if made_by == this_version():
            return
        self.__dict__[MADE_BY] = made_by
        lacking = [name for name in self._needed() if name not in self.__dict__]
        if lacking:
            words = f"a stored {type(self).__name__} lacks {', '.join(map(repr, lacking))}"
            warnings.warn(f"{words}: {self._origin()}", UserWarning, stacklevel=callers_level())

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _needed(self) -> list[str]:
        """Return the names of the instance attributes of this class."""
        # Scikit-learn's estimators have this method.
        if names := getattr(self, "_get_param_names", None):
            return list(names())
        kind: Any = type(self)
        if is_dataclass(kind):
            return [own.name for own in fields(kind)]
        annotated = (name for base in kind.__mro__ for name in _annotations(base))
        return [name for name in dict.fromkeys(annotated) if not hasattr(kind, name)]

    def _origin(self) -> str:
        return (
            f"it was made by {self.__dict__[MADE_BY]} of setwise, and this is {this_version()}; "
            "make it anew, or use the version that made it"
        )

    if not TYPE_CHECKING:  # otherwise a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if MADE_BY in self.__dict__ and not name.startswith("_"):
                words = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(f"{words}: {self._origin()}", name=name)
            return self.__getattribute__(name)  # this raises the usual error


def this_version() -> str:
    """Return the version of setwise in words."""
    # No layer imports the root, which is loaded before all of them.
    return f"version {sys.modules['setwise'].__version__}"


def _annotations(kind: type) -> list[str]:
    """Return the names that a class annotates and that are attributes of its objects."""
    own: dict[str, str] = vars(kind).get("__annotations__", {})
    return [name for name, what in own.items() if "ClassVar" not in str(what) and name[0] != "_"]


class Record(Versioned):
    """A dataclass whose ``repr`` is one short line, with abbreviated arrays and lists.

    A subclass is decorated with ``dataclass(repr=False)``. ``_printed`` holds the names of the
    attributes that are shown, by default of all fields with ``repr=True``.
    """

    _printed: ClassVar[str] = ""

    def _with(self, **changes: object) -> Self:
        """Return a copy with other values of some fields, without the checks of ``__init__``.

        It takes a tenth of the time of ``dataclasses.replace``, which matters in calls of a few
        microseconds.
        """
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **changes)
        return copy

    def __repr__(self) -> str:
        own = (field.name for field in fields(self) if field.repr)  # type: ignore[arg-type]
        return printed(self, self._printed.split() or own)


def printed(result: object, names: Iterable[str]) -> str:
    """Return one line with the class and the named attributes that are not None."""
    values = ((name, getattr(result, name)) for name in names)
    inside = ", ".join(f"{name}={_SHORT.repr(v)}" for name, v in values if v is not None)
    return f"{type(result).__name__}({inside})"


class _Short(Repr):
    """A repr of values with six digits per number, and the shape and type of a large array."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxstring = 100
        self.maxother = 100
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 3

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, float):  # includes NumPy's floats
            return repr(float(f"{x:.6g}"))
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if isinstance(x, type) or not isinstance(shape, tuple) or dtype is None:
            return super().repr1(x, level)
        if len(shape) == 0 or (len(shape) == 1 and shape[0] <= 4 and hasattr(x, "tolist")):
            return self.repr_instance(x, level)
        return f"<{type(x).__name__} of {dtype}, {' x '.join(map(str, shape))}>"

    def repr_instance(self, x: Any, level: int) -> str:
        text = " ".join(repr(x).split())
        return text if len(text) <= self.maxother else f"{text[: self.maxother - 3]}..."


_SHORT = _Short()


class Immutable(Versioned):
    """An object whose fields are set once, in the constructor. Arrays become read-only.

    A subclass sets its fields by ``self._set(name=value)`` in ``__init__``, or is a frozen
    dataclass.

    An immutable object can be shared by threads and is copied by reference (``copy.deepcopy``
    returns the object itself, so scikit-learn's ``clone`` costs nothing). It can be pickled if the
    callables it holds can; the error for a lambda explains it. A field whose name starts with
    ``_memo`` is a cache, which is left out of pickles and of the repr.
    """

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} is immutable: {name} cannot be set, make a new one"
            + _how_to_set(type(self), name)
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name} cannot be deleted")

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray) and (value.flags.writeable or value.flags.owndata):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _remember(self, key: object, compute: Callable[[], T]) -> T:
        """Return ``compute()``, cached under ``key``. The cache holds the latest 64 keys."""
        memo: dict[object, T] | None = self.__dict__.get("_memo")
        if memo is None:
            memo = {}
            object.__setattr__(self, "_memo", memo)
        if key not in memo:
            value = compute()
            while len(memo) >= 64:
                memo.pop(next(iter(memo)), None)
            memo[key] = value
            return value
        return memo[key]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        for name, value in vars(self).items():
            if not callable(value) or isinstance(value, Immutable):
                continue
            try:
                pickle.dumps(value)
            except Exception as error:
                raise pickle.PicklingError(
                    f"{type(self).__name__} holds the callable {name} = {value!r}, which pickle "
                    "cannot store: define it with def at the top level of a module"
                ) from error
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if not name.startswith("_memo")}

    def _contents(self) -> dict[str, Any]:
        """Return what the constructor set, by name."""
        return {name: value for name, value in self.__getstate__().items() if name != MADE_BY}

    def _restore(self, state: dict[str, Any]) -> None:
        self._set(**state)


def _how_to_set(kind: type, name: str) -> str:
    """Return a hint on setting fields, for a user's subclass."""
    if kind.__module__.partition(".")[0] == "setwise":
        return ""
    return (
        f"; a class of your own that has the field {name} is a "
        "@dataclasses.dataclass(frozen=True, eq=False)"
    )
