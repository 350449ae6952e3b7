r"""The Lovász relaxation of a field, and its minimisation by projected logits.

Marginals use it at the field's own temperature, and lower bounds on the energy by cooling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from setwise import _core
from setwise._foundation._arguments import FloatArray
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


class Relaxation:
    r"""The relaxation of a field whose energy is a submodular function of the pairs (i, label).

    .. math:: \min_{s \in B(F)} \; t \sum_i \log \sum_j \exp(-s_{ij} / t), \qquad
       B(F) = u + \sum_g B(F_g)

    The base polytope is a Minkowski sum over groups g of blocks on disjoint variables: paths of
    Potts edges (half a cut per label), regions (a concave function of a count per label), label
    costs (a simplex per label, or one for a set of labels together), a concave cardinality (a
    function of the count of the pairs (i, center_i)). With all other blocks fixed, the best block
    of a label is the Euclidean projection of :math:`s_g + t\,\mathrm{logit}\,p_j` onto
    :math:`B(F_{gj})`, so no step size is needed. A pass does this for every group and label. As t
    falls to 0, minus the objective rises to :math:`\max_s \sum_i \min_j s_{ij}`, and any s gives a
    lower bound on every energy.

    A convex function g of the number of variables at their center is not submodular, but g(m) is
    the maximum over v of v m minus the conjugate of g at v. This gives a block with v in every
    entry, and the conjugate in the objective (``below`` makes such blocks).

    An infinite unary is replaced by a finite one, so far above the others of its row that the
    probability of the pair is 0 to the last bit, and that no labelling gains by it.

    Memory is 2 G + 4 arrays of N L float64, where G is the number of groups that cover all
    variables and labels (4-connected grid and a layer of regions: G = 3), and 2 n L per thread,
    where n is the size of the largest block. A pass is O(N L) for paths and simplices, O(N L log n)
    for regions.

    Parameters
    ----------
    field : Field
        Its terms must be submodular; ``Relaxation.below`` accepts any terms.
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
        """Return the relaxation of the largest known relaxable energy below the field's.

        ``is_equal`` is True if the two energies are equal.
        """
        relaxation = cls.__new__(cls)
        terms, relaxation.is_equal = relaxable_minorant(field)
        relaxation._translate(fold(field.unary, terms), terms)
        return relaxation

    @classmethod
    def of_terms(cls, unary: FloatArray, terms: Iterable[tuple[Potential, Term]]) -> Relaxation:
        """Return the relaxation of unaries and of submodular terms of several variables."""
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
        """Return the constant of a term: its cost if no pair is chosen."""
        match term:
            case CountTerm():
                return float(term.table[term.starts[:-1]].sum()) * self.n_labels
            case LabelTerm():
                return float(term.cost) if term.labels.all() and self.n_variables > 0 else 0.0
            case CardinalityTerm():  # with one label all variables are at the only center
                return float(term.table[0 if self.n_labels == 1 else -1])
            case _:
                return 0.0

    @property
    def is_integral(self) -> bool:
        """Whether the bound is known to be the least energy, of the minorants if there are any."""
        return self.n_labels <= 2 and not any(
            group.kind == CONVEX or len(np.unique(group.own)) > 1 for group in self.groups
        )

    @property
    def widths(self) -> FloatArray:
        """The largest change by blocks of the difference of two labels, for each variable, (N,).

        A block of one label of a variable leaves the entries of the other labels at 0.
        """
        widths = np.zeros(self.n_variables)
        for group in self.groups:
            alone = len(group.own) > 0
            high = np.maximum(group.high, 0.0) if alone else group.high
            low = np.minimum(group.low, 0.0) if alone else group.low
            widths[group.variables] += high - low
        return widths

    def finite_unary(self, temperature: float) -> FloatArray:
        """Return the unaries, with infinite ones replaced by values of probability 0."""
        if np.isfinite(self.unary).all():
            return self.unary
        largest = np.where(np.isfinite(self.unary), self.unary, -np.inf).max(axis=1)
        beyond = largest + self.widths + 750.0 * temperature
        return np.where(np.isfinite(self.unary), self.unary, beyond[:, None])

    def fill(self, kind: Callable[[FloatArray], Any], unary: FloatArray, n_threads: int = 1) -> Any:
        """Return a kernel's state with the groups, each block the point of least norm.

        ``unary`` is finite: ``finite_unary``, possibly minus a constant for each row.
        """
        return fill(kind, unary, self.groups, n_threads)

    def within(self, blocks: FloatArray) -> FloatArray:
        """Return the blocks of a similar field, clipped to the ranges of these base polytopes.

        Larger entries would increase the rounding errors of projections.
        """
        low = np.concatenate([np.zeros(0), *(g.entries(g.low) for g in self.groups)])
        high = np.concatenate([np.zeros(0), *(g.entries(g.high) for g in self.groups)])
        return np.clip(blocks.astype(np.float64), low, high)

    def extension(self, p: FloatArray, n_threads: int = 1) -> float:
        """Return the Lovász extension at p (N, L) of all terms except unaries and constant."""
        state = self.fill(_core.RelaxationState, np.zeros(self.unary.shape))
        state.set_blocks(np.zeros(state.size()), n_threads)
        return float(state.gap(np.ascontiguousarray(p, np.float64), n_threads))


def fill(
    kind: Callable[[FloatArray], Any],
    unary: FloatArray,
    groups: Iterable[Group],
    n_threads: int = 1,
) -> Any:
    """Return a kernel's state of a kind, with unaries and groups."""
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
