"""SetClassifier with a surrogate that was made before, instead of the name of one."""

import pickle

import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from setwise import SetClassifier, losses
from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling

rng = np.random.default_rng(2)
X = rng.normal(size=(60, 4))
Y = (X[:, :3] + 0.5 * rng.normal(size=(60, 3)) > 0).astype(int)
GROUPS = np.repeat(np.arange(12), 5)

PAIRS = [
    (LovaszHinge("jaccard"), "lovasz", "jaccard"),
    (MarginRescaling("dice"), "margin", "dice"),
    (SlackRescaling(losses.Exponential()), "slack", "exponential"),
    (DecomposedHinge(losses.FBeta(2.0)), "decomposed", losses.FBeta(2.0)),
    (LovaszHinge("hamming"), "hinge", "hamming"),
]


@pytest.mark.parametrize(("surrogate", "name", "loss"), PAIRS, ids=repr)
def test_an_object_is_what_its_name_is(surrogate, name, loss):
    for fitted, data in (({}, (X, Y)), ({"groups": GROUPS}, (X, Y[:, 0]))):
        named = SetClassifier(loss, name).fit(*data, **fitted)
        for model in (SetClassifier(surrogate=surrogate), SetClassifier(loss, surrogate)):
            model.fit(*data, **fitted)
            np.testing.assert_array_equal(model.coef_, named.coef_)
            assert model.gap_ == named.gap_
            assert model.certified_ == named.certified_
            # score tells the loss of the surrogate, though `loss` was left at "jaccard".
            assert model.score(*data, **fitted) == named.score(*data, **fitted)


AUTO = [
    ("jaccard", "lovasz"),
    ("hamming", "lovasz"),
    ("dice", "decomposed"),
    (losses.FBeta(2.0), "decomposed"),
    (losses.CardinalityLoss(lambda k, p: np.sqrt(k)), "lovasz"),
    (losses.CardinalityLoss(lambda k, p: k**2), "decomposed"),
    (losses.SetLoss(lambda mistakes, positive: float(mistakes.any())), "decomposed"),
    (losses.SetLoss(lambda mistakes, positive: float(mistakes.any()), submodular=True), "lovasz"),
    (losses.Dice() + losses.Hamming(), "decomposed"),
]


@pytest.mark.parametrize(("loss", "name"), AUTO)
def test_auto_is_the_lovasz_hinge_where_the_loss_is_submodular(loss, name):
    """Known of the loss, or of each of its set functions; B_D takes all others."""
    model = SetClassifier(loss, C=0.1).fit(X, Y)
    named = SetClassifier(loss, name, C=0.1).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, named.coef_)
    assert model.certified_


def test_auto_is_decided_by_the_sets_at_hand():
    """A loss of two mistakes: on sets of one element it is modular."""
    loss = losses.CountsLoss(lambda n, q, m, r: (n + q) ** 2)
    pairs = np.repeat(np.arange(30), 2)
    for groups, name in ((np.arange(60), "lovasz"), (pairs, "decomposed")):
        model = SetClassifier(loss, C=0.1).fit(X, Y[:, 0], groups=groups)
        named = SetClassifier(loss, name, C=0.1).fit(X, Y[:, 0], groups=groups)
        np.testing.assert_array_equal(model.coef_, named.coef_)


def test_options_of_an_object_count():
    plain = SetClassifier("jaccard", "margin").fit(X, Y)
    scaled = SetClassifier(surrogate=MarginRescaling("jaccard", scale=0.1)).fit(X, Y)
    assert np.abs(plain.coef_ - scaled.coef_).max() > 1e-3


@pytest.mark.parametrize("scored", [False, True])
def test_another_loss_is_refused(scored):
    model = SetClassifier("dice", LovaszHinge("jaccard"))
    message = r"loss must be left out or be that of the surrogate, Jaccard\(\), got Dice\(\)"
    if scored:
        model = SetClassifier(surrogate=LovaszHinge("jaccard")).fit(X, Y).set_params(loss="dice")
    with pytest.raises(ValueError, match=message):
        model.score(X, Y) if scored else model.fit(X, Y)


def test_elements_count_by_halves_where_the_loss_knows_them():
    weight = rng.random(60)
    named = SetClassifier("jaccard").fit(X, Y[:, 0], sample_weight=weight)
    model = SetClassifier(surrogate=LovaszHinge("jaccard"))
    np.testing.assert_array_equal(model.fit(X, Y[:, 0], sample_weight=weight).coef_, named.coef_)
    # Case 2 is no sum over elements: they stay one set, whose weights are whole numbers.
    with pytest.raises(ValueError, match="sample_weight must be whole numbers"):
        SetClassifier(surrogate=LovaszHinge("hamming", case=2)).fit(
            X, Y[:, 0], sample_weight=weight
        )


def test_parameters_copies_and_files():
    surrogate = MarginRescaling(losses.Hamming([1.0, 2.0, 0.5]), scale=0.5)
    model = SetClassifier(surrogate=surrogate)
    assert model.get_params()["surrogate"] is surrogate
    assert clone(model).surrogate is surrogate
    assert repr(surrogate) in repr(model)
    fitted = SetClassifier().set_params(surrogate=surrogate).fit(X, Y)
    data = skops.io.dumps(fitted)
    trusted = skops.io.get_untrusted_types(data=data)
    for again in (
        pickle.loads(pickle.dumps(fitted)),
        skops.io.loads(data, trusted=trusted),
    ):
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
        assert again.score(X, Y) == fitted.score(X, Y)
        np.testing.assert_array_equal(clone(again).fit(X, Y).coef_, fitted.coef_)


def test_a_search_over_surrogates():
    choices = ["lovasz", MarginRescaling("jaccard"), MarginRescaling("jaccard", scale=0.5)]
    search = GridSearchCV(SetClassifier(), {"surrogate": choices}, cv=3).fit(X, Y)
    assert search.best_params_["surrogate"] in choices
