"""The reliability of probabilities: calibration, proper scores and error detection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_choice,
    as_count,
    as_numbers,
    require_some,
    without_unit,
)
from setwise._foundation._base_classes import Record

STRATEGIES = ("uniform", "quantile")
# Probabilities may be given in half precision. Sums over labels are computed in double precision,
# so that their errors are at most half of this.
_ROUNDING = float(np.finfo(np.float16).eps)


@dataclass(frozen=True, eq=False, repr=False)
class Reliability(Record):
    r"""The reliability of probabilities :math:`p_{ij}` of labels, compared with true labels.

    The confidence is :math:`c_i = \max_j p_{ij}`; the predicted label is the one that has it. All
    means are weighted, and the bins are bins of the confidences.

    Attributes
    ----------
    prob_true : array of shape (n_bins,)
        The share of correct labels in each bin; NaN in empty bins.
    prob_pred : array of shape (n_bins,)
        The mean confidence in each bin; NaN in empty bins.
    bin_edges : array of shape (n_bins + 1,)
        The edges of the bins. A bin contains its upper edge, the first bin both edges.
    bin_weights : array of shape (n_bins,)
        The share of all elements in each bin; they sum to 1.
    accuracy : float
        The share of correct labels.
    confidence : float
        The mean of :math:`c_i`. The probabilities are overconfident if it is above ``accuracy``.
    ece : float
        Expected calibration error, the mean over the bins of abs(prob_true - prob_pred).
    brier : float
        The mean of :math:`\sum_j (p_{ij} - [y_i = j])^2`, between 0 and 2. For two labels it is
        twice that of ``sklearn.metrics.brier_score_loss``.
    nll : float
        The mean of :math:`-\log p_{i y_i}`; ``inf`` if a true label has probability 0.
    auroc : float
        The area under the ROC curve of detecting errors by low confidence: the probability that a
        wrong label has a lower confidence than a correct one, with ties counting half. NaN if all
        labels are correct, or all are wrong.
    n : int
        The number of elements that counted.

    Examples
    --------
    >>> import setwise as sw
    >>> found = sw.inference.reliability([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> found.n, round(found.accuracy, 3), round(found.nll, 3), found.auroc
    (3, 0.667, 0.415, 1.0)
    """

    _printed = "ece brier nll auroc n prob_true prob_pred bin_weights"

    prob_true: FloatArray
    prob_pred: FloatArray
    bin_edges: FloatArray
    bin_weights: FloatArray
    accuracy: float
    confidence: float
    ece: float
    brier: float
    nll: float
    auroc: float
    n: int


def reliability(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
    ignore: int = -1,
) -> Reliability:
    """Compute a reliability diagram, with ECE, Brier score, NLL and error detection.

    Parameters
    ----------
    y_true : array-like of int, shape (N,) or (H, W)
        The true labels, 0 to L - 1; ``ignore`` for unknown labels. Any number of dimensions.
    y_prob : array-like of shape (N, L) or (H, W, L)
        The probabilities of the labels, which sum to 1. In the shape of ``y_true`` (two labels):
        the probabilities of label 1.
    n_bins : int
        The number of bins of the confidences.
    strategy : {"uniform", "quantile"}
        Bins of the same width, or with the same share of the elements (fewer bins if equal
        confidences cannot be separated).
    sample_weight : array-like of the shape of ``y_true``, optional
        The weight of each element.
    ignore : int
        The label of elements that do not count.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> import setwise as sw
    >>> found = sw.inference.reliability([0, 0, 1, -1], [0.1, 0.4, 0.7, 0.5], n_bins=5)
    >>> (
    ...     found.n,
    ...     found.accuracy,
    ...     round(found.confidence, 3),
    ...     round(found.ece, 3),
    ...     round(found.brier, 3),
    ... )
    (3, 1.0, 0.733, 0.267, 0.173)
    """
    labels, p, weight = _as_predictions(y_true, y_prob, sample_weight, ignore)
    n_bins = as_count(n_bins, "n_bins", least=1, most=1 << 20)
    strategy = as_choice(strategy, "strategy", STRATEGIES)
    share = weight / weight.sum()
    guess = p.argmax(axis=1)
    sure = np.minimum(np.take_along_axis(p, guess[:, None], 1)[:, 0], 1.0)
    right = guess == labels
    edges = _edges(sure, share, n_bins, strategy)
    inside = np.searchsorted(edges[1:-1], sure, side="left")
    mass, hits, sums = (
        np.bincount(inside, part, minlength=len(edges) - 1).astype(np.float64)
        for part in (share, share * right, share * sure)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        prob_true, prob_pred = hits / mass, sums / mass
    return Reliability(
        prob_true=prob_true,
        prob_pred=prob_pred,
        bin_edges=edges,
        bin_weights=mass,
        accuracy=float(share @ right),
        confidence=float(share @ sure),
        ece=float(np.abs(hits - sums).sum()),
        brier=float(share @ brier_scores(p, labels)),
        nll=float(share @ log_losses(p, labels)),
        auroc=_auroc(sure, right, share),
        n=len(labels),
    )


def brier_scores(p: FloatArray, labels: IntArray) -> FloatArray:
    """Return the squared distances of rows of probabilities from the truth, (n,)."""
    true = np.take_along_axis(p, labels[:, None], 1)[:, 0]
    others = np.maximum((p * p).sum(axis=1) - true * true, 0.0)
    scores: FloatArray = others + (1.0 - true) ** 2
    return scores


def log_losses(p: FloatArray, labels: IntArray) -> FloatArray:
    """Return minus the logarithms of the probabilities of the true labels, (n,)."""
    with np.errstate(divide="ignore"):
        losses: FloatArray = -np.log(np.take_along_axis(p, labels[:, None], 1)[:, 0])
    return losses


def as_true_labels(values: ArrayLike, name: str, n_labels: int, ignore: int) -> IntArray:
    """Return labels of any shape after checking that each is valid or ``ignore``."""
    array = as_array(values, name)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    known = array != ignore
    wrong = known & ((array < 0) | (array >= n_labels))
    if wrong.any():
        raise ValueError(
            f"{name} must lie between 0 and {n_labels - 1}, or be ignore = {ignore}, "
            f"got {array[wrong].flat[0]}"
        )
    return np.where(known, array.astype(np.int64), -1)  # uint8 has no -1


def _as_predictions(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None, ignore: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return labels (n,), probabilities (n, L) and weights (n,) of the elements that count."""
    ignore = as_count(ignore, "ignore", least=-(2**62), most=2**62)
    given = as_array(y_true, "y_true")
    p = as_numbers(y_prob, "y_prob", shape=None, nonnegative=True)
    if p.size and p.max() > 1.0 + _ROUNDING:
        raise ValueError(f"y_prob must hold probabilities, at most 1, got {p.max():g}")
    if given.ndim and p.shape == given.shape:
        p = np.stack([np.maximum(1.0 - p, 0.0), p], axis=-1)
    if given.ndim == 0 or p.shape[:-1] != given.shape or p.shape[-1] == 0:
        raise ValueError(
            f"y_prob must have a probability of each label, shape {(*given.shape, 'L')}, or one "
            f"of label 1, shape {given.shape}, as y_true says, got {np.shape(p)}"
        )
    p = p.reshape(-1, p.shape[-1])
    sums = p.sum(axis=1)
    wrong = np.abs(sums - 1.0) > _ROUNDING
    if wrong.any():
        raise ValueError(f"y_prob must sum to 1 over the labels, got {sums[wrong][0]:g}")
    labels = as_true_labels(given, "y_true", p.shape[1], ignore).ravel()
    weight = _weights(sample_weight, given.shape)
    known = (labels >= 0) & (weight > 0)
    if not known.any():
        raise ValueError("y_true must have an element that counts, got none")
    return labels[known], p[known], weight[known]


def _weights(sample_weight: ArrayLike | None, shape: tuple[int, ...]) -> FloatArray:
    if sample_weight is None:
        return np.ones(int(np.prod(shape)))
    weights = as_numbers(
        sample_weight, "sample_weight", shape=shape, nonnegative=True, largest=np.inf
    ).ravel()
    require_some(weights)
    return without_unit(weights)


def _edges(sure: FloatArray, share: FloatArray, n_bins: int, strategy: str) -> FloatArray:
    if strategy == "uniform":
        return np.linspace(0.0, 1.0, n_bins + 1)
    order = np.argsort(sure, kind="stable")
    levels = np.cumsum(share[order])
    at = np.searchsorted(levels, np.linspace(0.0, 1.0, n_bins + 1)[1:-1] * (1.0 - 1e-12))
    inner = np.unique(sure[order][np.minimum(at, len(order) - 1)])
    return np.concatenate([[0.0], inner[(inner > 0.0) & (inner < 1.0)], [1.0]])


def _auroc(sure: FloatArray, right: BoolArray, share: FloatArray) -> float:
    """Return P(c of a wrong label < c of a correct one) + P(equal) / 2, weighted."""
    _, place = np.unique(sure, return_inverse=True)
    good = np.bincount(place, share * right)
    bad = np.bincount(place, share * ~right)
    pairs = good.sum() * bad.sum()
    if not pairs > 0:
        return float("nan")
    below = np.cumsum(bad) - bad
    return float(min((good * (below + bad / 2)).sum() / pairs, 1.0))
