"""The responses of the weak learners in use, stored by segment."""

from __future__ import annotations

import numpy as np
from numpy.linalg import norm
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray
from setwise.learning._boosting._master import ACCURACY
from setwise.learning._boosting._problem import Column

# The responses per block of a sum, not tuned: more rows do not speed up a product, and a block of
# 10,000 scores takes about 1 MB.
_BLOCK = 16


class Responses:
    """A growing list of columns, each with one nonnegative weight.

    The class computes scores of weights and coefficients of planes.

    The responses on one segment are rows of one matrix, so that a product takes one call of BLAS
    per segment, O(columns x length).
    """

    width = 1

    def __init__(self, offsets: NDArray[np.int64]) -> None:
        self.offsets = offsets
        self.columns: list[Column] = []
        self._members: dict[int, list[int]] = {}
        self._matrix: dict[int, FloatArray] = {}
        self._norms: dict[int, list[float]] = {}

    def __len__(self) -> int:
        return len(self.columns)

    def spread(self, column: Column) -> FloatArray:
        """Return the contribution of a unit of each of its weights to the scores, (width, S)."""
        segment = column.segment
        scores = np.zeros((1, int(self.offsets[-1])))
        scores[0, self.offsets[segment] : self.offsets[segment + 1]] = column.response
        return scores

    def edges(self, weights: FloatArray, column: Column) -> FloatArray:
        """Return the edges of its weights for given weights of the scores, (width,)."""
        segment = column.segment
        begin, end = self.offsets[segment : segment + 2]
        return np.array([weights[begin:end] @ column.response])

    def append(self, column: Column) -> None:
        """Add a column at the end."""
        segment = column.segment
        members = self._members.setdefault(segment, [])
        matrix = self._matrix.setdefault(segment, np.empty((4, len(column.response))))
        if len(members) == len(matrix):
            matrix = np.concatenate([matrix, np.empty_like(matrix)])
            self._matrix[segment] = matrix
        matrix[len(members)] = column.response
        members.append(len(self.columns))
        self._norms.setdefault(segment, []).append(float(norm(column.response)))
        self.columns.append(column)

    def scores(self, w: FloatArray) -> FloatArray:
        """Return the weighted sum of the responses, (S,)."""
        total = np.zeros(int(self.offsets[-1]))
        for segment, members in self._members.items():
            weights = w[members]
            if weights.any():
                begin, end = self.offsets[segment : segment + 2]
                total[begin:end] = weights @ self._matrix[segment][: len(members)]
        return total

    def coefficients(self, slopes: FloatArray | csr_array) -> FloatArray:
        """Return the product of slopes (r, S) and the responses, (r, K)."""
        product = np.empty((slopes.shape[0], len(self)))
        for segment, members in self._members.items():
            begin, end = self.offsets[segment : segment + 2]
            product[:, members] = slopes[:, begin:end] @ self._matrix[segment][: len(members)].T
        return product

    def resembles(self, column: Column) -> bool:
        """Return whether a column in use is equal up to a positive factor and rounding.

        They are equal if 1 - cosine is at most the tolerance of the linear program, which could not
        distinguish them.
        """
        segment = column.segment
        members = self._members.get(segment)
        if not members:
            return False
        matrix = self._matrix[segment][: len(members)]
        norms = np.array(self._norms[segment]) * norm(column.response)
        return bool(np.any(matrix @ column.response >= (1.0 - ACCURACY) * norms))


class SharedResponses:
    """Columns that all segments share, with a weight of any sign per segment.

    The weights of one column lie side by side.
    """

    def __init__(self, offsets: NDArray[np.int64]) -> None:
        self.offsets = offsets
        self.width = len(offsets) - 1
        self.columns: list[Column] = []
        self._rows: FloatArray = np.empty((0, int(offsets[1])))
        self._filled = 0

    def __len__(self) -> int:
        return len(self.columns)

    def spread(self, column: Column) -> FloatArray:
        """Return the contribution of a unit of each of its weights to the scores, (width, S)."""
        spread = np.zeros((self.width, self.width, len(column.response)))
        spread[range(self.width), range(self.width)] = column.response
        return spread.reshape(self.width, -1)

    def edges(self, weights: FloatArray, column: Column) -> FloatArray:
        """Return the absolute edges of its weights for given weights of the scores, (width,)."""
        edges: FloatArray = np.abs(weights.reshape(self.width, -1) @ column.response)
        return edges

    def append(self, column: Column) -> None:
        """Add a column at the end."""
        self.columns.append(column)

    def scores(self, w: FloatArray) -> FloatArray:
        """Return the weighted sum of the responses, (S,)."""
        weights = w.reshape(-1, self.width)
        scores = np.zeros((self.width, self._rows.shape[1]))
        # By blocks, because all rows may exceed the cache.
        for begin in range(0, len(weights), _BLOCK):
            rows = [column.response for column in self.columns[begin : begin + _BLOCK]]
            scores += weights[begin : begin + _BLOCK].T @ np.stack(rows)
        return scores.ravel()

    def coefficients(self, slopes: FloatArray | csr_array) -> FloatArray:
        """Return the product of slopes (r, S) and the responses, (r, n_columns width)."""
        matrix = self._matrix()
        product = np.empty((slopes.shape[0], len(self), self.width))
        for segment, begin in enumerate(self.offsets[:-1]):
            product[:, :, segment] = slopes[:, begin : begin + matrix.shape[1]] @ matrix.T
        return product.reshape(len(product), -1)

    def resembles(self, column: Column) -> bool:
        """Return whether a column in use is equal up to a factor and rounding."""
        matrix = self._matrix()
        norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) * norm(column.response)
        return bool(np.any(np.abs(matrix @ column.response) >= (1.0 - ACCURACY) * norms))

    def _matrix(self) -> FloatArray:
        """Return the responses as rows of a matrix, which is updated on demand."""
        if len(self) > len(self._rows):
            rows = np.empty((max(len(self), 2 * len(self._rows)), self._rows.shape[1]))
            rows[: self._filled] = self._rows[: self._filled]
            self._rows = rows
        for place in range(self._filled, len(self)):
            self._rows[place] = self.columns[place].response
        self._filled = len(self)
        return self._rows[: len(self)]
