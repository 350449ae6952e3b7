"""A field: unaries plus potentials."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise import _core
from setwise._foundation._arguments import (
    LARGEST,
    FloatArray,
    IntArray,
    as_array,
    as_float64,
    as_integers,
)
from setwise._foundation._base_classes import Immutable
from setwise._foundation._display import Row, as_html, label_picture
from setwise._foundation._warnings import warn_caller
from setwise.fields._base import Potential
from setwise.fields._edges import grid_of
from setwise.fields._favourites import Favourites
from setwise.fields._pixels._grid import as_sides
from setwise.fields._terms._base import Term
from setwise.fields._terms._fold import Folded, fold

_LARGEST = sqrt(LARGEST)  # with this bound, sums of squares of energies stay finite


class Field(Immutable):
    r"""An energy over N variables with labels 0..L-1; lower is better.

    .. math:: E(x) = \sum_i u_{i x_i} + \sum_k \varphi_k(x)

    Parameters
    ----------
    unary : array of shape (N, L)
        ``+inf`` forbids a label; each row needs a finite entry.
    shape : sequence of int, optional
        The sides of the image or volume whose pixels are the variables, in C order. By default it
        is the shape of the grid of the first added potential whose edges are ``grid_edges`` over
        all variables. Results also have this shape, and return their labels in it.

    Attributes
    ----------
    unary : array of shape (N, L)
        Read-only.
    potentials : tuple of Potential
    shape : tuple of int, or None
        The sides of the image, if they are known.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0], [0.0, 0.5]])
    >>> field = field + sw.fields.Potts([[0, 1], [1, 2]], 0.75)
    >>> field.energy([0, 1, 0]), field.energy([[0, 0, 0], [1, 1, 1]]).tolist()
    (1.5, [2.0, 1.5])
    """

    unary: FloatArray
    potentials: tuple[Potential, ...]
    shape: tuple[int, ...] | None

    # Adding an array raises an error; NumPy would add the field to each of its entries.
    __array_ufunc__ = None

    def __init__(self, unary: ArrayLike, *, shape: Sequence[int] | None = None) -> None:
        array = _as_unary(unary)
        _warn_of_mistakes(array)
        self._set(unary=array, potentials=(), shape=_as_shape(shape, len(array)))

    @property
    def n_variables(self) -> int:
        """The number N of variables."""
        return int(self.unary.shape[0])

    @property
    def n_labels(self) -> int:
        """The number L of labels."""
        return int(self.unary.shape[1])

    @property
    def is_submodular(self) -> bool:
        """Whether the energy is a submodular function of the chosen pairs (variable, label)."""
        return all(term.is_submodular for _, term in self._terms())

    def __add__(self, potential: Potential) -> Field:
        """Return the field with one more potential."""
        if not isinstance(potential, Potential):
            return NotImplemented
        potential.check(self.n_variables, self.n_labels)
        shape = self.shape or _shape_of(potential, self.n_variables)
        return Field._of(self.unary, (*self.potentials, potential), shape)

    def with_unary(self, unary: ArrayLike) -> Field:
        """Return a field with the same potentials and other unaries of the same shape."""
        changed = _as_unary(unary)
        if changed.shape != self.unary.shape:
            raise ValueError(f"unary must have shape {self.unary.shape}, got {changed.shape}")
        return self._over(changed)

    def _over(self, unary: FloatArray) -> Field:
        """Return a field with checked unaries, the same potentials and their cached terms."""
        field = Field._of(unary, self.potentials, self.shape)
        field._remember("given", self._given)
        field._remember("terms", self._terms)
        return field

    @classmethod
    def _of(
        cls,
        unary: FloatArray,
        potentials: tuple[Potential, ...],
        shape: tuple[int, ...] | None = None,
    ) -> Field:
        """Make a field of parts that are already checked."""
        field = Field.__new__(Field)
        field._set(unary=unary, potentials=potentials, shape=shape)
        return field

    def energy(self, labels: ArrayLike) -> float | FloatArray:
        """Return E(x): labels (N,) -> float, (m, N) -> (m,); ``inf`` if a label is forbidden."""
        array = as_array(labels, "labels")
        if array.ndim not in (1, 2) or array.shape[-1] != self.n_variables:
            raise ValueError(
                f"labels must have shape ({self.n_variables},) or (m, {self.n_variables}), "
                f"got {array.shape}"
            )
        checked = as_integers(array, "labels", below=self.n_labels)
        energies = self._energies(np.ascontiguousarray(np.atleast_2d(checked)))
        return float(energies[0]) if array.ndim == 1 else energies

    def _energies(self, labels: IntArray) -> FloatArray:
        """Return energies (m,) of checked labellings (m, N)."""
        energies = np.empty(len(labels))
        _core.unary_energies(labels, self.unary, energies)
        for potential in self.potentials:
            energies += potential.energies(labels, self.n_labels)
        return energies

    def _given(self) -> list[tuple[Potential, Term]]:
        """Return pairs of a potential and one of its terms, before any splitting of tables."""
        return self._remember(
            "given", lambda: [(p, term) for p in self.potentials for term in self._given_of(p)]
        )

    def _given_of(self, potential: Potential) -> tuple[Term, ...]:
        """Return the terms of a potential, cached in it, after checking that it fits the field."""
        n, labels = self.n_variables, self.n_labels
        return potential._remember(("given", n, labels), lambda: potential._terms(n, labels))

    def _terms(self) -> list[tuple[Potential, Term]]:
        """Return pairs of a potential and one of the terms that searches use for it.

        Tables that are unaries plus Potts are split into these, which may round their entries.
        """

        def split() -> list[tuple[Potential, Term]]:
            given = self._given()
            found = [(p, term) for p in self.potentials for term in self._terms_of(p)]
            pairs = zip(found, given, strict=False)
            same = len(found) == len(given) and all(a[1] is b[1] for a, b in pairs)
            return given if same else found

        return self._remember("terms", split)

    def _terms_of(self, potential: Potential) -> tuple[Term, ...]:
        """Return the terms that searches use for a potential, cached in the potential."""
        n, labels = self.n_variables, self.n_labels

        def split() -> tuple[Term, ...]:
            return tuple(
                part for term in self._given_of(potential) for part in term._split(n, labels)
            )

        return potential._remember(("terms", n, labels), split)

    def _favourites(self) -> Favourites:
        """Return the least unary of each variable."""
        return self._remember("favourites", lambda: Favourites.of(self.unary))

    def _folded(self) -> Folded:
        """Return the energy as a constant, unaries, and terms of more than one variable."""
        return self._remember("folded", lambda: fold(self.unary, self._terms()))

    def __repr__(self) -> str:
        parts = [f"Field({self.n_variables} variables, {self.n_labels} labels)"]
        return " + ".join([*parts, *(repr(potential) for potential in self.potentials)])

    def _repr_html_(self) -> str:
        rows: list[Row] = [("variables", self.n_variables), ("labels", self.n_labels)]
        rows += [("potential", potential) for potential in self.potentials]
        if self.shape is None:
            return as_html("Field", rows)
        least = self._favourites().labels.reshape(self.shape)
        pictures = [("labels of least unaries", label_picture(least))] if least.size else []
        return as_html("Field", [*rows, ("shape", self.shape)], pictures)


def _warn_of_mistakes(unary: FloatArray) -> None:
    """Warn if a few rows of the energies (N, L) look like probabilities or scores."""
    n, labels = unary.shape
    if labels > 256 and labels > 8 * n:
        message = (
            f"unary has {n} variables with {labels} labels each: rows are variables and columns "
            "labels, so unary.T may be what was meant"
        )
        warn_caller(message)
    if n >= 16 and _are_probabilities(unary[:: n // 16]) and _are_probabilities(unary):
        message = (
            "unary looks like probabilities, as each row sums to 1, but the best label is the one "
            "of least energy: -np.log(unary) may be what was meant"
        )
        warn_caller(message)


def _are_probabilities(rows: FloatArray) -> bool:
    """Return whether all rows sum to 1, and are neither one-hot nor all equal."""
    if rows.shape[1] < 2 or not (rows.min() >= 0.0 and rows.max() <= 1.0):
        return False
    sums = rows.sum(axis=1)
    inside = np.count_nonzero((rows > 0.0) & (rows < 1.0))
    return bool(
        np.abs(sums - 1.0).max() < 1e-5 and 2 * inside > rows.size and (rows != rows[0]).any()
    )


def _as_shape(shape: Sequence[int] | None, n_variables: int) -> tuple[int, ...] | None:
    """Return the sides of an image that has one pixel per variable."""
    if shape is None:
        return None
    sides = as_sides(shape)
    if not sides or prod(sides) != n_variables:
        raise ValueError(
            f"shape must be the sides of an image of {n_variables} pixels, one for each row of "
            f"unary, got {sides}"
        )
    return sides


def _shape_of(potential: Potential, n_variables: int) -> tuple[int, ...] | None:
    """Return the sides of the grid of a potential's edges, if the grid has all variables."""
    grid = grid_of(getattr(potential, "edges", None))
    return grid.sides if grid is not None and prod(grid.sides) == n_variables else None


