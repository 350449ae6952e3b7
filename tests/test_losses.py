"""Losses: the papers' definitions, scikit-learn's scores, laws over the registry, bad input."""

import copy
import pickle
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from loss_registry import ITEM_COUNTS, ITEMS, LOSSES
from sklearn.metrics import f1_score, fbeta_score, jaccard_score
from strategies import arrays, tables

from setwise import functions, losses
from setwise.losses._sum import SumLoss

ENCODINGS = {
    "signs": lambda positive: np.where(positive, 1, -1),
    "bits": lambda positive: positive.astype(int),
    "booleans": lambda positive: positive,
    "int8": lambda positive: np.where(positive, 1, -1).astype(np.int8),
    "uint8": lambda positive: positive.astype(np.uint8),
    "uint16": lambda positive: positive.astype(np.uint16),
    "float32": lambda positive: np.where(positive, 1, -1).astype(np.float32),
    "float16": lambda positive: positive.astype(np.float16),
    "float64": lambda positive: positive.astype(float),
    "list": lambda positive: [[int(x) for x in row] for row in positive],
    "big-endian": lambda positive: positive.astype(">i4"),
    "transposed": lambda positive: np.asfortranarray(np.where(positive, 1, -1)),
}

each_loss = pytest.mark.parametrize("listed", LOSSES.values(), ids=LOSSES.keys())
each_encoding = pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS.keys())

# Values of order one from a handful of operations.
ROUNDING = 1e-12


def every_pair(p):
    """All ground truths beside all predictions of p elements."""
    masks = reference.all_masks(p)
    return np.repeat(masks, len(masks), axis=0), np.tile(masks, (len(masks), 1))


# --------------------------------------------------------------------------------------------- laws


@each_loss
def test_value_is_the_definition(listed):
    for p in listed.sizes:
        truth, prediction = every_pair(p)
        expected = [
            listed.definition(
                frozenset(np.flatnonzero(y != z).tolist()), frozenset(np.flatnonzero(y).tolist()), p
            )
            for y, z in zip(truth, prediction, strict=True)
        ]
        np.testing.assert_allclose(listed.loss(truth, prediction), expected, atol=ROUNDING)


@each_loss
def test_set_function_of_the_mistakes_is_the_loss(listed):
    for p in listed.sizes:
        for positive in reference.all_masks(p):
            function = listed.loss.set_function(positive)
            assert function.n == p
            masks = reference.all_masks(p)
            expected = listed.loss(np.tile(positive, (len(masks), 1)), masks ^ positive)
            np.testing.assert_allclose(function(masks), expected, atol=ROUNDING)
            order = np.arange(p)[::-1]
            gains = reference.gains(np.asarray(expected), order)
            np.testing.assert_allclose(function.gains(order), gains, atol=ROUNDING)


@each_loss
def test_no_mistake_costs_nothing(listed):
    for positive in listed.truths():
        assert listed.loss(positive, positive) == 0
        assert listed.loss.set_function(positive)(np.zeros(len(positive), bool)) == 0


@each_loss
def test_batch_equals_single_equals_ragged(listed):
    rng = np.random.default_rng(0)
    sets = [rng.random((2, p)) < 0.5 for p in listed.sizes for _ in range(6)]
    single = [listed.loss(y, z) for y, z in sets]
    assert all(isinstance(value, float) for value in single)
    flat = np.concatenate(sets, axis=1)
    offsets = np.cumsum([0, *(pair.shape[1] for pair in sets)])
    # BLAS adds up a matrix times a vector in another order than a vector times a vector.
    close = {"rtol": 4 * np.finfo(float).eps, "atol": 0}
    np.testing.assert_allclose(listed.loss(*flat, offsets=offsets), single, **close)
    for p in listed.sizes:
        rows = np.stack([pair for pair in sets if pair.shape[1] == p], axis=1)
        expected = [value for value, pair in zip(single, sets, strict=True) if pair.shape[1] == p]
        np.testing.assert_allclose(listed.loss(*rows), expected, **close)


