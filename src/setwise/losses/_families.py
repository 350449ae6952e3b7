"""What the compiled kernels know of a loss: how it looks on each set of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.functions import Cardinality, Counts, Ratio


@dataclass(frozen=True)
class RatioRows:
    """A linear-fractional loss of the counts, the same on every set: Jaccard, Dice, F-beta."""

    ratio: Ratio

    PARTS: ClassVar[dict[str, int]] = {"whole": 0, "submodular": 1, "supermodular": 2}

    @property
    def arguments(self) -> tuple[float, float, float, int]:
        """a, c, d and the number of the part, as the kernels take them."""
        return self.ratio.a, self.ratio.c, self.ratio.d, self.PARTS[self.ratio.part]


@dataclass(frozen=True)
class TableRows:
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
        """The tables of the functions, one after the other."""
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


@dataclass(frozen=True)
class ModularRows:
    """A weight for each element of each set, flat."""

    weights: FloatArray


@dataclass(frozen=True)
class PrefixRows:
    """sum_i weights[i] min(|I_i|, caps[i]) over the prefixes I_i of the mistakes, as in (49)."""

    weights: FloatArray
    caps: FloatArray


Family = RatioRows | TableRows | ModularRows | PrefixRows
