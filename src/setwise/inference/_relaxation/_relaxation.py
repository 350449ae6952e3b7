r"""The Lovász relaxation of a field, and its minimisation by projected logits.

Shared by marginals (at the field's own temperature) and by bounds on the least energy (cooled
down).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
from setwise._foundation._threads import as_threads
from setwise.fields._base import Potential
from setwise.fields._field import Field
from setwise.fields._terms import (
    CardinalityTerm,
    CountTerm,
    Folded,
    LabelTerm,
    PottsTerm,
    Term,
    fold,
    sum_constants,
)
from setwise.inference._relaxation._block_groups import (
    CONVEX,
    Group,
    cardinality_groups,
    cost_groups,
    path_groups,
    region_groups,
)
from setwise.inference._relaxation._minorants import relaxable_minorant
from setwise.inference._relaxation._projected_logits import Descent


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A point of the base polytope, with its distance from the best.

    Attributes
    ----------
    scores : array of shape (N, L)
        s, unaries included; ``inf`` where they are.
    probabilities : array of shape (N, L)
        p_ij proportional to exp(-s_ij / t).
    objective : float
        t sum_i log sum_j exp(-s_ij / t) minus the constant of the energy: with t = 1 an upper bound
        on log Z.
    bound : float
        sum_i min_j s_ij plus the constant, minus the conjugates of convex counts: no labelling has
        a lower energy.
    gap : float
        The objective is at most this far above its least value.
    relative_gap : float
        gap / max(1, abs(objective with min_j u_ij = 0 and F(empty) = 0)).
    n_iter : int
        Passes over all groups.
    converged : bool
        Whether relative_gap <= tol.
    interrupted : bool
        Whether the callback ended it.
    history : list of float
        The objective after each pass that was kept; it does not rise.
    blocks : array
        The summands of s, for ``init``.
    """

    scores: FloatArray
    probabilities: FloatArray
    objective: float
    bound: float
    gap: float
    relative_gap: float
    n_iter: int
    converged: bool
    interrupted: bool
    history: list[float]
    blocks: FloatArray


