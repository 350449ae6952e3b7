"""Stumps that distinguish the right box of a frame from others, updated from frame to frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._tracking._box_features import Bytes
from setwise.estimators._tracking._memory import Example
from setwise.learning._relative_gap import share_left
from setwise.learning._weak_learners._stumps import Stump

# The temperature of the soft maximum over boxes, in units of the overlap. A low temperature is near
# to the maximum of the objective, a high one makes it smoother. Not tuned.
_TEMPERATURE = 0.05
# The work of a round: the most stumps that are added, on different features, and the sweeps of
# coordinate descent over the weights. Not tuned: what a round leaves is left to the next one.
_PER_ROUND, _SWEEPS = 10, 5
# The least edge of a stump that is added. An edge above 1 lowers the objective; 1.05 omits stumps
# that would hardly lower it. Not tuned.
_VIOLATED = 1.05


@dataclass(frozen=True)
class ByteStumps:
    """A sum of stumps on bytes: ``sign`` above a threshold, ``-sign`` up to it, times a weight."""

    features: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    thresholds: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    signs: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))
    gap: float = np.inf

    def respond(self, codes: Bytes) -> NDArray[np.int8]:
        """Return the response of each stump to each row, codes (d, rows) -> (stumps, rows)."""
        above = codes[self.features] > self.thresholds[:, None]
        return np.where(above, self.signs[:, None], -self.signs[:, None])

    def scores(self, features: Bytes) -> FloatArray:
        """Return the scores (n,) of features (n, d), by a table of 256 values per used feature."""
        used, place = np.unique(self.features, return_inverse=True)
        tables = np.zeros((len(used), 256))
        above = np.arange(256) > self.thresholds[:, None]
        worth = self.weights * self.signs
        np.add.at(tables, place, np.where(above, worth[:, None], -worth[:, None]))
        scores = np.empty(len(features))
        _core.score_bytes(features, used.astype(np.int64), tables, scores)
        return scores

    def learners(self) -> list[Stump]:
        """Return the stumps as the library's weak learners."""
        rows = zip(
            self.features.tolist(), self.thresholds.tolist(), self.signs.tolist(), strict=True
        )
        return [Stump(feature, threshold + 0.5, sign) for feature, threshold, sign in rows]


def learn(
    before: ByteStumps,
    examples: Sequence[Example],
    C: float,
    *,
    tol: float,
    n_estimators: int,
    rounds: int,
) -> ByteStumps:
    r"""Minimise 1'w + C/m sum_i max_y [loss_iy + f_i(y) - f_i(y_i)] over w >= 0 and all stumps.

    Column generation continues from the given stumps and weights. Each round lowers the objective,
    with the maximum softened to :math:`\tau \log \sum_y \exp(\cdot / \tau)`, by exact steps along
    one weight at a time. The softmax weights of the boxes, times C/m, are multipliers
    :math:`\lambda`, for which the stumps of largest edge :math:`e = \sum_{iy} \lambda_{iy}
    (h_i(y_i) - h_i(y))` enter. For any such multipliers :math:`\sum \lambda_{iy} \Delta_{iy} /
    \max(1, e)` is a lower bound of the original problem; the gap is reported. The search ends at
    ``tol``, after ``rounds`` rounds, or when no stump has an edge above 1.

    A round costs O(boxes (features + stumps)).
    """
    features = np.concatenate([example.features for example in examples])
    codes = np.ascontiguousarray(features.T)
    losses = np.concatenate([example.losses for example in examples])
    sizes = [len(example.losses) for example in examples]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    zero = C * float(np.mean(np.maximum.reduceat(losses, starts[:-1])))
    gains, thresholds = np.empty(len(codes)), np.empty(len(codes), dtype=np.int64)
    multipliers = np.empty(len(losses))
    now = before
    responses = now.respond(codes)
    bound = 0.0
    for number in range(rounds + 1):
        weights = now.weights.copy()
        hard = _core.descend_boxes(
            responses, losses, starts, C, _TEMPERATURE, _SWEEPS, weights, multipliers
        )
        used = weights > 0
        value = float(weights.sum()) + C * hard
        edges = -multipliers
        edges[starts[:-1]] += C / len(examples)
        _core.byte_stumps(codes, edges, gains, thresholds)
        edge = float(np.abs(gains).max())
        bound = max(bound, float(multipliers @ losses) / max(1.0, edge))
        gap = share_left(value, min(bound, value), zero)
        now = ByteStumps(
            now.features[used], now.thresholds[used], now.signs[used], weights[used], gap
        )
        responses = responses[used]
        n_new = min(_PER_ROUND, n_estimators - len(now.features))
        new = np.argsort(-np.abs(gains), kind="stable")[: max(n_new, 0)]
        new = new[np.abs(gains[new]) > _VIOLATED]
        if number == rounds or gap <= tol or len(new) == 0:
            break
        fresh = ByteStumps(
            new, thresholds[new], np.sign(gains[new]).astype(np.int8), np.zeros(len(new)), gap
        )
        responses = np.concatenate([responses, fresh.respond(codes)])
        now = ByteStumps(
            np.concatenate([now.features, fresh.features]),
            np.concatenate([now.thresholds, fresh.thresholds]),
            np.concatenate([now.signs, fresh.signs]),
            np.concatenate([now.weights, fresh.weights]),
            gap,
        )
    return now
