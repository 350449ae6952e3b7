"""The labellings that searches over multipliers have found, and the cut for the next one."""

from __future__ import annotations

from operator import is_

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._search import completed
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.inference._diverse._multipliers._recombination import Recombination
from setwise.inference._diverse._problem import StepProblem
from setwise.inference._flows._two_label_cut import TwoLabelCut
from setwise.inference._map._solve_map import solve_map

# The number of labellings that are kept from one step to the next. A quarter of this number saves a
# fifth to a third of the recombinations, and four times the number adds a third. Neither makes
# lists consistently better.
_MOST_KEPT = 32
# The largest relative loss of a flow by rounding. If it is larger, the flow is computed again from
# zero. Bounds are lowered by the loss, so it must be far below any tolerance. Not tuned.
_LOST = 1e-10

Forced = tuple[tuple[int, int], ...]
"""Variables with their fixed labels."""


class LabelingPool:
    """Labellings, in the smallest integer type, and their energies in the rest of a field.

    The rest is a step's field without its balls. Its graph is reused while its potentials are the
    same. For two labels and a submodular rest each labelling is one cut, with a warm start.
    Otherwise moves find it, and it proves nothing.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self._n_jobs = n_jobs
        self._rest: Field | None = None
        self._cut: TwoLabelCut | None = None
        # The costs of label 1 minus those of label 0, and the constant that a cut omits.
        self._costs: FloatArray = np.zeros(0)
        self._level: float | None = None
        self.labelings: list[IntArray] = []
        self.energies: list[float] = []

    @property
    def is_exact(self) -> bool:
        """Whether the labellings of the rest are cuts, so that they bound all others."""
        return self._cut is not None

    @property
    def rest(self) -> Field:
        """The field in which energies of the pool are computed."""
        assert self._rest is not None
        return self._rest

    @property
    def recombination(self) -> Recombination:
        """Recombinations of labellings of the rest."""
        return self._recombination

    def read(self, problem: StepProblem) -> None:
        """Change to the rest of another problem."""
        rest, unary = self._rest, problem.field.unary
        if rest is None or not _are_same(rest.potentials, problem.others):
            rest = problem.rest()
            self._cut = _as_cut(rest)
        elif not np.may_share_memory(rest.unary, unary):
            rest = rest._over(unary)
        if rest is not self._rest:
            self._recombination = Recombination(rest)
            self.energies = [_energy(rest, labels) for labels in self.labelings]
            self._rest, self._level = rest, None
            if self._cut is not None:
                self._costs = rest.unary[:, 1] - rest.unary[:, 0]

    def add(self, labels: IntArray) -> float:
        """Keep a labelling that was found elsewhere, and return its energy."""
        return self._keep(labels, _energy(self.rest, labels))

    def find(
        self,
        centers: IntArray,
        multipliers: FloatArray,
        forced: Forced = (),
        *,
        share: float = _LOST,
    ) -> float:
        r"""Add the labelling of least :math:`R(y) - \sum_s \mu_s \mathrm{Ham}(y, c_s)`.

        Return the gap to other labellings with the labels ``forced``, ``inf`` if nothing is proved.
        The rounding error may be a ``share`` of the labelling's cost.
        """
        if self._cut is None:
            self.add(self._by_moves(centers, multipliers))
            return np.inf
        costs = self._costs - multipliers.sum()
        for center, multiplier in zip(centers, multipliers, strict=True):
            costs += (2.0 * multiplier) * center
        for variable, label in forced:
            costs[variable] = -np.inf if label else np.inf
        ones = self._cut.ones(costs, share)
        # Only costs of chosen labels are summed, since the huge cost of a seed would hide all
        # others.
        unary = self.rest.unary
        counted = self._cut.value + float(np.where(ones, unary[:, 1], unary[:, 0]).sum())
        labels: IntArray = ones.view(np.uint8)  # the smallest type
        if self._level is None:
            self._level = self.add(labels) - counted
        else:
            self._keep(labels, self._level + counted)
        return self._cut.lost

    def forget(self) -> None:
        """Remove all but the latest labellings and the first, which is part of every mixture."""
        del self.labelings[1:-_MOST_KEPT], self.energies[1:-_MOST_KEPT]

    def _by_moves(self, centers: IntArray, multipliers: FloatArray) -> IntArray:
        rest = self.rest
        unary = rest.unary.copy()
        everyone = np.arange(len(unary))
        for center, multiplier in zip(centers, multipliers, strict=True):
            unary[everyone, center] += multiplier
        init = self.labelings[-1].astype(np.int64) if self.labelings else None
        changed = rest.with_unary(unary)
        found = completed(solve_map(changed, tol=np.inf, init=init, n_jobs=self._n_jobs))
        return found.labels.astype(centers.dtype)

    def _keep(self, labels: IntArray, energy: float) -> float:
        self.labelings.append(labels)
        self.energies.append(energy)
        return energy


def _are_same(some: tuple[Potential, ...], others: tuple[Potential, ...]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _as_cut(field: Field) -> TwoLabelCut | None:
    if field.n_labels != 2:
        return None
    try:
        return TwoLabelCut(field)
    except ValueError:  # the energy is not a cut, or needs too many arcs
        return None


def _energy(field: Field, labels: IntArray) -> float:
    return float(field._energies(labels.astype(np.int64)[None])[0])
