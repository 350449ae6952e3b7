"""SetClassifier: whether its gap is a certificate, and the warning where it is not."""

import numpy as np
import pytest
from set_classifier_problem import X, Y, n

from setwise import SetClassifier
from setwise.functions import lovasz_extension
from setwise.losses import CardinalityLoss, CountsLoss, EarlyDetection, Hamming, Jaccard, SetLoss
from setwise.surrogates import LovaszHinge

MANY = np.random.default_rng(7).integers(0, 2, size=(n, 17))


@pytest.mark.parametrize(
    ("loss", "surrogate"),
    [
        (Hamming(np.arange(1.0, 18.0)), "slack"),
        (EarlyDetection(), "slack"),
        (EarlyDetection() + Jaccard(), "margin"),
    ],
)
def test_no_exact_maximiser_is_said_once(loss, surrogate):
    with pytest.warns(UserWarning, match="has no exact maximiser for 17 elements") as caught:
        model = SetClassifier(loss, surrogate, C=0.01).fit(X, MANY, callback=lambda p: True)
    assert len(caught) == 1
    assert str(caught[0].message).endswith(
        "a greedy search stands for it, and gap_ is no certificate"
    )
    assert not model.certified_


def test_the_warning_points_at_the_call_of_fit():
    model = SetClassifier(EarlyDetection(), "slack")
    with pytest.warns(UserWarning, match="has no exact maximiser") as caught:
        model.fit(X, MANY, callback=lambda p: True)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("loss", "surrogate"),
    [
        ("jaccard", "lovasz"),
        ("jaccard", "slack"),
        ("dice", "decomposed"),
        (EarlyDetection(), "margin"),
        (Hamming(np.arange(1.0, 18.0)), "margin"),
        (SetLoss(lambda m, q: float(m.any()), submodular=True, increasing=True), "lovasz"),
    ],
)
def test_exact_maximisers_are_certified(loss, surrogate):
    model = SetClassifier(loss, surrogate, C=0.01)
    assert model.fit(X, MANY, callback=lambda p: p.n_iter == 2).certified_


def test_what_is_not_known_to_be_convex_is_not_certified():
    """l = 1 for two mistakes out of two: the planes of its Lovász hinge are no lower bounds."""
    loss = SetLoss(lambda mistakes, positive: float(mistakes.all()))
    model = SetClassifier(loss, "lovasz", fit_intercept=False)
    assert not model.fit(np.ones((2, 1)), [[1, 1], [1, -1]]).certified_
    model.set_params(surrogate="auto")
    assert model.fit(np.ones((2, 1)), [[1, 1], [1, -1]]).certified_


def test_every_set_is_looked_at_for_the_certificate():
    """The largest set, of positives alone, is a small grid of counts; the second one is not."""
    loss = CountsLoss(lambda n, q, m, r: np.sqrt(n + 2 * q))
    truth = np.ones(9600, int)
    truth[5000:7300] = 0
    groups = (np.arange(9600) >= 5000).astype(int)
    model = SetClassifier(loss, "slack")
    with pytest.warns(UserWarning, match="has no exact maximiser for 4600 elements"):
        model.fit(np.ones((9600, 1)), truth, groups=groups, callback=lambda p: True)
    assert not model.certified_


def test_the_submodular_part_that_is_negative_is_said_once():
    with pytest.warns(UserWarning, match="the submodular part of .* is negative") as caught:
        SetClassifier(CardinalityLoss(lambda k, p: k * (k > 1)), "decomposed").fit(X, Y)
    assert len(caught) == 1


@pytest.mark.parametrize(("noise", "zero"), [(0.0, False), (2.0, True)])
def test_a_minimum_at_zero_is_where_no_direction_falls(noise, zero):
    """The slope of the risk at W = 0 along v is the Lovász extension at u = -y <v, x>."""
    random = np.random.default_rng(0)
    features = random.normal(size=(200, 2))
    signal = features[:, 0] + noise * random.normal(size=200)
    y = (signal > np.quantile(signal, 0.9)).astype(int)
    features = np.column_stack([features, np.ones(200)])
    function, hinge = Jaccard().set_function(y), LovaszHinge("jaccard")
    slopes = []
    for v in random.normal(size=(300, 3)):
        u = -(2 * y - 1) * (features @ v)
        slopes.append(lovasz_extension(function, u))
        assert slopes[-1] == pytest.approx(
            (hinge(y, 1e-6 * (features @ v)) - hinge(y, np.zeros(200))) / 1e-6, abs=1e-6
        )
    model = SetClassifier("jaccard", C=1000.0, fit_intercept=False)
    if zero:
        with pytest.warns(UserWarning, match="predicts no positive .*, all weights are zero"):
            model.fit(features, y)
        assert model.gap_ == 0.0
        assert min(slopes) > 0
    else:
        model.fit(features, y)
        along = -(2 * y - 1) * (features @ model.coef_[0])
        assert lovasz_extension(function, along) < 0


@pytest.mark.parametrize("seed", range(3))
def test_large_duals_on_the_way_make_no_gap_small(seed):
    """Newton's steps begin at a dual of 1e13 here, whose rounding is none of an earlier bound's."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(11, 20)) * np.logspace(-6, 6, 20)
    labels = rng.normal(size=(11, 6)) > 0
    model = SetClassifier("f_beta", "margin", C=10.0).fit(features, labels)
    assert "interior_point" in model.learner_
    value, bound = model.history_.primal[-1], model.history_.dual[-1]
    assert value - bound <= 1e-3 * value
    assert model.gap_ == pytest.approx((value - bound) / value)


@pytest.mark.parametrize("C", [1e12, 1e15])
@pytest.mark.parametrize("loss", ["jaccard", "hamming"])
@pytest.mark.filterwarnings("ignore:SetClassifier stopped:sklearn.exceptions.ConvergenceWarning")
def test_rounding_hides_no_more_than_a_millionth(C, loss):
    """Rows that can be told apart: at such a price the rounding of the risk is all there is."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 5))
    model = SetClassifier(loss, C=C).fit(features, features @ rng.normal(size=(5, 3)) > 0)
    value, bound = model.history_.primal[-1], model.history_.dual[-1]
    assert (value - bound) / value <= model.gap_ + 1e-6
