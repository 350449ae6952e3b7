"""The search for a list: one item per step, with a bound for each and a guarantee for all."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._clock import Stopwatch
from setwise._foundation._search import Control, Ending, Search, completed, drive
from setwise.diversities._base import Diversity
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import sum_below
from setwise.inference._diverse._result import DiverseProgress, DiverseResult, Guarantee, repeats
from setwise.inference._map._options import lost_of
from setwise.inference._map._result import MapResult
from setwise.inference._map._solve_map import solve_map

Item = tuple[MapResult, float]
"""The result of a step, and its gain in diversity given the earlier items."""


class ListSearch(Search[DiverseProgress]):
    """A growing list. Items may be found in a field without constants, which has the same gaps."""

    has_answer = True
    """The labelling of least unaries is an answer; see ``grow``."""

    def __init__(
        self, field: Field, base: Conditioned, m: int, watch: Stopwatch | None = None
    ) -> None:
        self.field, self.base, self.m = field, base, m
        self._watch = Stopwatch() if watch is None else watch
        self._labels: list[IntArray] = []
        self._rows: list[tuple[float, float, float]] = []
        self._found: list[MapResult] = []
        self._has_news = True

    @abstractmethod
    def first(self) -> MapResult:
        """Return the best labelling of the field."""

    def as_first(self, best: MapResult) -> Item:
        """Return a best labelling as an item, even if the time limit was reached earlier."""
        return best, 0.0

    @abstractmethod
    def another(self) -> Item | None:
        """Return the next item; None if there is none."""

    def __len__(self) -> int:
        return len(self._found)

    @property
    def best(self) -> MapResult:
        """The first item."""
        return self._found[0]

    @property
    def labelings(self) -> IntArray:
        """The items so far, (m, N)."""
        return np.array(self._labels[: len(self)])

    def step(self) -> bool:
        """Find one more item."""
        if not self._found:
            self._add(*self.as_first(self.first()))
            self._watch.lap("first item")
        else:
            item = self.another()
            self._has_news = item is not None
            if item is None:
                return True
            self._add(*item)
        completed(self._found[-1])
        return len(self._found) == self.m

    def _add(self, found: MapResult, gain: float) -> None:
        """Append an item. The last assignment completes it, in case Ctrl-C interrupts."""
        base, labels, apart = self.base, found.labels[None], found.gap
        height = value = float(base.field._energies(labels)[0])
        lost = lost_of(found) + base.slack(height, height)
        bound = sum_below(height, -gain, -apart, -lost)
        if base.is_changed:
            value = float(self.field._energies(labels)[0])
            # The gap of the item does not change.
            bound = min(base.below(bound), sum_below(value, -gain, -apart))
        self._labels.append(found.labels)
        self._rows.append((value, gain, bound))
        self._found.append(found)

    def progress(self, n_iter: int, seconds: float) -> DiverseProgress | None:
        if not self._has_news:
            return None
        value, gain, bound = self._rows[-1]
        return DiverseProgress(
            n_iter=len(self),
            value=value,
            bound=bound,
            relative_gap=self._found[-1].relative_gap,
            seconds=seconds,
            labels=self._labels[-1],
            gain=gain,
        )

    def grow(self, control: Control[DiverseProgress]) -> Ending[DiverseProgress]:
        """Make the list. It has a first item even if the time limit was reached before."""
        ending = drive(self, control)
        if len(self) == 0:
            if not ending.expired:
                raise KeyboardInterrupt
            unaries = solve_map(self.base.field, time_limit=0.0)
            self._add(*self.as_first(replace(unaries, interrupted=True)))
        self._watch.lap("next items")
        return ending

    def result(
        self, diversity: Diversity | None, obstacle: str | None, ending: Ending[DiverseProgress]
    ) -> DiverseResult:
        """Return the list; ``obstacle`` is the reason if it has no guarantee."""
        labelings = self.labelings
        values, gains, bounds = np.array(self._rows[: len(self)]).T
        rows = [(f.value - f.bound, f.relative_gap, f.exact, f.method) for f in self._found]
        apart, relative_gaps, exact, methods = zip(*rows, strict=True)
        gaps = np.fmax(apart, 0.0)
        if obstacle is None and not np.isfinite(gaps).all():
            obstacle = "a step has no bound"
        claim = None
        if obstacle is None and diversity is not None:
            heights, n_labels = self.base.field._energies(labelings), self.field.n_labels
            claim = greedy_guarantee(diversity, labelings, heights, gains, gaps, n_labels)
            claim = replace(claim, shift=claim.shift + self.base.constant)
        return DiverseResult(
            labelings=labelings,
            values=values,
            gains=gains,
            bounds=bounds,
            methods=methods,
            repeated=repeats(labelings),
            guarantee=claim,
            reason=f"no guarantee for the list: {obstacle}" if claim is None else claim.assumes,
            interrupted=ending.interrupted,
            relative_gaps=np.array(relative_gaps),
            exact=all(exact),
            shape=self.field.shape,
        )


def with_limit(result: DiverseResult, ending: Ending[DiverseProgress]) -> DiverseResult:
    """Add the time limit to the reasons of a list, if that ended it."""
    return replace(result, reason=f"{result.reason}; {ending.reason}") if ending.expired else result


def with_end(
    result: DiverseResult, n: int, why: str = "the field has no more labellings"
) -> DiverseResult:
    """Add to the reasons of a list why it has fewer items than requested."""
    ending = f"The list ends at {n} items: {why}."
    return replace(result, reason=f"{result.reason.removesuffix('.')}. {ending}")


def greedy_guarantee(
    diversity: Diversity,
    labelings: IntArray,
    values: FloatArray,
    gains: FloatArray,
    gaps: FloatArray,
    n_labels: int,
) -> Guarantee:
    r"""Return the guarantee of Lemma 2 for the shifted score, given finite gaps.

    With d submodular, S_t the first t items and S* any list of m items,

    .. math:: F_c(S^*) \le F_c(S^* + S_t) \le F_c(S_t) + \sum_{y \in S^*} F_c(y \mid S_t)
              \le F_c(S_t) + m \, (F_c(y_{t+1} \mid S_t) + \varepsilon_{t+1}),

    where the first step holds by the choice of c: an item of the list that is added to S* and the
    earlier items has c - E(y) + d(y | S_{t-1} + S*) >= 0. Among all S*, copies of y reduce that
    gain most (``copies_take_most``), which determines c. Unrolled, this is Lemma 2 with the factor
    1 - (1 - 1/m)^m, and each t gives its own bound on F_c(S*).
    """
    m = len(labelings)
    labelings = labelings.astype(np.min_scalar_type(n_labels - 1))  # the smallest type saves memory
    least = [
        diversity.gain_of(
            labels, np.concatenate([labelings[:k], np.tile(labels, (m, 1))]), n_labels
        )
        for k, labels in enumerate(labelings)
    ]
    shift = float((values - np.array(least)).max())
    added = shift - values + gains
    scores = np.concatenate([[0.0], np.cumsum(added)])
    bound = float((scores[:-1] + m * (added + gaps)).min())
    assumes = (
        "the diversity is submodular; the score is sum of (c - E) over the list plus d, with c so "
        "large that no item of the list would lower it"
    )
    return Guarantee(
        factor=1.0 - (1.0 - 1.0 / m) ** m,
        alpha=min(1.0, float((added / np.where(added + gaps > 0, added + gaps, 1.0)).min()))
        if (added + gaps > 0).all()
        else 0.0,
        slack=float(gaps.sum()),
        shift=shift,
        score=float(scores[-1]),
        bound=bound,
        n_items=m,
        assumes=assumes,
    )
