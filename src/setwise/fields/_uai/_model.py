"""The parser of model files in the UAI format, which checks sizes against the file's length."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._files import LONGEST_WORD, affords, quoted, unpacked


@dataclass(frozen=True, eq=False)
class UaiModel:
    """The variables and factors of a model, whose tables are extracted on demand."""

    name: str
    numbers: FloatArray
    """All numbers of the file."""
    cards: IntArray
    """(N,): the number of labels of each variable."""
    sizes: IntArray
    """(F,): the number of variables of each factor, without those of a single label from 3 on."""
    members: IntArray
    """The variables of all factors, concatenated."""
    begins: IntArray
    """(F,): the start of each factor in ``members``."""
    starts: IntArray
    """(F,): the start of each factor's table in ``numbers``."""

    def of_size(self, size: int) -> tuple[IntArray, IntArray]:
        """Return the factors of ``size`` variables, and these variables (G, size)."""
        factors = np.flatnonzero(self.sizes == size)
        return factors, self.members[self.begins[factors, None] + np.arange(size)]

    def energies(self, factors: IntArray, shape: tuple[int, ...]) -> FloatArray:
        """Return -log of the tables of factors of one shape; +inf for 0."""
        within = np.arange(int(np.prod(shape)))
        with np.errstate(divide="ignore"):
            energies = -np.log(self.numbers[self.starts[factors, None] + within])
        return np.asarray(energies.reshape(len(factors), *shape))

    def affords(self, entries: int) -> bool:
        """Return whether padding to the same number of labels is within the limits on memory."""
        return affords(len(self.numbers), entries)

    def afford(self, entries: int) -> None:
        """Raise a ``ValueError`` if padding exceeds the limits on memory."""
        if not self.affords(entries):
            raise ValueError(
                f"{self.name}: padding all variables to {self.cards.max()} labels would take "
                f"{entries} numbers, for {len(self.numbers)} in the file"
            )


def as_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the path of a file, given as the argument ``name``."""
    try:
        return Path(path)
    except TypeError:
        raise TypeError(f"{name} must be a string or a path, got {type(path).__name__}") from None


def parse_uai(path: Path) -> UaiModel:
    """Read the model of a file in time linear in its length; raise an error if it is invalid."""
    numbers = _Numbers(path)
    n = int(numbers.wholes(0, 1, "the number of variables", least=1)[0])
    cards = numbers.wholes(1, n, "the number of labels of a variable", least=1)
    n_factors = int(numbers.wholes(1 + n, 1, "the number of factors")[0])
    numbers.require(2 + n + n_factors, f"{n_factors} factors")
    sizes, places = _sizes(numbers, 2 + n, n_factors, n)
    begins = np.cumsum(sizes) - sizes
    owners = np.repeat(np.arange(n_factors), sizes)
    at = places[owners] + 1 + np.arange(len(owners)) - begins[owners]
    members = numbers.checked(at, "a variable of a factor", below=n)
    order = np.lexsort((members, owners))
    same = (np.diff(members[order]) == 0) & (np.diff(owners[order]) == 0)
    if same.any():
        bad = order[np.flatnonzero(same)[0]]
        raise numbers.error(f"factor {owners[bad]} has the variable {members[bad]} twice")
    end = int(places[-1] + 1 + sizes[-1]) if n_factors else 2 + n
    starts = _starts(numbers, end, _lengths(cards[members], owners, n_factors))
    # axes of one label are dropped, except in tables of pairs
    kept = (cards[members] > 1) | (sizes[owners] < 3)
    sizes = np.bincount(owners[kept], minlength=n_factors)
    begins = np.cumsum(sizes) - sizes
    return UaiModel(path.name, numbers.values, cards, sizes, members[kept], begins, starts)


class _Numbers:
    """The numbers of a file, with error messages."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        first, self.values, bad = _numbers(path)
        if first.upper() not in (b"MARKOV", b"BAYES"):
            found = quoted(first) if first else "an empty file"
            raise self.error(f"a model must begin with MARKOV or BAYES, got {found}")
        if bad is not None:
            raise self.error(f"a model must hold numbers, got {quoted(bad)}")

    def error(self, what: str) -> ValueError:
        return ValueError(f"{self.name}: {what}")

    def require(self, length: int, what: str) -> None:
        if length > len(self.values):
            raise self.error(f"the file ends before {what}")

    def wholes(self, start: int, count: int, what: str, *, least: int = 0) -> IntArray:
        self.require(start + count, what)
        return self.checked(np.arange(start, start + count), what, least=least)

    # No valid number exceeds 2^31; the bound keeps products within 64 bits.
    def checked(self, at: IntArray, what: str, *, least: int = 0, below: int = 2**31) -> IntArray:
        """Return the integers at the given positions."""
        self.require(int(at.max(initial=-1)) + 1, what)
        values = self.values[at]
        good = (values >= least) & (values < below) & (values == np.floor(values))
        if not good.all():
            bad = values[~good][0]
            raise self.error(
                f"{what} must be an integer from {least} to {below - 1}, got {bad:.15g}"
            )
        return values.astype(np.int64)


