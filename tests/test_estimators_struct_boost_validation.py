"""Early stopping, evaluation sets, C by the data, class weights, probabilities, queries by qid."""

import warnings

import numpy as np
import pytest
from boost_options import boost_options
from sklearn import config_context
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_validate

import setwise as sw
from setwise.estimators._boosting._early_stopping import Evaluation
from setwise.estimators._boosting._held_out import Examples, enough_of, folds, split_off
from setwise.estimators._boosting._path_of_c import PathOfC, least_c

X, y = load_iris(return_X_y=True)
ODD, EVEN = (X[1::2], y[1::2]), (X[::2], y[::2])
random = np.random.default_rng(0)
Z = random.normal(size=(240, 4))
MERIT = Z @ [1.0, -1.0, 0.5, 0.0] + random.normal(size=240)
QUERIES = random.integers(0, 20, 240)
RELEVANT = (MERIT > 0.8).astype(int)
few = pytest.mark.filterwarnings("ignore:.* stopped at n_estimators")


def noisy():
    return make_classification(300, 6, n_informative=3, flip_y=0.25, random_state=1)


# ---------------------------------------------------------------------------------- early stopping


@few
@pytest.mark.parametrize("columns_per_round", [1, 3])
def test_the_round_kept_is_the_best_of_the_validation_and_equals_a_shorter_fit(columns_per_round):
    A, a = noisy()
    options = {"C": 200.0, "columns_per_round": columns_per_round}
    model = sw.StructBoostClassifier(**boost_options(**options, n_iter_no_change=8))
    model.fit(A[:200], a[:200], eval_set=(A[200:], a[200:]))
    told = model.evals_result_["valid_0"]
    pairs = list(zip(told["score"], [-loss for loss in told["loss"]], strict=True))
    assert pairs.index(max(pairs)) == model.best_iteration_ - 1
    assert len(pairs) == model.n_iter_ > model.best_iteration_
    assert model.score(A[200:], a[200:]) == pytest.approx(max(told["score"]))
    assert not model.interrupted_
    rounds = sw.StructBoostClassifier(**boost_options(**options), early_stopping=False).fit(
        A[:200], a[:200], callback=lambda progress: progress.n_iter == model.best_iteration_
    )
    np.testing.assert_allclose(model.decision_function(A), rounds.decision_function(A), atol=1e-9)
    assert model.history_.primal[model.best_iteration_ - 1] == pytest.approx(
        rounds.history_.primal[-1]
    )
    stages = list(model.staged_decision_function(A))
    assert len(stages) == model.stages_.shape[0]
    np.testing.assert_allclose(stages[-1], model.decision_function(A), atol=1e-9)


def test_patience_counts_rounds_without_a_better_score_or_loss():
    A, a = noisy()
    model = sw.StructBoostClassifier(C=500.0, options=sw.learning.BoostOptions(n_iter_no_change=3))
    model.fit(A[:200], a[:200], eval_set=(A[200:], a[200:]))
    told = model.evals_result_["valid_0"]
    score, loss = -np.inf, np.inf
    idle = 0
    for now, lost in zip(told["score"], told["loss"], strict=True):
        idle = 0 if now > score or lost < loss else idle + 1
        score, loss = max(score, now), min(loss, lost)
    assert idle == 3


def test_validation_rows_are_set_aside():
    seen = []
    model = sw.StructBoostClassifier(
        C=20.0, early_stopping=True, options=sw.learning.BoostOptions(validation_fraction=0.2)
    ).fit(X, y, callback=lambda p: seen.append(p))
    assert set(model.evals_result_) == {"validation"}
    assert [p.scores["validation"] for p in seen] == model.evals_result_["validation"]["score"]
    assert len(seen[-1].columns) == len(seen[-1].w) >= seen[-1].n_columns
    counted = sw.StructBoostClassifier(
        C=20.0, early_stopping=True, options=sw.learning.BoostOptions(validation_fraction=29)
    )
    assert counted.fit(X, y).score(X, y) == pytest.approx(model.score(X, y), abs=0.05)


