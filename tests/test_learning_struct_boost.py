"""Column generation against the whole linear program: every stump, every output."""

import pickle
import warnings
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from setwise.estimators._boosting._class_risk import ClassRisk
from setwise.learning import Column, StumpSearch, struct_boost
from setwise.learning._boosting import _restricted
from setwise.learning._boosting._boost_fit import BoostFit
from setwise.learning._boosting._dual_point import DualPoint
from setwise.learning._boosting._restricted import Restricted

TOLERANCE = 1e-6


@st.composite
def problems(draw, most=3):
    """X (m, d) with ties, labels of k classes that all occur, a cost matrix, C."""
    k = draw(st.integers(2, most))
    m, d = draw(st.integers(k, 7)), draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, 5, (m, d)).astype(float)
    y = rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, m - k)]))
    cost = rng.integers(1, 4, (k, k)) / 2 * (1 - np.eye(k))
    return X, y, cost, draw(st.sampled_from([0.5, 3.0, 20.0, 500.0]))


def minimum(X, y, cost, C, code=None):
    code = np.eye(len(cost)) if code is None else code
    planes = reference.class_planes(y, cost, code)
    return reference.boosted_minimum(planes, reference.stump_columns(X, code.shape[1]), C)


def boost(risk, search, C, **options):
    options = {"tol": 1e-9, "n_estimators": 1000} | options
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* all weights are 0")
        return struct_boost(risk, search, C, **options)


def objective(fit: BoostFit, risk, C):
    scores = np.zeros(int(risk.offsets[-1]))
    for column, weight in zip(fit.columns, fit.w, strict=True):
        scores[risk.offsets[column.segment] :][: len(column.response)] += weight * column.response
    assert np.allclose(scores, fit.scores)
    return np.abs(fit.w).sum() + C * risk(scores)[0]


@contextmanager
def softened(always):
    """The soft risk first, whatever the number of scores, or never."""
    with mock.patch.object(_restricted, "MANY_SCORES", 0 if always else np.inf):
        yield


@given(
    problems(most=6),
    st.sampled_from(["one", "example"]),
    st.sampled_from([1, 3]),
    st.sampled_from(["class", "shared"]),
    st.booleans(),
)
@settings(max_examples=120)
def test_equals_the_whole_program(problem, slack, width, columns, soft):
    X, y, cost, C = problem
    risk, options = ClassRisk(y, cost), {"slack": slack, "columns_per_round": width}
    with softened(soft):
        fit = boost(risk, StumpSearch(X, width), C, columns=columns, **options)
    least = minimum(X, y, cost, C)
    assert fit.value == pytest.approx(least, abs=TOLERANCE * max(1, least))
    assert fit.bound == pytest.approx(least, abs=TOLERANCE * max(1, least))
    assert fit.value == pytest.approx(objective(fit, risk, C), rel=1e-9)
    assert fit.certified
    assert fit.converged
    if columns == "class":
        assert (fit.w >= 0).all()
    else:
        assert len(fit.w) == len(cost) * fit.history.n_columns[-1]


@given(problems(most=5), st.sampled_from(["class", "shared"]), st.integers(1, 6))
@settings(max_examples=60)
def test_soft_rounds_lie_around_the_optimum(problem, columns, n_estimators):
    X, y, cost, C = problem
    tree = np.column_stack([np.eye(len(cost)), np.arange(len(cost)) < 2])
    for code in (None, tree):
        risk, least = ClassRisk(y, cost, code), minimum(X, y, cost, C, code)
        with softened(True):
            options = {"columns": columns, "tol": 1e-3, "n_estimators": n_estimators}
            fit = boost(risk, StumpSearch(X), C, **options)
        assert fit.value == pytest.approx(objective(fit, risk, C), rel=1e-9)
        assert (fit.history.primal >= least - TOLERANCE * fit.zero).all()
        assert (fit.history.dual <= least + TOLERANCE * fit.zero).all()
        assert (np.diff(fit.history.primal) <= 1e-12 * fit.zero).all()


