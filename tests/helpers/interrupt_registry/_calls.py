"""The list of long calls: by name, and by case where one name has several."""

from __future__ import annotations

from collections.abc import Callable

Call = Callable[[], object]
LONG: dict[str, dict[str, Callable[[int], Call]]] = {}


def long(name: str, case: str = "") -> Callable[[Callable[[int], Call]], Callable[[int], Call]]:
    """Lists a way to make a long call."""

    def listed(make: Callable[[int], Call]) -> Callable[[int], Call]:
        LONG.setdefault(name, {})[case] = make
        return make

    return listed
