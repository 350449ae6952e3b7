"""The features as the block steps take them, and weights from the dual."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray

# All inner products of so many examples take 128 megabytes.
_MOST_PRODUCTS = 1 << 24
# A step by inner products writes n numbers a label, one by features reads and writes d of them.
_PRODUCTS_PAY = 2.0


class Features:
    """Rows of features with the state that the kernels keep of the weights W (p, D).

    By inner products where the examples are few beside the features: the state is then the scores
    of all examples, else the weights themselves.
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
        """|x|^2 of each example, never 0."""
        X = self._X
        sums = X.multiply(X).sum(axis=1) if self._sparse else np.einsum("ij,ij->i", X, X)
        squares: FloatArray = np.asarray(sums, np.float64).ravel() + float(self._intercept)
        return np.maximum(squares, 1e-300)

    def weights(self, signed: FloatArray) -> FloatArray:
        """sum_i signed_i x_i': (n, p) to (p, D)."""
        W = np.empty((self.p, self.columns))
        features = self._X.shape[1]
        W[:, :features] = (self._X.T @ signed).T
        if self._intercept:
            W[:, features] = signed.sum(axis=0)
        return W

    def scores(self, W: FloatArray) -> FloatArray:
        """W x of each example: (p, D) to (n, p)."""
        features = self._X.shape[1]
        scores = np.asarray(self._X @ np.ascontiguousarray(W[:, :features].T))
        return scores + W[:, features] if self._intercept else scores

    @property
    def keeps_weights(self) -> bool:
        """Whether the state is W, (p, D)."""
        return not (self.gram or self._sparse)

    @property
    def has_products(self) -> bool:
        """Whether ``products`` has room, and not many times the entries of X."""
        return self.gram or (not self._sparse and self.n**2 <= _MOST_PRODUCTS)

    @cached_property
    def products(self) -> FloatArray:
        """The inner products of all examples, (n, n)."""
        products = self._X @ self._X.T
        dense = products.toarray() if self._sparse else np.asarray(products)
        return np.ascontiguousarray(dense + float(self._intercept))

    def state(self, W: FloatArray) -> FloatArray:
        """What the kernels keep of the weights, for all labels: a fresh array."""
        if not self.gram:
            return np.array(W.T if self._sparse else W, order="C")
        return np.array(self.scores(W).T, order="C")

    def state_of(self, signed: FloatArray) -> FloatArray:
        """The state of the weights that (n, p) makes, without them where inner products are."""
        if self.gram:
            return np.array((self.products @ signed).T, order="C")
        return self.state(self.weights(signed))

    def squared(self, signed: FloatArray, state: FloatArray) -> float:
        """|W|^2 for what W was made from (n, p) and its state."""
        if self.gram:
            return float(np.vdot(signed.T, state.reshape(self.p, self.n)))
        return float(np.vdot(state, state))

    def label_state(self, W: FloatArray) -> FloatArray:
        """The same with a row for each label."""
        return self.state(W) if self.gram else W.copy()
