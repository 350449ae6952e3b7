r"""The functions of counts in a field, of the numbers of variables with a label that counts.

With two labels, all regions, label costs and cardinality potentials are functions of counts. With
more labels, each label cost and each cardinality potential is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._certificate import EPS, FEW_ROUNDINGS
from setwise.fields._regions import members_of
from setwise.fields._terms import CardinalityTerm, CountTerm, LabelTerm, Term

COUNTED = (CardinalityTerm, CountTerm, LabelTerm)


@dataclass(frozen=True, eq=False)
class CountFunction:
    """A function of a count: ``table[number of members whose label counts]``."""

    members: IntArray
    """(m,)"""
    inside: BoolArray
    """(m, L): which labels count"""
    table: FloatArray
    """(m + 1,)"""

    @property
    def key(self) -> tuple[bytes, bytes]:
        """The key that two functions of the same count share."""
        return self.members.tobytes(), self.inside.tobytes()

    def turned(self) -> CountFunction:
        """Return the same function, as one of the number of members that do not count."""
        return CountFunction(self.members, ~self.inside, self.table[::-1].copy())


def factors_of(term: Term, n: int, n_labels: int) -> list[CountFunction]:
    """Return the functions of counts that a term is a sum of. Regions must have two labels."""
    everyone = np.arange(n)
    match term:
        case CardinalityTerm():
            found = [
                CountFunction(everyone, np.arange(n_labels) != term.center[:, None], term.table)
            ]
        case LabelTerm():
            table = np.where(np.arange(n + 1) > 0, term.cost, 0.0)
            found = [CountFunction(everyone, np.tile(term.labels, (n, 1)), table)]
        case CountTerm():
            members, offsets = members_of(term.regions)
            ones = np.arange(n_labels) == 1
            found = []
            for r, (begin, end) in enumerate(pairwise(offsets)):
                heights = term.table[term.starts[r] : term.starts[r + 1]]
                inside = np.tile(ones, (end - begin, 1))
                found.append(CountFunction(members[begin:end], inside, heights + heights[::-1]))
        case _:
            return []
    if n_labels > 2:
        return found
    return [f.turned() if len(f.members) and f.inside[0, 0] else f for f in found]


def merged(terms: tuple[tuple[Any, Term], ...], n: int, n_labels: int) -> list[CountFunction]:
    """Return the functions of counts of a field. Functions of the same count are added."""
    of_key: dict[tuple[bytes, bytes], CountFunction] = {}
    for _, term in terms:
        for factor in factors_of(term, n, n_labels):
            before = of_key.get(factor.key)
            table = factor.table if before is None else before.table + factor.table
            of_key[factor.key] = CountFunction(factor.members, factor.inside, table)
    return list(of_key.values())


@dataclass(frozen=True, eq=False)
class Counted:
    """Functions of counts over the variables with two possible labels, as concatenated arrays."""

    starts: IntArray
    """(F + 1,): the starts of the members of each function"""
    members: IntArray
    """(P,)"""
    inside: BoolArray
    """(P, L)"""
    heights: FloatArray
    """(P + F,): for each function, one more than its number of members"""
    constant: float
    """the sum of the functions whose members have a single label each"""

    @classmethod
    def of(cls, factors: list[CountFunction], unary: FloatArray) -> Counted:
        """Concatenate functions without the members whose other labels are forbidden."""
        allowed = np.isfinite(unary)
        members, inside, heights = [], [], []
        constant = 0.0
        for factor in factors:
            can = allowed[factor.members]
            within, without = (
                np.any(can & side, axis=1) for side in (factor.inside, ~factor.inside)
            )
            free = within & without
            count = int((within & ~free).sum())
            table = factor.table[count : count + int(free.sum()) + 1]
            if not free.any():
                constant += float(table[0])
                continue
            members.append(factor.members[free])
            inside.append(factor.inside[free])
            heights.append(table)
        n_labels = unary.shape[1]
        return cls(
            np.concatenate([[0], np.cumsum([len(m) for m in members])]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int64), *members]),
            np.concatenate([np.zeros((0, n_labels), np.bool_), *inside]),
            np.concatenate([np.zeros(0), *heights]),
            constant,
        )

    @property
    def sizes(self) -> IntArray:
        """The numbers of members, of shape (F,)."""
        return np.diff(self.starts)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum values (P,) of the members, or (P + F,) of the counts, for each function."""
        sizes = self.sizes + (len(values) > len(self.members))
        return np.add.reduceat(values, np.cumsum(sizes) - sizes) if len(sizes) else np.zeros(0)


@dataclass(frozen=True, eq=False)
class CountLaws:
    r"""Distributions of members with odds :math:`e^a` and count weights :math:`e^{-h(k)}`."""

    logs: FloatArray
    """log Z of each function, (F,), where members that do not count have weight 1"""
    q: FloatArray
    """the probability that a member counts, (P,)"""
    with_count: FloatArray
    """the expectation of the count given that a member counts, times this probability, (P,)"""
    counts: FloatArray
    """the distributions of the counts, (P + F,)"""
    slack: float
    """a bound on the sum of the rounding errors of the logarithms, in nats"""


def count_laws(
    counted: Counted, logits: FloatArray, heights: FloatArray, n_threads: int
) -> CountLaws:
    """Return the distributions of all counts, in O(m^2) for a function of m members."""
    n, f = len(counted.members), len(counted.sizes)
    laws = CountLaws(np.empty(f), np.empty(n), np.empty(n), np.empty(n + f), 0.0)
    _core.count_sums(
        counted.starts,
        np.ascontiguousarray(logits),
        np.ascontiguousarray(heights),
        laws.logs,
        laws.q,
        laws.with_count,
        laws.counts,
        n_threads,
    )
    # rounding of sums of m positive terms in log2(m) stages, or of logarithms
    most = counted.sums(np.abs(logits) + 1.0)
    if f:
        first = np.cumsum(counted.sizes + 1) - counted.sizes - 1
        most = most + np.maximum.reduceat(np.abs(heights), first)
    depth = np.log2(counted.sizes + 1.0) + 4.0
    lost = FEW_ROUNDINGS * EPS * (counted.sizes + depth * most)
    return CountLaws(laws.logs, laws.q, laws.with_count, laws.counts, float(lost.sum()))
