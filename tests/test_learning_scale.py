"""Learning has no unit: what a change of units leaves of a fit, and fits in ill-scaled units."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from setwise import SetClassifier, surrogates
from setwise._core import PlaneProgram
from setwise.learning import n_slack, one_slack
from setwise.learning._cutting_planes._learner import Learner

random = np.random.default_rng(0)
X = random.normal(size=(60, 4))
Y = (X @ random.normal(size=(4, 3)) + random.normal(size=(60, 3)) > 0.4).astype(int)
FEW_X, FEW_Y = random.normal(size=(11, 2)), random.integers(0, 2, size=(11, 5))
# Powers of two: a change of unit by one of them rounds nothing, so that the rounds are the same.
UNITS = [2.0**-20, 2.0**-3, 2.0**20]


def hinges(X, Y, scale=1.0, constant=0.0):
    """The sum of hinge losses as an oracle, in another unit and with a constant."""

    def risk(w):
        slack = 1 - (2 * Y - 1) * (X @ w.reshape(-1, X.shape[1]).T)
        slope = -((2 * Y - 1) * (slack > 0)).T @ X
        return scale * np.maximum(slack, 0).sum() + constant, scale * slope.ravel()

    return risk


def fit_of(risk, C, **options):
    return one_slack(risk, 12, C, **options)


# -------------------------------------------------------------------------------------------- units


@pytest.mark.parametrize("unit", UNITS)
def test_features_and_price_in_another_unit_are_the_same_problem(unit):
    """w = v / s turns features s X at C / s^2 into X at C: the objective is in units of 1 / s^2."""
    plain = fit_of(hinges(X, Y), 1.0, tol=1e-6)
    other = fit_of(hinges(unit * X, Y), unit**-2, tol=1e-6)
    assert plain.converged
    assert other.n_iter == plain.n_iter
    np.testing.assert_array_equal(other.w, plain.w / unit)
    np.testing.assert_array_equal(other.history.primal, plain.history.primal / unit**2)
    np.testing.assert_array_equal(other.history.dual, plain.history.dual / unit**2)
    assert other.relative_gap == plain.relative_gap


@pytest.mark.parametrize("unit", UNITS)
def test_the_risk_in_another_unit_is_the_same_problem(unit):
    plain = fit_of(hinges(X, Y), 1.0, tol=1e-6)
    other = fit_of(hinges(X, Y, scale=unit), 1.0 / unit, tol=1e-6)
    assert other.n_iter == plain.n_iter
    np.testing.assert_array_equal(other.w, plain.w)
    assert other.relative_gap == plain.relative_gap


@pytest.mark.parametrize("constant", [1.0, -1e3, 1e6])
def test_a_constant_in_the_risk_changes_nothing(constant):
    plain = fit_of(hinges(X, Y), 1.0)
    other = fit_of(hinges(X, Y, constant=constant), 1.0, least_risk=constant)
    assert other.converged
    assert other.value - constant == pytest.approx(plain.value, rel=1e-3)
    assert other.gap_scale == pytest.approx(plain.gap_scale, rel=1e-2)
    ended = one_slack(
        hinges(X, Y, constant=constant), 12, least_risk=constant, callback=lambda p: p.n_iter == 5
    )
    same = one_slack(hinges(X, Y), 12, callback=lambda p: p.n_iter == 5)
    assert ended.relative_gap == pytest.approx(same.relative_gap, rel=1e-6)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("surrogate", surrogates.names())
def test_classifiers_in_another_unit(surrogate, unit):
    plain = SetClassifier("jaccard", surrogate, fit_intercept=False).fit(X, Y)
    other = SetClassifier("jaccard", surrogate, C=unit**-2, fit_intercept=False).fit(unit * X, Y)
    assert other.n_iter_ == plain.n_iter_
    np.testing.assert_array_equal(other.coef_, plain.coef_ / unit)
    assert other.gap_ == plain.gap_


# --------------------------------------------------------------------------------------- ill scaled


@pytest.mark.parametrize("surrogate", ["lovasz", "margin", "slack"])
@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_any_unit_of_all_features(surrogate, unit):
    model = SetClassifier("jaccard", surrogate, C=10, fit_intercept=False, max_iter=300)
    assert model.fit(unit * FEW_X, FEW_Y).gap_ <= 1e-3


@pytest.mark.parametrize("C", [1e-6, 1e3, 1e6])
def test_any_price(C):
    assert SetClassifier("jaccard", C=C, max_iter=400).fit(X, Y).gap_ <= 1e-3


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("column", [0, 3])
def test_one_column_in_any_unit(column, unit):
    features = X.copy()
    features[:, column] *= unit
    assert SetClassifier("jaccard", max_iter=400).fit(features, Y).gap_ <= 1e-3


@pytest.mark.filterwarnings("ignore:SetClassifier predicts no positive")
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    ("features", "truth"),
    [
        (X[:1], Y[:1]),
        (X[:, :1], Y),
        (X, Y[:, :1]),
        (np.ones((60, 2)), Y),
        (X[:, [0, 0, 1]], Y),
        (X, np.ones_like(Y)),
        (X, np.zeros_like(Y)),
        (np.zeros((60, 2)), Y),
    ],
    ids=["n = 1", "d = 1", "p = 1", "constant", "duplicate", "positive", "negative", "zero"],
)
def test_degenerate_samples_in_any_unit(features, truth, unit):
    model = SetClassifier("jaccard", "margin", C=10.0, max_iter=400).fit(unit * features, truth)
    assert model.gap_ <= 1e-3


# --------------------------------------------------------------------------- what there is to gain


def test_weights_of_zero_are_not_certified_by_a_high_price_alone():
    """Few positives: P(0) = C n is within 1 % of the minimum, and says nothing."""
    draw = np.random.default_rng(1)
    features = draw.normal(size=(200, 10))
    scores = features @ draw.normal(size=(10, 5)) + 3 * draw.normal(size=(200, 5))
    truth = (scores > np.quantile(scores, 0.85)).astype(int)
    model = SetClassifier("jaccard", C=0.005, tol=1e-2).fit(features, truth)
    assert model.history_.primal[-1] >= 0.99 * model.history_.primal[0]
    assert model.gap_ <= 1e-2
    assert model.predict(features).any()
    nothing = SetClassifier("jaccard", C=0.005, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        assert nothing.fit(features, truth).gap_ == 1.0


def test_zero_is_proved_where_it_is_the_minimum():
    """|w| and |w - 1| / 2 pull both ways: 0 is the minimum, at a kink."""

    def risk(w):
        return float(np.abs(w).sum()) + 0.5 * float(np.abs(w - 1).sum()), np.sign(
            w + 0.25
        ) + 0.5 * np.sign(w - 1)

    fit = one_slack(risk, 3, 5.0, tol=0.0)
    assert fit.converged
    assert not fit.w.any()
    assert fit.relative_gap == 0.0


@pytest.mark.parametrize("n", [1, 40])
def test_every_learner_measures_alike(n):
    def example(i, w):
        slack = 1 - (2 * Y[i, 0] - 1) * float(X[i] @ w)
        return max(slack, 0.0), -(2 * Y[i, 0] - 1) * X[i] * (slack > 0)

    fit = n_slack(example, n, 4, 2.0, max_iter=3)
    assert fit.risk_at_zero == n
    assert fit.gap_scale == min(2.0 * n - fit.bound, fit.value)
    again = one_slack(
        lambda w: tuple(map(sum, zip(*(example(i, w) for i in range(n)), strict=True))),
        4,
        3.0,
        init=fit,
    )
    assert again.risk_at_zero == n
    assert again.converged


# ------------------------------------------------------------------------------------------ endings


class Slow(Learner):
    """The value 1 and a bound that rises by a constant per round."""

    name = "slow"

    def start(self, rise):
        self.rise, self.rounds = rise, 0
        self.offer(np.zeros(2), 1.0)

    def step(self):
        self.know(0.5 + self.rise * self.rounds, 1.0)
        self.rounds += 1
        return False


@pytest.mark.parametrize(("rise", "rounds"), [(1e-5, 203), (1e-4, 1000)])
def test_a_fit_that_stands_still_ends(rise, rounds):
    """200 rounds, and one more for each weight, without 1 % of progress."""
    learner = Slow(2, 1.0, 1e-3, 1000, None)
    learner.start(rise)
    fit = learner.fit()
    assert fit.n_iter == rounds
    assert not fit.converged
    ended = "the gap stands still" if rounds < 1000 else "max_iter=1000 rounds made"
    assert fit.reason == ended


def test_a_fit_that_stands_still_says_so(monkeypatch):
    monkeypatch.setattr("setwise.learning._cutting_planes._learner._PATIENCE", -12)
    monkeypatch.setattr("setwise._foundation._search.STANDS_STILL", 0.0)
    with pytest.warns(ConvergenceWarning, match=r"above tol=1e-09: its gap stands still: bring"):
        SetClassifier(tol=1e-9).fit(X, Y)


@pytest.mark.parametrize("answer", [True, 1, np.int64(1), "stop", np.True_])
@pytest.mark.parametrize("no", [False, 0, None, ""])
def test_any_true_value_of_a_callback_stops(answer, no):
    fit = fit_of(hinges(X, Y), 1.0, callback=lambda p: answer if p.n_iter == 3 else no)
    assert (fit.n_iter, fit.interrupted) == (3, True)
    model = SetClassifier().fit(X, Y, callback=lambda p: answer if p.n_iter == 3 else no)
    assert model.n_iter_ == 3


def test_a_sample_without_predicted_positives_is_said_once():
    draw = np.random.default_rng(2)
    features, truth = draw.normal(size=(80, 3)), (draw.random((80, 4)) < 0.1).astype(int)
    with pytest.warns(UserWarning, match="predicts no positive on the sample") as caught:
        model = SetClassifier(surrogate="hinge", C=0.1).fit(features, truth)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not model.predict(features).any()
    with pytest.warns(UserWarning, match=r"all weights are zero.* try another .*'balanced'"):
        SetClassifier("jaccard", fit_intercept=False).fit(np.zeros((4, 1)), [0, 1, 0, 1])


def test_a_removed_sample_does_not_hide_that_no_positive_is_predicted():
    draw = np.random.default_rng(2)
    features, truth = draw.normal(size=(80, 3)), (draw.random((80, 4)) < 0.1).astype(int)
    features = np.vstack([features, 1e6 * np.eye(3), -1e6 * np.eye(3)])
    truth = np.vstack([truth, np.zeros((6, 4), int)])
    weight = np.repeat([1.0, 0.0], [80, 6])
    with pytest.warns(UserWarning, match="predicts no positive on the sample"):
        model = SetClassifier(surrogate="hinge", C=0.1).fit(features, truth, sample_weight=weight)
    assert model.predict(features[80:]).any()
    assert not model.predict(features[:80]).any()


def test_no_warning_where_there_is_no_positive_to_predict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SetClassifier().fit(X, np.zeros_like(Y))
        SetClassifier().fit(X, Y, callback=lambda p: True)


# ------------------------------------------------------------------------------------- the program


def program_of(seed):
    """Vectors in several units, g, and how many of them are directions of a cone."""
    draw = np.random.default_rng(seed)
    cone, planes, rank = draw.integers(3), draw.integers(1, 9), draw.integers(2, 5)
    small = draw.integers(-1, 2, size=(planes, rank)).astype(float)  # with ties and repetitions
    vectors = draw.normal(size=(planes, rank)) if seed % 2 else small
    units = 10.0 ** draw.integers(-4, 5, size=rank)
    vectors = np.vstack([-np.eye(cone, rank), vectors * (units if seed % 3 else 1.0)])
    g = np.round(draw.normal(size=cone + planes), 1)
    g[:cone] = -np.abs(g[:cone])
    return vectors, g / 10.0 ** draw.integers(-3, 13), int(cone)


def solved(program, vectors, g, cone):
    x, total = np.empty(len(vectors)), np.empty(vectors.shape[1])
    assert program.solve(vectors, cone, g, x, total)
    return x, total


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_program_meets_the_conditions_of_karush_kuhn_and_tucker(seed, warm):
    """From any earlier program: signs, sum, and no direction that gains more than rounding."""
    vectors, g, cone = program_of(seed)
    solver = PlaneProgram()
    if warm:
        solved(solver, np.ascontiguousarray(vectors[: cone + 1]), g[: cone + 1].copy(), cone)
    x, total = solved(solver, vectors, g, cone)
    assert np.all(x >= 0)
    assert x[cone:].sum() == pytest.approx(1.0, abs=1e-12)
    size = np.abs(vectors).max()
    np.testing.assert_allclose(vectors.T @ x, total, atol=1e-12 * size * max(1.0, x.sum()))
    gains = g - vectors @ total
    # What the sum loses to a cancellation, and what the products with it lose.
    noise = 1e-10 * (np.abs(g) + np.abs(vectors) @ np.abs(total)).max() + 1e-14 * size * size
    level = gains[cone:].max()
    assert np.all(gains[cone:][x[cone:] > 0] >= level - noise)
    assert np.all(gains[:cone] <= noise)
    assert np.all(gains[:cone][x[:cone] > 0] >= -noise)


@pytest.mark.parametrize("kept", [[0, 2, 3], [1, 2], [0, 1, 2, 3, 4, 5]])
def test_a_program_goes_on_with_some_of_its_vectors(kept):
    draw = np.random.default_rng(3)
    vectors, g = draw.normal(size=(6, 3)), draw.normal(size=6)
    program = PlaneProgram()
    solved(program, vectors[:5].copy(), g[:5].copy(), 0)
    program.keep(np.array(kept))
    x, total = solved(program, vectors[kept], g[kept], 0)
    fresh, sum_fresh = solved(PlaneProgram(), vectors[kept], g[kept], 0)
    np.testing.assert_allclose(x, fresh, atol=1e-12)
    np.testing.assert_allclose(total, sum_fresh, atol=1e-12)


@pytest.mark.parametrize("surrogate", ["lovasz", "hinge"])
@pytest.mark.parametrize("rows", [200, 1000])
def test_rows_in_a_large_unit_are_learned_however_many_there_are(surrogate, rows):
    """Neither planes nor passes come near: 21 columns of about 1000, so that C is 10^7."""
    random = np.random.default_rng(0)
    A = random.normal(size=(rows, 20))
    B = (A @ random.normal(size=(20, 4)) + 2 * random.normal(size=(rows, 4)) > 1).astype(int)
    model = SetClassifier(surrogate=surrogate, C=10.0).fit(1e3 * A, B)
    assert model.gap_ <= 1e-3