def test_several_evaluation_sets_the_first_decides():
    model = sw.StructBoostClassifier(C=20.0).fit(*ODD, eval_set=[EVEN, ODD])
    told = model.evals_result_
    assert list(told) == ["valid_0", "valid_1"]
    assert model.score(*EVEN) == pytest.approx(max(told["valid_0"]["score"]))
    watched = sw.StructBoostClassifier(C=20.0, early_stopping=False).fit(*ODD, eval_set=EVEN)
    plain = sw.StructBoostClassifier(C=20.0).fit(*ODD)
    assert np.array_equal(watched.decision_function(X), plain.decision_function(X))
    assert len(watched.evals_result_["valid_0"]["loss"]) == watched.n_iter_


def test_auto_is_off_for_few_rows_and_on_for_many(monkeypatch):
    assert sw.StructBoostClassifier(C=20.0).fit(X, y).evals_result_ == {}
    monkeypatch.setattr("setwise.estimators._boosting._validated.MANY_ROWS", 100)
    assert "validation" in sw.StructBoostClassifier(C=20.0).fit(X, y).evals_result_


def test_a_callback_ends_a_fit_that_is_validated():
    model = sw.StructBoostClassifier(C=50.0)
    model.fit(*ODD, eval_set=EVEN, callback=lambda p: p.n_iter == 3)
    assert model.interrupted_
    assert model.n_iter_ == 3


def test_many_classes_that_run_out_of_learners_say_so():
    A, a = make_classification(150, 6, n_informative=6, n_redundant=0, n_classes=6, random_state=0)
    with pytest.warns(ConvergenceWarning, match="stopped at n_estimators=30 .* above tol"):
        sw.StructBoostClassifier(C=1000.0, n_estimators=30).fit(A, a)


@pytest.mark.parametrize("groups", [None, QUERIES])
def test_groups_do_not_straddle_and_classes_have_their_share(groups):
    examples = Examples(Z, RELEVANT, np.ones(240), groups)
    parts = [split_off(examples, 0.25, 0), split_off(examples, 7, 3)]
    masks = folds(examples, 4, 0)
    assert (np.sum(masks, axis=0) == 1).all()
    for train, held in [*parts, *(examples.parted(mask) for mask in masks)]:
        assert len(train) + len(held) == 240
        if groups is None:
            assert held.y.sum() == pytest.approx(RELEVANT.mean() * len(held), abs=1)
        else:
            assert not set(train.groups) & set(held.groups)
    if groups is None:
        assert [len(held) for _, held in parts] == [60, 7]


@pytest.mark.parametrize(("rows", "count"), [(49, 1), (22, 15), (240, 7)])
def test_as_many_rows_are_held_out_as_are_asked_for(rows, count):
    """49 * (1 / 49) is below 1 in floats."""
    examples = Examples(Z[:rows], RELEVANT[:rows], np.ones(rows))
    assert len(split_off(examples, count, 0)[1]) == count
    model = sw.StructBoostClassifier(
        C=5.0, early_stopping=True, options=sw.learning.BoostOptions(validation_fraction=count)
    )
    assert model.fit(Z[:rows], RELEVANT[:rows]).evals_result_["validation"]["score"]


# --------------------------------------------------------------------------------------- C by data


@pytest.mark.parametrize("target", [y, (y == 1).astype(int)])
def test_the_least_price_is_where_learners_begin_to_pay(target):
    model = sw.StructBoostClassifier(C=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, target)
    examples = Examples(X, target, np.ones(150))
    least = least_c(model._risk(examples), model._search(examples))
    with pytest.warns(UserWarning, match="all weights are 0"):
        sw.StructBoostClassifier(C=0.999 * least).fit(X, target)
    if len(np.unique(target)) == 2:  # with more classes it may be too low
        above = sw.StructBoostClassifier(C=1.01 * least, tol=1e-6).fit(X, target)
        assert above.estimator_weights_.any()


@few
def test_c_is_chosen_by_rows_held_out():
    model = sw.StructBoostClassifier(random_state=0).fit(X, y)
    assert model.C_ in model.C_scores_
    assert model.C_scores_[model.C_] == max(model.C_scores_.values())
    plain = sw.StructBoostClassifier(C=model.C_, surrogate=model.surrogate_).fit(X, y)
    assert np.array_equal(plain.decision_function(X), model.decision_function(X))
    validated = sw.StructBoostClassifier().fit(*ODD, eval_set=EVEN)
    assert validated.score(*EVEN) >= max(validated.C_scores_.values()) - 0.03
    repeated = sw.StructBoostClassifier().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert repeated.C_ == model.C_