@each_loss
def test_no_set_at_all(listed):
    p = listed.sizes[-1]
    assert listed.loss(np.zeros((0, p)), np.zeros((0, p))).shape == (0,)
    assert listed.loss([], [], offsets=[0]).shape == (0,)


@each_encoding
@pytest.mark.parametrize("other", ["signs", "bits", "booleans"])
def test_encodings_of_truth_and_prediction_may_differ(encode, other):
    truth, prediction = every_pair(3)
    for loss in (losses.Jaccard(), losses.Hamming(), losses.TruncatedModular(1.5)):
        expected = loss(truth, prediction)
        np.testing.assert_array_equal(loss(encode(truth), ENCODINGS[other](prediction)), expected)
        np.testing.assert_array_equal(loss(ENCODINGS[other](truth), encode(prediction)), expected)


@each_loss
@pytest.mark.parametrize("statement", ["is_submodular", "is_increasing"])
def test_statements_hold_for_every_truth_up_to_six(listed, statement):
    """True: for every y; False: for some y it fails; None: nothing is said."""
    said = getattr(listed.loss, statement)
    assert said in (True, False, None)
    sizes = [p for p in range(7) if len(listed.sizes) > 1 or p in listed.sizes]
    answers = set()
    for p in sizes:
        masks = reference.all_masks(p)
        for positive in masks:
            function = listed.loss.set_function(positive)
            truth = getattr(reference, statement)(function(masks))
            assert getattr(function, statement) in (truth, None)
            answers.add(truth)
    if said is not None:
        assert all(answers) is said


@each_loss
def test_pickle_copies_and_repr(listed):
    loss = listed.loss
    again = pickle.loads(pickle.dumps(loss))
    assert repr(again) == repr(loss)
    assert "object at 0x" not in repr(loss)
    truth, prediction = every_pair(listed.sizes[-1])
    np.testing.assert_array_equal(again(truth, prediction), loss(truth, prediction))
    assert copy.deepcopy(loss) is loss
    with pytest.raises(AttributeError, match="immutable"):
        loss.anything = 1


def test_every_name_is_listed():
    listed = {repr(entry.loss) for entry in LOSSES.values()}
    kinds = {type(entry.loss) for entry in LOSSES.values()}
    assert losses.names() == sorted(losses.names())
    for name in losses.names():
        loss = losses.get(name)
        assert repr(loss) in listed or type(loss) in kinds
        assert losses.get(loss) is loss


def test_every_public_loss_is_listed():
    public = {getattr(losses, name) for name in losses.__all__}
    kinds = {kind for kind in public if isinstance(kind, type)} - {losses.Loss}
    assert kinds | {SumLoss} == {type(entry.loss) for entry in LOSSES.values()}


# --------------------------------------------------------------------------------- peers and papers

scikit_learn = pytest.mark.parametrize(
    ("loss", "score"),
    [
        (losses.Jaccard(), jaccard_score),
        (losses.Dice(), f1_score),
        (losses.FBeta(1.5), lambda y, z, **options: fbeta_score(y, z, beta=1.5, **options)),
        (losses.FBeta(0.5), lambda y, z, **options: fbeta_score(y, z, beta=0.5, **options)),
    ],
    ids=["jaccard", "dice", "f-1.5", "f-0.5"],
)


@scikit_learn
def test_one_minus_the_score_of_scikit_learn(loss, score):
    rng = np.random.default_rng(0)
    truth, prediction = rng.random((2, 40, 7)) < rng.random((2, 40, 1))
    expected = [1 - score(y, z, zero_division=1.0) for y, z in zip(truth, prediction, strict=True)]
    np.testing.assert_allclose(loss(truth, prediction), expected, atol=ROUNDING)


