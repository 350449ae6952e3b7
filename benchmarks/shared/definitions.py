"""Surrogates of one set in plain NumPy, for comparison where no other library has them.

They follow the formulas of the papers, vectorised over the elements of the set. Labels are booleans
(p,), scores float64 (p,); each function returns the value and a gradient with respect to the
scores.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Answer = tuple[float, np.ndarray]
Formula = Callable[..., np.ndarray]


def jaccard(n: np.ndarray, q: np.ndarray, m: int) -> np.ndarray:
    """Return the loss of n false negatives and q false positives where m are positive."""
    return (n + q) / (m + q) if m else np.minimum(1.0, n + q)


def dice(n: np.ndarray, q: np.ndarray, m: int) -> np.ndarray:
    return (n + q) / (2 * m - n + q) if m else np.minimum(1.0, n + q)


def face_track(k: np.ndarray, p: int) -> np.ndarray:
    """Return the first loss of the B_D paper, equation (33): k mistakes among p frames."""
    return np.maximum(np.minimum(k, p / 3), k - p / 3) / (p / 3)


def lovasz_hinge(y: np.ndarray, scores: np.ndarray, gains: Formula, increasing: bool) -> Answer:
    """Evaluate Definition 6; ``gains`` takes the labels by decreasing s = 1 - g y."""
    signs = np.where(y, 1.0, -1.0)
    order = np.argsort(signs * scores, kind="stable")
    s = 1.0 - (signs * scores)[order]
    mu = gains(y[order])
    gradient = np.zeros(len(y))
    if increasing:
        gradient[order] = -signs[order] * mu * (s > 0)
        return float(np.maximum(s, 0.0) @ mu), gradient
    value = float(s @ mu)
    if value <= 0:
        return 0.0, gradient
    gradient[order] = -signs[order] * mu
    return value, gradient


def lovasz_hinge_jaccard(y: np.ndarray, scores: np.ndarray) -> Answer:
    def gains(y_sorted: np.ndarray) -> np.ndarray:
        n, q = np.cumsum(y_sorted), np.cumsum(~y_sorted)
        return np.diff(jaccard(n, q, int(n[-1])), prepend=0.0)

    return lovasz_hinge(y, scores, gains, increasing=True)


def decomposed_hinge_face_track(y: np.ndarray, scores: np.ndarray) -> Answer:
    """Evaluate l = f + g; the second difference of g is the positive part of that of l.

    The loss is piecewise linear, so rounding errors in its second difference are dropped.
    """
    p = len(y)
    loss = face_track(np.arange(p + 1.0), p)
    bends = np.diff(loss, 2)
    bends[bends < 1e-12] = 0.0
    g = np.concatenate([[0.0, 0.0], np.cumsum(np.cumsum(bends))])
    mu = np.diff(loss - g)
    f_value, f_gradient = lovasz_hinge(y, scores, lambda _: mu, bool(mu.min() >= -1e-12))
    signs = np.where(y, 1.0, -1.0)
    order = np.argsort(signs * scores, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum((signs * scores)[order])])
    objective = g * (1.0 - 2.0 * sums)
    k = int(objective.argmax())
    gradient = np.zeros(p)
    gradient[order[:k]] = -2.0 * g[k] * signs[order[:k]]
    return f_value + float(objective[k]), f_gradient + gradient


def decomposed_hinge_dice(y: np.ndarray, scores: np.ndarray) -> Answer:
    """Evaluate l = f + g with g(n, q) = l(n, 0) - n l(1, 0).

    The part g is a function of the false negatives alone.
    """
    m, r = int(np.count_nonzero(y)), int(np.count_nonzero(~y))
    count = np.arange(m + 1.0)
    zero = np.zeros(m + 1)
    g = dice(count, zero, m) - count * (dice(1.0, 0.0, m) if m else 0.0)
    # f is increasing if its steps in n are not negative at q = r, where they are smallest.
    increasing = bool((np.diff(dice(count, zero + r, m) - g) >= -1e-15).all())

    def gains(y_sorted: np.ndarray) -> np.ndarray:
        n, q = np.cumsum(y_sorted), np.cumsum(~y_sorted)
        return np.diff(dice(n, q, m) - g[n], prepend=0.0)

    f_value, f_gradient = lovasz_hinge(y, scores, gains, increasing)
    # Slack rescaling of g: the n positives of least margin, and every negative that raises 1 - 2 s.
    signs = np.where(y, 1.0, -1.0)
    margins = signs * scores
    positives = np.flatnonzero(y)
    positives = positives[np.argsort(margins[positives], kind="stable")]
    wrong = np.flatnonzero(~y & (margins < 0))
    sums = np.concatenate([[0.0], np.cumsum(margins[positives])]) + margins[wrong].sum()
    objective = g * (1.0 - 2.0 * sums)
    n = int(objective.argmax())
    gradient = np.zeros(len(y))
    if objective[n] > 0:
        chosen = np.concatenate([positives[:n], wrong])
        gradient[chosen] = -2.0 * g[n] * signs[chosen]
    return f_value + max(float(objective[n]), 0.0), f_gradient + gradient


def rescaling_jaccard(y: np.ndarray, scores: np.ndarray, *, slack: bool) -> Answer:
    """Return the maximum over all pairs of counts (n, q) in O(m r), for small sets."""
    signs = np.where(y, 1.0, -1.0)
    margins = signs * scores
    positives, negatives = np.flatnonzero(y), np.flatnonzero(~y)
    positives = positives[np.argsort(margins[positives], kind="stable")]
    negatives = negatives[np.argsort(margins[negatives], kind="stable")]
    n = np.arange(len(positives) + 1)[:, None]
    q = np.arange(len(negatives) + 1)[None, :]
    loss = jaccard(n, q, len(positives))
    sums = np.add.outer(
        np.concatenate([[0.0], np.cumsum(margins[positives])]),
        np.concatenate([[0.0], np.cumsum(margins[negatives])]),
    )
    objective = loss * (1.0 - 2.0 * sums) if slack else loss - 2.0 * sums
    n_best, q_best = divmod(int(objective.argmax()), objective.shape[1])
    chosen = np.concatenate([positives[:n_best], negatives[:q_best]])
    gradient = np.zeros(len(y))
    gradient[chosen] = -2.0 * signs[chosen] * (loss[n_best, q_best] if slack else 1.0)
    return float(objective[n_best, q_best]), gradient
