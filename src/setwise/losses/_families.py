"""Families and forms: descriptions of losses for compiled kernels and for devices.

A *family* (``loss._family(labels)``) is made for the ground truths of a batch, and determines the
compiled kernel of a surrogate and its parameters. A *form* (``loss._form``) does not depend on the
truths, so that a device can compute gains without the host. A new family is a class with its
kernels; a new form is a class, and one line in the registry of each device that supports it
(``setwise.torch``: ``GAINS``, ``MAXIMA``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.functions import Cardinality, Counts, Ratio, SetFunction
from setwise.losses._labels import Labels

if TYPE_CHECKING:
    from setwise.losses._base import Loss

# A kernel and its arguments between the sets and the outputs.
Call = tuple[Any, ...]
Componentwise = Callable[[SetFunction], bool]


@dataclass(frozen=True)
class Polymatroids:
    """The polymatroids {b >= 0, b(A) <= F(A)} of increasing submodular F, one per set of a batch.

    ``kind`` is the kind of F for the kernels. ``tables`` has the data of F, for set i from
    ``starts[i]`` on: values for each |A| or for both counts, or weights of a sum.
    """

    kind: int
    tables: FloatArray
    starts: IntArray

    JACCARD: ClassVar[int] = 0
    SIZES: ClassVar[int] = 1
    COUNTS: ClassVar[int] = 2
    MODULAR: ClassVar[int] = 3


class Family:
    """The family of a loss on a batch. The base class has no kernel and uses gains only."""

    def distinct(self) -> Sequence[SetFunction] | None:
        """Return the distinct set functions of the batch, up to permutations of their elements.

        None means that the loss must be evaluated set by set. An empty list means that nothing has
        to be checked.
        """
        return None

    def lovasz(self, case: object, componentwise: Componentwise) -> Call | None:
        """Return the kernel of the Lovász hinge; ``componentwise`` tells whether case 1 applies."""
        return None

    def rescaling(self, slack: bool, weights: FloatArray) -> Call | None:
        """Return the kernel of the exact maximum of margin or slack rescaling, or None."""
        return None

    def polymatroids(self) -> Polymatroids | None:
        """Return the polymatroids of the batch, or None if kernels cannot project onto them."""
        return None


@dataclass(frozen=True)
class RatioRows(Family):
    """The family of a linear-fractional loss of the counts: Jaccard, Dice, F-beta.

    It does not depend on the truths, so it is also a form.
    """

    ratio: Ratio

    PARTS: ClassVar[dict[str, int]] = {"whole": 0, "submodular": 1, "supermodular": 2}

    def distinct(self) -> Sequence[SetFunction]:
        """Return an empty list, because ratios always satisfy the conditions of the kernels."""
        return ()

    @cached_property
    def arguments(self) -> tuple[float, float, float, int]:
        """The arguments of the kernels: a, c, d and the number of the part."""
        return *self.ratio._constants, self.PARTS[self.ratio.part]

    def lovasz(self, case: object, componentwise: Componentwise) -> Call:
        """Return a kernel that chooses the case itself."""
        return _core.lovasz_ratio, *self.arguments, 0 if case == "auto" else case

    def rescaling(self, slack: bool, weights: FloatArray) -> Call:
        """Return a kernel that makes a binary search for each number of false negatives."""
        return _core.rescale_ratio, *self.arguments, slack, weights

    def polymatroids(self) -> Polymatroids | None:
        """Return the polymatroids of Jaccard; the other ratios are not submodular."""
        if self.arguments != (1.0, 1.0, 0.0, self.PARTS["whole"]):
            return None
        return Polymatroids(Polymatroids.JACCARD, np.empty(0), np.empty(0, np.int64))


@dataclass(frozen=True)
class TableRows(Family):
    """The family of losses with tables; that of set i begins at tables[starts[i]].

    For a loss of the number of mistakes the table has p + 1 values; for a loss of counts it is
    the grid (m + 1, r + 1), flat. Sets share tables: set i has the set function
    ``functions[which[i]]``, up to a permutation of its elements.
    """

    functions: Sequence[Cardinality] | Sequence[Counts]
    which: IntArray
    tables: FloatArray
    starts: IntArray
    of_counts: bool

    @classmethod
    def of(cls, functions: Sequence[Cardinality] | Sequence[Counts], which: IntArray) -> TableRows:
        """Concatenate the tables of the functions."""
        if len(functions) == 1:  # mainly for a single set: `which` and the starts are 0
            (only,) = functions
            table = only.values if isinstance(only, Cardinality) else only.grid().ravel()
            return cls(functions, which, table, which, isinstance(only, Counts))
        tables = [f.values if isinstance(f, Cardinality) else f.grid().ravel() for f in functions]
        begins = np.concatenate([[0], np.cumsum([table.size for table in tables])])
        flat = np.concatenate([np.empty(0), *tables])
        of_counts = len(functions) > 0 and isinstance(functions[0], Counts)
        return cls(functions, which, flat, begins.astype(np.int64)[which], of_counts)

    def distinct(self) -> Sequence[SetFunction]:
        """Return one function per table."""
        return self.functions

    def lovasz(self, case: object, componentwise: Componentwise) -> Call:
        """Return a kernel with a flag per set for its case, which is determined once per table."""
        flags = [componentwise(function) for function in self.functions]
        kernel = _core.lovasz_counts if self.of_counts else _core.lovasz_cardinality
        return kernel, self.tables, self.starts, np.array(flags, np.uint8)[self.which]

    def rescaling(self, slack: bool, weights: FloatArray) -> Call:
        """Return a kernel that tries all sizes of the set, or all pairs of counts."""
        kernel = _core.rescale_counts if self.of_counts else _core.rescale_cardinality
        return kernel, self.tables, self.starts, slack, weights

    def polymatroids(self) -> Polymatroids | None:
        """Return the polymatroids if all tables are increasing and submodular."""
        if not all(f.is_submodular and f.is_increasing for f in self.functions):
            return None
        kind = Polymatroids.COUNTS if self.of_counts else Polymatroids.SIZES
        return Polymatroids(kind, self.tables, self.starts)


@dataclass(frozen=True)
class ModularRows(Family):
    """The family of modular losses: a flat weight per element; ``common`` if all are equal.

    Slack rescaling with different weights contains the partition problem. With equal weights the
    loss is one of the number of mistakes, which has a kernel.
    """

    weights: FloatArray
    labels: Labels
    common: Callable[[], float | None] = lambda: None

    def lovasz(self, case: object, componentwise: Componentwise) -> Call | None:
        """Return the kernel of the sum of hinge losses, or None for case 2, which uses gains."""
        return None if case == 2 else self.rescaling(False, np.full(self.labels.n, -1.0))

    def rescaling(self, slack: bool, weights: FloatArray) -> Call | None:
        """Return a kernel that decides each element separately, for margin rescaling."""
        if not slack:
            return _core.hinge_modular, self.weights, weights
        common = self.common()
        if common is None:
            return None
        sizes, which = np.unique(self.labels.sizes, return_inverse=True)
        tables = [Cardinality(common * np.arange(p + 1.0)) for p in sizes]
        return TableRows.of(tables, which).rescaling(True, weights)

    def polymatroids(self) -> Polymatroids:
        """Return the polymatroids of the sets, which are boxes."""
        return Polymatroids(Polymatroids.MODULAR, self.weights, self.labels.offsets[:-1])


@dataclass(frozen=True)
class PrefixRows(Family):
    """The family of sum_i weights[i] min(|I_i|, caps[i]) over prefixes I_i, equation (49)."""

    weights: FloatArray
    caps: FloatArray

    def rescaling(self, slack: bool, weights: FloatArray) -> Call | None:
        """Return a dynamic program for margin rescaling, and None for slack rescaling."""
        return None if slack else (_core.rescale_prefix, self.weights, self.caps, weights)


# The forms of losses, for devices that compute gains themselves.


@dataclass(frozen=True, eq=False)
class Tables:
    """The form of a loss with ``loss._table_rows(labels)``: of counts, or of their sum."""

    loss: Loss
    of_size: bool


@dataclass(frozen=True, eq=False)
class Weights:
    """The form of the sum of the weights of the mistakes; None for their number."""

    weights: FloatArray | None


@dataclass(frozen=True, eq=False)
class Curve:
    """The form of concave(sum of the weights of the mistakes)."""

    concave: Callable[..., ArrayLike]
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Terms:
    """The form of a weighted sum of losses, each with its own form."""

    loss: Loss
    terms: tuple[Loss, ...]
    coefficients: FloatArray
