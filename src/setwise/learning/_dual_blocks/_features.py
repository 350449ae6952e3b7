"""The features in the form that block steps need, and weights of the dual."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray

# The largest number of inner products, which take 128 megabytes.
_MOST_PRODUCTS = 1 << 24
# Inner products are used for at most this number of examples per feature: a step with them writes n
# numbers per label, and a step with features reads and writes d numbers.
_PRODUCTS_PAY = 2.0


class BlockFeatures:
    """Rows of features with the state that the kernels keep of the weights W (p, D).

    With few examples per feature, inner products of examples are used: the state is then the scores
    of all examples. Otherwise the state is the weights themselves.
    """

    def __init__(self, X: Any, p: int, intercept: bool) -> None:
        self._X, self._intercept = X, intercept
        self.n, self.p, self.columns = int(X.shape[0]), p, int(X.shape[1]) + intercept
        self._sparse = issparse(self._X)
        used = self._X.nnz / max(self.n, 1) if self._sparse else self.columns
        self.gram = self.n <= _PRODUCTS_PAY * used and self.n**2 <= _MOST_PRODUCTS
        self.rows = self._rows()

    def _rows(self) -> Any:
        X = self._X
        if self.gram:
            return _core.GramRows(self.products)
        if self._sparse:
            starts, columns = X.indptr.astype(np.int64), X.indices.astype(np.int64)
            return _core.SparseRows(starts, columns, X.data, X.shape[1], self._intercept)
        return _core.DenseRows(np.ascontiguousarray(X), self._intercept)

    def squares(self) -> FloatArray:
        """Return |x|^2 of each example, which is never 0."""
        X = self._X
        sums = X.multiply(X).sum(axis=1) if self._sparse else np.einsum("ij,ij->i", X, X)
        squares: FloatArray = np.asarray(sums, np.float64).ravel() + float(self._intercept)
        return np.maximum(squares, 1e-300)

    def weights(self, signed: FloatArray) -> FloatArray:
        """Return the weights sum_i signed_i x_i', (p, D), of an array (n, p)."""
        W = np.empty((self.p, self.columns))
        features = self._X.shape[1]
        W[:, :features] = (self._X.T @ signed).T
        if self._intercept:
            W[:, features] = signed.sum(axis=0)
        return W

    def scores(self, W: FloatArray) -> FloatArray:
        """Return the scores W x of all examples, (n, p), of weights (p, D)."""
        features = self._X.shape[1]
        scores = np.asarray(self._X @ np.ascontiguousarray(W[:, :features].T))
        return scores + W[:, features] if self._intercept else scores

    @property
    def keeps_weights(self) -> bool:
        """Whether the state is the weights W, (p, D), and not the scores of all examples."""
        return not (self.gram or self._sparse)

    @property
    def has_products(self) -> bool:
        """Whether ``products`` fits into memory and is not much larger than X."""
        return self.gram or (not self._sparse and self.n**2 <= _MOST_PRODUCTS)

    @cached_property
    def products(self) -> FloatArray:
        """The inner products of all examples, (n, n)."""
        products = self._X @ self._X.T
        dense = products.toarray() if self._sparse else np.asarray(products)
        return np.ascontiguousarray(dense + float(self._intercept))

    def state(self, W: FloatArray) -> FloatArray:
        """Return the state of the weights for the kernels, as a new array."""
        if not self.gram:
            return np.array(W.T if self._sparse else W, order="C")
        return np.array(self.scores(W).T, order="C")

    def state_of(self, signed: FloatArray) -> FloatArray:
        """Return the state of the weights that an array (n, p) defines."""
        if self.gram:
            return np.array((self.products @ signed).T, order="C")
        return self.state(self.weights(signed))

    def squared(self, signed: FloatArray, state: FloatArray) -> float:
        """Return |W|^2, given the array (n, p) that defines W, and its state."""
        if self.gram:
            return float(np.vdot(signed.T, state.reshape(self.p, self.n)))
        return float(np.vdot(state, state))

    def label_state(self, W: FloatArray) -> FloatArray:
        """Return the state with one row per label."""
        return self.state(W) if self.gram else W.copy()
