"""Set functions whose numbers lie 40 decades apart, and what they are in exact rationals."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from strategies import edges

from setwise.functions import (
    Cardinality,
    ConcaveOfModular,
    Counts,
    Coverage,
    Cut,
    Modular,
    SetFunction,
    Table,
    tabulate,
)
from setwise.functions._families._compose import Complement, Contraction, Restriction, Sum


def capped(sums: np.ndarray) -> np.ndarray:
    """A concave function that rationals can follow: min(t, 1)."""
    return np.minimum(sums, 1.0)


def exact_value(function: SetFunction, mask: np.ndarray) -> Fraction:
    """F(mask) of the numbers that the floats of F are, without any rounding."""
    match function:
        case Modular():
            return sum(map(Fraction, function.weights[mask]), Fraction(0))
        case Cut():
            first, second = function.edges.T
            inside, other = mask[first], mask[second]
            cut = inside & ~other if function.directed else inside ^ other
            return sum(map(Fraction, function.weights[cut]), Fraction(0))
        case Coverage():
            rows = [slice(*ends) for ends in pairwise(function.indptr)]
            covered = {int(t) for i in np.flatnonzero(mask) for t in function.items[rows[i]]}
            return sum((Fraction(function.weights[t]) for t in covered), Fraction(0))
        case Cardinality():
            return Fraction(function.values[int(mask.sum())])
        case Table():
            return Fraction(function.values[int(mask @ (1 << np.arange(len(mask))))])
        case Counts():
            n = int((mask & function.positive).sum())
            return Fraction(function.grid()[n, int(mask.sum()) - n])
        case ConcaveOfModular():
            assert function.concave is capped
            return min(Fraction(1), sum(map(Fraction, function.weights[mask]), Fraction(0)))
        case Sum():
            scaled = zip(function.coefficients, function.terms, strict=True)
            return sum((Fraction(c) * exact_value(term, mask) for c, term in scaled), Fraction(0))
        case Restriction():
            whole = np.zeros(function.function.n, bool)
            whole[function.subset] = mask
            return exact_value(function.function, whole)
        case Contraction():
            given = np.zeros(function.function.n, bool)
            given[function.subset] = True
            whole = given.copy()
            whole[function.rest] = mask
            return exact_value(function.function, whole) - exact_value(function.function, given)
        case Complement():
            return exact_value(function.function, ~mask)
    raise TypeError(f"no rationals for {function!r}")


def exact_values(function: SetFunction) -> list[Fraction]:
    """Of all sets, in bit order."""
    sets = (np.arange(1 << function.n)[:, None] >> np.arange(function.n)) & 1 == 1
    return [exact_value(function, mask) for mask in sets]


@st.composite
def wide_numbers(draw: st.DrawFn, low: int = -20, high: int = 20, *, signed: bool = True) -> float:
    """Digits times a power of ten, a zero now and then."""
    digits = draw(st.integers(-99 if signed else 0, 99))
    return digits * 10.0 ** draw(st.integers(low, high))


@st.composite
def wide_arrays(draw: st.DrawFn, length: int, *, signed: bool = True, decades: int = 20):
    drawn = st.lists(
        wide_numbers(-decades, decades, signed=signed), min_size=length, max_size=length
    )
    return np.array(draw(drawn), float)


@st.composite
def wide_functions(draw: st.DrawFn, decades: int = 20, n: int | None = None) -> SetFunction:
    """A sum of submodular functions on at most 4 elements, and what it becomes under operations."""
    size = draw(st.integers(0, 4)) if n is None else n

    def numbers(length: int, *, signed: bool = True) -> np.ndarray:
        return draw(wide_arrays(length, signed=signed, decades=decades))

    def cut() -> SetFunction:
        ends = draw(edges(size))
        return Cut(ends, numbers(len(ends), signed=False), n=size, directed=draw(st.booleans()))

    def coverage() -> SetFunction:
        one = st.lists(st.integers(0, 3), max_size=3)
        sets = draw(st.lists(one, min_size=size, max_size=size))
        return Coverage(sets, numbers(4, signed=False))

    def cardinality() -> SetFunction:
        steps = np.sort(numbers(size))[::-1]
        return Cardinality(np.concatenate([[0.0], np.cumsum(steps)]))

    def counts() -> SetFunction:
        split = np.arange(size) % 2 == 0
        first, second = (np.sort(numbers(int(side.sum())))[::-1] for side in (split, ~split))
        rows = np.concatenate([[0.0], np.cumsum(first)])[:, None]
        return Counts(rows + np.concatenate([[0.0], np.cumsum(second)])[None, :], split)

    families = {
        "modular": lambda: Modular(numbers(size)),
        "cut": cut,
        "coverage": coverage,
        "cardinality": cardinality,
        "counts": counts,
        "concave": lambda: ConcaveOfModular(capped, numbers(size, signed=False)),
        "constant": lambda: Cardinality(np.full(size + 1, numbers(1)[0])),
        "table": lambda: tabulate(cut() + Modular(numbers(size))),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(families)), min_size=1, max_size=4))
    scales = np.abs(numbers(len(chosen))) if draw(st.booleans()) else np.ones(len(chosen))
    function: SetFunction = Sum([families[name]() for name in chosen], scales)
    match draw(st.sampled_from(["plain", "plain", "complement", "restrict", "contract"])):
        case "complement":
            return function.complement()
        case "restrict":
            return function.restrict(np.arange(size)[::-1][: max(size - 1, 0)])
        case "contract":
            return function.contract(np.arange(min(size, 1)))
    return function
