"""Multi-label data sets, reduced to labels that are frequent enough for every fold."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.sparse import issparse

from experiments.shared.data import multilabel

# The number of rows in which a label must be present: rarer labels cannot be learnt or scored in
# every fold.
LEAST = {"medical": 50, "enron": 100, "corel5k": 200}


@cache
def sample(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = multilabel(name).pooled()
    X = data.X.toarray() if issparse(data.X) else np.asarray(data.X, float)
    Y = np.asarray(data.y) > 0
    return X, Y[:, Y.sum(axis=0) >= LEAST.get(name, 20)]
