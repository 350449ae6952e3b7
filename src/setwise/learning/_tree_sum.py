"""Sums along a tree that depends on the number of parts only, and thus are reproducible."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from setwise._foundation._arguments import as_function, as_list

T = TypeVar("T")


def tree_sum(parts: Iterable[T], add: Callable[[T, T], T] | None = None) -> T:
    r"""Return the sum of parts along a fixed binary tree: neighbours first, then their sums.

    .. math:: ((s_0 + s_1) + (s_2 + s_3)) + s_4

    for five parts. The brackets depend on the number of parts only, not on the order in which they
    are computed, so that sums of floats are bitwise equal on all machines. Parts are read one by
    one, and only :math:`O(\log n)` sums are in memory at a time.

    Parameters
    ----------
    parts : iterable
        At least one part. Parts are numbers, arrays, or tuples of these, added entry by entry.
    add : callable, optional
        A function (a, b) -> sum that replaces +. Parts may for instance be futures of another
        process.

    Returns
    -------
    The sum.

    Examples
    --------
    >>> from setwise.learning import tree_sum
    >>> tree_sum("abcde", lambda a, b: f"({a}{b})")
    '(((ab)(cd))e)'
    >>> tree_sum([(1, 0.5), (2, 0.25)])
    (3, 0.75)
    """
    plus = _adder(add if add is None else as_function(add, "add"))
    sums: list[tuple[int, Any]] = []  # sums over ranges of 2^k parts, with decreasing k
    for part in _each(parts):
        size, total = 1, part
        while sums and sums[-1][0] == size:
            total = plus(sums.pop()[1], total)
            size *= 2
        sums.append((size, total))
    if not sums:
        raise ValueError("parts must hold at least one part, got none")
    _, total = sums.pop()
    while sums:
        total = plus(sums.pop()[1], total)
    whole: T = total
    return whole


def tree_level(parts: Iterable[T], most: int, add: Callable[[T, T], T] | None = None) -> list[T]:
    """Return the first level of the tree of ``tree_sum`` with at most ``most`` nodes."""
    plus = _adder(add)
    if most == 1:
        return [tree_sum(parts, add)]
    nodes = list(parts)
    while len(nodes) > most:
        pairs = [plus(*nodes[i : i + 2]) for i in range(0, len(nodes) - 1, 2)]
        nodes = pairs + nodes[2 * len(pairs) :]
    return nodes


def plain_sum(a: Any, b: Any) -> Any:
    """Return a + b, entry by entry for tuples."""
    if isinstance(a, tuple):
        return tuple(plain_sum(x, y) for x, y in zip(a, b, strict=True))
    return a + b


def _adder(add: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
    """Return a function that adds two parts, and raises an explanatory error if it cannot."""
    plus = plain_sum if add is None else add

    def added(a: Any, b: Any) -> Any:
        try:
            return plus(a, b)
        except TypeError as error:
            word = "+" if add is None else "add"
            raise TypeError(
                f"parts, what function gives of shards, must be what {word} takes two of, got "
                f"{type(a).__name__} and {type(b).__name__}: {error}"
            ) from error

    return added


def _each(parts: object) -> Iterable[Any]:
    if isinstance(parts, Iterable) and getattr(parts, "shape", None) != ():
        return parts
    return as_list(parts, "parts", "parts")