@pytest.mark.parametrize(
    ("merits", "tried", "best"),
    [
        ([0.6, 0.7, 0.0], [50, 150], 150),
        ([0.6, 0.6, 0.5, 0.9], [50, 150, 15], 50),
        ([0.5, 0.4, 0.6, 0.5], [50, 150, 15, 5], 15),
        ([0.5, 0.4, 0.6, 0.7], [50, 150, 15, 5], 5),
    ],
)
def test_the_path_goes_on_as_long_as_it_gets_better(merits, tried, best):
    answers = iter(merits)
    path = PathOfC(2.0, lambda C: (Evaluation(next(answers), 1.0), C), lambda: True)
    assert list(path.scores) == [2.0 * ratio for ratio in tried]
    assert path.C == path.left == 2.0 * best
    once = PathOfC(2.0, lambda C: (Evaluation(0.5, 1.0), C), lambda: False)
    assert list(once.scores) == [100.0]


@pytest.mark.parametrize(("merits", "tried"), [([0.7], [150]), ([0.8, 0.75], [150, 50])])
def test_the_path_of_another_surrogate_begins_where_the_first_was_best(merits, tried):
    first = iter([0.6, 0.7])
    before = PathOfC(2.0, lambda C: (Evaluation(next(first), 1.0), C), lambda: True)
    answers = iter(merits)
    path = PathOfC(3.0, lambda C: (Evaluation(next(answers), 1.0), C), lambda: True, before)
    assert list(path.scores) == [3.0 * ratio for ratio in tried]
    assert path.C == 450.0


def test_so_many_rows_choose_c_whole_groups_of_every_class():
    few = Examples(np.zeros((9, 1)), np.arange(9), np.ones(9))
    assert enough_of(few, 0) is few
    n = 100_000
    labels = np.repeat([0, 1, 2], [n // 2, n // 2 - 50, 50])
    many = Examples(np.arange(n)[:, None], labels, np.ones(n))
    drawn = enough_of(many, 0)
    assert len(drawn) == 20_000
    assert np.bincount(drawn.y).tolist() == [10_000, 9_990, 10]
    grouped = Examples(many.X, labels, many.weight, np.arange(n) // 1000)
    drawn = enough_of(grouped, 0)
    assert np.unique(drawn.groups, return_counts=True)[1].tolist() == [1000] * 20


def test_too_few_rows_to_hold_some_out():
    model = sw.StructBoostClassifier().fit([[0.0], [1.0]], [0, 1])
    assert model.C_scores_ == {}
    assert model.predict([[0.0], [1.0]]).tolist() == [0, 1]


def test_a_time_limit_is_for_all_fits_together():
    with pytest.warns(ConvergenceWarning, match="time_limit of 0 s reached"):
        model = sw.StructBoostClassifier(time_limit=0.0).fit(X, y)
    assert len(model.C_scores_) == 1


# ------------------------------------------------------------------------------ weights and scores


@few
def test_class_weights_multiply_sample_weights():
    weights = random.random(150)
    given = {0: 2.0, 2: 0.5}
    model = sw.StructBoostClassifier(C=20.0, class_weight=given).fit(X, y, sample_weight=weights)
    factors = np.array([2.0, 1.0, 0.5])[y]
    plain = sw.StructBoostClassifier(C=20.0).fit(X, y, sample_weight=weights * factors)
    assert np.array_equal(model.decision_function(X), plain.decision_function(X))
    rows = np.flatnonzero((y != 0) | (np.arange(150) % 5 == 0))
    balanced = sw.StructBoostClassifier(C=20.0, class_weight="balanced").fit(X[rows], y[rows])
    share = 1 / np.bincount(y[rows])[y[rows]]
    plain = sw.StructBoostClassifier(C=20.0).fit(X[rows], y[rows], sample_weight=share)
    np.testing.assert_allclose(balanced.decision_function(X), plain.decision_function(X))


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 9: 3.0}])
def test_a_class_whose_samples_all_weigh_nothing_is_not_there(class_weight):
    labels = np.where(np.arange(len(y)) % 5 == 0, 9, y)
    counted = (labels != 9).astype(float)
    options = {"C": 20.0, "class_weight": class_weight}
    model = sw.StructBoostClassifier(**options).fit(X, labels, sample_weight=counted)
    other = sw.StructBoostClassifier(**options).fit(X[labels != 9], y[labels != 9])
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))


