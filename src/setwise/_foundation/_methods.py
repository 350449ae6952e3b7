"""Methods as records: the table in a docstring, the names, the choice and the refusals come of one.

A method says once what it is called, which terms it takes and what its answer is worth. A registry
of such records writes the table of a docstring, reads the argument ``method``, chooses for "auto"
and says in one sentence why a method cannot take a field; tests run over it, so that what is listed
is tested.
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
"""Why a thing will not do, in words that go on a sentence; None where it does."""

# The line of a docstring that the table takes the place of.
MARK = "[methods]"


class HasTerms(Protocol):
    """A field, as a record sees it."""

    def _terms(self) -> Iterable[tuple[object, object]]:
        """Every term beside the potential it comes from."""


def taken(_: object) -> None:
    """The condition that everything meets."""


def always(_: object) -> bool:
    """For "auto": to be taken wherever it can be."""
    return True


def refused(reason: str) -> Condition:
    """The condition that nothing meets, and why."""
    return lambda _: reason


@dataclass(frozen=True, eq=False)
class Method(Generic[Run]):
    """What a method is called, which fields it takes, and what its answer is worth."""

    name: str
    run: Run
    fields: str
    """Which fields it is for, in words: a column of the table."""
    answer: str
    """What it gives, in words: a column of the table."""
    takes: Mapping[type, Condition]
    """The kinds of terms that it knows, each with what it asks of such a term."""
    needs: Condition = taken
    """What it asks of the whole field: "at most two labels, got 3"."""
    gives_bound: bool = True
    """Whether it proves a bound of its own."""
    takes_start: bool = True
    """Whether it goes on from a start."""
    certified: bool = True
    """Whether its bounds hold, and not on average or at convergence only: of MAP all do."""
    by_cut: bool = False
    """Whether it is one cut: this leaves the weights of edges alone, so they take no digits."""
    adds_paid_only: bool = False
    """Whether it adds up what labellings pay: no price takes digits of one that does not pay it."""
    of: str = ""
    """Whose probabilities the answer has, and why, where it has some."""
    auto: Callable[[Any], bool] | None = None
    """Whether "auto" takes it for a field that it can take; None for never."""
    because: str = ""
    """Why "auto" took it; ``{name}`` is the refusal of an earlier method."""

    def obstacle(self, field: HasTerms) -> str | None:
        """Why the method cannot take the field, in one sentence; None if it can."""
        lack = self.needs(field)
        if lack is not None:
            return f"{self.name} needs {lack}"
        for potential, term in field._terms():
            why = self.takes.get(type(term), _unknown)(term)
            if why is not None:
                return f"{self.name} cannot take {potential!r}: {why}"
        return None

    def check(self, field: HasTerms) -> None:
        """Raise a ``ValueError`` with the sentence of refusal, if there is one."""
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
        """The argument ``method``: a name, or "auto"."""
        return as_choice(method, "method", ["auto", *self])

    def choose(self, field: HasTerms, *, started: bool = False) -> tuple[str, str]:
        """The first method that "auto" takes for a field, and why; with a start, one to go on."""
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
        """With one more method for a while: to try it before it has its line in the registry."""
        before = self._records
        self._records = before | {record.name: record}
        try:
            yield
        finally:
            self._records = before

    def table(self, width: int = 92) -> list[str]:
        """A table of reStructuredText, in lines: method, fields, answer."""
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
        """The function with the table in its docstring, where it has one (not under ``-OO``)."""
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