def _as_unary(unary: ArrayLike) -> FloatArray:
    """Return an energy for each variable and label, as a new float64 array."""
    array = as_array(unary, "unary")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"unary must hold real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] == 0:
        sides, n_labels = array.shape[:-1], array.shape[-1:]
        hint = f": unary.reshape(-1, {n_labels[0]}), and shape={sides}" if len(sides) > 1 else ""
        raise ValueError(f"unary must have shape (N, L) with L at least 1, got {array.shape}{hint}")
    checked = _checked(array)
    if checked is not None:
        return checked
    array = as_float64(array)
    bad = ~(array > -np.inf)  # NaN and -inf
    if bad.any():
        raise ValueError(f"unary must hold numbers or +inf, got {array[bad][0]}")
    large = np.isfinite(array) & (np.abs(array) > _LARGEST)
    if large.any():
        raise ValueError(f"unary must be at most {_LARGEST:g} in size, got {array[large][0]:g}")
    empty = np.isinf(array).all(axis=1)
    if empty.any():
        raise ValueError(
            f"unary must have a finite entry in each row, got none in row {np.argmax(empty)}"
        )
    return array


def _checked(array: NDArray[Any]) -> FloatArray | None:
    """Return a copy of energies (N, L), made in one pass; None if an energy is not valid."""
    source = array if array.dtype == np.float64 and array.flags.c_contiguous else as_float64(array)
    copy = np.empty(array.shape)
    return copy if _core.copy_unary(source, _LARGEST, copy) else None


def as_field(field: object) -> Field:
    """Return the field, or raise a ``TypeError``."""
    if not isinstance(field, Field):
        raise TypeError(f"field must be a Field, got {type(field).__name__}")
    return field
