"""What a loss looks like: to the compiled kernels on a batch of sets, and to a device on any sets.

A *family* (``loss._family(labels)``) is made for the ground truths of a batch and says which
compiled kernel computes a surrogate, and with which parameters. A *form* (``loss._form``) is known
before any truth is seen, so that a device can compute gains without asking the host. A new family
is a class with the kernels that it has; a new form is a class, and one line in the registry of each
device that computes with it (``setwise.torch``: ``GAINS``, ``MAXIMA``).
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

# A kernel and what it takes between the sets and its answers.
Call = tuple[Any, ...]
Componentwise = Callable[[SetFunction], bool]


@dataclass(frozen=True)
class Polymatroids:
    """{b >= 0, b(A) <= F(A)} for the increasing submodular F of each set of a batch.

    ``kind`` is that of F for the kernels, ``tables`` what they need of it, from ``starts[i]`` on
    for set i: values for each |A| or for both counts, or weights that are summed.
    """

    kind: int
    tables: FloatArray
    starts: IntArray

    JACCARD: ClassVar[int] = 0
    SIZES: ClassVar[int] = 1
    COUNTS: ClassVar[int] = 2
    MODULAR: ClassVar[int] = 3


class Family:
    """How kernels see a loss on the sets of a batch. This one has no kernel: all goes by gains."""

    def distinct(self) -> Sequence[SetFunction] | None:
        """Return the distinct set functions of the batch, up to permutations of their elements.

        None where the loss has to be asked, set by set; none at all where no question is open.
        """
        return None

    def lovasz(self, case: object, componentwise: Componentwise) -> Call | None:
        """Return the kernel of the Lovász hinge; ``componentwise`` decides on case 1."""
        return None

    def rescaling(self, slack: bool, weights: FloatArray) -> Call | None:
        """Return the kernel of the exact maximum of margin or slack rescaling, if there is one."""
        return None

    def polymatroids(self) -> Polymatroids | None:
        """Return those of the batch, if kernels project onto them and every set has one."""
        return None


@dataclass(frozen=True)
class RatioRows(Family):
    """A linear-fractional loss of the counts, the same on every set: Jaccard, Dice, F-beta.

    It needs no truth, so that it is a form as well.
    """

    ratio: Ratio

    PARTS: ClassVar[dict[str, int]] = {"whole": 0, "submodular": 1, "supermodular": 2}

    def distinct(self) -> Sequence[SetFunction]:
        """Return none: every ratio and every part of one is known to be what its kernels need."""
        return ()

    @cached_property
    def arguments(self) -> tuple[float, float, float, int]:
        """a, c, d and the number of the part, as the kernels take them."""
        return *self.ratio._constants, self.PARTS[self.ratio.part]

    def lovasz(self, case: object, componentwise: Componentwise) -> Call:
        """Return a kernel that decides by itself which case applies."""
        return _core.lovasz_ratio, *self.arguments, 0 if case == "auto" else case

    def rescaling(self, slack: bool, weights: FloatArray) -> Call:
        """Return a kernel with a binary search for each number of false negatives."""
        return _core.rescale_ratio, *self.arguments, slack, weights

    def polymatroids(self) -> Polymatroids | None:
        """Return the polymatroids of Jaccard; the other ratios are not submodular."""
        if self.arguments != (1.0, 1.0, 0.0, self.PARTS["whole"]):
            return None
        return Polymatroids(Polymatroids.JACCARD, np.empty(0), np.empty(0, np.int64))


@dataclass(frozen=True)
class TableRows(Family):
    """Losses with a table for each set: set i uses the one that begins at tables[starts[i]].

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
        """Join the tables of the functions, one after the other."""
        if (
            len(functions) == 1
        ):  # a single set, above all: `which` is 0 everywhere, and so are starts
            (only,) = functions
            table = only.values if isinstance(only, Cardinality) else only.grid().ravel()
            return cls(functions, which, table, which, isinstance(only, Counts))
        tables = [f.values if isinstance(f, Cardinality) else f.grid().ravel() for f in functions]
        begins = np.concatenate([[0], np.cumsum([table.size for table in tables])])
        flat = np.concatenate([np.empty(0), *tables])
        of_counts = len(functions) > 0 and isinstance(functions[0], Counts)
        return cls(functions, which, flat, begins.astype(np.int64)[which], of_counts)

    def distinct(self) -> Sequence[SetFunction]:
        """Return one for each table."""
        return self.functions

    def lovasz(self, case: object, componentwise: Componentwise) -> Call:
        """Return a kernel with flags: each table decides once which case applies to its sets."""
        flags = [componentwise(function) for function in self.functions]
        kernel = _core.lovasz_counts if self.of_counts else _core.lovasz_cardinality
        return kernel, self.tables, self.starts, np.array(flags, np.uint8)[self.which]

    def rescaling(self, slack: bool, weights: FloatArray) -> Call:
        """Return a kernel that scans the sizes, or every pair of counts."""
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
    """A weight for each element of each set, flat; ``common`` tells it if it is one for all.

    Slack rescaling of different weights contains the partition problem, of one weight it is that of
    a loss of the number of mistakes.
    """

    weights: FloatArray
    labels: Labels
    common: Callable[[], float | None] = lambda: None

    def lovasz(self, case: object, componentwise: Componentwise) -> Call | None:
        """Return the kernel of the sum of hinge losses, or None for case 2, which goes by gains."""
        return None if case == 2 else self.rescaling(False, np.full(self.labels.n, -1.0))

    def rescaling(self, slack: bool, weights: FloatArray) -> Call | None:
        """Element by element for margins."""
        if not slack:
            return _core.hinge_modular, self.weights, weights
        common = self.common()
        if common is None:
            return None
        sizes, which = np.unique(self.labels.sizes, return_inverse=True)
        tables = [Cardinality(common * np.arange(p + 1.0)) for p in sizes]
        return TableRows.of(tables, which).rescaling(True, weights)

    def polymatroids(self) -> Polymatroids:
        """Boxes."""
        return Polymatroids(Polymatroids.MODULAR, self.weights, self.labels.offsets[:-1])


@dataclass(frozen=True)
class PrefixRows(Family):
    """sum_i weights[i] min(|I_i|, caps[i]) over the prefixes I_i of the mistakes, as in (49)."""

    weights: FloatArray
    caps: FloatArray

    def rescaling(self, slack: bool, weights: FloatArray) -> Call | None:
        """Return a kernel by dynamic programming for margins, and None for slacks."""
        return None if slack else (_core.rescale_prefix, self.weights, self.caps, weights)


# The forms of losses on sets of any kind, for devices that compute gains themselves.


@dataclass(frozen=True, eq=False)
class Tables:
    """A loss with ``loss._table_rows(labels)``: of the counts, or of the number of mistakes."""

    loss: Loss
    of_size: bool


@dataclass(frozen=True, eq=False)
class Weights:
    """The sum of the weights of the mistakes; None: their number."""

    weights: FloatArray | None


@dataclass(frozen=True, eq=False)
class Curve:
    """concave(sum of the weights of the mistakes)."""

    concave: Callable[..., ArrayLike]
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Terms:
    """A weighted sum of losses, each with a form of its own."""

    loss: Loss
    terms: tuple[Loss, ...]
    coefficients: FloatArray
