"""Sums of diversities, for one list that is diverse in several ways."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.diversities._addition import Addition
from setwise.diversities._base import Diversity, as_diversities


class CombinedDiversity(Diversity):
    r"""The sum of diversities, one list under all of them: the paper's circled plus.

    ``d1 + 2.0 * d2`` creates such a sum. It is submodular (or monotone) if all summands are.
    Otherwise the sum may still have the property, and the attribute is None. The step adds the
    potentials of all summands.

    Parameters
    ----------
    terms : sequence of Diversity
        At least one.

    Examples
    --------
    >>> import setwise as sw
    >>> d = sw.diversities.DivMBest(0.1) + 0.5 * sw.diversities.HammingBall(2.0, 0.05)
    >>> d
    DivMBest(weight=0.1) + HammingBall(weight=1, gamma=0.05)
    >>> d.is_submodular is None
    True
    """

    terms: tuple[Diversity, ...]

    def __init__(self, terms: Iterable[Diversity]) -> None:
        found: list[Diversity] = []
        for term in as_diversities(terms, "terms"):  # a nested sum is flattened
            found.extend(term.terms if isinstance(term, CombinedDiversity) else [term])
        known = sorted({k for term in found if (k := term._known_labels()) is not None})
        if len(known) > 1:
            raise ValueError(f"terms must be for fields of as many labels, got {known}")
        self._set(terms=tuple(found))

    @property
    def is_monotone(self) -> bool | None:
        return True if all(term.is_monotone for term in self.terms) else None

    @property
    def is_submodular(self) -> bool | None:
        return True if all(term.is_submodular for term in self.terms) else None

    @property
    def copies_take_most(self) -> bool | None:
        return True if all(term.copies_take_most for term in self.terms) else None

    def _depends_on_labels(self, n_earlier: int) -> bool:
        return any(term._depends_on_labels(n_earlier) for term in self.terms)

    def _known_labels(self) -> int | None:
        return next((k for k in (term._known_labels() for term in self.terms) if k), None)

    def gain_of(self, labels: IntArray, labelings: IntArray, n_labels: int) -> float:
        return sum(term.gain_of(labels, labelings, n_labels) for term in self.terms)

    def addition(self, labelings: IntArray, n_labels: int) -> Addition:
        return sum((term.addition(labelings, n_labels) for term in self.terms), Addition())

    def _lacks_potential(self) -> bool:
        return any(term._lacks_potential() for term in self.terms)

    def _gains_of_all(self, labelings: IntArray, n_labels: int) -> FloatArray:
        return np.asarray(sum(term._gains_of_all(labelings, n_labels) for term in self.terms))

    def _around(self, labelings: IntArray, n_labels: int) -> tuple[Diversity, Diversity, float]:
        lower, upper, more = zip(
            *(term._around(labelings, n_labels) for term in self.terms), strict=True
        )
        return CombinedDiversity(lower), CombinedDiversity(upper), sum(more)

    def scaled(self, scale: float) -> CombinedDiversity:
        return CombinedDiversity([term.scaled(scale) for term in self.terms])

    def _node_costs(self, m: int) -> FloatArray | None:
        costs = [term._node_costs(m) for term in self.terms]
        known = [cost for cost in costs if cost is not None]
        return np.asarray(sum(known)) if len(known) == len(costs) else None

    def __repr__(self) -> str:
        return " + ".join(repr(term) for term in self.terms)
