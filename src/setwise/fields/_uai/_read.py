"""Reading models in the UAI format: Markov and Bayes networks as fields."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise.fields._field import Field
from setwise.fields._potentials._clique import CliquePotential
from setwise.fields._potentials._pairwise import Pairwise
from setwise.fields._terms._tables import extend_tables
from setwise.fields._uai._evidence import parse_evidence
from setwise.fields._uai._model import UaiModel, as_path, parse_uai


def read_uai(
    path: str | os.PathLike[str], *, evidence: str | os.PathLike[str] | None = None
) -> Field:
    r"""Read the field of a model file, with the energy :math:`E(x) = -\sum_f \log f(x)`.

    The format is that of the UAI competitions: ``MARKOV`` or ``BAYES``, the number of variables,
    their numbers of labels, the number of factors, the variables of each factor, and a table for
    each, the last variable fastest. Factors may have any number of variables in any order. Repeated
    factors are added, and a factor of no variable is a constant, which is added to the unaries of
    the first variable.

    Variables with fewer labels than others are padded with forbidden labels, whose unaries are
    ``+inf``. A label is also forbidden if its table entries are 0 for every label that its
    neighbour may take. Any other 0 is a hard constraint. Tables of two variables with hard
    constraints, and all tables of three or more, become ``CliquePotential`` s with the file's
    number of labels.

    The cost is linear in the file: about ten million numbers per second. The header is checked
    against the file's length before memory is allocated.

    Parameters
    ----------
    path : str or path
        A text file, or a file compressed by gzip whose name ends in ``.gz``. Decompressed, it may
        have at most 256 MiB, or 32 times the size of the compressed file if that is more.
    evidence : str or path, optional
        A file of observed variables: their number, then each with its label; older files have the
        number of samples, 1, before that. The field keeps all variables and their numbering. All
        labels of an observed variable but the observed one are forbidden, so that :math:`\log Z` is
        that of the evidence.

    Returns
    -------
    Field
        A field with a ``Pairwise`` if there are pairs without hard constraints, and a
        ``CliquePotential`` for each other shape of tables.

    Raises
    ------
    ValueError
        If the file is no valid model; the message names the file and the position.

    Examples
    --------
    >>> import setwise as sw
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.uai")
    >>> size = path.write_text("MARKOV 2  2 2  2  1 0  2 0 1  2  0.5 1  4  1 0.25 0.25 1")
    >>> field = sw.fields.read_uai(path)
    >>> field
    Field(2 variables, 2 labels) + Pairwise(edges=1, labels=2)
    >>> round(field.energy([0, 1]), 6)  # -log(0.5 * 0.25)
    2.079442
    >>> seen = path.with_suffix(".evid")
    >>> size = seen.write_text("1 0 1")  # one variable, 0, has the label 1
    >>> sw.solve_map(sw.fields.read_uai(path, evidence=seen)).labels.tolist()
    [1, 1]
    """
    return read_with_cards(path, evidence)[0]


def read_with_cards(
    path: str | os.PathLike[str], evidence: str | os.PathLike[str] | None = None
) -> tuple[Field, IntArray]:
    """Return the field of a model file, and the number of labels (N,) of each variable in it.

    The field alone does not distinguish a label that the file forbids from a label that the
    variable lacks.
    """
    model = parse_uai(as_path(path))
    unary = _unary(model)
    if evidence is not None:
        variables, labels = parse_evidence(as_path(evidence, "evidence"), model.cards)
        observed = unary[variables, labels]
        unary[variables] = np.inf
        unary[variables, labels] = observed
    groups = list(_pairwise_groups(model))
    hard = _forbid(unary, groups)
    impossible = np.flatnonzero(np.isinf(unary).all(axis=1))
    if len(impossible):
        raise ValueError(
            f"{model.name}: every variable must have a possible label, {impossible[0]} has none"
        )
    field = Field(unary)
    plain = [group.part(~is_hard) for group, is_hard in zip(groups, hard, strict=True)]
    total, n_labels = sum(len(group.edges) for group in plain), field.n_labels
    if total and model.affords(total * n_labels**2):
        kept = np.sort(np.concatenate([group.places for group in plain]))
        edges, tables = np.empty((total, 2), np.int64), np.empty((total, n_labels, n_labels))
        for group in plain:
            places = np.searchsorted(kept, group.places)
            edges[places] = group.edges
            # All zeros of these tables are forbidden labels, for which any entry is valid.
            finite = np.where(np.isinf(group.tables), 0.0, group.tables)
            tables[places] = extend_tables(finite, n_labels)
        field = field + Pairwise(edges, tables)
        groups = [group.part(is_hard) for group, is_hard in zip(groups, hard, strict=True)]
    for group in groups:
        if len(group.edges):
            field = field + _cliques(group.edges, group.tables, n_labels)
    for size in np.unique(model.sizes[model.sizes > 2]).tolist():
        for cliques, energies in _clique_groups(model, size):
            field = field + _cliques(cliques, energies, n_labels)
    return field, model.cards


def _cliques(cliques: IntArray, energies: FloatArray, n_labels: int) -> CliquePotential:
    short = any(side < n_labels for side in energies.shape[1:])
    return CliquePotential._of(np.ascontiguousarray(cliques), energies, is_short=short)


def _clique_groups(model: UaiModel, size: int) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the factors of ``size`` variables, by the numbers of labels of these."""
    factors, scopes = model.of_size(size)
    shapes, which = np.unique(model.cards[scopes], axis=0, return_inverse=True)
    for k, shape in enumerate(shapes.tolist()):
        chosen = which.ravel() == k
        energies = model.energies(factors[chosen], tuple(shape))
        nothing = np.isinf(energies).reshape(len(energies), -1).all(axis=1)
        if nothing.any():
            raise ValueError(
                f"{model.name}: every factor must have a positive entry, "
                f"{factors[chosen][nothing][0]} has none"
            )
        yield scopes[chosen], energies


