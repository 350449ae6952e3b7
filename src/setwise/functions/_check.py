"""Checks of the properties of a set function, with counterexamples in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, as_count, as_generator
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.functions._base import ENUMERABLE, SetFunction, as_set_function, empty_value
from setwise.functions._families._table import Table, masks_of, tabulate, worst_exchange, worst_fall

# A report lists at most this many elements of a set, so that a sentence fits on a line.
_LISTED = 12


@dataclass(frozen=True, eq=False, repr=False)
class Check(Record):
    """The report of ``check``. A property is None if random search found no counterexample.

    Attributes
    ----------
    submodular, supermodular, increasing, normalized, nonnegative : bool or None
        Whether F has the property; ``normalized`` means that F(empty) is 0.
    exact : bool
        Whether all sets were checked. If not, no property but ``normalized`` can be True.
    n : int
        The number of elements of F.
    n_sets : int
        The number of sets that were evaluated.
    tolerance : float
        The amount by which an inequality may fail and still count as true.
    counterexamples : mapping of str to str
        For each property that is False, one sentence that states a counterexample.
    witness : mapping of str to tuple of boolean arrays of shape (n,)
        The sets of that sentence: (A, B) with F(A) + F(B) on the wrong side of
        F(A or B) + F(A and B), (A, B) with A inside B and F(A) > F(B), or the one set (A,).

    Examples
    --------
    >>> import setwise as sw
    >>> report = sw.functions.check(sw.functions.Table([0.0, 1.0, 1.0, 3.0]))
    >>> report.submodular, report.supermodular, report.exact
    (False, True, True)
    """

    submodular: bool | None
    supermodular: bool | None
    increasing: bool | None
    normalized: bool | None
    nonnegative: bool | None
    exact: bool
    n: int
    n_sets: int
    tolerance: float
    counterexamples: Mapping[str, str]
    witness: Mapping[str, tuple[BoolArray, ...]]

    def __str__(self) -> str:
        how = "all of them" if self.exact else "a random search"
        lines = [f"A set function of {self.n} elements, {self.n_sets} sets evaluated ({how}):"]
        for name in ("submodular", "supermodular", "increasing", "normalized", "nonnegative"):
            answer = getattr(self, name)
            if answer is None:
                text = "not known, no counterexample found"
            else:
                text = "yes" if answer else f"no, {self.counterexamples[name]}"
            lines.append(f"  {name + ':':14s}{text}")
        return "\n".join(lines)


def check(function: SetFunction, *, n_trials: int = 10000, rng: object = None) -> Check:
    r"""Check whether F is submodular, supermodular, increasing, normalized, nonnegative.

    The check uses the values of F and ignores its ``is_submodular`` and similar properties. Up to
    16 elements all sets are evaluated and every answer is True or False. Beyond, sets C and
    disjoint sets P, Q outside C are drawn at random, of all sizes and often with C near the empty
    set or near the whole ground set, and

    .. math:: F(C \cup P) + F(C \cup Q) \;\ge\; F(C \cup P \cup Q) + F(C)

    is tested with P and Q of one element or more. A property that fails is False, with its
    counterexample; a property that does not fail is None.

    An inequality counts as violated if it fails by more than 1e-12 (all sets) or 1e-10 (random
    search, in which values are sums of more terms) times the largest abs(F(A) - F(empty)) seen, or
    by more than 8 units of rounding of the largest value, if that is more. So the answers depend
    neither on the unit of F nor on an added constant.

    Parameters
    ----------
    function : SetFunction
        Any.
    n_trials : int
        The number of draws of (C, P, Q) beyond 16 elements, with four evaluations each. The
        search stops earlier if every property has been refuted.
    rng : None, int or numpy.random.Generator
        The source of randomness.

    Returns
    -------
    Check
        A record that prints as a readable report.

    Examples
    --------
    >>> import setwise as sw
    >>> report = sw.functions.check(sw.functions.Cardinality([0.0, 1.0, 4.0]))
    >>> report.submodular, report.exact
    (False, True)
    >>> report.counterexamples["submodular"]
    'F({0}) + F({1}) = 2 < F({0, 1}) + F({}) = 4'
    >>> print(report)
    A set function of 2 elements, 4 sets evaluated (all of them):
      submodular:   no, F({0}) + F({1}) = 2 < F({0, 1}) + F({}) = 4
      supermodular: yes
      increasing:   yes
      normalized:   yes
      nonnegative:  yes
    """
    trials = as_count(n_trials, "n_trials")
    random = as_generator(rng)
    if as_set_function(function).n <= ENUMERABLE:
        return _check_all(tabulate(function))
    return _check_some(function, trials, random)


class _Findings:
    """The sets that refute each property by the largest amount."""

    def __init__(self) -> None:
        self.witness: dict[str, tuple[BoolArray, ...]] = {}
        self.excess: dict[str, float] = {}

    def note(self, name: str, excess: float, *sets: BoolArray) -> None:
        if excess > self.excess.get(name, 0.0):
            # Copies, so that a report does not keep whole batches of sets alive.
            self.excess[name] = excess
            self.witness[name] = tuple(mask.copy() for mask in sets)


def _check_all(table: Table) -> Check:
    values, n = table.values, table.n
    found = _Findings()

    def mask(index: int) -> BoolArray:
        return masks_of(np.array([index]), n).reshape(n)

    for name, signed in (("submodular", values), ("supermodular", -values)):
        excess, index, i, j = worst_exchange(signed)
        found.note(name, excess, mask(index | 1 << i), mask(index | 1 << j))
    excess, index, i = worst_fall(values)
    found.note("increasing", excess, mask(index), mask(index | 1 << i))
    found.note("normalized", abs(float(values[0])), mask(0))
    found.note("nonnegative", -float(values.min()), mask(int(values.argmin())))
    return _report(table, found, table.tolerance, 1 << n, exact=True)


def _check_some(function: SetFunction, trials: int, rng: np.random.Generator) -> Check:
    n = function.n
    found = _Findings()
    empty = empty_value(function)
    found.note("normalized", abs(empty), np.zeros(n, np.bool_))
    largest, span, n_sets = abs(empty), 0.0, 1
    rows = max(1, min(1024, (1 << 22) // n))
    for start in range(0, trials, rows):
        meet, left, right, join = _draw(n, min(rows, trials - start), rng)
        at_meet, at_left, at_right, at_join = np.split(
            function._values(np.concatenate([meet, left, right, join])), 4
        )
        growth = (at_join - at_left) - (at_right - at_meet)
        for name, excess in (("submodular", growth), ("supermodular", -growth)):
            k = int(excess.argmax())
            found.note(name, float(excess[k]), left[k], right[k])
        for inner, outer, at_inner, at_outer in (
            (meet, left, at_meet, at_left),
            (right, join, at_right, at_join),
        ):
            k = int((at_inner - at_outer).argmax())
            found.note("increasing", float(at_inner[k] - at_outer[k]), inner[k], outer[k])
        for sets, at in ((meet, at_meet), (left, at_left), (right, at_right), (join, at_join)):
            k = int(at.argmin())
            found.note("nonnegative", -float(at[k]), sets[k])
            largest = max(largest, float(np.abs(at).max()))
            span = max(span, float(np.abs(at - empty).max()))
        tolerance = max(1e-10 * span, FEW_ROUNDINGS * EPS * largest)
        n_sets += 4 * len(meet)
        if all(
            found.excess.get(name, 0.0) > tolerance
            for name in ("submodular", "supermodular", "increasing", "nonnegative")
        ):
            break
    return _report(
        function, found, max(1e-10 * span, FEW_ROUNDINGS * EPS * largest), n_sets, exact=False
    )


def _draw(
    n: int, rows: int, rng: np.random.Generator
) -> tuple[BoolArray, BoolArray, BoolArray, BoolArray]:
    """Draw C, C + P, C + Q, C + P + Q as masks, with single elements half of the time."""
    single = rng.random(rows) < 0.5
    parts = np.where(single, 1, rng.integers(1, n // 2 + 1, size=(2, rows)))
    remaining = n - parts.sum(axis=0)
    near = rng.integers(0, 4, size=rows)
    kind = rng.integers(0, 3, size=rows)
    size = np.choose(
        kind,
        [
            rng.integers(0, remaining + 1),
            np.minimum(near, remaining),
            np.maximum(remaining - near, 0),
        ],
    )
    rank = rng.permuted(np.broadcast_to(np.arange(n), (rows, n)), axis=1)
    ends = np.cumsum([size, *parts], axis=0)[:, :, None]
    meet = rank < ends[0]
    left = rank < ends[1]
    join = rank < ends[2]
    return meet, left, meet | (join & ~left), join


def _report(
    function: SetFunction, found: _Findings, tolerance: float, n_sets: int, *, exact: bool
) -> Check:
    refuted = {name: sets for name, sets in found.witness.items() if found.excess[name] > tolerance}

    def answer(name: str) -> bool | None:
        return False if name in refuted else (True if exact else None)

    return Check(
        submodular=answer("submodular"),
        supermodular=answer("supermodular"),
        increasing=answer("increasing"),
        normalized="normalized" not in refuted,
        nonnegative=answer("nonnegative"),
        exact=exact,
        n=function.n,
        n_sets=n_sets,
        tolerance=tolerance,
        counterexamples={name: _sentence(function, name, sets) for name, sets in refuted.items()},
        witness=refuted,
    )


def _sentence(function: SetFunction, name: str, sets: tuple[BoolArray, ...]) -> str:
    if name in ("submodular", "supermodular"):
        a, b = sets
        at = function._values(np.array([a, b, a | b, a & b]))
        sign = "<" if name == "submodular" else ">"
        return (
            f"F({_set(a)}) + F({_set(b)}) = {at[0] + at[1]:.15g} {sign} "
            f"F({_set(a | b)}) + F({_set(a & b)}) = {at[2] + at[3]:.15g}"
        )
    at = function._values(np.array(sets))
    terms = [f"F({_set(mask)}) = {value:.15g}" for mask, value in zip(sets, at, strict=True)]
    if name == "increasing":
        return " > ".join(terms)
    return f"{terms[0]} {'!=' if name == 'normalized' else '<'} 0"


def _set(mask: BoolArray) -> str:
    elements = np.flatnonzero(mask)
    listed = ", ".join(map(str, elements[:_LISTED]))
    more = f", ... ({len(elements)} elements)" if len(elements) > _LISTED else ""
    return "{" + listed + more + "}"