class Relaxation:
    r"""The relaxation of a field whose energy is a submodular function of the pairs (i, label).

    .. math:: \min_{s \in B(F)} \; t \sum_i \log \sum_j \exp(-s_{ij} / t), \qquad
       B(F) = u + \sum_g B(F_g)

    The base polytope is a Minkowski sum over groups g of blocks on disjoint variables: paths of
    Potts edges (half a cut a label), regions (a concave count a label), label costs (a simplex a
    label, or one for a set of labels together), a concave cardinality (a count of the pairs (i,
    center_i)). With all else fixed, the best block of a label is the Euclidean projection of
    :math:`s_g + t\,\mathrm{logit}\,p_j` onto :math:`B(F_{gj})`: no step size. A pass does this for
    every group and label. As t falls to 0, minus the objective rises to :math:`\max_s \sum_i \min_j
    s_{ij}`, and any s bounds every energy from below.

    A convex function g of how many variables are at their center is no set function of that kind,
    but g(m) is the maximum over v of v m minus its conjugate at v: a block with v in every entry,
    and the conjugate in the objective (``below`` makes such blocks).

    A pair that an infinite unary forbids gets a finite one, so far above all others of its row that
    its probability is 0 to the last bit and that no labelling gains by it.

    Memory: 2 G + 4 arrays of N L float64, G the number of groups that cover all variables and
    labels (4-connected grid and a layer of regions: G = 3), and 2 n L a thread, n the largest
    block. A pass is O(N L) for paths and simplices, O(N L log n) for regions.

    Parameters
    ----------
    field : Field
        Its terms must be submodular; ``Relaxation.below`` takes any.
    """

    def __init__(self, field: Field) -> None:
        for potential, term in field._terms():
            if not term.is_submodular:
                raise ValueError(
                    "field must have an energy that is submodular in the pairs (variable, label), "
                    f"got {type(potential).__name__}, which is not"
                )
        self._translate(field._folded(), field._terms())
        self.is_equal = True

    @classmethod
    def below(cls, field: Field) -> Relaxation:
        """The relaxation of the largest relaxable energy known below the field's.

        ``is_equal`` says whether it is the field's own.
        """
        relaxation = cls.__new__(cls)
        terms, relaxation.is_equal = relaxable_minorant(field)
        relaxation._translate(fold(field.unary, terms), terms)
        return relaxation

    @classmethod
    def of_terms(cls, unary: FloatArray, terms: Iterable[tuple[Potential, Term]]) -> Relaxation:
        """That of unaries and of submodular terms that are not about single variables."""
        relaxation = cls.__new__(cls)
        relaxation.is_equal = True
        kept = tuple(terms)
        relaxation._translate(Folded(0.0, unary, kept), kept)
        return relaxation

    def _translate(self, folded: Folded, terms: Iterable[tuple[Potential, Term]]) -> None:
        n, n_labels = folded.unary.shape
        self.n_variables: int = n
        self.n_labels: int = n_labels
        self.unary = folded.unary
        self.constant = sum_constants(terms, self._constant_of)
        self.groups: list[Group] = []
        edges, weights = [np.zeros((0, 2), np.int64)], [np.zeros(0)]
        costs: dict[tuple[int, ...], float] = {}
        for _, term in folded.terms:
            match term:
                case PottsTerm():
                    edges.append(term.edges)
                    weights.append(term.weights)
                case CountTerm():
                    self.groups += region_groups(term, n_labels)
                case LabelTerm():
                    labels = tuple(np.flatnonzero(term.labels).tolist())
                    if 0 < len(labels) < n_labels and n > 0:
                        costs[labels] = costs.get(labels, 0.0) + term.cost
                case CardinalityTerm():
                    self.groups += cardinality_groups(term) if n_labels > 1 else []
                case _:
                    raise TypeError(f"{type(term).__name__} has no base polytope")
        self.groups += path_groups(np.concatenate(edges), np.concatenate(weights), (n, n_labels))
        self.groups += cost_groups(costs, n)

    def _constant_of(self, term: Term) -> float:
        """What a term costs with no pair chosen, or whatever is chosen."""
        match term:
            case CountTerm():
                return float(term.table[term.starts[:-1]].sum()) * self.n_labels
            case LabelTerm():
                return float(term.cost) if term.labels.all() and self.n_variables > 0 else 0.0
            case CardinalityTerm():  # with one label all are at the only center there is
                return float(term.table[0 if self.n_labels == 1 else -1])
            case _:
                return 0.0

    @property
    def is_integral(self) -> bool:
        """Whether its bound is the least energy (of the minorants): two labels, each on its own."""
        return self.n_labels <= 2 and not any(
            group.kind == CONVEX or len(np.unique(group.own)) > 1 for group in self.groups
        )

    @property
    def reach(self) -> FloatArray:
        """(N,): how far the blocks can move two labels of a variable apart.

        A block that is about one label of a variable leaves the others where they are, at 0.
        """
        reach = np.zeros(self.n_variables)
        for group in self.groups:
            alone = len(group.own) > 0
            high = np.maximum(group.high, 0.0) if alone else group.high
            low = np.minimum(group.low, 0.0) if alone else group.low
            reach[group.variables] += high - low
        return reach

    def finite_unary(self, temperature: float) -> FloatArray:
        """The unaries, infinite ones replaced by what has probability 0 at this temperature."""
        if np.isfinite(self.unary).all():
            return self.unary
        largest = np.where(np.isfinite(self.unary), self.unary, -np.inf).max(axis=1)
        beyond = largest + self.reach + 750.0 * temperature
        return np.where(np.isfinite(self.unary), self.unary, beyond[:, None])

    def fill(self, kind: Callable[[FloatArray], Any], unary: FloatArray, n_threads: int = 1) -> Any:
        """A kernel's state with the groups: every block starts where its polytope is nearest to 0.

        ``unary`` is finite: ``finite_unary``, or that less a number for each row.
        """
        return fill(kind, unary, self.groups, n_threads)

    def within(self, blocks: FloatArray) -> FloatArray:
        """The blocks of a field like this one, no entry beyond those of the base polytopes here.

        Projections of larger ones would be rounded at their size.
        """
        low = np.concatenate([np.zeros(0), *(g.entries(g.low) for g in self.groups)])
        high = np.concatenate([np.zeros(0), *(g.entries(g.high) for g in self.groups)])
        return np.clip(blocks.astype(np.float64), low, high)

    def extension(self, p: FloatArray, n_threads: int = 1) -> float:
        """The Lovász extension at p (N, L) of all terms but unaries and the constant."""
        state = self.fill(_core.RelaxationState, np.zeros(self.unary.shape))
        state.set_blocks(np.zeros(state.size()), n_threads)
        return float(state.gap(np.ascontiguousarray(p, np.float64), n_threads))

    def minimize(
        self,
        temperature: float = 1.0,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        init: FloatArray | None = None,
        momentum: bool = True,
        n_jobs: int | None = None,
        callback: Callable[[Descent], bool | None] | None = None,
    ) -> Relaxed:
        """Pass over the groups until the relative gap is at most ``tol`` (``max_iter`` times).

        ``init`` are the ``blocks`` of an earlier answer of this relaxation, or of that of a
        field with the same potentials. ``momentum`` extrapolates between passes; a pass that would
        raise the objective is undone and made again without, so it never rises. ``callback`` gets
        the ``Descent`` after each pass, and a true answer ends it. The answer does not depend on
        ``n_jobs``.
        """
        descent = Descent(self, temperature, as_threads(n_jobs), init)
        converged, interrupted = descent.run(tol, max_iter, momentum=momentum, callback=callback)
        scores = descent.scores()
        scores[np.isinf(self.unary)] = np.inf
        return Relaxed(
            scores=scores,
            probabilities=descent.probabilities(),
            objective=descent.objective - self.constant,
            bound=descent.bound,
            gap=descent.gap,
            relative_gap=descent.relative_gap,
            n_iter=descent.n_iter,
            converged=converged,
            interrupted=interrupted,
            history=[value - self.constant for value in descent.history],
            blocks=descent.blocks(),
        )


def fill(
    kind: Callable[[FloatArray], Any],
    unary: FloatArray,
    groups: Iterable[Group],
    n_threads: int = 1,
) -> Any:
    """A kernel's state of a kind, with unaries and groups."""
    unary = np.ascontiguousarray(unary)
    state = kind(unary)
    for group in groups:
        lengths = [len(labels) for labels in group.slots]
        state.add_group(
            group.kind,
            group.variables,
            group.starts,
            group.parameters,
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.array([j for labels in group.slots for j in labels], np.int64),
            group.own,
        )
    state.set_unary(unary, n_threads)
    return state
