"""Surrogates: the losses and options that they refuse, and the ones that they warn of."""

import warnings

import numpy as np
import pytest
import reference
from loss_registry import LOSSES
from surrogate_registry import facts, truths

from setwise import functions, losses
from setwise.functions import Table, decompose
from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling

# A callable that declares nothing may be anything.
KNOWN = [name for name in LOSSES if name != "pairs of positives"]


@pytest.mark.parametrize("loss_name", [name for name in KNOWN if not facts(name)["submodular"]])
def test_lovasz_hinge_refuses_what_is_known_not_to_be_submodular(loss_name):
    listed = LOSSES[loss_name]
    worst = next(y for y in listed.truths() if not reference.is_submodular(listed.table(y)))
    with pytest.raises(ValueError, match=r"must be submodular .*: use DecomposedHinge"):
        LovaszHinge(listed.loss).value_and_gradient(worst, np.zeros(len(worst)))


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_lovasz_hinge_refuses_a_table_whatever_its_value_on_nothing(shift):
    loss = losses.SetLoss(Table(np.array([0.0, 1.0, 1.0, 3.0]) + shift))
    with pytest.raises(ValueError, match="must be submodular for LovaszHinge"):
        LovaszHinge(loss)([1, 1], [0.0, 0.0])


@pytest.mark.parametrize("loss_name", [n for n in LOSSES if not facts(n)["non-negative"]])
def test_slack_rescaling_refuses_negative_losses(loss_name):
    listed = LOSSES[loss_name]
    worst = next(y for y in listed.truths() if listed.table(y).min() < 0)
    surrogate = SlackRescaling(listed.loss)
    with pytest.raises(ValueError, match=r"must not be negative for SlackRescaling, got .* is"):
        surrogate.value_and_gradient(worst, np.zeros(len(worst)))


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: LovaszHinge("overlap"), ValueError, "loss must be one of"),
        (lambda: LovaszHinge(3), TypeError, "loss must be a Loss or a name, got int"),
        (lambda: LovaszHinge("jaccard", case=3), ValueError, "case must be 'auto', 1 or 2, got 3"),
        (lambda: LovaszHinge("dice"), ValueError, r"must be submodular .* got Dice\(\): use Decom"),
        (lambda: MarginRescaling("dice", scale=0.0), ValueError, "scale must be positive, got 0"),
        (lambda: MarginRescaling("dice", scale="best"), ValueError, "or 'extension', got 'best'"),
        (lambda: MarginRescaling("dice", scale=None), TypeError, "scale must be a real number"),
        (lambda: MarginRescaling("dice", maximizer="x"), ValueError, "maximizer must be 'auto' or"),
        (lambda: SlackRescaling("dice", maximizer=1), ValueError, "maximizer must be 'auto' or"),
    ],
)
def test_a_surrogate_that_cannot_be(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_a_scale_that_cannot_be_found():
    loss = losses.SetLoss(functions.Oracle(lambda mask: float(mask.any()), 17))
    surrogate = MarginRescaling(loss, scale="extension")
    with pytest.raises(ValueError, match=r"scale must be a number for .* at 17 elements"):
        surrogate(np.ones(17), np.zeros(17))


@pytest.mark.parametrize("loss_name", LOSSES)
def test_decomposed_hinge_warns_where_f_is_negative_and_names_the_loss(loss_name):
    listed = LOSSES[loss_name]
    surrogate = DecomposedHinge(listed.loss)
    for positive in truths(loss_name):
        f, _ = decompose(listed.loss.set_function(positive))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            DecomposedHinge(listed.loss)(positive, np.zeros(len(positive)))
        negative = bool(reference.all_values(f).min() < -1e-11)
        assert [warning.category for warning in caught] == [UserWarning] * negative
        assert all(repr(listed.loss) in str(warning.message) for warning in caught)
        assert surrogate.properties(positive).is_extension is not negative


def test_the_warning_comes_once_and_points_to_the_caller():
    surrogate = DecomposedHinge("face_track_3")
    with pytest.warns(UserWarning, match="submodular part of FaceTrack") as caught:
        surrogate(np.ones(9), np.zeros(9))
    assert caught[0].filename == __file__
    surrogate(np.ones(9), np.zeros(9))  # warnings are errors
