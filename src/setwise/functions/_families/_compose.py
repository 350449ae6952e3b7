"""Set functions made of set functions: sums, restriction, contraction, complement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_list,
    as_numbers,
    as_subset,
)
from setwise._foundation._certificate import EPS
from setwise.functions._base import SetFunction, as_set_function
from setwise.functions._families._cardinality import Cardinality
from setwise.functions._families._counts import GRID_CELLS, Counts
from setwise.functions._families._modular import Modular
from setwise.functions._numbers import Numbers, gains_with_errors, lowest_unit, numbers_of

Property = Literal["is_submodular", "is_supermodular", "is_increasing"]


def _known(function: SetFunction, name: Property) -> bool | None:
    answer: bool | None = getattr(function, name)
    return answer


class Sum(SetFunction):
    """A weighted sum of set functions on one ground set: A -> sum_t c_t F_t(A).

    ``F + G``, ``2.0 * F`` and ``-F`` are sums. A sum of sums is flattened into one sum. A greedy
    pass costs one pass of each term.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Modular([1.0, 2.0]) + 2.0 * sw.functions.Cardinality([0.0, 1.0, 1.0])
    >>> F.gains([1, 0]).tolist()
    [4.0, 1.0]
    """

    terms: tuple[SetFunction, ...]
    coefficients: FloatArray

    def __init__(self, terms: Sequence[SetFunction], coefficients: ArrayLike | None = None) -> None:
        terms = as_list(terms, "terms", "set functions")
        if not terms:
            raise ValueError("terms must hold at least one set function, got none")
        for term in terms:
            if not isinstance(term, SetFunction):
                raise TypeError(f"terms must be set functions, got {type(term).__name__}")
            if term.n != terms[0].n:
                raise ValueError(
                    f"terms must have one ground set, got {terms[0].n} and {term.n} elements"
                )
        scales = as_numbers(
            np.ones(len(terms)) if coefficients is None else coefficients,
            "coefficients",
            shape=(len(terms),),
        )
        flat: list[SetFunction] = []
        flat_scales: list[float] = []
        for term, scale in zip(terms, scales, strict=True):
            inner = (
                zip(term.terms, term.coefficients, strict=True)
                if isinstance(term, Sum)
                else [(term, 1.0)]
            )
            for part, part_scale in inner:
                flat.append(part)
                flat_scales.append(float(scale * part_scale))
        self._set(n=terms[0].n, terms=tuple(flat), coefficients=np.array(flat_scales))

    def _values(self, masks: BoolArray) -> FloatArray:
        total = np.zeros(len(masks))
        for term, scale in zip(self.terms, self.coefficients, strict=True):
            total += scale * term._values(masks)
        return total

    def _gains(self, order: IntArray) -> FloatArray:
        total = np.zeros(len(order))
        for term, scale in zip(self.terms, self.coefficients, strict=True):
            total += scale * term._gains(order)
        return total

    def _holds(self, plain: Property, negated: Property | None) -> bool | None:
        """Return whether the sum has a property, None if it is not known.

        It is True if every scaled term has the property, and False if one term fails and the others
        are neutral. For submodularity and supermodularity, modular terms are neutral. For
        monotonicity, no term is neutral.
        """
        whole = collected(self)
        if not isinstance(whole, Sum):
            return _known(whole, plain)  # the remaining terms have known properties
        answers: list[bool | None] = []
        for term, scale in zip(whole.terms, whole.coefficients, strict=True):
            if scale == 0 or (negated and term.is_submodular and term.is_supermodular):
                continue
            if scale > 0:
                answers.append(_known(term, plain))
            else:
                answers.append(_known(term, negated) if negated else None)
        if all(answer is True for answer in answers):
            return True
        return False if len(answers) == 1 and answers[0] is False else None

    @property
    def is_submodular(self) -> bool | None:
        return self._holds("is_submodular", "is_supermodular")

    @property
    def is_supermodular(self) -> bool | None:
        return self._holds("is_supermodular", "is_submodular")

    @property
    def is_increasing(self) -> bool | None:
        return self._holds("is_increasing", None)

    def _scaled(self) -> list[tuple[SetFunction, float]]:
        """Return the terms whose coefficient is not 0, each with its coefficient."""
        scaled = zip(self.terms, self.coefficients.tolist(), strict=True)
        return [(term, scale) for term, scale in scaled if scale]

    def _numbers(self) -> Numbers:
        parts = [
            (numbers_of(term), abs(scale), lowest_unit(np.array([scale])))
            for term, scale in self._scaled()
        ]
        return Numbers(
            unit=min((part.unit * step for part, _, step in parts), default=inf),
            span=sum(part.span * scale for part, scale, _ in parts),
            least=min((part.least * scale for part, scale, _ in parts), default=inf),
            base=sum(part.base * scale for part, scale, _ in parts),
            base_unit=min((part.base_unit * step for part, _, step in parts), default=inf),
            n_terms=len(parts) + sum(part.n_terms for part, _, _ in parts),
        )

    def _gains_with_errors(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        total, errors = np.zeros((2, len(order)))
        for term, scale in zip(self.terms, self.coefficients.tolist(), strict=True):
            gains, wrong = gains_with_errors(term, order)
            scaled = scale * gains
            errors += abs(scale) * wrong
            if abs(scale) != 1.0:
                errors += EPS * np.abs(scaled)
            # The rounding error of an addition is itself a float, which this computes exactly.
            after = total + scaled
            part = after - total
            errors += np.abs((total - (after - part)) + (scaled - part))
            total = after
        return total, (1 + 4 * len(self.terms) * EPS) * errors

    def _bend(self, sign: float = 1.0, lost: float = 0.0) -> float:
        scaled = self._scaled()
        if not all(t.is_submodular if sign * c > 0 else t.is_supermodular for t, c in scaled):
            # The sum has the property although not every term has it. Where tables were added,
            # rounding may have hidden a violation. A second difference consists of four values.
            scaled = _scaled(collected(self))
            lost += 4 * numbers_of(self).value_error(self.n)
        total = 0.0
        for term, scale in scaled:
            share = lost if isinstance(term, Cardinality) else 0.0
            total += abs(scale) * term._bend(sign * float(np.sign(scale)), share / abs(scale))
            lost -= share
        return total + lost

    def _fall(self) -> float:
        scaled, lost = self._scaled(), 0.0
        if not all(scale > 0 and term.is_increasing is True for term, scale in scaled):
            # The sum is increasing although not every term is. A step consists of two values.
            scaled = _scaled(collected(self))
            lost = 2 * numbers_of(self).value_error(self.n)
        return sum(abs(scale) * term._fall() for term, scale in scaled) + lost

    def _without_constant(self) -> SetFunction:
        terms = [term._without_constant() for term in self.terms]
        # Terms that are 0 on all sets add no rounding error to a sum.
        kept = [k for k, term in enumerate(terms) if not _is_zero(term)] or [0]
        return Sum([terms[k] for k in kept], self.coefficients[kept])

    def _as_counts(self) -> Counts | None:
        """Return the sum as one function of counts, if all terms depend on the same counts."""
        splits = (term._split for term in self.terms)
        positive = next((split for split in splits if split is not None), None)
        if positive is None:
            return None
        m = int(np.count_nonzero(positive))
        shape = m + 1, self.n - m + 1
        if shape[0] * shape[1] > GRID_CELLS:
            return None
        grid = np.zeros(shape)
        for term, scale in zip(self.terms, self.coefficients, strict=True):
            values = term._on_counts(positive, scale)
            if values is None:
                return None
            grid += values
        return Counts(grid, positive)

    def _largest_gain(self) -> float | None:
        if self.n == 0:
            return 0.0
        known = self._largest_gain_of_terms()
        return super()._largest_gain() if known is None else known

    def _largest_gain_of_terms(self) -> float | None:
        """Return the largest gain if the form of the sum gives it, else None.

        It is known for a multiple of one function, for functions of counts, and for a function of
        the size plus a modular one.
        """
        whole = collected(self)
        if not isinstance(whole, Sum):
            return whole._largest_gain()
        if len(whole.terms) == 1 and whole.coefficients[0] > 0:
            inner = whole.terms[0]._largest_gain()
            return None if inner is None else float(whole.coefficients[0]) * inner
        counts = whole._as_counts()
        if counts is not None:
            return counts._largest_gain()
        sizes = [term for term in whole.terms if isinstance(term, Cardinality)]
        weights = [term for term in whole.terms if isinstance(term, Modular)]
        if len(whole.terms) == 2 and sizes and weights:  # every element can be added at every size
            return float(np.diff(sizes[0].values).max() + weights[0].weights.max())
        return None

    def __repr__(self) -> str:
        parts = (
            repr(term) if scale == 1 else f"{scale:g} * {term!r}"
            for term, scale in zip(self.terms, self.coefficients, strict=True)
        )
        return " + ".join(parts)


def collected(function: SetFunction) -> SetFunction:
    """Merge the modular terms of a sum into one term, and the cardinality terms likewise.

    >>> from setwise.functions import Cardinality, Modular
    >>> collected(2.0 * Cardinality([0.0, 1.0]) + Modular([3.0])).values.tolist()
    [0.0, 5.0]
    """
    if not isinstance(function, Sum):
        return function
    n = function.n
    modular, sizes = np.zeros(n), np.zeros(n + 1)
    others: list[SetFunction] = []
    scales: list[float] = []
    for term, scale in zip(function.terms, function.coefficients, strict=True):
        if isinstance(term, Modular):
            modular += scale * term.weights
        elif isinstance(term, Cardinality):
            sizes += scale * term.values
        else:
            others.append(term)
            scales.append(float(scale))
    if np.any(sizes != 0) and np.all(modular == modular[:1]):
        sizes += np.arange(n + 1) * modular[:1].sum()
        modular = np.zeros(n)
    if np.any(sizes != 0):
        others.append(Cardinality(sizes))
        scales.append(1.0)
    if np.any(modular != 0) or not others:
        others.append(Modular(modular))
        scales.append(1.0)
    if len(others) == 1 and scales[0] == 1.0:
        return others[0]
    return Sum(others, scales)


def _scaled(function: SetFunction) -> list[tuple[SetFunction, float]]:
    return function._scaled() if isinstance(function, Sum) else [(function, 1.0)]


def _is_zero(function: SetFunction) -> bool:
    numbers = numbers_of(function)
    return numbers.unit == numbers.base_unit == inf


def _enclosed(function: SetFunction) -> str:
    """Return the repr, in brackets if a method call would otherwise apply to the last term only."""
    return f"({function!r})" if isinstance(function, Sum) else repr(function)


class _View(SetFunction):
    """A view of F on another ground set. A chain of its sets is the end of a chain of sets of F."""

    function: SetFunction

    def _chain(self, order: IntArray) -> IntArray:
        """Return the order of elements of F whose end is this order."""
        raise NotImplementedError

    def _gains(self, order: IntArray) -> FloatArray:
        return self._ends(self.function._gains(self._chain(order)), len(order))

    def _ends(self, steps: FloatArray, length: int) -> FloatArray:
        return steps[len(steps) - length :]

    def _gains_with_errors(self, order: IntArray) -> tuple[FloatArray, FloatArray]:
        gains, errors = gains_with_errors(self.function, self._chain(order))
        return self._ends(gains, len(order)), np.abs(self._ends(errors, len(order)))

    def _numbers(self) -> Numbers:
        # The empty set of a view may correspond to any set of F, whose value this bounds.
        inner = numbers_of(self.function)
        return Numbers(
            inner.unit,
            2.0 * inner.span,
            inner.least,
            inner.base + inner.span,
            min(inner.base_unit, inner.unit),
            inner.n_terms + 1,
        )

    def _bend(self, sign: float = 1.0, lost: float = 0.0) -> float:
        return self.function._bend(sign, lost)

    def _fall(self) -> float:
        return self.function._fall()


class _Part(_View):
    """A view of F on some of its elements, which keeps the properties of F and may have others."""

    subset: IntArray

    @property
    def is_submodular(self) -> bool | None:
        return self.function.is_submodular or None

    @property
    def is_supermodular(self) -> bool | None:
        return self.function.is_supermodular or None

    @property
    def is_increasing(self) -> bool | None:
        return self.function.is_increasing or None


class Restriction(_Part):
    """The restriction of F to the subsets of a part of its ground set: A -> F(subset[A]).

    Element k of the restriction is ``subset[k]``. A greedy pass costs one of F.

    Examples
    --------
    >>> import setwise as sw
    >>> sw.functions.Modular([1.0, 2.0, 4.0]).restrict([2, 0]).gains([0, 1]).tolist()
    [4.0, 1.0]
    """

    def __init__(self, function: SetFunction, subset: ArrayLike) -> None:
        indices = as_subset(subset, as_set_function(function).n, "subset")
        self._set(n=len(indices), function=function, subset=indices)

    def _values(self, masks: BoolArray) -> FloatArray:
        whole = np.zeros((len(masks), self.function.n), np.bool_)
        whole[:, self.subset] = masks
        return self.function._values(whole)

    def _chain(self, order: IntArray) -> IntArray:
        return self.subset[order]

    def _numbers(self) -> Numbers:
        inner = numbers_of(self.function)
        return replace(super()._numbers(), base=inner.base, base_unit=inner.base_unit)

    def __repr__(self) -> str:
        return f"{_enclosed(self.function)}.restrict({self.n} of {self.function.n} elements)"


class Contraction(_Part):
    """The contraction of F by a set: A -> F(A + subset) - F(subset), on the other elements.

    Element k of the contraction is ``rest[k]``, the k-th element outside ``subset``. A greedy pass
    costs one of F over the subset and the order.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Cardinality([0.0, 4.0, 6.0, 7.0]).contract([1])
    >>> F.gains([0, 1]).tolist()
    [2.0, 1.0]
    """

    rest: IntArray

    def __init__(self, function: SetFunction, subset: ArrayLike) -> None:
        indices = as_subset(subset, as_set_function(function).n, "subset")
        rest = np.setdiff1d(np.arange(function.n), indices)
        self._set(n=len(rest), function=function, subset=indices, rest=rest)

    def _values(self, masks: BoolArray) -> FloatArray:
        whole = np.zeros((len(masks) + 1, self.function.n), np.bool_)
        whole[:, self.subset] = True
        whole[1:, self.rest] = masks
        values = self.function._values(whole)
        added: FloatArray = values[1:] - values[0]
        return added

    def _chain(self, order: IntArray) -> IntArray:
        return np.concatenate([self.subset, self.rest[order]])

    def __repr__(self) -> str:
        whole = _enclosed(self.function)
        return f"{whole}.contract({len(self.subset)} of {self.function.n} elements)"


class Complement(_View):
    """The function A -> F(V - A), submodular if F is. A greedy pass costs a full pass of F.

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Cardinality([0.0, 4.0, 6.0]).complement()
    >>> F([True, False]), F([True, True])
    (4.0, 0.0)
    """

    def __init__(self, function: SetFunction) -> None:
        self._set(n=as_set_function(function).n, function=function)

    def _values(self, masks: BoolArray) -> FloatArray:
        return self.function._values(~masks)

    def _chain(self, order: IntArray) -> IntArray:
        # The chain V, V - o_0, V - {o_0, o_1}, ... read backwards is a chain of F.
        outside = np.ones(self.n, np.bool_)
        outside[order] = False
        return np.concatenate([np.flatnonzero(outside), order[::-1]])

    def _ends(self, steps: FloatArray, length: int) -> FloatArray:
        return -super()._ends(steps, length)[::-1]

    def _fall(self) -> float:
        # F is increasing, and equal at both ends up to rounding. So each step is at most this
        # rounding plus the decreases of the other steps.
        lost = 2 * numbers_of(self.function).value_error(self.n)
        return self.n * self.function._fall() + lost

    @property
    def is_submodular(self) -> bool | None:
        return self.function.is_submodular

    @property
    def is_supermodular(self) -> bool | None:
        return self.function.is_supermodular

    @property
    def is_increasing(self) -> bool | None:
        if self.function.is_increasing is not True:
            return None
        # An increasing F has an increasing complement only if it is constant.
        ends = np.array([[False] * self.n, [True] * self.n], np.bool_)
        low, high = self.function._values(ends)
        return bool(low == high)

    def __repr__(self) -> str:
        return f"{_enclosed(self.function)}.complement()"