@dataclass(frozen=True, eq=False)
class _Group:
    """The factors over two variables with a and b labels."""

    factors: IntArray
    places: IntArray
    """The index of each factor among all factors of two variables."""
    edges: IntArray
    tables: FloatArray
    """(G, a, b), +inf where the file has 0."""

    def part(self, chosen: BoolArray) -> _Group:
        """Return a group of the chosen factors."""
        return _Group(
            self.factors[chosen], self.places[chosen], self.edges[chosen], self.tables[chosen]
        )


def _unary(model: UaiModel) -> FloatArray:
    """Sum the factors of at most one variable, (N, L), +inf beyond a variable's labels."""
    n_labels = int(model.cards.max())
    model.afford(len(model.cards) * n_labels)
    unary = np.where(np.arange(n_labels) < model.cards[:, None], 0.0, np.inf)
    alone, scopes = model.of_size(1)
    counts = model.cards[scopes[:, 0]]
    for count in np.unique(counts):
        chosen = counts == count
        energies = model.energies(alone[chosen], (int(count),))
        np.add.at(unary[:, :count], scopes[chosen, 0], energies)
    constants = np.flatnonzero(model.sizes == 0)
    if len(constants):
        unary[0] += model.energies(constants, ()).sum()
    return unary


def _pairwise_groups(model: UaiModel) -> Iterator[_Group]:
    pairs, scopes = model.of_size(2)
    shapes = model.cards[scopes]
    for a, b in np.unique(shapes, axis=0).tolist():
        places = np.flatnonzero((shapes == (a, b)).all(axis=1))
        factors = pairs[places]
        yield _Group(factors, places, scopes[places], model.energies(factors, (a, b)))


def _forbid(unary: FloatArray, groups: list[_Group]) -> list[BoolArray]:
    """Forbid labels whose table entries are all 0, in place. Return which factors keep zeros."""
    forbidden = np.isinf(unary)
    zeros = [_Zeros.of(group) for group in groups]
    for part in zeros:
        for here, there, tables in part.directions():
            never = (tables | forbidden[here, : tables.shape[1], None]).all(axis=1)
            edges, labels = np.nonzero(never)
            forbidden[there[edges], labels] = True
    _propagate(forbidden, np.flatnonzero((forbidden != np.isinf(unary)).any(axis=1)), zeros)
    unary[forbidden] = np.inf
    hard: list[BoolArray] = []
    for group, part in zip(groups, zeros, strict=True):
        first, second = part.edges.T
        _, a, b = part.tables.shape
        possible = ~(forbidden[first, :a, None] | forbidden[second, None, :b])
        further = part.factors[(part.tables & possible).any(axis=(1, 2))]
        hard.append(np.isin(group.factors, further))
    return hard


@dataclass(frozen=True, eq=False)
class _Zeros:
    """The factors of a group that have zeros, and the positions of the zeros."""

    factors: IntArray
    edges: IntArray
    tables: BoolArray
    """(Z, a, b)"""

    @classmethod
    def of(cls, group: _Group) -> Self:
        tables = np.isinf(group.tables)
        has = np.flatnonzero(tables.any(axis=(1, 2)))
        return cls(group.factors[has], group.edges[has], tables[has])

    def directions(self) -> list[tuple[IntArray, IntArray, BoolArray]]:
        """Return both directions of the factors, with the target's labels last in the tables."""
        first, second = self.edges.T
        return [(first, second, self.tables), (second, first, self.tables.transpose(0, 2, 1))]


def _propagate(forbidden: BoolArray, changed: IntArray, zeros: list[_Zeros]) -> None:
    """Forbid labels that only have zeros with a neighbour's allowed labels, until this ends.

    The cost is O(L^2) per factor and per change of one of its variables.
    """
    if len(changed) == 0:
        return
    arcs = [arc for part in zeros for arc in part.directions()]
    tails = np.concatenate([here for here, _, _ in arcs])
    kinds = np.repeat(np.arange(len(arcs)), [len(here) for here, _, _ in arcs])
    rows = np.concatenate([np.arange(len(here)) for here, _, _ in arcs])
    order = np.argsort(tails, kind="stable")
    starts = np.searchsorted(tails[order], np.arange(len(forbidden) + 1)).tolist()
    leaving = list(zip(kinds[order].tolist(), rows[order].tolist(), strict=True))
    waiting, is_waiting = deque(changed.tolist()), set(changed.tolist())
    while waiting:
        i = waiting.popleft()
        is_waiting.remove(i)
        for kind, row in leaving[starts[i] : starts[i + 1]]:
            _, heads, tables = arcs[kind]
            j, table = int(heads[row]), tables[row]
            allowed = ~forbidden[i, : len(table)]
            lost = table[allowed].all(axis=0) & ~forbidden[j, : table.shape[1]]
            if lost.any():
                forbidden[j, : table.shape[1]] |= lost
                if j not in is_waiting:
                    waiting.append(j)
                    is_waiting.add(j)
