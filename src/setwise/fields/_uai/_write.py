"""Writing fields in the UAI format."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._files import write_whole
from setwise.fields._field import Field, as_field
from setwise.fields._potentials._clique import CliquePotential
from setwise.fields._uai._model import as_path

# exp(-energy) is accurate up to this energy. A table with a higher entry is written as a product of
# several factors. Energies that need more than _MOST_FACTORS factors raise an error, because the
# file grows with their number. Chosen by hand; no measurement is on record.
_HIGHEST = 700.0
_MOST_FACTORS = 100

Factor = tuple[tuple[int, ...], FloatArray]


def write_uai(field: Field, path: str | os.PathLike[str]) -> None:
    r"""Write a field as a model file, with factors :math:`f = e^{-\text{energy}}`.

    There is one factor for the unaries of each variable, one for each edge of a ``Potts`` or
    ``Pairwise`` potential or of one whose terms are all of these kinds, and one for each table of a
    ``CliquePotential``, with 0 where it forbids. An energy above 700 needs several factors. If the
    field has other potentials, an error is raised and no file is written. ``read_uai`` returns the
    same energies up to rounding, including constants.

    Trailing forbidden labels of a variable are not counted in its number of labels. The first
    variable keeps all L labels, so that reading restores L.

    Parameters
    ----------
    field : Field
        A field with at least one variable, and no energies above 70000.
    path : str or path
        The file is compressed by gzip if its name ends in ``.gz``. An existing file is replaced
        when the new one is complete.

    Examples
    --------
    >>> import setwise as sw
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.uai")
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]) + sw.fields.Potts([[0, 1]], 0.5)
    >>> sw.fields.write_uai(field, path)
    >>> print(path.read_text())
    MARKOV
    2
    2 2
    3
    1 0
    1 1
    2 0 1
    <BLANKLINE>
    2
    1.0 0.36787944117144233
    2
    0.1353352832366127 1.0
    4
    1.0 0.6065306597126334 0.6065306597126334 1.0
    <BLANKLINE>
    >>> sw.fields.read_uai(path).energy([0, 1]) == field.energy([0, 1])
    True
    """
    field = as_field(field)
    if field.n_variables == 0:
        raise ValueError("field must have at least one variable, got none")
    target = as_path(path)
    cards = _cards(field.unary)
    factors = list(_factors(field, cards))
    lines = ["MARKOV", str(len(cards)), " ".join(map(str, cards.tolist())), str(len(factors))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope, _ in factors]
    lines.append("")
    for _, energies in factors:
        lines += [str(energies.size), " ".join(map(repr, np.exp(-energies).ravel().tolist()))]
    text = "\n".join(lines).encode("ascii") + b"\n"
    write_whole(target, gzip.compress(text) if target.suffix == ".gz" else text)


def _cards(unary: FloatArray) -> IntArray:
    """Count the labels of each variable without trailing forbidden ones."""
    finite = np.isfinite(unary)
    cards = unary.shape[1] - np.argmax(finite[:, ::-1], axis=1)
    cards[0] = unary.shape[1]
    return np.asarray(cards, np.int64)


def _factors(field: Field, cards: IntArray) -> Iterator[Factor]:
    for i, (energies, card) in enumerate(zip(field.unary, cards.tolist(), strict=True)):
        yield from _split((i,), energies[:card])
    for potential in field.potentials:
        if isinstance(potential, CliquePotential):
            yield from _cliques(potential, cards)
            continue
        tables = potential._pair_tables(field.n_variables, field.n_labels)
        if tables is None:
            raise ValueError(
                f"a model file holds Potts, Pairwise and clique potentials only, got {potential!r}"
            )
        for (i, j), table in tables:
            yield from _split((i, j), table[: cards[i], : cards[j]])


def _cliques(potential: CliquePotential, cards: IntArray) -> Iterator[Factor]:
    """Yield the tables over the labels of their variables; other labels are impossible."""
    for clique, table in zip(potential.cliques.tolist(), potential._each(), strict=True):
        sides = [int(cards[i]) for i in clique]
        energies = table[tuple(map(slice, sides))]
        lacking = [(0, side - has) for side, has in zip(sides, energies.shape, strict=True)]
        yield from _split(tuple(clique), np.pad(energies, lacking, constant_values=np.inf))


def _split(scope: tuple[int, ...], energies: FloatArray) -> Iterator[Factor]:
    """Yield one factor, or several if the energies are too large for one."""
    highest = float(np.abs(energies[np.isfinite(energies)]).max(initial=0.0))
    if highest > _HIGHEST * _MOST_FACTORS:
        raise ValueError(
            f"energies must lie within {_HIGHEST * _MOST_FACTORS:g} of 0 to be written as factors "
            f"exp(-energy), got {highest:g}"
        )
    parts = max(int(np.ceil(highest / _HIGHEST)), 1)
    for _ in range(parts):
        yield scope, energies / parts
