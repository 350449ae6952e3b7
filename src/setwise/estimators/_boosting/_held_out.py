"""Held-out rows: folds, parts of the sample, and the ``eval_set`` of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_generator,
    as_number,
)

# C is chosen by _FOLDS folds up to _FEW_ROWS rows, and by one held-out part above, which is then
# large enough to order values of C that differ by a factor of 3. The guide documents them.
_FOLDS, _FEW_ROWS = 3, 1000
# early_stopping="auto" is on above this number of rows, as in scikit-learn's boosting.
MANY_ROWS = 10_000
_ENOUGH_ROWS = 20_000  # the most rows on which C is chosen; larger samples chose the same C
# Absorbs the rounding error of an index times a share: more than the error below 1e9 rows, and less
# than the distance of a product from an integer if the share is a ratio of integers up to 1000.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows with the indices of their labels, weights, and optionally groups."""

    X: Any
    y: IntArray
    weight: FloatArray
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: IntArray) -> Examples:
        """Return the examples at the given indices."""
        groups = None if self.groups is None else self.groups[rows]
        return Examples(self.X[rows], self.y[rows], self.weight[rows], groups)

    def parted(self, held: NDArray[np.bool_]) -> tuple[Examples, Examples]:
        """Return the examples to fit, and those held out."""
        return self.take(np.flatnonzero(~held)), self.take(np.flatnonzero(held))


def as_fraction(value: object) -> float | int:
    """Read ``validation_fraction``: a share in (0, 1), or a count of rows or groups."""
    name = "validation_fraction"
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return as_count(value, name, least=1)
    fraction = as_number(value, name, positive=True)
    if fraction >= 1:
        raise ValueError(f"{name} must be a share below 1 or a count of rows, got {fraction:g}")
    return fraction


def split_off(
    examples: Examples, fraction: float | int, random_state: object
) -> tuple[Examples, Examples]:
    """Split rows into those to fit and those to validate, without dividing a group."""
    turn = _turns(examples, random_state)
    most = int(turn.max(initial=-1)) + 1
    share = fraction / most if isinstance(fraction, int) else fraction
    if most < 2 or share >= 1:
        what = "groups" if examples.groups is not None else "rows"
        raise ValueError(
            f"validation_fraction={fraction} leaves no {what} to fit of {most}: lower it, or set "
            "early_stopping=False"
        )
    return examples.parted(_share_of(turn, max(share, 1 / most)))


def enough_of(examples: Examples, random_state: object) -> Examples:
    """Draw as many examples as fits need to choose C, or all if they are fewer."""
    if len(examples) <= _ENOUGH_ROWS:
        return examples
    turn = _turns(examples, random_state)
    share = max(_ENOUGH_ROWS / len(examples), 1 / (int(turn.max()) + 1))
    return examples.take(np.flatnonzero(_share_of(turn, share)))


def folds(examples: Examples, n_folds: int | None, random_state: object) -> list[NDArray[np.bool_]]:
    """Return masks of held-out rows, one per part.

    By default there are three parts of few rows, or one part of many.
    """
    turn = _turns(examples, random_state)
    parts = _FOLDS if n_folds is None else n_folds
    first = 1 if n_folds is None and len(examples) > _FEW_ROWS else parts
    return [turn % parts == fold for fold in range(first)]


def _share_of(turn: IntArray, share: float) -> NDArray[np.bool_]:
    """Choose an evenly spaced share of the turns, allowing for rounding (1 / 49 of 49 is 1)."""
    before, after = (np.floor(place * share + _ROUNDING) for place in (turn, turn + 1))
    held: NDArray[np.bool_] = after > before
    return held


def _turns(examples: Examples, random_state: object) -> IntArray:
    """Draw an order of the rows in which every stretch has its share of each class.

    With groups, the numbers are those of whole groups.
    """
    rng = as_generator(0 if random_state is None else random_state, "random_state")
    n = len(examples)
    turn = np.empty(n, np.int64)
    if examples.groups is None:
        turn[np.lexsort((rng.random(n), examples.y))] = np.arange(n)
    else:
        names, number = np.unique(examples.groups, return_inverse=True)
        turn[:] = rng.permutation(len(names))[number]
    return turn


def as_eval_set(eval_set: Any, widths: tuple[int, ...] = (2,)) -> list[tuple[Any, ...]]:
    """Read ``eval_set`` as a list of tuples of these lengths."""
    if eval_set is None:
        return []
    wanted = "(X, y)" if widths == (2,) else "(X, y) or (X, y, groups)"
    if not isinstance(eval_set, list | tuple):
        raise TypeError(
            f"eval_set must be {wanted} or a list of them, got {type(eval_set).__name__}"
        )
    several = isinstance(eval_set, list) or all(isinstance(part, tuple) for part in eval_set)
    parts: list[Any] = list(eval_set) if several else [eval_set]
    for part in parts:
        if not isinstance(part, tuple):
            raise TypeError(f"eval_set must hold pairs {wanted}, got {type(part).__name__}")
        if len(part) not in widths:
            raise ValueError(f"eval_set must hold pairs {wanted}, got a tuple of {len(part)}")
    return parts


def known_places(y: Any, classes: NDArray[Any]) -> IntArray:
    """Return the index of each label among the classes of the fit."""
    labels = as_array(y, "y")
    unknown = labels[~np.isin(labels, classes)]
    if unknown.size:
        raise ValueError(
            f"y must hold the labels of fit, {classes.tolist()}, got {unknown.tolist()[0]!r}"
        )
    return np.searchsorted(classes, labels).astype(np.int64)
