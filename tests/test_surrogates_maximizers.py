"""Surrogates: the most violated set, exact where it is said to be, and by a search where not."""

import numpy as np
import pytest
import reference
from loss_registry import LOSSES
from surrogate_registry import SURROGATES, TOLERANCE, assert_subgradients, evaluation_of

from setwise import functions, losses
from setwise.functions import Cut, Modular, Table
from setwise.surrogates import MarginRescaling, SlackRescaling
from setwise.surrogates._maximizers import RescalingRule, most_violated

ELEVEN = np.linspace(0.1, 1.2, 11)
LARGER = {
    "face track": losses.FaceTrack(1),
    "exponential": losses.Exponential(0.5),
    "jaccard": losses.Jaccard(),
    "dice": losses.Dice(),
    "f-1/2": losses.FBeta(0.5),
    "mixed counts": LOSSES["mixed counts"].loss,
    "balanced": LOSSES["balanced"].loss,
    "early detection": losses.EarlyDetection(0.1, 0.4),
    "hamming": losses.Hamming(),
    "weighted hamming": losses.Hamming(ELEVEN),
    "truncated": losses.TruncatedModular(2.0, ELEVEN),
    "jaccard + hamming": 2.0 * losses.Jaccard() + losses.Hamming(ELEVEN),
    "early detection + hamming": losses.EarlyDetection() + 0.5 * losses.Hamming(),
    "face track + hamming": 0.5 * losses.FaceTrack(2) + losses.Hamming(ELEVEN),
    "two hammings": losses.Hamming() + losses.Hamming(ELEVEN),
    "supermodular": losses.SetLoss(-functions.ConcaveOfModular(np.sqrt, ELEVEN) + Modular(ELEVEN)),
}


@pytest.mark.parametrize("kind_name", ["margin", "margin scaled", "margin extension", "slack"])
@pytest.mark.parametrize("loss", LARGER.values(), ids=LARGER.keys())
def test_maximum_over_two_thousand_sets(kind_name, loss):
    rng = np.random.default_rng(11)
    surrogate = SURROGATES[kind_name].make(loss)
    for share in (0.0, 0.4, 1.0):
        positive = rng.random(11) < share
        table = loss.set_function(positive)(reference.all_masks(11))
        if kind_name == "slack" and table.min() < -1e-12:
            continue
        if kind_name == "margin extension" and not Table(table).is_increasing:
            continue
        signs = np.where(positive, 1.0, -1.0)
        scores = np.concatenate(
            [rng.normal(size=(6, 11)) * 0.3, signs * 0.2 + 0.1 * rng.normal(size=(6, 11))]
        )
        one = evaluation_of(surrogate, kind_name, table, positive, scores)
        np.testing.assert_allclose(one.values, one.defined, rtol=1e-12, atol=TOLERANCE)
        assert_subgradients(one)
        assert surrogate.properties(positive).is_exact is True


