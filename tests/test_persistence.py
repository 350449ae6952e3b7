"""What a user can hold can be stored: by pickle and copy, estimators by skops as well."""

import copy
import pickle
from dataclasses import is_dataclass
from functools import partial

import numpy as np
import pytest
import skops.io
from estimator_registry import ESTIMATORS, EVERY, FRAMES, X, answer, fitted, same, y
from public_api import interface
from sklearn.tree import DecisionTreeClassifier

import setwise as sw
from setwise import estimators, learning
from setwise._foundation._base_classes import Versioned
from setwise._foundation._progress import Progress
from setwise.learning._boosting._boost_fit import BoostProgress
from setwise.learning._weak_learners._category_stumps import CategoryStump
from setwise.learning._weak_learners._classifiers import WeakClassifier
from setwise.learning._weak_learners._perceptrons import Perceptron
from setwise.learning._weak_learners._steps import Step
from setwise.learning._weak_learners._stumps import Stump

# The classes of ``setwise.learning``, exported or only described, that are no protocols.
LEARNING = {
    value.__name__: value
    for name, value in interface()
    if name.startswith("setwise.learning.") and isinstance(value, type)
    if not getattr(value, "_is_protocol", False)
}
rng = np.random.default_rng(0)
WEIGHTS = rng.normal(size=len(X))
SHARP = DecisionTreeClassifier(max_depth=2)
# By the name of a learner, a search or an executor: how to make it, and what it answers.
OBJECTS = {
    "CategoryStump": (
        lambda: CategoryStump(1, (3.0, 4.0), (5.0,), -1),
        lambda o: o.predict(X),
    ),
    "Step": (lambda: Step(1, 3.0, -0.5, 1.5), lambda o: o.predict(X)),
    "Stump": (lambda: Stump(1, 3.0, -1), lambda o: o.predict(X)),
    "Perceptron": (lambda: Perceptron(np.ones(4), -9.0), lambda o: o.predict(X)),
    "WeakClassifier": (
        lambda: WeakClassifier(SHARP.fit(X, np.sign(WEIGHTS)), 1),
        lambda o: o.predict(X),
    ),
    "StepSearch": (
        lambda: learning.StepSearch(X, 2, sample_weight=1.0 + np.arange(len(X)), n_jobs=2),
        lambda o: [c.response for c in o(WEIGHTS)],
    ),
    "StumpSearch": (
        lambda: learning.StumpSearch(X, 2, categorical_features=[1], n_jobs=2),
        lambda o: [c.response for c in o(WEIGHTS)],
    ),
    "PerceptronSearch": (lambda: learning.PerceptronSearch(X), lambda o: o(WEIGHTS)[0].response),
    "ClassifierSearch": (
        lambda: learning.ClassifierSearch(X, SHARP, rng=0),
        lambda o: o(WEIGHTS)[0].response,
    ),
    "Serial": (learning.Serial, lambda o: o.map(abs, [-1, 2])),
    "Threads": (lambda: learning.Threads(2), lambda o: (o.map(abs, [-1, 2]), o.close())),
    "Column": (lambda: learning.StumpSearch(X)(WEIGHTS)[0], lambda o: o.response),
    "BoostFit": (lambda: boosted(), lambda o: o.scores),
    "BoostOptions": (lambda: learning.BoostOptions(slack="one"), lambda o: o.slack),
    "BoostHistory": (lambda: boosted().history, lambda o: o.gap),
    "BoostProgress": (
        lambda: BoostProgress(1, 2.0, 0.5, 0.75, 0.1, 0, 1, 1),
        lambda o: o.value,
    ),
    "Fit": (lambda: planes(), lambda o: o.w),
    "History": (lambda: planes().history, lambda o: o.primal),
    "Planes": (lambda: planes().planes, lambda o: o.slopes),
    "Progress": (lambda: Progress(1, 2.0, 0.5, 0.75, 0.1), lambda o: o.value),
}


def planes():
    return learning.one_slack(lambda w: (abs(w[0] - 1), np.sign(w - 1)), 1, C=0.5)


def boosted():
    class Absolute:
        offsets = np.array([0, len(X)])

        def __call__(self, scores):
            return np.abs(scores - y).mean(), np.sign(scores - y) / len(y)

    return learning.struct_boost(Absolute(), learning.StumpSearch(X), C=10.0)


def test_every_estimator_and_learner_has_an_example():
    public = {name for name in sw.__all__ if isinstance(getattr(sw, name), type)}
    assert set(ESTIMATORS) == public | set(estimators.__all__)
    assert set(OBJECTS) == set(LEARNING)


