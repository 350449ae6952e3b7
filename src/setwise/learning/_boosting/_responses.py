"""The responses of the weak learners in use, kept by segment."""

from __future__ import annotations

import numpy as np
from numpy.linalg import norm
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray
from setwise.learning._boosting._problem import Column

# Responses whose cosine is nearer to 1 than this are one: between them the simplex method would
# find nothing but rounding.
_SAME = 1e-9


class Responses:
    """A growing list of columns: their scores, and their coefficients in a plane.

    The responses on one segment are rows of one matrix, so that each product is one call of BLAS a
    segment, O(columns x length).
    """

    def __init__(self, offsets: NDArray[np.int64]) -> None:
        self.offsets = offsets
        self.columns: list[Column] = []
        self._members: dict[int, list[int]] = {}
        self._matrix: dict[int, FloatArray] = {}
        self._norms: dict[int, list[float]] = {}

    def __len__(self) -> int:
        return len(self.columns)

    def where(self, column: Column) -> slice:
        """Its segment of the scores."""
        return slice(*self.offsets[column.segment : column.segment + 2].tolist())

    def append(self, column: Column) -> None:
        """Add a column at the end."""
        members = self._members.setdefault(column.segment, [])
        matrix = self._matrix.setdefault(column.segment, np.empty((4, len(column.response))))
        if len(members) == len(matrix):
            matrix = np.concatenate([matrix, np.empty_like(matrix)])
            self._matrix[column.segment] = matrix
        matrix[len(members)] = column.response
        members.append(len(self.columns))
        self._norms.setdefault(column.segment, []).append(float(norm(column.response)))
        self.columns.append(column)

    def scores(self, w: FloatArray) -> FloatArray:
        """The sum of the weighted responses, (S,)."""
        total = np.zeros(int(self.offsets[-1]))
        for segment, members in self._members.items():
            weights = w[members]
            if weights.any():
                begin, end = self.offsets[segment : segment + 2]
                total[begin:end] = weights @ self._matrix[segment][: len(members)]
        return total

    def coefficients(self, slopes: FloatArray | csr_array) -> FloatArray:
        """Slopes (r, S) times the responses, (r, K)."""
        product = np.empty((slopes.shape[0], len(self)))
        for segment, members in self._members.items():
            begin, end = self.offsets[segment : segment + 2]
            product[:, members] = slopes[:, begin:end] @ self._matrix[segment][: len(members)].T
        return product

    def resembles(self, column: Column) -> bool:
        """Whether a column in use is the same one, up to a positive factor and rounding."""
        members = self._members.get(column.segment)
        if not members:
            return False
        matrix = self._matrix[column.segment][: len(members)]
        norms = np.array(self._norms[column.segment]) * norm(column.response)
        return bool(np.any(matrix @ column.response >= (1.0 - _SAME) * norms))