def _sizes(numbers: _Numbers, start: int, n_factors: int, n: int) -> tuple[IntArray, IntArray]:
    """Find the number of variables of each factor and its position, one factor after the other."""
    values, at = numbers.values, start
    sizes: IntArray = np.zeros(n_factors, np.int64)
    places: IntArray = np.zeros(n_factors, np.int64)
    for factor in range(n_factors):
        size = float(values[at]) if at < len(values) else 0.0
        if not (0 <= size <= n and size.is_integer()):
            what = f"the number of variables of factor {factor}"
            numbers.checked(np.array([at]), what, below=n + 1)
        sizes[factor], places[factor] = size, at
        at += 1 + int(size)
    numbers.require(at, f"the variables of {n_factors} factors")
    return sizes, places


def _lengths(cards: IntArray, owners: IntArray, n_factors: int) -> IntArray:
    """Return the number of entries of each table, (F,), at most 2^62."""
    logs = np.bincount(owners, np.log2(cards), minlength=n_factors)
    lengths: IntArray = np.ones(n_factors, np.int64)
    fits = logs < 61
    inside = fits[owners]
    np.multiply.at(lengths, owners[inside], cards[inside])
    lengths[~fits] = 1 << 62
    return lengths


def _starts(numbers: _Numbers, start: int, lengths: IntArray) -> IntArray:
    """Return where each table begins, after checking its length."""
    what = f"the tables of {len(lengths)} factors"
    # So that the sum of the lengths fits into 64 bits.
    numbers.require(int(lengths.max(initial=0)), what)
    counts = start + np.arange(len(lengths)) + np.cumsum(lengths) - lengths
    values = numbers.values
    inside = np.flatnonzero(counts < len(values))
    wrong = inside[values[counts[inside]] != lengths[inside]]
    if len(wrong):
        raise numbers.error(
            f"the table of factor {wrong[0]} must have {lengths[wrong[0]]} entries, "
            f"got {values[counts[wrong[0]]]:.15g}"
        )
    end = start + len(lengths) + int(lengths.sum())
    numbers.require(end, what)
    if end < len(values):
        raise numbers.error(
            f"nothing must follow the last table, got {len(values) - end} more numbers"
        )
    bad = start + np.flatnonzero(~((values[start:] >= 0) & (values[start:] < np.inf)))
    if len(bad):
        factor = np.searchsorted(counts, bad[0]) - 1
        raise numbers.error(
            f"tables must hold finite numbers, none negative, that of factor {factor} has "
            f"{values[bad[0]]:g}"
        )
    return np.asarray(counts + 1, np.int64)


def _numbers(path: Path) -> tuple[bytes, FloatArray, bytes | None]:
    """Read a file's first word, the numbers after it, and the next word that is not a number.

    The numbers are stored as float64. Reading ends when there are more numbers than the header
    announces, because the file is then known to be invalid. The rest of a compressed file is not
    decompressed.
    """
    first, rest = b"", b""
    values, announced = array("d"), _Announced()
    for piece in pieces(path):
        words = (rest + piece).split()
        cut = bool(words) and not piece[-1:].isspace()
        rest = words.pop() if cut else b""
        if words and not first:
            first = words.pop(0)
        bad = extend(values, words)
        if bad is None and len(rest) > LONGEST_WORD:
            bad = rest
        if bad is not None or len(values) > announced.by(values):
            return first, np.frombuffer(values, np.float64), bad
    if rest and not first:
        first, rest = rest, b""
    bad = extend(values, [rest] if rest else [])
    return first, np.frombuffer(values, np.float64), bad


class _Announced:
    """The number of numbers in a model file, as soon as its header determines it."""

    def __init__(self) -> None:
        self._factor = self._at = self._entries = 0

    def by(self, values: array[float]) -> float:
        """Return the number of numbers of the model, or ``inf`` while it is not determined."""
        n = _whole(values, 0)
        n_factors = None if n is None else _whole(values, 1 + n)
        if n is None or n_factors is None:
            return math.inf
        self._at = max(self._at, 2 + n)
        while self._factor < n_factors:
            size = _whole(values, self._at)
            if size is None or self._at + size >= len(values):
                return math.inf
            length = 1
            for variable in values[self._at + 1 : self._at + 1 + size]:
                card = _whole(values, 1 + int(variable)) if 0 <= variable < n else None
                if card is None:
                    return math.inf
                length = min(length * card, 1 << 62)
            self._entries += 1 + length
            self._factor, self._at = self._factor + 1, self._at + 1 + size
        return self._at + self._entries


def _whole(values: array[float], place: int) -> int | None:
    """Return the number at a position if it is a count, else None."""
    if place >= len(values) or not (0 <= values[place] < 2**31):
        return None
    return int(values[place]) if values[place].is_integer() else None


def extend(values: array[float], words: list[bytes]) -> bytes | None:
    """Append the numbers of words; return the first word that is no number, or None."""
    try:
        values.extend(list(map(float, words)))
    except ValueError:
        return next(word for word in words if not _is_number(word))
    return None


def pieces(path: Path) -> Iterator[bytes]:
    """Yield the text of a file in pieces of 64 kilobytes; a compressed file has a limit."""
    with path.open("rb") as file:
        yield from unpacked(file, path.stat().st_size, path.name, packed=path.suffix == ".gz")


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True
