"""Methods as records, from which the docstring table, the choice and the errors are made.

A record declares the name of a method, the terms that it supports, and the guarantees of its
answer. A registry of records writes the table of a docstring, reads the argument ``method``,
chooses for "auto", and explains in one sentence why a method cannot handle a field. Tests run over
the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap
from typing import Any, Generic, Protocol, TypeVar

from setwise._foundation._arguments import as_choice

Run = TypeVar("Run")
Documented = TypeVar("Documented", bound=Callable[..., Any])

Condition = Callable[[Any], str | None]
"""Why an object is not supported, as part of a sentence, or None if it is."""

# The line of a docstring that the table replaces.
MARK = "[methods]"


class HasTerms(Protocol):
    """The protocol for what the record of a method needs to know about a field."""

    def _terms(self) -> Iterable[tuple[object, object]]:
        """Return all pairs of a potential and one of its terms."""


def taken(_: object) -> None:
    """Return None, which stands for "no obstacle": a condition that every field meets."""


def always(_: object) -> bool:
    """Return True, so that "auto" chooses the method whenever it supports the field."""
    return True


def refused(reason: str) -> Condition:
    """Return a condition that no field meets, with the given reason."""
    return lambda _: reason


@dataclass(frozen=True, eq=False)
class Method(Generic[Run]):
    """The name of a method, the fields that it supports, and the guarantees of its answer."""

    name: str
    run: Run
    fields: str
    """The supported fields, in words, for a column of the table."""
    answer: str
    """The answer, in words, for a column of the table."""
    takes: Mapping[type, Condition]
    """The supported kinds of terms, each with a condition on such terms."""
    needs: Condition = taken
    """A condition on the whole field, for instance "at most two labels, got 3"."""
    is_exact: bool = False
    """Whether its answers are exact, unless something ends it early."""
    gives_bound: bool = True
    """Whether it computes a bound."""
    takes_start: bool = True
    """Whether it accepts a start."""
    certified: bool = True
    """Whether its bounds always hold, not only on average or at convergence. For MAP all do."""
    by_cut: bool = False
    """Whether it is one graph cut, in which large edge weights cause no loss of digits."""
    adds_costs_only: bool = False
    """Whether it only adds costs of labellings, so that a cost affects only labellings with it."""
    of: str = ""
    """The field whose probabilities the answer has, and why, for marginals."""
    spare: bool = False
    """Whether "auto" also tries it on a small field where the first method left a gap."""
    gives_way: bool = False
    """Whether it ends early where "auto" can go on with an exact method."""
    auto: Callable[[Any], bool] | None = None
    """Whether "auto" chooses it for a field that it supports; None means never."""
    because: str = ""
    """Why "auto" chose it; ``{name}`` is the obstacle of an earlier method."""
    falls_back: str = ""
    """The method that "auto" also runs if this one does not converge; "" means none."""

    def obstacle(self, field: HasTerms) -> str | None:
        """Return why the method cannot handle the field, in one sentence, or None if it can."""
        lack = self.needs(field)
        if lack is not None:
            return f"{self.name} needs {lack}"
        for potential, term in field._terms():
            why = self.takes.get(type(term), _unknown)(term)
            if why is not None:
                return f"{self.name} cannot take {potential!r}: {why}"
        return None

    def check(self, field: HasTerms) -> None:
        """Raise a ``ValueError`` if the method cannot handle the field."""
        why = self.obstacle(field)
        if why is not None:
            raise ValueError(why)


class Methods(Mapping[str, Method[Run]]):
    """The records of all methods by name, in the order in which "auto" tries them."""

    def __init__(self, *records: Method[Run]) -> None:
        self._records = {record.name: record for record in records}

    def __getitem__(self, name: str) -> Method[Run]:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def read(self, method: object) -> str:
        """Return the argument ``method``: a name, or "auto"."""
        return as_choice(method, "method", ["auto", *self])

    def choose(self, field: HasTerms, *, started: bool = False) -> tuple[str, str]:
        """Return the method that "auto" chooses, and why. If ``started``, it accepts a start."""
        refusals: dict[str, str] = {}
        for name, record in self.items():
            if record.auto is None or (started and not record.takes_start):
                continue
            if not record.auto(field):
                continue
            why = record.obstacle(field)
            if why is None:
                return name, record.because.format(**refusals)
            refusals[name] = why
        raise ValueError("; ".join(refusals.values()))

    @contextmanager
    def tried(self, record: Method[Run]) -> Iterator[None]:
        """Add a method temporarily, for trying it before it is registered."""
        before = self._records
        self._records = before | {record.name: record}
        try:
            yield
        finally:
            self._records = before

    def table(self, width: int = 92) -> list[str]:
        """Return the lines of a reStructuredText table: method, fields, answer."""
        names = max(len("method"), *map(len, self))
        first = (width - names - 2) * 4 // 9
        rest = width - names - first - 2
        rule = " ".join("=" * size for size in (names, first, rest))
        lines = [rule, _row("method", "fields", "answer", names, first), rule]
        for record in self.values():
            cells = [record.name], wrap(record.fields, first), wrap(record.answer, rest)
            for name, left, right in zip_longest(*cells, fillvalue=""):
                lines.append(_row(name, left, right, names, first))
        return [*lines, rule]

    def describe(self, function: Documented) -> Documented:
        """Insert the table into the docstring of a function, if it has one (not under ``-OO``)."""
        if function.__doc__:
            lines = []
            for line in function.__doc__.split("\n"):
                indent = line[: len(line) - len(line.lstrip())]
                table = [indent + row for row in self.table()] if line.strip() == MARK else [line]
                lines += table
            function.__doc__ = "\n".join(lines)
        return function


def _unknown(term: object) -> str:
    return f"it does not know terms of kind {type(term).__name__}"


def _row(name: str, left: str, right: str, names: int, first: int) -> str:
    return f"{name:<{names}} {left:<{first}} {right}".rstrip()
