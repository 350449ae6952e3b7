"""Decisions among candidates: minimum Bayes risk."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray
from setwise.decisions._answers import Answers, rounding
from setwise.losses import Loss
from setwise.losses._labels import Labels


def among_candidates(loss: Loss, masks: BoolArray, energies: FloatArray, t: float) -> Answers:
    r"""Find the candidate of least expected loss under :math:`P(y_i) \propto e^{-E_i / t}`.

    The distribution is on the list only. If the loss is a metric (Jaccard, Hamming), then l(z, y) +
    l(z, y') >= l(y, y'). Therefore no set, in the list or not, has an expected loss below half the
    mean loss between two draws.
    """
    logits = -(energies - energies.min()) / t
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    m, n = masks.shape
    pairs = np.empty((m, m))
    for i in range(m):  # the truth is labelling i, for every candidate
        truth = np.tile(masks[i], m)
        labels = Labels(truth.view(np.uint8), np.arange(m + 1) * n, "rows", (m, n))
        pairs[i] = loss._values(labels, truth != masks.reshape(-1))
    risks = chances @ pairs
    best = int(np.argmin(risks))
    error = rounding(m, float(np.abs(pairs).max()))
    bound = -np.inf
    if loss.is_increasing:
        bound = 0.0
    if _is_metric(loss):
        bound = max(bound, 0.5 * float(chances @ pairs @ chances) - error)
    expected = float(risks[best])
    return Answers(
        masks[best],
        np.array([expected]),
        np.array([min(bound, expected)]),
        np.array([error]),
        np.array([expected - bound <= error]),
    )


def _is_metric(loss: Loss) -> bool:
    """Return whether the triangle inequality is known to hold."""
    ratio = loss._fraction
    return loss._traits.is_modular or (ratio is not None and ratio.beta is None)
