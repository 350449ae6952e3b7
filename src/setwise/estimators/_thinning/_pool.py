"""The columns of a fitted ensemble: its trees, and constants of both signs for each score."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._thinning._trees import Trees
from setwise.learning import Column

# The largest number of columns that enter per round. It is not tuned: columns without use get a
# weight of 0, and those that are missing enter later.
_AT_ONCE = 10


@dataclass(eq=False)
class TreePool:
    """All responses on some rows, with an exact search among them.

    Each output is divided by its largest absolute value, so that a unit of weight adds at most 1 to
    a score, as for a stump. Zero outputs and repeated ones are left out.

    Attributes
    ----------
    ids : dict of segment to array of shape (J,)
        Tree t has id t. The constant of score c has id T + 2 c, its negation T + 2 c + 1.
    responses : dict of segment to array of shape (J, L)
        The responses; L is the number n of rows, or s n if the trees are shared.
    n_rows, n_ids : int
    scale : array of shape (T,)
        The divisors of the outputs.
    start : array
        The columns of the first round, which had weights at another C.
    """

    ids: dict[int, IntArray]
    responses: dict[int, FloatArray]
    n_rows: int
    n_ids: int
    scale: FloatArray
    start: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    exact = True

    def __len__(self) -> int:
        return sum(map(len, self.ids.values()))

    def take(self, rows: IntArray) -> TreePool:
        """Return the same columns on some of the rows."""
        some = {
            segment: matrix.reshape(len(matrix), -1, self.n_rows)[:, :, rows].reshape(
                len(matrix), -1
            )
            for segment, matrix in self.responses.items()
        }
        return replace(self, responses=some, n_rows=len(rows))

    def only(self, ids: IntArray) -> TreePool:
        """Return the given columns on the same rows."""
        places = {segment: np.isin(own, ids) for segment, own in self.ids.items()}
        return replace(
            self,
            ids={segment: self.ids[segment][some] for segment, some in places.items()},
            responses={segment: self.responses[segment][some] for segment, some in places.items()},
        )

    def __call__(self, weights: FloatArray) -> list[Column]:
        """Return the columns of the largest edges, best first."""
        edges = np.full(self.n_ids, -np.inf)
        for segment, matrix in self.responses.items():
            width = matrix.shape[1]
            edges[self.ids[segment]] = matrix @ weights[segment * width : (segment + 1) * width]
        best = np.argsort(-edges, kind="stable")[: min(_AT_ONCE, len(self))]
        chosen = np.union1d(best, self.start)
        self.start = self.start[:0]
        return [self._column(int(j)) for j in chosen[np.argsort(-edges[chosen], kind="stable")]]

    def scores(self, weights: FloatArray, n_scores: int) -> FloatArray:
        """Return the weighted sum (n_ids,) of the columns, (s, n)."""
        total = np.zeros((n_scores, self.n_rows))
        for segment, matrix in self.responses.items():
            part = (weights[self.ids[segment]] @ matrix).reshape(-1, self.n_rows)
            total[segment : segment + len(part)] += part
        return total

    def _column(self, j: int) -> Column:
        for segment, ids in self.ids.items():
            place = int(np.searchsorted(ids, j))
            if place < len(ids) and ids[place] == j:
                return Column(j, segment, self.responses[segment][place])
        raise LookupError(j)


def tree_pool(
    trees: Trees, X: object, n: int, rows: IntArray, share: FloatArray | None = None
) -> TreePool:
    """Make the pool of trees on some of the n rows of X; ``share`` (T, n) multiplies outputs."""
    T, s = len(trees.members), trees.n_scores
    ids: dict[int, list[int]] = {}
    responses: dict[int, list[FloatArray]] = {}
    met: set[tuple[int, bytes]] = set()

    def add(j: int, segment: int, response: FloatArray) -> None:
        key = segment, blake2b(response.tobytes()).digest()
        if response.any() and key not in met:
            met.add(key)
            ids.setdefault(segment, []).append(j)
            responses.setdefault(segment, []).append(response)

    scale = np.ones(T)
    for t, output in enumerate(trees.outputs(X)):
        response = output.reshape(-1, n)[:, rows]
        largest = float(np.abs(response).max(initial=0.0))
        scale[t] = largest if largest > 0 else 1.0
        response = response / scale[t]
        if share is not None:
            response *= share[t, rows]
        add(t, int(trees.segments[t]), response.ravel())
    for c in range(s):
        for place, sign in enumerate((1.0, -1.0)):
            constant = np.zeros((s if trees.shared else 1, len(rows)))
            constant[c if trees.shared else 0] = sign
            add(T + 2 * c + place, 0 if trees.shared else c, constant.ravel())
    return TreePool(
        {segment: np.array(own) for segment, own in ids.items()},
        {segment: np.array(own) for segment, own in responses.items()},
        len(rows),
        T + 2 * s,
        scale,
    )
