"""SetClassifier: a fit that begins where the last one ended, as scikit-learn means it."""

import numpy as np
import pytest
from set_classifier_problem import GROUPS, X, Y, n, value_and_bound, y

from setwise import SetClassifier
from setwise.learning import one_slack

KINDS = {
    "rows": ({}, Y, {}),
    "columns": ({"sets": "columns"}, Y, {}),
    "groups": ({"sets": "groups"}, y, {"groups": GROUPS}),
    "no intercept": ({"fit_intercept": False}, Y, {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_never_worse_than_where_it_began(kind):
    options, truth, given = KINDS[kind]
    model = SetClassifier(C=10.0, warm_start=True, tol=1e-4, **options).fit(X, truth, **given)
    value, bound = value_and_bound(model)
    model.set_params(max_iter=1).fit(X, truth, callback=lambda progress: True, **given)
    assert model.history_.primal[0] <= value * (1 + 1e-12)
    assert model.history_.primal[0] >= bound


@pytest.mark.parametrize("kind", KINDS)
def test_another_C_and_another_sample(kind):
    """The minimum is that of the new problem, with a gap that is true of it."""
    options, truth, given = KINDS[kind]
    model = SetClassifier(C=0.1, warm_start=True, **options).fit(X, truth, **given)
    model.set_params(C=2.0, tol=1e-5)
    half = np.arange(n) % 2 == 0
    some = {name: value[half] for name, value in given.items()}
    model.fit(X[half], truth[half], **some)
    fresh = SetClassifier(C=2.0, tol=1e-5, **options).fit(X[half], truth[half], **some)
    assert value_and_bound(model)[0] == pytest.approx(value_and_bound(fresh)[0], rel=3e-5)
    assert model.gap_ <= 1e-5


def test_without_it_a_fit_begins_anew():
    model = SetClassifier(C=10.0).fit(X, Y)
    first = model.coef_
    assert np.array_equal(
        model.set_params(C=1.0).fit(X, Y).set_params(C=10.0).fit(X, Y).coef_, first
    )
    assert np.array_equal(SetClassifier(C=10.0, warm_start=True).fit(X, Y).coef_, first)


def test_other_labels_or_features_are_an_error():
    model = SetClassifier(warm_start=True).fit(X, Y)
    for features, truth in ((X, Y[:, :2]), (X[:, :2], Y), (X, y)):
        with pytest.raises(
            ValueError, match="warm_start must be False when the last fit had other"
        ):
            model.fit(features, truth)


def test_one_slack_begins_at_weights():
    def risk(w):
        return abs(w[0] - 1.0), np.sign(w - 1.0)

    plain = one_slack(risk, 1, 0.5, tol=1e-6)
    for start in (plain.w, [3.0], [-2.0], np.zeros(1)):
        fit = one_slack(risk, 1, 0.5, tol=1e-6, init=start)
        assert fit.value == pytest.approx(plain.value, rel=3e-6)
        assert fit.risk_at_zero == 1.0
    bounded = one_slack(risk, 1, 0.5, tol=1e-6, nonnegative=[0], init=[-2.0])
    assert bounded.w[0] >= 0
    with pytest.raises(ValueError, match=r"init must have shape \(1\), got \(2,\)"):
        one_slack(risk, 1, init=[0.0, 1.0])


def test_weights_to_begin_at_are_no_hindrance_in_a_large_unit():
    """Planes from the weights stand still there; what a fit without them would do comes after."""
    random = np.random.default_rng(0)
    A = random.normal(size=(200, 20))
    B = (A @ random.normal(size=(20, 4)) + 2 * random.normal(size=(200, 4)) > 1).astype(int)
    model = SetClassifier(surrogate="lovasz", C=1e-3, warm_start=True).fit(1e3 * A, B)
    assert model.set_params(C=10.0).fit(1e3 * A, B).gap_ <= 1e-3