@pytest.mark.parametrize("name", ["jaccard", "dice", "f_beta"])
def test_no_positive_in_the_truth(name):
    """min(1, |I|): nothing predicted is right, anything predicted is all wrong."""
    loss = losses.get(name)
    masks = reference.all_masks(4)
    expected = np.minimum(1, masks.sum(axis=1))
    np.testing.assert_array_equal(loss(np.zeros_like(masks), masks), expected)
    assert loss(-np.ones(3), -np.ones(3)) == 0


def test_face_tracks_of_twelve_frames():
    """(33)-(36) at a size where a third and a quarter of the track are whole numbers."""
    expected = {
        1: np.array([0, 1, 2, 3, 4, 4, 4, 4, 4, 5, 6, 7, 8]) / 4,
        2: np.array([0, 1, 2, 3, 3, 3, 3, 4, 5, 6, 6, 6, 6]) / 3,
        3: np.array([0, 0, 0, 0, 0, 1, 2, 3, 4, 4, 4, 4, 4]) / 4,
        4: np.array([0, 0, 0, 0, 0, 0.75, 1.5, 2.25, 3, 2.75, 2.5, 2.25, 2]) / 4,
    }
    for kind, values in expected.items():
        function = losses.FaceTrack(kind).set_function(np.ones(12))
        np.testing.assert_allclose(function.values, values, atol=ROUNDING)


def test_the_weights_printed_in_the_lovasz_hinge_paper():
    """(51) with l_max = 1.3 and (52), both with beta = (1, 0.5, 0.2); (54) with six labels."""
    y, none = np.ones(3), np.zeros(3)
    beta = [1.0, 0.5, 0.2]
    assert losses.TruncatedModular(1.3, beta)(y, none) == 1.3
    assert losses.TruncatedModular(1.3, beta)(y, [1, 0, 0]) == pytest.approx(0.7, abs=ROUNDING)
    assert (losses.Exponential() + losses.Hamming(beta))(y, none) == pytest.approx(
        1 - np.exp(-3) + 1.7, abs=ROUNDING
    )
    six = losses.Exponential() + losses.Hamming([1, 0.8, 0.7, 0.6, 0.5, 0.4])
    assert six(np.ones(6), np.zeros(6)) == pytest.approx(1 - np.exp(-6) + 4.0, abs=ROUNDING)


def mined(rows, min_support, max_size):
    """How many itemsets with enough support hold each label: all sets of labels, all rows."""
    rows = np.asarray(rows) > 0
    counts = np.zeros(rows.shape[1])
    for size in range(1, (max_size or rows.shape[1]) + 1):
        for items in combinations(range(rows.shape[1]), size):
            support = rows[:, list(items)].all(axis=1).mean()
            if support >= min_support - 1e-12:
                counts[list(items)] += 1
    return counts


def test_the_itemsets_of_the_registry():
    np.testing.assert_array_equal(losses.ItemsetLoss.from_labels(ITEMS, 0.4).weights, ITEM_COUNTS)


@given(st.data())
def test_mined_itemsets(data):
    """(56): the frequent itemsets with each label, for any support and any largest size."""
    n, p = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 4))
    bits = data.draw(st.lists(st.booleans(), min_size=n * p, max_size=n * p))
    rows = np.array(bits, bool).reshape(n, p)
    min_support = data.draw(st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.7, 1.0]))
    max_size = data.draw(st.none() | st.integers(1, 4))
    loss = losses.ItemsetLoss.from_labels(rows, min_support, max_size)
    np.testing.assert_array_equal(loss.weights, mined(rows, min_support, min(max_size or p, p)))


# ------------------------------------------------------------------------------------- compositions


def test_sums_are_flat_and_scales_multiply():
    loss = 2.0 * (losses.Jaccard() + 3.0 * losses.Hamming())
    assert [type(term) for term in loss.terms] == [losses.Jaccard, losses.Hamming]
    assert loss.coefficients.tolist() == [2.0, 6.0]
    assert loss([1, 1, 0], [1, 0, 0]) == 2 * (0.5 + 3)
    assert repr(loss) == "2 * Jaccard() + 6 * Hamming()"