def test_the_score_of_a_taxonomy_is_its_loss():
    model = sw.StructBoostClassifier(C=3.0, taxonomy=[[0], [1, 2]]).fit(X, y)
    costs = model.cost_[y, model.predict(X)]
    assert costs.mean() > 0
    assert model.score(X, y) == pytest.approx(1 - costs.mean() / 2)
    weights = random.random(150)
    known = 1 - weights @ costs / weights.sum() / 2
    assert model.score(X, y, sample_weight=weights) == pytest.approx(known)
    flat = sw.StructBoostClassifier(C=20.0).fit(X, y)
    assert flat.score(X, y) == pytest.approx(np.mean(flat.predict(X) == y))


@few
@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", get_scorer("f1")])
def test_a_scorer_by_name_judges(scoring):
    A, a = noisy()
    model = sw.StructBoostClassifier(C=50.0, options=sw.learning.BoostOptions(scoring=scoring))
    model.fit(A[:200], a[:200], eval_set=(A[200:], a[200:]))
    known = get_scorer(scoring)(model, A[200:], a[200:])
    assert max(model.evals_result_["valid_0"]["score"]) == pytest.approx(known)


# ----------------------------------------------------------------------------------- probabilities


@few
@pytest.mark.parametrize("method", ["softmax", "sigmoid", "isotonic"])
@pytest.mark.parametrize("target", [y, (y == 1).astype(int)])
def test_probabilities_are_calibrated_on_rows_held_out(method, target):
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)
    model = sw.StructBoostClassifier(C=20.0, calibrate=method, random_state=0)
    p = model.fit(X[train], target[train]).predict_proba(X[test])
    assert p.shape == (75, len(model.classes_))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    known = np.bincount(target) / 150
    lost = -np.log(np.maximum(p[np.arange(75), target[test]], 1e-3)).mean()
    assert lost < 0.5 * -known @ np.log(known)
    stopped = sw.StructBoostClassifier(C=20.0, calibrate=method, early_stopping=True)
    assert stopped.fit(X, target).predict_proba(X).shape == (150, len(model.classes_))


def test_no_probabilities_unless_asked_for():
    model = sw.StructBoostClassifier(C=20.0).fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="calibrate needs rows that the fit does not see"):
        sw.StructBoostClassifier(calibrate="softmax").fit([[0.0], [1.0]], [0, 1])


# ----------------------------------------------------------------------------------------- rankers


