"""The score of predictions: one minus the loss of the sets relative to the worst."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import FloatArray
from setwise.losses._base import Loss
from setwise.losses._scoring._layout import Arrangement, Sets, arrange


def score_of_sets(
    loss: Loss,
    positive: NDArray[np.bool_],
    predicted: NDArray[np.bool_],
    sets: Sets,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> float:
    """Return 1 - the mean over the sets of loss / (loss if all labels are wrong)."""
    arranged = arrange(
        positive,
        sets,
        groups,
        sample_weight,
        # For a loss that counts mistakes, the score of one large set, of columns or of all cells
        # equals the mean over separate elements, for any weights.
        separate=loss._traits.is_count and groups is None,
        fractional=loss._traits.takes_multiplicity,
    )
    if arranged.multiplicity is not None:
        loss = loss._with_multiplicity(arranged.multiplicity)
    losses = loss(arranged.positive, arranged.gather(predicted), offsets=arranged.ragged_offsets)
    worst = worst_losses(loss, arranged)
    shares = np.divide(losses, worst, out=np.zeros(arranged.n_sets), where=worst > 0)
    return 1.0 - float(np.average(shares, weights=arranged.weights))


def worst_losses(loss: Loss, arranged: Arrangement) -> FloatArray:
    """Return the loss of each set if all of its labels are wrong."""
    offsets = arranged.ragged_offsets
    return np.atleast_1d(loss(arranged.positive, ~arranged.positive, offsets=offsets))
