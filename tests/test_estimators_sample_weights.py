"""Weights of samples: one reader for all estimators; a number is the weight of every sample."""

import inspect

import numpy as np
import pytest

import setwise as sw
from setwise._foundation._arguments import as_sample_weights, without_unit

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
y = (X[:, 0] + 0.3 * rng.normal(size=30) > 0).astype(int)
GROUPS = np.repeat(np.arange(6), 5)
CHAIN = np.column_stack([np.arange(4), np.arange(1, 5)])
GRAPHS = [(rng.normal(size=(5, 2)), CHAIN, rng.random((4, 1))) for _ in range(4)]
TRUTH = [(x[:, 0] > 0).astype(int) for x, *_ in GRAPHS]

# By name: an estimator of samples, and what its fit and its score are given beside the weights.
OF_SAMPLES = {
    "sample": (sw.SetClassifier("jaccard", C=0.1), {"X": X, "y": y}),
    "rows": (sw.SetClassifier("jaccard", C=0.1), {"X": X, "y": np.column_stack([y, 1 - y, y])}),
    "groups": (sw.SetClassifier("jaccard", C=0.1), {"X": X, "y": y, "groups": GROUPS}),
    "hinge": (sw.SetClassifier("hamming", C=0.1), {"X": X, "y": y}),
    "balanced": (sw.SetClassifier("hamming", class_weight="balanced"), {"X": X, "y": y}),
    "classes": (sw.StructBoostClassifier(tol=0.5), {"X": X, "y": y + (X[:, 1] > 1)}),
    "ranks": (sw.StructBoostRanker(tol=0.5), {"X": X, "y": y}),
    "queries": (sw.StructBoostRanker(tol=0.5), {"X": X, "y": y, "groups": GROUPS}),
}


@pytest.mark.parametrize("weight", [1, 2.0, np.float32(3.0), np.array(2)])
@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_number_is_the_weight_of_every_sample(name, weight):
    model, given = OF_SAMPLES[name]
    every = np.full(len(X), float(weight))
    one = model.fit(**given, sample_weight=weight)
    scores, score = one.decision_function(X), one.score(**given, sample_weight=weight)
    other = model.fit(**given, sample_weight=every)
    assert np.array_equal(scores, other.decision_function(X))
    assert score == other.score(**given, sample_weight=every)


@pytest.mark.parametrize("model", [sw.FieldSVM(), sw.FieldBoost(tol=0.5)])
def test_a_number_is_the_weight_of_every_node(model):
    every = [np.full(5, 2.0)] * 4
    scores = model.fit(GRAPHS, TRUTH, node_weights=2.0).decision_function(GRAPHS)
    score = model.score(GRAPHS, TRUTH, node_weights=2)
    other = model.fit(GRAPHS, TRUTH, node_weights=every)
    assert all(map(np.array_equal, scores, other.decision_function(GRAPHS)))
    assert score == other.score(GRAPHS, TRUTH, node_weights=every)


@pytest.mark.parametrize(
    ("weight", "error", "sentence"),
    [
        (0.0, ValueError, "sample_weight must not be zero for every sample|is not zero"),
        (-1.0, ValueError, "sample_weight must not be negative, got -1"),
        (np.nan, ValueError, "sample_weight must be finite, got nan"),
        ("balanced", TypeError, "sample_weight must hold real numbers, got dtype <U8"),
        (np.ones(9), ValueError, r"sample_weight must have shape \(30,\), got \(9,\)"),
    ],
)
@pytest.mark.parametrize("name", OF_SAMPLES)
def test_one_sentence_for_bad_weights(name, weight, error, sentence):
    model, given = OF_SAMPLES[name]
    with pytest.raises(error, match=sentence):
        model.fit(**given, sample_weight=weight)


def test_no_unit_of_the_weights_is_left_and_no_digit_lost():
    weights = np.array([0.0, 3.0, 5.0, 1e-300])
    scaled = without_unit(as_sample_weights(weights, 4))
    assert np.array_equal(scaled, weights / 8)
    assert np.array_equal(without_unit(2.0**900 * weights), scaled)
    assert np.array_equal(without_unit(np.zeros(2)), np.zeros(2))
    assert without_unit(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("method", ["fit", "score"])
@pytest.mark.parametrize("kind", [sw.SetClassifier, sw.StructBoostClassifier, sw.StructBoostRanker])
def test_groups_and_weights_are_named_and_in_one_order(kind, method):
    parameters = list(inspect.signature(getattr(kind, method)).parameters.values())[3:]
    names = [parameter.name for parameter in parameters]
    assert names == [
        n for n in ("groups", "qid", "sample_weight", "eval_set", "callback") if n in names
    ]
    assert "sample_weight" in names
    assert all(p.kind is p.KEYWORD_ONLY and p.default is None for p in parameters)
    routed = getattr(kind().get_metadata_routing(), method)
    assert set(routed.requests) == set(names)
