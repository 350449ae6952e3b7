"""The risk of sets that reach over the whole sample: its scores are judged in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.dask._set_shards import scores_of_rows, slope_of_rows
from setwise.learning import Executor
from setwise.losses._labels import read_labels
from setwise.losses._scoring._layout import Arrangement
from setwise.surrogates import Surrogate


class WholeSetRisk:
    """w -> the risk of the sample, of its columns or of its cells, and a subgradient.

    The surrogate of such a set is no sum over shards: it sorts all of its errors. So the scores of
    all shards come together, 8 bytes each, the client sorts them, and every shard gets the slopes
    of its own rows back, of which the sum is made as ever. What is learned is exact. A round moves
    16 bytes a score, where sets within shards move one vector of weights.
    """

    def __init__(
        self,
        executor: Executor,
        rows: Sequence[Any],
        lengths: Sequence[int],
        sets: Arrangement,
        surrogate: Surrogate,
        columns: int,
        intercept: bool,
    ) -> None:
        self._executor, self._rows, self._ends = executor, rows, np.cumsum(lengths)
        self._sets, self._surrogate, self._intercept = sets, surrogate, intercept
        self._labels = replace(read_labels(sets.positive, sets.ragged_offsets), kept={})
        self._shape = sets.n_outputs, columns

    @property
    def dimension(self) -> int:
        """Length of w."""
        return self._shape[0] * self._shape[1]

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The risk and a subgradient."""
        W = w.reshape(self._shape)
        found = self._executor.map(scores_of_rows, self._rows, W, self._intercept)
        scores = np.concatenate(found)
        given = self._sets.gather(scores if self._sets.kind != "sample" else scores[:, 0])
        values, slopes = self._surrogate._of_labels(self._labels, given)
        by_row = np.zeros(scores.shape)
        # A row of weight 2 stands twice in its set.
        own = slopes.T if self._sets.kind == "columns" else slopes
        np.add.at(by_row, self._sets.order, own.reshape(-1, scores.shape[1]))
        each = np.split(by_row, self._ends[:-1])
        gradient = self._executor.sums(slope_of_rows, self._rows, self._intercept, each=each)[0]
        return float(np.sum(values)), gradient.ravel()