@pytest.mark.parametrize("columns", ["class", "shared"])
def test_soft_stages_are_the_fits_with_fewer_learners(columns):
    X, y = clusters(k=6, each=60, apart=1.5)
    risk = ClassRisk(y, 1 - np.eye(6))
    fit, short = (
        boost(risk, StumpSearch(X), 60.0, tol=1e-3, n_estimators=n, columns=columns)
        for n in (30, 12)
    )
    width = 6 if columns == "shared" else 1
    assert fit.history.n_columns[-1] == 30
    assert len(short.w) == 12 * width
    assert np.array_equal(fit.stages[[11]].toarray()[0][: 12 * width], short.w)
    assert not fit.stages[[11]].toarray()[0][12 * width :].any()
    assert short.w.any()
    assert fit.value == pytest.approx(objective(fit, risk, 60.0), rel=1e-12)


def test_learners_are_shared_by_the_classes():
    # As many learners, a weight for every class: a lower objective.
    X, y = clusters(k=6, each=60, apart=1.5)
    risk = ClassRisk(y, 1 - np.eye(6))
    own, shared = (
        boost(risk, StumpSearch(X), 60.0, n_estimators=20, columns=columns)
        for columns in ("class", "shared")
    )
    assert shared.value < 0.97 * own.value
    stumps = [column.learner for column in shared.columns[::6]]
    assert len(set(stumps)) == 20
    assert [column.segment for column in shared.columns[:6]] == list(range(6))


def test_shared_columns_need_equal_segments():
    risk = constant(1.0, [0.0, 0.0])
    risk.offsets = [0, 2, 2]
    with pytest.raises(ValueError, match="equal segments for shared columns"):
        struct_boost(risk, StumpSearch(np.eye(2)), columns="shared")