@pytest.mark.parametrize("name", EVERY)
def test_estimators_by_skops_and_pickle(name):
    model = fitted(name)
    ask = EVERY[name][1]
    # The recipe of the guide.
    stored = skops.io.dumps(model)
    unknown = skops.io.get_untrusted_types(data=stored)
    assert all(kind.startswith(("setwise.", "sklearn.tree.")) for kind in unknown), unknown
    copies = [
        skops.io.loads(stored, trusted=unknown),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    expected = answer(model, ask)
    for again in copies:
        assert same(answer(again, ask), expected)
        if name != "SetDecision":  # its estimator has no gap
            assert again.gap_ == model.gap_
        if hasattr(model, "stages_"):
            assert np.array_equal(again.stages_.toarray(), model.stages_.toarray())


GRID = sw.fields.Potts(sw.fields.grid_edges((3, 3)), 0.5)
FIELD = sw.fields.Field(rng.random((9, 3))) + GRID
RESULTS = {
    "solve_map": (lambda: sw.solve_map(FIELD), "labels"),
    "marginals": (lambda: sw.marginals(FIELD), "probabilities"),
    "diverse": (lambda: sw.diverse(FIELD, 3, sw.diversities.HammingBall(2.0, 0.05)), "labelings"),
    "minimize": (lambda: sw.functions.minimize(sw.functions.Modular([1.0, -1.0])), "mask"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_by_pickle(name):
    make, payload = RESULTS[name]
    result = make()
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result)
    assert np.array_equal(getattr(again, payload), getattr(result, payload))
    gap = "gaps" if name == "diverse" else "gap"
    assert np.array_equal(getattr(again, gap), getattr(result, gap))


@pytest.mark.parametrize("name", OBJECTS)
def test_learners_and_executors_by_pickle(name):
    make, ask = OBJECTS[name]
    thing = make()
    copies = pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing)
    expected = ask(thing)
    for again in copies:
        assert type(again) is type(thing)
        assert same(ask(again), expected)


OTHER = {
    "Jaccard": lambda: sw.losses.Jaccard(),
    "Hamming": lambda: sw.losses.Hamming([1.0, 2.0]),
    "Sum": lambda: sw.losses.Dice() + sw.losses.Hamming(),
    "LovaszHinge": lambda: sw.surrogates.LovaszHinge("jaccard"),
    "Modular": lambda: sw.functions.Modular([1.0, 2.0]),
    "Concave": lambda: sw.functions.ConcaveOfModular(np.sqrt, [1.0, 2.0]),
    "Field": lambda: FIELD,
    "HammingBall": lambda: sw.diversities.HammingBall(2.0, 0.05),
    "Segmentation": lambda: sw.images.segment(FRAMES[0], boxes=[8, 18, 42, 32]),
}
VERSIONED = (
    {name: make for name, (make, _) in RESULTS.items()}
    | {name: make for name, (make, _) in OBJECTS.items() if issubclass(LEARNING[name], Versioned)}
    | {name: partial(fitted, name) for name in ESTIMATORS}
    | OTHER
)


def test_every_public_record_is_versioned():
    records = {name: value for name, value in interface() if is_dataclass(value)}
    assert len(records) > 30
    assert not {name for name, value in records.items() if not issubclass(value, Versioned)}


@pytest.mark.parametrize("name", VERSIONED)
def test_pickles_carry_the_version_and_say_what_another_version_lacks(name, monkeypatch):
    thing = VERSIONED[name]()
    assert thing.__getstate__()["_made_by"] == f"version {sw.__version__}"
    monkeypatch.setattr(sw, "__version__", "0.0.7")
    stored = pickle.dumps(thing)
    assert b"version 0.0.7" in stored
    assert set(vars(pickle.loads(stored))) <= set(vars(thing))
    monkeypatch.undo()
    again = pickle.loads(stored)  # nothing is missing: no warning
    again = pickle.loads(pickle.dumps(again))
    # What has a default is known without the stored one.
    own = [key for key in thing._needed() if key in vars(thing) and not hasattr(type(thing), key)]
    assert own or name in {"Jaccard", "ThinnedEnsemble", "BoostOptions"}
    origin = rf"made by version 0.0.7 of setwise, and this is version {sw.__version__}; make it"
    with pytest.raises(AttributeError, match=f"no attribute 'later': it was {origin} anew"):
        _ = again.later
    if not own:
        return
    state = {key: value for key, value in thing.__getstate__().items() if key != own[0]}
    for made_by, words in (("version 0.0.7", origin), (None, "an earlier version of setwise")):
        given = dict(state, _made_by=made_by)
        if made_by is None:
            del given["_made_by"]
        old = object.__new__(type(thing))
        with pytest.warns(UserWarning, match=f"a stored .* lacks {own[0]!r}: it was .*{words}"):
            old.__setstate__(given)
        with pytest.raises(AttributeError, match=words):
            getattr(old, own[0])


def test_what_this_version_lacks_is_said_in_the_usual_words():
    for thing in (sw.losses.Jaccard(), sw.SetClassifier(), sw.solve_map(FIELD)):
        again = pickle.loads(pickle.dumps(thing))
        with pytest.raises(AttributeError, match=r"object has no attribute 'later'$"):
            _ = again.later
    with pytest.raises(AttributeError, match="predict_proba of SetClassifier needs calibrate"):
        _ = pickle.loads(pickle.dumps(sw.SetClassifier())).predict_proba