@pytest.mark.parametrize("seed", range(3))
def test_supermodular_losses_by_minimisation_equal_enumeration(seed):
    """The path of more than 16 elements, taken at 6."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, 6, size=(8, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    function = Modular(rng.random(6) * 4) - Cut(edges, rng.random(len(edges)), n=6)
    margins = rng.normal(size=(10, 6))
    rule = RescalingRule(slack=False, weight=2.0)
    enumerated = most_violated(function, margins, rule, "enumerate")
    minimized = most_violated(function, margins, rule, "minimize")
    np.testing.assert_allclose(minimized[0], enumerated[0], atol=1e-9)


@pytest.mark.parametrize("p", [17, 18])
def test_supermodular_losses_beyond_enumeration(p):
    rng = np.random.default_rng(p)
    weights = rng.random(p)
    function = Modular(weights) - functions.ConcaveOfModular(np.sqrt, weights)
    surrogate = MarginRescaling(losses.SetLoss(function))
    y, scores = rng.random(p) < 0.5, rng.normal(size=p) * 0.2
    sets = np.arange(1 << p)
    masks = (sets[:, None] >> np.arange(p)) & 1 == 1
    objective = function(masks) - 2.0 * (masks @ (scores * np.where(y, 1.0, -1.0)))
    value, gradient = surrogate.value_and_gradient(y, scores)
    assert value == pytest.approx(objective.max(), abs=1e-9)
    np.testing.assert_array_equal(gradient, np.where(y, -2.0, 2.0) * masks[objective.argmax()])
    assert surrogate.properties(y).is_exact is True


@pytest.mark.parametrize("kind", [MarginRescaling, SlackRescaling])
def test_beyond_enumeration_the_search_says_that_it_is_one(kind):
    rng = np.random.default_rng(0)
    loss = losses.TruncatedModular(3.0, rng.random(17))
    surrogate, y = kind(loss), np.ones(17)
    said = surrogate.properties(y)
    assert said.is_exact is False
    assert said.is_convex is not True
    assert said.is_extension is not True
    assert said.is_upper_bound is not True
    assert surrogate.is_exact is None
    scores = rng.normal(size=17)
    value, gradient = surrogate.value_and_gradient(y, scores)
    # What it found is a set: its value is the objective there.
    chosen = gradient != 0
    cost = loss.set_function(y)(chosen)
    expected = cost * (1 - 2 * scores[chosen].sum()) if kind is SlackRescaling else None
    expected = cost - 2 * scores[chosen].sum() if expected is None else expected
    assert value == pytest.approx(expected, abs=TOLERANCE)


ANY_MISTAKE = losses.SetLoss(Table([0.0, 1.0, 1.0, 1.0]))


@pytest.mark.parametrize("kind", [MarginRescaling, SlackRescaling])
def test_the_search_of_the_authors(kind):
    """One pass in index order, keeping each change that does not lower the objective.

    It takes the first element and cannot take it back: 1.4, where the second alone has 2.
    """
    surrogate = kind(ANY_MISTAKE, maximizer="greedy")
    y, scores = np.ones(2), np.array([0.3, -0.5])
    assert surrogate(y, scores) == pytest.approx(1.4, abs=TOLERANCE)
    assert kind(ANY_MISTAKE)(y, scores) == pytest.approx(2.0, abs=TOLERANCE)
    assert surrogate.properties(y).is_exact is False
    assert surrogate.properties(y).is_convex is None
    assert surrogate.is_exact is None
    assert surrogate.is_convex is None
    assert kind(ANY_MISTAKE).properties(y).is_exact is True


@pytest.mark.parametrize("kind", [MarginRescaling, SlackRescaling])
def test_the_search_is_not_convex(kind):
    """What the documents say of an inexact maximiser, with a witness: 2 > (1.1 + 2) / 2."""
    surrogate = kind(ANY_MISTAKE, maximizer="greedy")
    low, middle, high = (surrogate([1, 1], [first, -0.5]) for first in (0.45, 0.6, 0.75))
    assert middle > (low + high) / 2 + 0.4


def spread(n, q, m, r):
    return ((n + q) / (m + r)) ** 2 * (m + r)


@pytest.mark.parametrize("kind", [MarginRescaling, SlackRescaling])
def test_a_batch_is_as_exact_as_its_rows(kind):
    """Many splits (m, r) in one batch: together their grids are larger than one may be."""
    surrogate = kind(losses.CountsLoss(spread))
    p, rng = 1500, np.random.default_rng(0)
    y = np.arange(p) < np.arange(700, 712)[:, None]
    scores = np.where(y, 0.02, -0.02) + 0.3 * rng.normal(size=y.shape)
    assert all(surrogate.properties(row).is_exact for row in y[:2])
    batch = surrogate(y, scores)
    single = [surrogate(*row) for row in zip(y[:2], scores[:2], strict=True)]
    np.testing.assert_allclose(batch[:2], single, rtol=1e-12)
