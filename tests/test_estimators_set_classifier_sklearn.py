"""SetClassifier: a good citizen of scikit-learn."""

import pickle

import numpy as np
import pytest
import skops.io
from mistaken_checks import MISTAKEN
from set_classifier_problem import GROUPS, X, Y, n, p, y
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from setwise import SetClassifier
from setwise.losses import Hamming, Jaccard

# What parametrize_with_checks does, which under scikit-learn 1.6 makes pytest 9 warn. Three skips
# are scikit-learn's own, for want of pandas and of an array API; one is for want of predict_proba,
# which a hinge does not have.
CHECKS = [
    pytest.param(estimator, check, id=f"{estimator.surrogate} {check.func.__name__}")
    for model in (SetClassifier(), SetClassifier(surrogate="hinge", C=0.01))
    for estimator, check in estimator_checks_generator(model)
    if check.func.__name__ not in MISTAKEN
]


@pytest.mark.filterwarnings("ignore:SetClassifier predicts no positive")  # labels drawn at random
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_in_a_pipeline():
    pipe = make_pipeline(StandardScaler(), SetClassifier()).fit(100.0 * X + 5.0, Y)
    alone = SetClassifier().fit(StandardScaler().fit_transform(100.0 * X + 5.0), Y)
    assert np.array_equal(pipe[-1].coef_, alone.coef_)
    assert pipe.predict(100.0 * X + 5.0).shape == (n, p)
    assert pipe.score(100.0 * X + 5.0, Y) > 0.5
    grouped = make_pipeline(StandardScaler(), SetClassifier(sets="groups"))
    grouped.fit(X, y, setclassifier__groups=GROUPS)
    with config_context(enable_metadata_routing=True):
        last = SetClassifier(sets="groups").set_fit_request(groups=True)
        routed = make_pipeline(StandardScaler(), last).fit(X, y, groups=GROUPS)
    assert np.array_equal(grouped[-1].coef_, routed[-1].coef_)


def test_in_a_grid_search_over_rows():
    search = GridSearchCV(SetClassifier(), {"C": [1e-4, 1.0], "surrogate": ["auto", "hinge"]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_["C"] == 1.0
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_in_a_grid_search_over_groups():
    with config_context(enable_metadata_routing=True):
        model = SetClassifier(sets="groups")
        model.set_fit_request(groups=True).set_score_request(groups=True)
        search = GridSearchCV(model, {"C": [1e-4, 1.0]}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, groups=GROUPS)
        by_hand = {1e-4: 0.0, 1.0: 0.0}  # which groups are a fold differs between releases
        for train, test in GroupKFold(3).split(X, y, GROUPS):
            for C in by_hand:
                fold = SetClassifier(sets="groups", C=C)
                fold.fit(X[train], y[train], groups=GROUPS[train])
                by_hand[C] += fold.score(X[test], y[test], groups=GROUPS[test]) / 3
        found = search.cv_results_["mean_test_score"]
        assert found == pytest.approx(list(by_hand.values()), rel=1e-12)
        assert search.best_params_ == {"C": max(by_hand, key=by_hand.__getitem__)}


@pytest.mark.parametrize("splitter", [GroupKFold(3), KFold(3)])
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")  # scikit-learn's own
def test_a_search_that_drops_the_groups_is_an_error(splitter):
    """With routing off groups reach the splitter only: never one set a fold in silence."""
    sentence = "groups must be given when sets='groups', got None: pass groups="
    search = GridSearchCV(
        SetClassifier(sets="groups"), {"C": [0.1, 1.0]}, cv=splitter, error_score="raise"
    )
    with pytest.raises(ValueError, match=sentence):
        search.fit(X, y, groups=GROUPS)
    with pytest.raises(ValueError, match=sentence):
        cross_val_score(
            SetClassifier(sets="groups"), X, y, groups=GROUPS, cv=splitter, error_score="raise"
        )


def test_a_search_that_routes_groups_to_fit_only_is_an_error():
    with config_context(enable_metadata_routing=True):
        model = SetClassifier(sets="groups").set_fit_request(groups=True)
        model.set_score_request(groups=False)
        search = GridSearchCV(model, {"C": [1.0]}, cv=GroupKFold(3), error_score="raise")
        with pytest.raises(ValueError, match="groups must be given when sets='groups'"):
            search.fit(X, y, groups=GROUPS)


@pytest.mark.parametrize("loss", ["jaccard", Jaccard(), Hamming([1.0, 2.0, 3.0])])
def test_clone_and_pickle(loss):
    model = SetClassifier(loss, C=3.0, tol=1e-2)
    copy = clone(model)
    assert copy.get_params()["C"] == 3.0
    assert repr(copy.loss) == repr(model.loss)
    model.fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.score(X, Y) == model.score(X, Y)
    assert np.array_equal(copy.fit(X, Y).coef_, model.coef_)
    assert not hasattr(clone(model), "coef_")


@pytest.mark.parametrize("loss", ["jaccard", Jaccard()])
def test_skops(loss):
    """Everything that is not NumPy's is setwise's own, and plain."""
    model = SetClassifier(loss).fit(X, Y)
    data = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("setwise.") for name in untrusted)
    again = skops.io.loads(data, trusted=untrusted)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.history_.primal, model.history_.primal)
