"""The base class of immutable objects: set functions, losses, surrogates."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Self, SupportsIndex, TypeVar

import numpy as np

from setwise._foundation._record import MADE_BY, Versioned

T = TypeVar("T")


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
        f"; in __init__ of a class of your own write self._set({name}=...) instead of "
        f"self.{name} = ..., or make it a @dataclasses.dataclass(frozen=True, eq=False)"
    )
