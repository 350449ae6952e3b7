"""Margin rescaling: the largest scale at which it is an extension of the loss."""

import numpy as np
import pytest
import reference
from loss_registry import LOSSES
from surrogate_registry import TOLERANCE, facts

from setwise import losses
from setwise.functions import Table
from setwise.surrogates import MarginRescaling


@pytest.mark.parametrize("loss_name", [name for name in LOSSES if facts(name)["increasing"]])
def test_the_extension_scale_is_the_largest(loss_name):
    """Proposition 2 as the notes correct it: at a slightly larger scale it fails at a corner."""
    listed = LOSSES[loss_name]
    for positive in listed.truths():
        table, p = listed.table(positive), len(positive)
        scale = MarginRescaling(listed.loss).extension_scale(positive)
        if not table.any():
            assert scale == np.inf
            continue
        assert scale == pytest.approx(2 / reference.largest_gain(table), rel=1e-12)
        y = np.tile(positive, (1 << p, 1))
        scores = (1.0 - reference.all_masks(p)) * np.where(positive, 1.0, -1.0)
        at_most = MarginRescaling(listed.loss, scale=scale)
        np.testing.assert_allclose(at_most(y, scores), table, atol=TOLERANCE)
        beyond = MarginRescaling(listed.loss, scale=1.01 * scale)
        assert np.max(beyond(y, scores) - table) > 1e-4 * table.max()
        # A callable that declares nothing is not known to be increasing.
        known = listed.loss.set_function(positive).is_increasing
        assert at_most.properties(positive).is_extension is (True if known else None)
        assert beyond.properties(positive).is_extension is (False if known else None)


@pytest.mark.parametrize(
    "loss",
    [
        0.5 * losses.FaceTrack(1),
        losses.FaceTrack(1) + losses.Hamming(),
        losses.FaceTrack(1) + losses.Hamming(np.linspace(0.1, 1.0, 20)),
    ],
    ids=repr,
)
def test_what_is_called_an_extension_has_a_value(loss):
    """At 20 elements, too many to enumerate: at the corner of all mistakes it is the loss."""
    surrogate, y = MarginRescaling(loss, scale="extension"), np.ones(20)
    if surrogate.properties(y).is_extension:
        assert surrogate(y, np.zeros(20)) == pytest.approx(loss(y, -y), abs=TOLERANCE)


@pytest.mark.parametrize("table", [[0.0, 1.0, 1.0, 0.4], [0.0, -1.0]])
def test_no_scale_makes_an_extension_of_a_loss_that_falls(table):
    loss = losses.SetLoss(Table(table))
    y = np.ones(loss.function.n)
    sentence = "scale must be a number for .*, which is not increasing, got 'extension'"
    with pytest.raises(ValueError, match=sentence):
        MarginRescaling(loss).extension_scale(y)
    with pytest.raises(ValueError, match=sentence):
        MarginRescaling(loss, scale="extension")(y, np.zeros(len(y)))


def test_the_extension_scale_of_jaccard_is_twice_the_positives():
    for m in (1, 3, 10):
        y = np.arange(20) < m
        assert MarginRescaling("jaccard").extension_scale(y) == pytest.approx(2 * m, rel=1e-14)
