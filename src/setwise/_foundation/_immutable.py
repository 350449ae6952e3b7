"""Objects that never change: set functions, losses, surrogates."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Self, SupportsIndex, TypeVar

import numpy as np

T = TypeVar("T")


class Immutable:
    """Fields are set once, in the constructor; arrays among them become read-only.

    An immutable object can be shared by threads and copied by reference (``copy.deepcopy`` gives
    the object itself, so scikit-learn's ``clone`` costs nothing). It can be pickled when the
    callables it holds can; a lambda cannot, and the error says so. A field whose name starts with
    ``_memo`` is a cache: it is left out of the pickle and of the repr.
    """

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} is immutable: {name} cannot be set, make a new one"
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
        """What ``compute`` gives for ``key``, kept: 64 keys at most, the oldest forgotten first."""
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

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_memo")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._set(**state)