@given(st.data())
def test_any_set_function_is_a_loss(data):
    """l(I) = F(I) - F(empty), the same for every truth."""
    function = data.draw(st.integers(0, 4).flatmap(tables))
    loss = losses.SetLoss(function)
    positive = np.array(data.draw(arrays(function.n))) > 0
    masks = reference.all_masks(function.n)
    values = reference.all_values(function)
    computed = loss(np.tile(positive, (len(masks), 1)), masks ^ positive)
    np.testing.assert_allclose(computed, values - values[0], atol=ROUNDING)
    assert loss.is_submodular is function.is_submodular
    assert loss.is_increasing is function.is_increasing


def test_a_set_function_speaks_for_itself():
    """As the docstring of SetLoss says: a declaration cannot overrule a table."""
    loss = losses.SetLoss(functions.Table([0.0, 1.0, 1.0, 3.0]), submodular=True)
    assert loss.is_submodular is False


def test_a_loss_of_your_own():
    class Longest(losses.Loss):
        """The longest run of mistakes."""

        def function_of(self, positive):
            def longest(mask):
                runs = "".join("x" if wrong else " " for wrong in mask).split()
                return max(map(len, runs), default=0)

            return functions.Oracle(longest, len(positive))

    loss = Longest()
    assert loss([[1, 1, 1, 1], [0, 0, 0, 0]], [[0, 0, 1, 0], [0, 1, 0, 1]]).tolist() == [2.0, 1.0]
    assert (2.0 * loss + losses.Hamming())([1, 1, 1], [0, 0, 1]) == 6.0


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: losses.Hamming([1.0, -1.0]), ValueError, "weights must not be negative, got -1"),
        (lambda: losses.Hamming([1.0, np.nan]), ValueError, "weights must be finite, got nan"),
        (lambda: losses.Hamming([[1.0]]), ValueError, r"weights must have shape \(any\), got"),
        (lambda: losses.Hamming(["a"]), TypeError, "weights must hold real numbers, got dtype"),
        (lambda: losses.FBeta(0.0), ValueError, "beta must be positive, got 0"),
        (lambda: losses.FBeta(1e-8), ValueError, "beta must be at least 0.001, got 1e-08"),
        (lambda: losses.FBeta(1e155), ValueError, r"beta must be at most 1e\+15 in size, got 1e"),
        (lambda: losses.FBeta(np.inf), ValueError, "beta must be finite, got inf"),
        (lambda: losses.FBeta("1"), TypeError, "beta must be a real number, got str"),
        (lambda: losses.Exponential(-1.0), ValueError, "alpha must be positive, got -1"),
        (lambda: losses.EarlyDetection(-1.0), ValueError, "rate must not be negative, got -1"),
        (lambda: losses.EarlyDetection(1.0, 2.0), ValueError, r"fraction must lie in \(0, 1\]"),
        (lambda: losses.EarlyDetection(1.0, 0.0), ValueError, "fraction must be positive, got 0"),
        (lambda: losses.TruncatedModular(0.0), ValueError, "limit must be positive, got 0"),
        (lambda: losses.TruncatedModular(1.0, [-1.0]), ValueError, "weights must not be negative"),
        (lambda: losses.FaceTrack(5), ValueError, "kind must be 1, 2, 3 or 4, got 5"),
        (lambda: losses.FaceTrack(0), ValueError, "kind must be at least 1, got 0"),
        (lambda: losses.FaceTrack(1.0), TypeError, "kind must be an integer, got float"),
        (lambda: losses.FaceTrack(1, 2.0), ValueError, "alpha must be None for kind 1, got 2.0"),
        (lambda: losses.FaceTrack(2, 4.0), ValueError, "alpha must be at most 3 for kind 2, got 4"),
        (lambda: losses.CardinalityLoss(3), TypeError, "formula must be a function, got int"),
        (lambda: losses.CountsLoss("n"), TypeError, "formula must be a function, got str"),
        (lambda: losses.ConcaveLoss(2.0), TypeError, "concave must be a function, got float"),
        (lambda: losses.ConcaveLoss(np.square, [1.0, 1.0]), ValueError, "concave must be concave"),
        (lambda: losses.ConcaveLoss(np.cbrt, [-1.0]), ValueError, "weights must not be negative"),
        (lambda: losses.SetLoss(3.0), TypeError, "must be a set function or a callable, got float"),
        (lambda: SumLoss([]), ValueError, "terms must hold at least one loss, got none"),
        (lambda: SumLoss([1.0]), TypeError, "terms must be losses, got float"),
        (lambda: 0.0 * losses.Hamming(), ValueError, "scale must be positive, got 0"),
        (lambda: "2" * losses.Hamming(), TypeError, "scale must be a real number, got str"),
        (
            lambda: SumLoss([losses.Hamming()], [-1.0]),
            ValueError,
            "coefficients must be positive, got -1",
        ),
        (lambda: losses.get("overlap"), ValueError, "loss must be one of dice, .*, got 'overlap'"),
        (lambda: losses.get(3), TypeError, "loss must be a Loss or a name, got int"),
        (
            lambda: losses.ItemsetLoss.from_labels([1, 0]),
            ValueError,
            r"Y must have shape \(n, p\) with n at least 1, got \(2,\)",
        ),
        (
            lambda: losses.ItemsetLoss.from_labels([[1, 0]], 0.0),
            ValueError,
            r"min_support must lie in \(0, 1\], got 0",
        ),
        (
            lambda: losses.ItemsetLoss.from_labels([[1, 0]], 0.5, 0),
            ValueError,
            "max_size must be at least 1, got 0",
        ),
    ],
)
def test_a_loss_that_cannot_be(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (losses.Hamming([1.0, 2.0]), "y must have 2 elements a set, one for each weight"),
        (losses.TruncatedModular(1.0, [1.0, 2.0]), "y must have 2 elements a set, one for each"),
        (losses.ItemsetLoss([1, 2]), "y must have 2 elements a set, one for each weight"),
        (losses.SetLoss(functions.Table([0.0, 1, 1, 2])), "y must have 2 elements a set, as the"),
        (losses.SetLoss(functions.Cardinality([0.0, 1, 1])), "y must have 2 elements a set"),
        (losses.Hamming([1.0, 2.0]) + losses.Jaccard(), "y must have 2 elements a set"),
    ],
)
def test_a_loss_of_another_size(loss, sentence):
    for y in (np.ones(3), np.ones((2, 3))):
        with pytest.raises(ValueError, match=sentence):
            loss(y, y)
    with pytest.raises(ValueError, match=sentence):
        loss.set_function(np.ones(3))