@given(problems(), st.sampled_from([1e-6, 1e-3, 1e3, 1e6]), st.sampled_from(["one", "example"]))
@settings(max_examples=settings.default.max_examples // 4)
def test_the_unit_of_the_costs_is_that_of_the_weights(problem, unit, slack):
    X, y, cost, C = problem
    plain, other = (
        boost(ClassRisk(y, s * cost), StumpSearch(X), C, slack=slack) for s in (1.0, unit)
    )
    assert other.value == pytest.approx(unit * plain.value, rel=1e-6)
    assert other.bound == pytest.approx(unit * plain.bound, rel=1e-6)
    assert other.converged == plain.converged


@given(problems(), st.sampled_from([1e-6, 1e-3, 1e4, 1e6]), st.sampled_from(["one", "example"]))
@settings(max_examples=settings.default.max_examples // 4)
def test_every_c_is_solved(problem, C, slack):
    X, y, cost, _ = problem
    fit = boost(ClassRisk(y, cost), StumpSearch(X), C, slack=slack, tol=1e-6)
    assert fit.converged
    assert fit.gap <= 1e-6 * fit.value
    if C <= 1e-3:  # no learner's edge can be 1
        assert not fit.w.any()
        assert fit.value == fit.zero


@given(problems(), st.sampled_from([1e-300, 1e-6, 1e6, 1e300]))
@settings(max_examples=settings.default.max_examples // 4)
def test_stumps_do_not_know_units(problem, unit):
    X, y, cost, C = problem
    plain, other = (boost(ClassRisk(y, cost), StumpSearch(unit_ * X), C) for unit_ in (1.0, unit))
    assert np.array_equal(other.w, plain.w)
    assert np.array_equal(other.scores, plain.scores)


@given(problems(), st.integers(1, 4))
@settings(max_examples=settings.default.max_examples // 4)
def test_the_gap_is_a_share_of_what_there_was_to_gain(problem, n_estimators):
    X, y, cost, C = problem
    risk = ClassRisk(y, cost)
    fit = boost(risk, StumpSearch(X), C, n_estimators=n_estimators, tol=1e-3)
    least = minimum(X, y, cost, C)
    assert fit.zero == C * risk(np.zeros(int(risk.offsets[-1])))[0] == fit.history.primal[0]
    gap_scale = min(fit.zero - fit.bound, fit.value)
    assert fit.value - least <= fit.relative_gap * gap_scale + 1e-6 * fit.zero
    assert 0 <= fit.relative_gap <= 1
    assert fit.converged == (fit.relative_gap <= 1e-3)
    if not fit.w.any():
        assert fit.relative_gap in (0, 1)


@given(problems())
@settings(max_examples=30)
def test_weak_duality_in_every_round(problem):
    X, y, cost, C = problem
    history = boost(ClassRisk(y, cost), StumpSearch(X), C).history
    least = minimum(X, y, cost, C)
    assert (history.primal >= least - TOLERANCE).all()
    assert (history.dual <= least + TOLERANCE).all()
    assert (history.gap >= 0).all()


@given(problems())
@settings(max_examples=30)
def test_proposition_6_1_never_increases(problem):
    X, y, cost, C = problem
    history = boost(ClassRisk(y, cost), StumpSearch(X), C).history
    assert (np.diff(history.primal) <= 0).all()
    # No bound lies above the value, which may fall by a rounding.
    assert (np.diff(history.dual) >= -4 * np.finfo(float).eps * history.dual[1:]).all()


def test_proposition_6_1_strict_decrease_is_false():
    # Three classes in turn on a line: one stump alone helps none, though it is violated.
    X, y = np.arange(5.0)[:, None], np.array([0, 1, 2, 0, 1])
    history = boost(ClassRisk(y, 1 - np.eye(3)), StumpSearch(X), 20.0).history
    assert history.n_columns[1] == 1
    assert history.primal[0] == history.primal[1] > history.primal[-1]


@given(problems())
@settings(max_examples=30)
def test_proposition_6_2_decrease(problem):
    X, y, cost, C = problem
    risk, search = ClassRisk(y, cost), StumpSearch(X)
    restricted = Restricted(risk, C, examplewise=False)
    for _ in range(6):
        model = restricted.minimize(1e-10, 0.0, 0.0)
        before, scores = restricted.best, restricted.scores
        column = search(restricted.planes.descent(model.multipliers))[0]
        restricted.add_column(column)
        restricted.minimize(1e-10, 0.0, 0.0)
        decrease = before.value - restricted.best.value
        direction = restricted.responses.spread(column)[0]
        for alpha in (0.0, 0.01, 0.1, 0.5, 1.0, 3.0):
            # The subgradient at alpha sums psi_t(x_i, y_i*) - psi_t(x_i, y_i) over the examples.
            slope = risk(scores + alpha * direction)[1] @ direction
            assert decrease >= -alpha - alpha * C * slope - 1e-7 * max(1, C)


@given(problems(), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_theorem_2_1_one_slack_equals_a_slack_an_example(problem, seed):
    X, y, cost, C = problem
    columns = reference.stump_columns(X, len(cost))
    columns = columns[np.random.default_rng(seed).permutation(len(columns))[:4]]
    each = reference.class_planes(y, cost, np.eye(len(cost)))[:4]
    # Equation (9): the planes of the examples in all combinations.
    combined = [(0.0, np.zeros(columns.shape[1]))]
    for own in each:
        combined = [(b + c / len(each), g + h / len(each)) for b, g in combined for c, h in own]
    one = reference.boosted_minimum([combined], columns, C)
    many = reference.boosted_minimum(each, columns, C)
    assert one == pytest.approx(many, abs=TOLERANCE * max(1, C))


@given(problems(most=2))
@settings(max_examples=30)
def test_two_classes_are_lpboost(problem):
    X, y, _, C = problem
    fit = boost(ClassRisk(y, 1 - np.eye(2), np.array([[-0.5], [0.5]])), StumpSearch(X), C)
    signs, m = 2.0 * y - 1, len(y)
    margins = [[(0.0, np.zeros(m)), (1.0, -s * np.eye(m)[i])] for i, s in enumerate(signs)]
    least = reference.boosted_minimum(margins, reference.stump_columns(X, 1), C)
    assert fit.value == pytest.approx(least, abs=TOLERANCE * max(1, least))
    # A class of scores each gives the same optimum: stumps come in both signs.
    both = boost(ClassRisk(y, 1 - np.eye(2)), StumpSearch(X), C)
    assert both.value == pytest.approx(least, abs=TOLERANCE * max(1, least))


@given(problems(), st.integers(0, 2**32 - 1))
def test_class_risk_is_the_mean_of_the_worst_planes(problem, seed):
    _, y, cost, _ = problem
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, (len(cost), 4)).astype(float)
    scores = rng.integers(-2, 3, 4 * len(y)) / 2
    weight = rng.integers(1, 4, len(y)).astype(float)
    risk = ClassRisk(y, cost, code, weight)
    heights = [max(b + g @ scores for b, g in own) for own in reference.class_planes(y, cost, code)]
    value, slope = risk(scores)
    assert value == pytest.approx(np.average(heights, weights=weight))
    parts, slopes = risk.each(scores)
    assert parts.mean() == pytest.approx(value)
    assert np.allclose(slopes.toarray().mean(axis=0), slope)
    for _ in range(5):
        other = scores + rng.standard_normal(len(scores))
        assert risk(other)[0] >= value + slope @ (other - scores) - 1e-9
        assert (risk.each(other)[0] >= parts + slopes @ (other - scores) - 1e-9).all()


def clusters(seed=0, k=4, each=10, apart=2.0):
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((k, 3)) * apart
    y = np.repeat(np.arange(k), each)
    return centers[y] + rng.standard_normal((len(y), 3)), y


class OneOfTies(ClassRisk):
    """Another subgradient of the same risk: one class where several are equally violated."""

    def _most_violated(self, scores):
        return super()._most_violated(scores - 1e-12 * np.arange(len(scores)))


def test_few_learners_are_not_the_zero_function():
    # Before the first learner all classes are equally violated. With one of them alone as the
    # subgradient the learners undo one another, and six of them are the zero function still.
    X, y = clusters(k=8, each=20, apart=1.0)
    risks = ClassRisk(y, 1 - np.eye(8)), OneOfTies(y, 1 - np.eye(8))
    with softened(False):
        fits = [boost(risk, StumpSearch(X), 30.0, n_estimators=6) for risk in risks]
    assert np.ptp(fits[0].scores.reshape(8, -1), axis=0).max() > 0.1
    assert not fits[1].scores.any()
    assert fits[0].value < fits[1].value == pytest.approx(30.0)


def test_model_cancels_learners_where_the_fit_does_not():
    # A stump and the near-negation of it: what the first planes' model takes for the optimum is
    # worse than the zero function. The best weights met never are.
    X, y = clusters(k=3)
    risk, search = ClassRisk(y, 1 - np.eye(3)), StumpSearch(X)
    restricted = Restricted(risk, 1e3, examplewise=False)
    zero = restricted.best.value
    worse, seen = 0, [zero]
    for _ in range(12):
        model = restricted.minimize(1e-6, 0.1, 0.0)
        restricted.add_column(search(restricted.planes.descent(model.multipliers))[0])
        model = restricted._master.solve()
        scores = restricted.responses.scores(model.w)
        worse += model.w.sum() + 1e3 * risk(scores)[0] > max(zero, seen[-1]) + 1e-9
        seen.append(restricted.best.value)
    assert worse > 0
    assert (np.diff(seen) <= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_ends_where_rounding_hides_the_last_cut(seed):
    # C times the rounding of a plane is more than a tolerance of 0 allows.
    X, y = clusters(seed, k=3, apart=6.0)
    fit = boost(ClassRisk(y, 1 - np.eye(3)), StumpSearch(X), 1e7, tol=0.0, n_estimators=60)
    assert fit.relative_gap < 1e-3


class Repeats:
    """Not exact: gives the same learner again, its near-copy, and only then another one."""

    exact = False

    def __init__(self, X):
        self._search = StumpSearch(X)
        self._first = None

    def __call__(self, weights):
        columns = self._search(weights)
        self._first = self._first or columns[0]
        near = Column("near", self._first.segment, self._first.response * (1 + 1e-12))
        return [self._first, near, *columns]


def test_no_learner_twice():
    X, y = clusters()
    fit = boost(ClassRisk(y, 1 - np.eye(4)), Repeats(X), 50.0)
    rows = {(c.segment, tuple(np.round(c.response, 9))) for c in fit.columns}
    assert len(rows) == len(fit.columns) > 4
    assert not fit.certified
    assert (fit.history.gap >= 0).all()


def test_zero_optimum_names_c():
    X, y = clusters()
    risk = ClassRisk(y, 1 - np.eye(4))
    with pytest.warns(UserWarning, match=r"at C=0\.1: all weights are 0, raise C"):
        fit = struct_boost(risk, StumpSearch(X), 0.1)
    assert fit.converged
    assert not fit.w.any()
    X, y = np.arange(5.0)[:, None], np.array([0, 1, 2, 0, 1])
    with pytest.warns(UserWarning, match=r"1 weak learners .* raise n_estimators or C"):
        struct_boost(ClassRisk(y, 1 - np.eye(3)), StumpSearch(X), 20.0, n_estimators=1)


def test_sample_weights_repeat_rows():
    X, y = clusters()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    cost = 1 - np.eye(4)
    weighted = boost(ClassRisk(y, cost, None, weight.astype(float)), StumpSearch(X), 20.0)
    repeated = boost(
        ClassRisk(np.repeat(y, weight), cost), StumpSearch(np.repeat(X, weight, 0)), 20.0
    )
    assert weighted.value == pytest.approx(repeated.value, rel=1e-6)


def test_stages_are_the_fits_with_fewer_learners():
    X, y = clusters()
    risk = ClassRisk(y, 1 - np.eye(4))
    fit = boost(risk, StumpSearch(X), 50.0, tol=1e-3)
    assert fit.stages.shape == (len(fit.w), len(fit.w))
    assert np.array_equal(fit.stages[[-1]].toarray()[0], fit.w)
    short = boost(risk, StumpSearch(X), 50.0, tol=1e-3, n_estimators=6)
    assert np.array_equal(fit.stages[[5]].toarray()[0][:6], short.w)
    assert not fit.stages[[5]].toarray()[0][6:].any()


def test_callback_and_history():
    X, y = clusters()
    seen = []
    fit = boost(ClassRisk(y, 1 - np.eye(4)), StumpSearch(X), 50.0, callback=seen.append)
    assert [p.n_iter for p in seen] == list(range(1, fit.n_iter + 1))
    assert [p.value for p in seen] == fit.history.primal.tolist()
    assert not fit.interrupted
    stopped = boost(
        ClassRisk(y, 1 - np.eye(4)), StumpSearch(X), 50.0, callback=lambda p: p.n_columns == 5
    )
    assert stopped.interrupted
    assert len(stopped.w) == 5
    for true in (1, "yes", np.True_, [0]):
        once = boost(
            ClassRisk(y, 1 - np.eye(4)), StumpSearch(X), 50.0, callback=lambda p, t=true: t
        )
        assert once.n_iter == 1
        assert once.interrupted
    assert pickle.loads(pickle.dumps(stopped)).value == stopped.value


def test_interrupted_fit_keeps_the_best():
    X, y = clusters()

    class Impatient(ClassRisk):
        calls = 0

        def __call__(self, scores):
            Impatient.calls += 1
            if Impatient.calls == 40:
                raise KeyboardInterrupt
            return super().__call__(scores)

    risk = ClassRisk(y, 1 - np.eye(4))
    fit = boost(Impatient(y, 1 - np.eye(4)), StumpSearch(X), 50.0)
    assert fit.interrupted
    assert fit.value == pytest.approx(objective(fit, risk, 50.0))
    assert fit.value < 50.0
    assert len(fit.w) == len(fit.columns) == fit.stages.shape[1]
    Impatient.calls = 39
    with pytest.raises(KeyboardInterrupt):
        boost(Impatient(y, 1 - np.eye(4)), StumpSearch(X), 50.0)


def test_dual_point():
    assert DualPoint(np.zeros(1), 3.0, 0.5).bound == 3.0
    assert DualPoint(np.zeros(1), 3.0, 2.0).bound == 1.5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"C": 0.0}, ValueError, "C must be positive"),
        ({"tol": -1.0}, ValueError, "tol must not be negative"),
        ({"n_estimators": 0}, ValueError, "n_estimators must be at least 1"),
        ({"n_estimators": 2.5}, TypeError, "n_estimators must be an integer"),
        ({"slack": "two"}, ValueError, "slack must be one of 'one', 'example'"),
        ({"columns_per_round": 0}, ValueError, "columns_per_round must be at least 1"),
        ({"columns": "all"}, ValueError, "columns must be one of 'class', 'shared'"),
    ],
)
def test_bad_options(options, error, message):
    X, y = clusters()
    with pytest.raises(error, match=message):
        struct_boost(ClassRisk(y, 1 - np.eye(4)), StumpSearch(X), **options)


@pytest.mark.parametrize(
    ("offsets", "error", "message"),
    [
        ([0.0, 30.0], TypeError, r"risk.offsets must be integers, .* got dtype float64"),
        ([30], TypeError, r"risk.offsets must be integers, .* shape \(1,\)"),
        ([1, 30], ValueError, r"begin with 0 and not decrease, got \[1, 30\]"),
        ([0, 30, 20], ValueError, "begin with 0 and not decrease"),
    ],
)
def test_bad_offsets(offsets, error, message):
    risk = constant(1.0, [0.0, 0.0])
    risk.offsets = offsets
    with pytest.raises(error, match=message):
        struct_boost(risk, StumpSearch(np.eye(2)))


def test_what_is_no_boosting_problem():
    risk = constant(1.0, [-1.0, 0.0])
    with pytest.raises(TypeError, match="risk must be callable and have offsets, got function"):
        struct_boost(lambda scores: (1.0, scores), StumpSearch(np.eye(2)))
    with pytest.raises(TypeError, match="search must be callable and have exact, got NoneType"):
        struct_boost(risk, None)
    with pytest.raises(TypeError, match="callback must be callable or None, got int"):
        struct_boost(risk, StumpSearch(np.eye(2)), callback=3)
    risk.offsets = [0, 2]  # a list will do
    assert boost(risk, StumpSearch(np.eye(2)), 1.0).gap >= 0


def constant(risk, slope):
    class Constant:
        offsets = np.array([0, 2])

        def __call__(self, scores):
            return risk, np.array(slope)

    return Constant()


@pytest.mark.parametrize(
    ("risk", "message"),
    [
        (constant(1.0, [1.0]), r"subgradient of shape \(2,\), got \(1,\)"),
        (constant(np.nan, [1.0, 1.0]), "risk must return finite numbers"),
        (constant(-1.0, [1.0, 1.0]), "risk must not be negative"),
    ],
)
def test_bad_risk(risk, message):
    with pytest.raises(ValueError, match=message):
        struct_boost(risk, StumpSearch(np.zeros((2, 1))))
    with pytest.raises(TypeError, match="risk must have a method each for slack='example'"):
        struct_boost(risk, StumpSearch(np.zeros((2, 1))), slack="example")


@pytest.mark.parametrize(
    ("values", "slopes", "message"),
    [
        ([1.0, 1.0], np.ones((2, 3)), r"subgradients \(n, 2\), got \(2,\) and \(2, 3\)"),
        ([1.0, np.inf], np.ones((2, 2)), "finite numbers"),
        ([1.0, -1.0], np.ones((2, 2)), "negative values, got -1"),
    ],
)
def test_bad_parts(values, slopes, message):
    risk = constant(1.0, [1.0, 1.0])
    risk.each = lambda scores: (np.array(values), csr_array(slopes))
    with pytest.raises(ValueError, match=f"risk.each must .*{message}"):
        struct_boost(risk, StumpSearch(np.zeros((2, 1))), slack="example")


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ([], ValueError, "search must return at least one column"),
        ([Column(None, 1, np.ones(2))], ValueError, "segments between 0 and 0, got 1"),
        ([Column(None, 0.0, np.ones(2))], TypeError, "segments that are integers, got float"),
        ([Column(None, 0, np.ones(3))], ValueError, r"of shape \(2,\) on segment 0, got \(3,\)"),
        ([Column(None, 0, np.array([np.inf, 1.0]))], ValueError, "must return finite responses"),
    ],
)
def test_bad_search(columns, error, message):
    class Bad:
        exact = True

        def __call__(self, weights):
            return columns

    with pytest.raises(error, match=message):
        struct_boost(constant(1.0, [1.0, 1.0]), Bad())
