"""What hypothesis draws: numbers, orders, and set functions of every family."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import setwise as sw
from setwise.functions._families._compose import Sum

f = sw.functions

sizes = st.integers(0, 6)


def numbers(low: float = -4.0, high: float = 4.0) -> st.SearchStrategy[float]:
    """Quarters, which make ties and exact sums, and six decimals, which make neither.

    Nothing smaller: what is below the tolerance of an answer is not a matter of right and wrong.
    """
    quarters = st.integers(int(4 * low), int(4 * high)).map(lambda k: k / 4)
    return quarters | st.floats(low, high).map(lambda value: round(value, 6))


def arrays(length: int, low: float = -4.0, high: float = 4.0) -> st.SearchStrategy[np.ndarray]:
    drawn = st.lists(numbers(low, high), min_size=length, max_size=length)
    return drawn.map(lambda values: np.array(values, float))


@st.composite
def orders(draw: st.DrawFn, n: int) -> np.ndarray:
    """The beginning of a permutation, often the whole of it."""
    order = draw(st.permutations(range(n)))
    length = n if draw(st.booleans()) else draw(st.integers(0, n))
    return np.array(order[:length], int)


@st.composite
def masks(draw: st.DrawFn, n: int) -> np.ndarray:
    return np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)


def modulars(n: int) -> st.SearchStrategy[f.Modular]:
    return arrays(n).map(f.Modular)


@st.composite
def edges(draw: st.DrawFn, n: int) -> np.ndarray:
    """Up to 2 n edges without loops, repeated ones among them."""
    if n < 2:
        return np.zeros((0, 2), int)
    pair = st.tuples(st.integers(0, n - 1), st.integers(1, n - 1))
    drawn = draw(st.lists(pair.map(lambda p: (p[0], (p[0] + p[1]) % n)), max_size=2 * n))
    return np.array(drawn, int).reshape(-1, 2)


@st.composite
def cuts(draw: st.DrawFn, n: int) -> f.Cut:
    ends = draw(edges(n))
    weights = draw(arrays(len(ends), 0.0, 3.0) | numbers(0.0, 3.0))
    return f.Cut(ends, weights, n=n, directed=draw(st.booleans()))


@st.composite
def coverages(draw: st.DrawFn, n: int) -> f.Coverage:
    items = draw(st.integers(1, 6))
    one = st.lists(st.integers(0, items - 1), max_size=4)
    sets = draw(st.lists(one, min_size=n, max_size=n))
    return f.Coverage(sets, draw(st.none() | arrays(items, 0.0, 3.0)))


@st.composite
def concave_cardinalities(draw: st.DrawFn, n: int) -> f.Cardinality:
    steps = np.sort(draw(arrays(n)))[::-1]
    return f.Cardinality(np.concatenate([[0.0], np.cumsum(steps)]) + draw(numbers()))


@st.composite
def concave_of_modulars(draw: st.DrawFn, n: int) -> f.ConcaveOfModular:
    return f.ConcaveOfModular(draw(st.sampled_from([np.sqrt, np.log1p])), draw(arrays(n, 0.0, 3.0)))


def tables(n: int) -> st.SearchStrategy[f.Table]:
    """Any set function at all."""
    return arrays(1 << n).map(f.Table)


@st.composite
def submodular_functions(draw: st.DrawFn, n: int | None = None) -> f.SetFunction:
    """A sum of members of the submodular families, on at most 6 elements."""
    size = draw(sizes) if n is None else n
    families = [modulars, cuts, coverages, concave_cardinalities, concave_of_modulars]
    chosen = draw(st.lists(st.sampled_from(families), min_size=1, max_size=3))
    return Sum([draw(family(size)) for family in chosen])


@st.composite
def increasing_functions(draw: st.DrawFn, n: int | None = None) -> f.SetFunction:
    """Submodular, increasing, zero on the empty set."""
    size = draw(sizes) if n is None else n
    weights = arrays(size, 0.0, 3.0).map(f.Modular)
    parts = draw(st.lists(coverages(size) | weights, min_size=1, max_size=2))
    return Sum(parts)


@st.composite
def set_functions(draw: st.DrawFn, n: int | None = None) -> f.SetFunction:
    """A member of any family on at most 4 elements, submodular or not."""
    size = draw(st.integers(0, 4)) if n is None else n
    families = [modulars, cuts, coverages, concave_cardinalities, concave_of_modulars, tables]
    return draw(draw(st.sampled_from(families))(size))