@few
@pytest.mark.parametrize("loss", ["auc", "average_precision", "ndcg"])
def test_losses_of_lists(loss):
    model = sw.StructBoostRanker(C=20.0, loss=loss, n_estimators=60).fit(Z, RELEVANT, qid=QUERIES)
    assert model.certified_
    assert model.score(Z, RELEVANT, qid=QUERIES) > 0.75
    assert model.score(Z, RELEVANT, groups=QUERIES) == model.score(Z, RELEVANT, qid=QUERIES)
    example = sw.StructBoostRanker(
        C=5.0, loss=loss, tol=1e-6, options=sw.learning.BoostOptions(slack="example")
    )
    one = sw.StructBoostRanker(C=5.0, loss=loss, tol=1e-6)
    values = [m.fit(Z[:40], RELEVANT[:40]).history_.primal[-1] for m in (example, one)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


@few
def test_rankers_are_validated_by_whole_queries():
    model = sw.StructBoostRanker(n_estimators=30, early_stopping=True, loss="average_precision")
    model.fit(Z, RELEVANT, qid=QUERIES)
    told = model.evals_result_["validation"]["score"]
    assert max(told) == told[model.best_iteration_ - 1]
    A, B = QUERIES < 12, QUERIES >= 12
    model = sw.StructBoostRanker(C=20.0, n_estimators=30)
    model.fit(Z[A], RELEVANT[A], qid=QUERIES[A], eval_set=[(Z[B], RELEVANT[B], QUERIES[B])])
    known = model.score(Z[B], RELEVANT[B], qid=QUERIES[B])
    assert max(model.evals_result_["valid_0"]["score"]) == pytest.approx(known)


@few
def test_gains_of_levels():
    levels = np.digitize(MERIT, [0.0, 1.0, 2.0])
    model = sw.StructBoostRanker(C=10.0, loss="ndcg", ordinal=True, n_estimators=40)
    model.fit(Z, levels, qid=QUERIES)
    assert model.score(Z, levels, qid=QUERIES) > 0.85
    with pytest.raises(ValueError, match="y must hold gains that are not negative"):
        model.fit(Z, levels - 1, qid=QUERIES)
    with pytest.raises(ValueError, match="y must hold two classes with loss='average_precision'"):
        sw.StructBoostRanker(C=10.0, loss="average_precision", ordinal=True).fit(Z, levels)


@few
def test_queries_are_routed():
    model = sw.StructBoostRanker(C=10.0, n_estimators=10)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(qid=True, groups=False)
        model.set_score_request(qid=True, groups=False)
        found = cross_validate(
            model, Z, RELEVANT, cv=GroupKFold(3), params={"qid": QUERIES, "groups": QUERIES}
        )
    assert (found["test_score"] > 0.6).all()


def test_one_query_of_all_rows_has_the_usual_area():
    model = sw.StructBoostRanker(C=5.0).fit(Z, RELEVANT)
    known = roc_auc_score(RELEVANT, model.decision_function(Z))
    assert model.score(Z, RELEVANT) == pytest.approx(known)


@pytest.mark.parametrize(
    ("options", "given", "error", "message"),
    [
        ({"C": "best"}, {}, ValueError, "C must be one of 'auto'"),
        ({"early_stopping": "yes"}, {}, ValueError, "early_stopping must be one of 'auto'"),
        ({"early_stopping": 1}, {}, TypeError, "early_stopping must be True or False, got int"),
        ({"validation_fraction": 1.5}, {}, ValueError, "validation_fraction must be a share below"),
        ({"n_iter_no_change": 0}, {}, ValueError, "n_iter_no_change must be at least 1"),
        ({"n_folds": 1}, {}, ValueError, "n_folds must be at least 2"),
        ({"class_weight": "even"}, {}, ValueError, "class_weight must be a dict or 'balanced'"),
        ({"class_weight": {0: -1}}, {}, ValueError, r"class_weight\[0\] must not be negative"),
        ({"class_weight": 3}, {}, TypeError, "class_weight must be a dict or 'balanced', got int"),
        ({"calibrate": "platt"}, {}, ValueError, "calibrate must be one of 'softmax', 'sigmoid'"),
        ({"scoring": "goodness"}, {}, ValueError, "scoring must be the name of a scorer"),
        ({}, {"eval_set": X}, TypeError, r"eval_set must be \(X, y\) or a list of them, got nd"),
        ({}, {"eval_set": [X, y]}, TypeError, r"eval_set must hold pairs \(X, y\), got ndarray"),
        ({}, {"eval_set": [(X,)]}, ValueError, "eval_set must hold pairs .* got a tuple of 1"),
        ({}, {"eval_set": (X, y + 1)}, ValueError, r"y must hold the labels of fit, .* got 3"),
        (
            {"early_stopping": True, "validation_fraction": 200},
            {},
            ValueError,
            "validation_fraction=200 leaves no rows to fit of 149",
        ),
    ],
)
def test_bad_options(options, given, error, message):
    with pytest.raises(error, match=message):
        sw.StructBoostClassifier(**boost_options(**options)).fit(X, y, **given)


def test_bad_queries():
    ranker = sw.StructBoostRanker(C=5.0)
    with pytest.raises(ValueError, match="qid must be None where groups are given, got both"):
        ranker.fit(Z, RELEVANT, qid=QUERIES, groups=QUERIES)
    with pytest.raises(ValueError, match=r"qid must have shape \(240,\), got \(239,\)"):
        ranker.fit(Z, RELEVANT, qid=QUERIES[1:])
    with pytest.raises(ValueError, match="k must be None with loss='auc', got 3"):
        sw.StructBoostRanker(k=3).fit(X, y > 0)
    with pytest.raises(ValueError, match="k must be at least 1"):
        sw.StructBoostRanker(loss="ndcg", k=0).fit(X, y > 0)
    with pytest.raises(ValueError, match="loss must be one of 'auc', 'average_precision', 'ndcg'"):
        sw.StructBoostRanker(loss="map").fit(Z, RELEVANT)
    with pytest.raises(ValueError, match="leaves no groups to fit of 1"):
        sw.StructBoostRanker(C=5.0, early_stopping=True).fit(Z, RELEVANT, qid=np.zeros(240))