def test_too_many_itemsets(monkeypatch):
    monkeypatch.setattr("setwise.losses._concave._MOST_ITEMSETS", 100)
    with pytest.raises(ValueError, match="more than 100 frequent itemsets, got"):
        losses.ItemsetLoss.from_labels(np.ones((2, 10)), 0.5)


def test_a_formula_that_takes_no_arrays():
    loss = losses.CardinalityLoss(lambda k, p: min(k, 1))
    with pytest.raises(ValueError, match=r"formula must take arrays .*np\.minimum instead of min"):
        loss([1, 1], [0, 0])


def test_a_formula_that_is_not_finite():
    loss = losses.CountsLoss(lambda n, q, m, r: np.where(n + q > 0, np.inf, 0.0))
    with pytest.raises(ValueError, match="formula must return finite numbers, got inf"):
        loss([1, 1], [0, 0])


def test_a_formula_of_the_wrong_shape():
    loss = losses.CardinalityLoss(lambda k, p: np.zeros(2))
    with pytest.raises(ValueError, match=r"formula must return shape \(4,\), got \(2,\)"):
        loss([1, 1, 1], [0, 0, 0])


def test_a_curve_that_is_not_concave_as_far_as_it_is_used():
    loss = losses.ConcaveLoss(np.square)
    with pytest.raises(ValueError, match=r"concave must be concave on \[0, 3\]"):
        loss([1, 1, 1], [0, 0, 0])


