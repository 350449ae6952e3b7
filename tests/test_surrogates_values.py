"""Surrogates: their values by brute force, gradients, batches and types of scores.

Every law runs over all pairs of a loss in LOSSES and a surrogate in SURROGATES.
"""

import copy
import pickle
import warnings

import numpy as np
import pytest
from loss_registry import LOSSES
from surrogate_registry import (
    SURROGATES,
    TOLERANCE,
    assert_subgradients,
    each_pair,
    evaluations,
    surrogate_of,
    truths,
)

from setwise import losses
from setwise.functions import Cardinality
from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling

# -------------------------------------------------------------------------------- values, gradients


@each_pair
def test_value_is_the_definition(loss_name, kind_name):
    for one in evaluations(loss_name, kind_name):
        np.testing.assert_allclose(one.values, one.defined, rtol=1e-12, atol=TOLERANCE)


@each_pair
def test_subgradient_inequality(loss_name, kind_name):
    """v(h) >= v(g) + <gradient at g, h - g> for all pairs of scores g, h."""
    for one in evaluations(loss_name, kind_name):
        assert_subgradients(one)


@each_pair
def test_gradient_is_the_finite_difference_away_from_kinks(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    rng = np.random.default_rng(7)
    step, smooth, all_points = 1e-5, 0, 0
    for positive in truths(loss_name):
        p = len(positive)
        if p == 0:
            continue
        scores = rng.normal(size=(2, p))
        shifts = step * np.concatenate([np.zeros((1, p)), np.eye(p), -np.eye(p)])
        around = (scores[:, None, :] + shifts).reshape(-1, p)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the submodular part of")
            values, gradients = surrogate.value_and_gradient(
                np.tile(positive, (len(around), 1)), around
            )
        values = values.reshape(2, 2 * p + 1)
        up, down = values[:, 1 : p + 1] - values[:, :1], values[:, :1] - values[:, p + 1 :]
        # Between kinks a surrogate is linear: both differences are one slope, up to rounding.
        linear = np.abs(up - down) < 1e-11
        slopes = gradients.reshape(2, 2 * p + 1, p)[:, 0]
        # Values below 100 carry 1e-14, divided by the step of 1e-5.
        np.testing.assert_allclose(slopes[linear], (up / step)[linear], atol=1e-6)
        smooth, all_points = smooth + linear.sum(), all_points + linear.size
    assert smooth >= 0.9 * all_points, "kinks are rare"


@each_pair
def test_float32_is_float64_rounded_once(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    for one in evaluations(loss_name, kind_name)[-4:]:
        y = np.tile(one.positive, (len(one.scores), 1))
        single = one.scores.astype(np.float32)
        values, gradients = surrogate.value_and_gradient(y, single)
        expected, slopes = surrogate.value_and_gradient(y, single.astype(np.float64))
        assert gradients.dtype == np.float32
        assert values.dtype == slopes.dtype == np.float64
        # Two terms of B_D and a factor before the loss are three roundings to float32.
        np.testing.assert_allclose(gradients, slopes, rtol=4e-7, atol=4e-7)
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=TOLERANCE)


@each_pair
def test_batch_equals_rows_equals_ragged(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    drawn = [one for one in evaluations(loss_name, kind_name) for _ in range(2)]
    rng = np.random.default_rng(1)
    rows = rng.integers(len(drawn[0].scores), size=len(drawn))
    chosen = [
        (one.positive, one.scores[k], one.values[k], one.gradients[k])
        for one, k in zip(drawn, rows, strict=True)
    ]
    rng.shuffle(chosen)
    y = np.concatenate([one[0] for one in chosen])
    scores = np.concatenate([one[1] for one in chosen])
    offsets = np.cumsum([0, *(len(one[0]) for one in chosen)])
    values, gradients = surrogate.value_and_gradient(y, scores, offsets=offsets)
    # Sums over a batch may run in another order (BLAS) than over one row.
    close = {"rtol": 1e-13, "atol": 1e-12}
    np.testing.assert_allclose(values, [one[2] for one in chosen], **close)
    np.testing.assert_allclose(gradients, np.concatenate([one[3] for one in chosen]), **close)
    for positive, row, value, gradient in chosen[:8]:
        single, slope = surrogate.value_and_gradient(positive, row)
        assert isinstance(single, float)
        assert single == pytest.approx(value, rel=1e-13, abs=1e-12)
        np.testing.assert_allclose(slope, gradient, **close)
        assert surrogate(positive, row) == single


@pytest.mark.parametrize("kind_name", SURROGATES)
def test_encodings_and_types_of_scores(kind_name):
    surrogate = SURROGATES[kind_name].make(losses.Jaccard())
    y, scores = np.array([True, False, True]), np.array([1, -2, 0])
    expected = surrogate.value_and_gradient(y, scores.astype(float))
    for labels in (y, y.astype(int), np.where(y, 1, -1), y.tolist(), y.astype(np.float32)):
        for numbers_ in (scores, scores.tolist(), scores.astype(np.int8), scores.astype("f2")):
            value, gradient = surrogate.value_and_gradient(labels, numbers_)
            assert value == expected[0]
            assert gradient.dtype == np.float64
            np.testing.assert_array_equal(gradient, expected[1])


@pytest.mark.parametrize("kind_name", SURROGATES)
def test_rows_of_another_memory_order(kind_name):
    surrogate = SURROGATES[kind_name].make(losses.Jaccard())
    rng = np.random.default_rng(0)
    y, scores = rng.random((6, 5)) < 0.5, rng.normal(size=(6, 5))
    expected = surrogate.value_and_gradient(y, scores)
    for got in (
        surrogate.value_and_gradient(np.asfortranarray(y), np.asfortranarray(scores)),
        surrogate.value_and_gradient(np.repeat(y, 2, axis=1)[:, ::2], scores),
        surrogate.value_and_gradient(y, np.repeat(scores, 2, axis=0)[::2]),
    ):
        np.testing.assert_array_equal(got[0], expected[0])
        np.testing.assert_array_equal(got[1], expected[1])


@each_pair
def test_no_set_and_no_element(loss_name, kind_name):
    surrogate, listed = surrogate_of(loss_name, kind_name), LOSSES[loss_name]
    p = listed.sizes[-1]
    values, gradients = surrogate.value_and_gradient(np.zeros((0, p)), np.zeros((0, p)))
    assert values.shape == (0,)
    assert gradients.shape == (0, p)
    if 0 in listed.sizes:
        assert surrogate([], []) == 0.0


# --------------------------------------------------------------------------------------- as objects


@each_pair
def test_pickle_copies_and_repr(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    again = pickle.loads(pickle.dumps(surrogate))
    assert repr(again) == repr(surrogate)
    assert type(surrogate).__name__ in repr(surrogate)
    assert repr(surrogate.loss) in repr(surrogate)
    assert copy.deepcopy(surrogate) is surrogate
    with pytest.raises(AttributeError, match="immutable"):
        surrogate.loss = losses.Hamming()


def test_a_factor_before_the_loss_multiplies_the_surrogate():
    rng = np.random.default_rng(0)
    y, scores = rng.random((4, 6)) < 0.5, rng.normal(size=(4, 6))
    for kind in (LovaszHinge, SlackRescaling, DecomposedHinge):
        once = kind("jaccard").value_and_gradient(y, scores)
        thrice = kind(3.0 * losses.Jaccard()).value_and_gradient(y, scores)
        np.testing.assert_allclose(thrice[0], 3.0 * once[0], rtol=1e-14)
        np.testing.assert_allclose(thrice[1], 3.0 * once[1], rtol=1e-14)


def test_the_name_of_a_loss_stands_for_it():
    for kind in (LovaszHinge, MarginRescaling, SlackRescaling, DecomposedHinge):
        assert repr(kind("jaccard")) == repr(kind(losses.Jaccard()))


def test_cardinality_without_its_value_on_nothing():
    """A set function with F(empty) = 7: the loss is F - 7, whatever path it takes."""
    plain = losses.SetLoss(Cardinality([0.0, 2.0, 3.0]))
    shifted = losses.SetLoss(Cardinality([7.0, 9.0, 10.0]))
    y, scores = [1, -1], [0.3, 0.4]
    for kind in (LovaszHinge, MarginRescaling, SlackRescaling, DecomposedHinge):
        assert kind(shifted)(y, scores) == pytest.approx(kind(plain)(y, scores), abs=TOLERANCE)
