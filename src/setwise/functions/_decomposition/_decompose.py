"""The operator D: a set function as a submodular plus a supermodular increasing one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import EPS
from setwise.functions._base import SetFunction, as_set_function, empty_value
from setwise.functions._decomposition._supermodular_program import (
    least_supermodular,
    supermodular_recursion,
    supermodular_recursion_on_grid,
)
from setwise.functions._families._cardinality import Cardinality, slack_of
from setwise.functions._families._compose import Sum, collected
from setwise.functions._families._counts import GRID_CELLS, Counts
from setwise.functions._families._modular import Modular
from setwise.functions._families._ratio import Ratio
from setwise.functions._families._table import Table, tabulate

# The most elements of the linear program over counts. Its weights C(m, n) C(r, q) reach 1.6e8 for
# 30 elements. With more elements, their range is too large for the solver's tolerance of 1e-7.
COUNTS_PROGRAM_ELEMENTS = 30
# The most elements of the linear program over all sets. 12 elements give 67584 rows and take about
# two seconds, and each further element more than doubles both. Not tuned.
TABLE_PROGRAM_ELEMENTS = 12


@dataclass(frozen=True, repr=False)
class Decomposition(Record):
    """F = f + g: f submodular, f(empty) = F(empty); g supermodular, increasing, g(empty) = 0.

    A decomposition unpacks into its parts: ``f, g = decompose(F)``.

    Examples
    --------
    >>> import setwise as sw
    >>> parts = sw.functions.decompose(sw.functions.Cardinality([0.0, 0.0, 1.0]))
    >>> parts.g.values.tolist(), parts.exact
    ([0.0, 0.0, 1.0], True)
    """

    f: SetFunction
    """The submodular part; it may be negative or decreasing."""
    g: SetFunction
    """The supermodular part, D F."""
    exact: bool
    """Whether g has the least sum over all sets; if not, g is feasible but may be too large."""

    def __iter__(self) -> Iterator[SetFunction]:
        return iter((self.f, self.g))


def decompose(function: SetFunction) -> Decomposition:
    r"""Decompose F = f + g by the operator D of the B_D paper (Definition 6).

    .. math:: g = DF = \arg\min \sum_{A \subseteq V} g(A) \quad \text{s.t. } g \text{ supermodular,
        increasing, } g(\emptyset) = 0,\ F - g \text{ submodular.}

    The method is the first of these that applies:

    - submodular F: g = 0; supermodular F: f is modular (Lemma 1);
    - ``Cardinality``: g(0) = g(1) = 0 and the second difference of g is the positive part of that
      of F, O(n);
    - Jaccard, Dice, F-beta with beta >= 1: the closed form of ``Ratio``, at any size;
    - other ``Counts``: a linear program over the grid of counts up to 30 elements; beyond, the
      forward recursion that takes the largest lower bound at each count, O(m r), feasible but not
      always least: ``exact`` is False;
    - any other function of up to 12 elements: the linear program over all sets.

    Modular terms of a sum belong to f and do not change g. With four or more elements the minimiser
    need not be unique.

    Parameters
    ----------
    function : SetFunction

    Returns
    -------
    Decomposition
        The record of ``f``, ``g`` and ``exact``, which unpacks into f and g.

    Examples
    --------
    >>> import setwise as sw
    >>> f, g = sw.functions.decompose(sw.functions.Cardinality([0.0, 1.0, 1.0, 2.0]))
    >>> f.values.tolist(), g.values.tolist()
    ([0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0])
    """
    as_set_function(function)
    function = collected(function)
    if function.is_submodular:
        return Decomposition(function, Modular(np.zeros(function.n)), True)
    if isinstance(function, Cardinality):
        return _of_cardinality(function)
    if isinstance(function, Counts):
        return _of_counts(function)
    if isinstance(function, Sum):
        stripped = _without_modular(function)
        if stripped is not None:
            return stripped
    if function.is_supermodular:
        return _of_supermodular(function)
    if function.n > TABLE_PROGRAM_ELEMENTS:
        raise ValueError(
            f"decompose needs at most {TABLE_PROGRAM_ELEMENTS} elements for {function!r}, got "
            f"{function.n}: declare it as Cardinality or Counts, or as submodular or supermodular"
        )
    values = tabulate(function).values
    return _from_least(values, least_supermodular(values))


def _from_least(values: FloatArray, g: FloatArray) -> Decomposition:
    g = supermodular_recursion(values, at_least=g)
    return Decomposition(Table(values - g), Table(g), True)


def _of_cardinality(function: Cardinality) -> Decomposition:
    values = function.values
    # Second differences within rounding are set to 0, because summing them twice would enlarge the
    # errors.
    noise = slack_of(values, 16 * EPS)
    bend = np.diff(values, 2)
    bend[bend <= noise] = 0.0
    g = np.concatenate([[0.0], np.cumsum(np.concatenate([[0.0], np.cumsum(bend)]))])
    g = g[: len(values)]
    return Decomposition(Cardinality(values - g), Cardinality(g), True)


def _of_counts(function: Counts) -> Decomposition:
    formula, positive = function.formula, function.positive
    if isinstance(formula, Ratio):
        parts = formula.parts()
        if parts is not None:
            return Decomposition(Counts(parts[0], positive), Counts(parts[1], positive), True)
    if (function.m + 1) * (function.r + 1) > GRID_CELLS:
        raise ValueError(
            f"decompose needs a grid of at most {GRID_CELLS} counts, got "
            f"{function.m + 1} x {function.r + 1}: use a loss of |I| or F-beta with beta >= 1"
        )
    grid = function.grid()
    if function.is_supermodular:
        n, q = np.meshgrid(*(np.arange(size) for size in grid.shape), indexing="ij")
        first = grid[min(1, function.m), 0] - grid[0, 0]
        second = grid[0, min(1, function.r)] - grid[0, 0]
        g, exact = np.maximum(grid - grid[0, 0] - n * first - q * second, 0.0), True
    elif function.n <= COUNTS_PROGRAM_ELEMENTS:
        weights = np.outer(
            [comb(function.m, n) for n in range(function.m + 1)],
            [comb(function.r, q) for q in range(function.r + 1)],
        ).astype(np.float64)
        g, exact = least_supermodular(grid, weights), True
        g = supermodular_recursion_on_grid(grid, at_least=g)
    else:
        g, exact = supermodular_recursion_on_grid(grid), False
    return Decomposition(Counts(grid - g, positive), Counts(g, positive), exact)


def _of_supermodular(function: SetFunction) -> Decomposition:
    """Decompose by Lemma 1: f is the modular function that agrees with F on single elements."""
    n, constant = function.n, empty_value(function)
    singles = Modular(function._values(np.eye(n, dtype=np.bool_)) - constant)
    empty = Cardinality(np.full(n + 1, constant))
    f = singles if constant == 0 else Sum([singles, empty])
    return Decomposition(f, Sum([function, singles, empty], [1.0, -1.0, -1.0]), True)


def _without_modular(function: Sum) -> Decomposition | None:
    """Decompose by D(F + modular) = D F and D(c F) = c D F for c > 0."""
    modular = [isinstance(term, Modular) for term in function.terms]
    others = [k for k, is_modular in enumerate(modular) if not is_modular]
    alone = len(others) == 1 and function.coefficients[others[0]] > 0
    if alone and (len(function.terms) > 1 or function.coefficients[0] != 1):
        term, scale = function.terms[others[0]], float(function.coefficients[others[0]])
        inner = decompose(term)
        rest = [k for k, is_modular in enumerate(modular) if is_modular]
        f = Sum(
            [inner.f, *(function.terms[k] for k in rest)],
            [scale, *(function.coefficients[k] for k in rest)],
        )
        return Decomposition(collected(f), collected(scale * inner.g), inner.exact)
    return None