RATIOS = {"jaccard": losses.Jaccard, "dice": losses.Dice, "f_beta": partial(losses.FBeta, 0.5)}


@pytest.mark.parametrize("kind", RATIOS.values(), ids=RATIOS)
def test_weights_of_elements_count_as_repetitions_and_have_no_unit(kind):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, 30)
    y, z = rng.random((2, 20, 30)) < 0.4
    weighted, many = kind(counts), np.repeat(np.arange(30), counts)
    np.testing.assert_allclose(weighted(y, z), kind()(y[:, many], z[:, many]), rtol=1e-14)
    assert np.array_equal(weighted(y, z), kind(counts * 2.0**900)(y, z))
    np.testing.assert_allclose(kind(np.full(30, 7.0))(y, z), kind()(y, z), rtol=1e-14)
    np.testing.assert_allclose(kind(counts * 1e-290)(y, z), weighted(y, z), rtol=1e-14)
    for size in (29, 31):
        with pytest.raises(ValueError, match="y must have 30 elements a set, one for each weight"):
            weighted(np.ones((2, size)), np.zeros((2, size)))
    with pytest.raises(ValueError, match="weights must not be negative"):
        kind([1.0, -1.0])
    weights = rng.random(30)
    repeated = kind(weights)._with_multiplicity(counts.astype(float))
    np.testing.assert_allclose(
        repeated(y, z), kind(weights[many])(y[:, many], z[:, many]), rtol=1e-14
    )
    assert repr(kind([1.0, 2.0])).endswith("weights=[1.0, 2.0])")
    assert repr(weighted).endswith("weights=<30 numbers>)")


def test_weighted_jaccard_is_submodular_and_increasing_as_proposition_11_says():
    """Beyond what enumeration reaches: gains of random chains, and of their prefixes' others."""
    rng = np.random.default_rng(1)
    for trial in range(20):
        weights = rng.choice([0.0, 1e-12, 0.3, 1.0, 1e6], 40) * rng.random(40)
        function = losses.Jaccard(weights).set_function(rng.random(40) < (0.0, 0.3, 1.0)[trial % 3])
        order = rng.permutation(40)
        gains = function.gains(order)
        assert (gains >= 0).all()
        chain = np.tri(41, 40, -1, bool)[:, np.argsort(order)]
        np.testing.assert_allclose(np.cumsum(gains), function(chain)[1:], atol=1e-12)
        for i, j in rng.choice(40, (20, 2)):
            sets = rng.random((1, 40)) < 0.4
            sets[:, [i, j]] = False
            one, other, both = (sets | np.isin(np.arange(40), k) for k in ([i], [j], [i, j]))
            assert function(both) - function(one) <= function(other) - function(sets) + 1e-12


@pytest.mark.parametrize("kind", RATIOS.values(), ids=RATIOS)
def test_extreme_weights_give_numbers(kind):
    rng = np.random.default_rng(2)
    for trial in range(20):
        weights = rng.choice([0.0, 5e-324, 1e-300, 1e-150, 1.0, 1e150, 1e300], 12)
        loss, y = kind(weights), rng.random(12) < 0.5
        values = loss(np.tile(y, (50, 1)), rng.random((50, 12)) < 0.5)
        assert ((values >= 0) & (values <= 1)).all(), weights
        gains = loss.set_function(y).gains(rng.permutation(12))
        assert (gains >= 0).all(), (trial, weights)
        assert gains.sum() <= 1 + 1e-12
