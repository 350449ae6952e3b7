"""The statements of "A Convex Surrogate Operator for General Non-Modular Loss Functions".

Each under the conditions under which it is true, and every counterexample to what is printed.
"""

import warnings

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, submodular_functions

from setwise.functions import Cardinality, Counts, Modular, Ratio, Table, decompose
from setwise.losses import CardinalityLoss, CountsLoss, Dice, FaceTrack, FBeta, Hamming, SetLoss
from setwise.surrogates import DecomposedHinge, LovaszHinge, SlackRescaling

TOLERANCE = 1e-9
# What the linear program of a table leaves: its rows are met to 1e-7 of the largest bend.
SOLVER = 1e-6

sizes = st.integers(1, 4)


def at(surrogate, scores):
    """The surrogate for y = 1, so that scores are margins."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the submodular part of")
        return surrogate(np.ones(scores.shape), scores)


def points(p, seed=0, low=-3.0, high=3.0, k=40):
    return np.random.default_rng(seed).uniform(low, high, size=(k, p))


def corners(p):
    return 1.0 - reference.all_masks(p)


def parts(function):
    return [reference.all_values(part) for part in decompose(function)]


def normalized(values):
    return values - values[0]


def quarters(length, low=-2, high=8):
    """Tables from zero in quarters: what fails, fails by a quarter or more."""
    drawn = st.lists(st.integers(low, high), min_size=length - 1, max_size=length - 1)
    return drawn.map(lambda values: np.array([0, *values]) / 4)


def supermodular_increasing(data, p):
    """Minus a submodular function, lifted by a modular one until it rises everywhere."""
    values = -normalized(reference.all_values(data.draw(submodular_functions(p))))
    singles = values[1 << np.arange(p)]
    lift = np.maximum(-singles, 0.0) + data.draw(arrays(p, 0.0, 2.0))
    return values + reference.all_masks(p) @ lift


# ----------------------------------------------------------------------------------- decompositions


@given(sizes.flatmap(lambda p: arrays(1 << p)))
def test_proposition_2_every_set_function_is_submodular_plus_supermodular(values):
    f, g = parts(Table(values))
    assert reference.is_submodular(f + 10.0)
    assert reference.is_supermodular(g + 10.0)
    np.testing.assert_allclose(f + g, values, atol=TOLERANCE)


def increasing_by_modular(g):
    """(9) and (10): w_j = -min over A of g(A + j) - g(A), and g plus that modular function."""
    p, sets = reference.size_of(g), np.arange(len(g))
    w = [-min(g[a | 1 << j] - g[a] for a in sets if not a >> j & 1) for j in range(p)]
    return reference.all_masks(p) @ np.array(w)


@given(sizes.flatmap(lambda p: st.tuples(arrays(1 << p), arrays(p))))
def test_proposition_3_a_modular_function_makes_g_increasing(drawn):
    values, slope = drawn
    f, g = parts(Table(values))
    g = g + reference.all_masks(len(slope)) @ slope  # any decomposition: g need not rise
    f = values - g
    modular = increasing_by_modular(g)
    # A constant changes nothing but the scale that rounding is measured by.
    assert reference.is_increasing(g + modular + 10.0)
    assert reference.is_supermodular(g + modular + 10.0)
    assert reference.is_submodular(f - modular + 10.0)
    np.testing.assert_allclose((f - modular) + (g + modular), values, atol=TOLERANCE)


@given(st.integers(2, 4).flatmap(lambda p: arrays(1 << p)))
def test_proposition_4_decompositions_differ_by_more_than_a_modular_function(values):
    """Move a strictly submodular function from g to f: no modular function undoes that."""
    f, g = parts(Table(values))
    extra = np.sqrt(np.bitwise_count(np.arange(len(values))))
    f_2, g_2 = f + extra, g - extra
    assert reference.is_submodular(f_2 + 10.0)
    assert reference.is_supermodular(g_2 + 10.0)
    np.testing.assert_allclose(f_2 + g_2, values, atol=TOLERANCE)
    difference = (g + increasing_by_modular(g)) - (g_2 + increasing_by_modular(g_2))
    assert np.abs(difference).max() > 0.1


UNIQUE = {
    "a loss of |I|": FaceTrack(1).set_function(np.ones(5)),
    "another": Cardinality([0, 1.0, 0.5, 2.0, 2.0]),
    "dice": Dice().set_function([1, 1, 1, 0, 0]),
    "f-2": FBeta(2.0).set_function([1, 1, 1, 0]),
    "supermodular": Table([0, 1, 1, 2.8]),
    "supermodular on four": SetLoss(-Cardinality(np.sqrt(np.arange(5.0)))).set_function(
        [1, 1, 1, 1]
    ),
}


@pytest.mark.parametrize("function", UNIQUE.values(), ids=UNIQUE.keys())
def test_proposition_5_the_decomposition_of_losses_of_counts_is_unique(function):
    """Where g is the least at every set: losses of |I|, F-beta with beta >= 1, supermodular l."""
    values = reference.all_values(function)
    least, most = reference.range_of_optimal_entries(values)
    np.testing.assert_allclose(least, most, atol=SOLVER)
    np.testing.assert_allclose(parts(function)[1], least, atol=SOLVER)


def test_proposition_5_is_false_from_four_elements():
    """Two optima of sum 30: the third entry of g can be several numbers."""
    values = np.array([0, 2, 1, 1, 2, 4, 0, 5, 5, 1, 5, 0, 1, 5, 3, 5.0])
    least, most = reference.range_of_optimal_entries(values)
    assert reference.least_supermodular_sum(values) == pytest.approx(30.0, abs=SOLVER)
    assert parts(Table(values))[1].sum() == pytest.approx(30.0, abs=SOLVER)
    assert np.max(most - least) > 0.1


@given(st.data())
def test_lemma_1_f_of_a_supermodular_loss_is_modular(data):
    p = data.draw(sizes)
    values = -normalized(reference.all_values(data.draw(submodular_functions(p))))
    f, _ = parts(Table(values))
    np.testing.assert_allclose(f, reference.all_masks(p) @ values[1 << np.arange(p)], atol=SOLVER)


# ------------------------------------------------------------------------------------- the operator


@given(st.data())
def test_lemma_2_as_an_inequality(data):
    """S(l - f) >= S(l) - S(f) for increasing f: a maximum of a sum is at most the sum of maxima."""
    p = data.draw(sizes)
    values = np.maximum(data.draw(quarters(1 << p)), 0.0)
    f, g = parts(Table(values))
    if f.min() < 0 or not reference.is_increasing(f):
        return
    scores = points(p)
    slack_g, slack_l, slack_f = (reference.slack_rescaling(x, scores) for x in (g, values, f))
    assert np.all(slack_g >= slack_l - slack_f - TOLERANCE)


def test_lemma_2_is_no_equality():
    """l = (0, 1, 1, 3) has f = |I|, which increases; at margins (1, -1): 1 is not 3 - 3."""
    loss = SetLoss(Table([0, 1, 1, 3]))
    f, g = (SetLoss(part) for part in decompose(loss.function))
    scores = np.array([1.0, -1.0])
    assert at(SlackRescaling(g), scores) == 1
    assert at(SlackRescaling(loss), scores) == at(SlackRescaling(f), scores) == 3


@given(st.data())
def test_theorem_1_for_supermodular_increasing_losses_it_is_above_slack_rescaling(data):
    """In the unit cube, and below the convex closure: closer to it than slack rescaling."""
    p = data.draw(sizes)
    values = supermodular_increasing(data, p)
    loss = SetLoss(Table(values))
    scores = np.concatenate([points(p, 0, 0.0, 1.0), corners(p)])
    decomposed, slack = at(DecomposedHinge(loss), scores), at(SlackRescaling(loss), scores)
    assert np.all(decomposed >= slack - TOLERANCE)
    for k in range(3):
        closure = reference.convex_closure(values, 1 - scores[k])
        assert decomposed[k] <= closure + SOLVER


@given(st.data())
def test_theorem_2_for_submodular_losses_it_is_the_lovasz_hinge(data):
    """Definition 6 inside: case 1 where l increases, as the theorem and the code need it."""
    function = data.draw(submodular_functions(data.draw(sizes)))
    loss = SetLoss(function)
    scores = points(function.n)
    y = np.ones(scores.shape)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the submodular part of")
        decomposed = DecomposedHinge(loss).value_and_gradient(y, scores)
    lovasz = LovaszHinge(loss).value_and_gradient(y, scores)
    np.testing.assert_array_equal(decomposed[0], lovasz[0])
    np.testing.assert_array_equal(decomposed[1], lovasz[1])


@given(sizes.flatmap(lambda p: arrays(1 << p)))
def test_theorem_3_it_is_convex_for_any_loss(values):
    surrogate = DecomposedHinge(SetLoss(Table(normalized(values))))
    p = reference.size_of(values)
    first, second = points(p, 0), points(p, 1)
    ends = (at(surrogate, first) + at(surrogate, second)) / 2
    assert np.all(at(surrogate, (first + second) / 2) <= ends + TOLERANCE)
    assert surrogate.properties(np.ones(p)).is_convex is True


@given(sizes.flatmap(lambda p: quarters(1 << p)))
def test_theorem_4_it_is_an_extension_iff_f_is_not_negative(values):
    """Where f is negative it lies above the loss: the hinge of f is 0 there."""
    surrogate = DecomposedHinge(SetLoss(Table(values)))
    p, f = reference.size_of(values), parts(Table(values))[0]
    above = at(surrogate, corners(p)) - values
    np.testing.assert_allclose(above, np.maximum(-f, 0.0), atol=SOLVER)
    not_negative = bool(f.min() > -1e-6)
    assert surrogate.properties(np.ones(p)).is_extension is not_negative


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_theorem_4_of_the_four_face_track_losses(kind):
    """As the paper says: an extension for the first two, f negative for the last two."""
    surrogate, y = DecomposedHinge(FaceTrack(kind)), np.ones(12)
    f = decompose(FaceTrack(kind).set_function(y)).f
    assert (f.values.min() >= -1e-12) == (kind <= 2)
    assert surrogate.properties(y).is_extension is (kind <= 2)
    # "f_1 is non-negative increasing, f_2 non-increasing, f_3 and f_4 non-positive decreasing".
    assert f.is_increasing is (kind == 1)
    if kind > 2:
        assert np.all(np.diff(f.values) <= 1e-12)


@pytest.mark.parametrize(
    "loss",
    [
        FaceTrack(1),
        FaceTrack(4),
        CardinalityLoss(lambda k, p: np.abs(k - p / 2)),
        Dice(),
        FBeta(2.0),
        CountsLoss(lambda n, q, m, r: np.abs(n - m / 2) + n * q / (m + r)),
    ],
    ids=repr,
)
def test_theorem_5_for_losses_of_counts_the_maximum_is_found_at_any_size(loss):
    """Exact slack rescaling of g at 200 elements, where nothing can be enumerated."""
    y = np.arange(200) % 3 == 0
    scores = np.random.default_rng(0).normal(size=200) * 0.02
    slack = DecomposedHinge(loss).supermodular_part
    assert slack.properties(y).is_exact is True
    g = decompose(loss.set_function(y)).g
    n, q = np.ogrid[: y.sum() + 1, : (~y).sum() + 1]
    grid = g.values[n + q] if isinstance(g, Cardinality) else g.grid()
    margins = np.where(y, scores, -scores)
    sums = [np.cumsum([0.0, *np.sort(margins[side])]) for side in (y, ~y)]
    objective = grid * (1 - 2 * (sums[0][:, None] + sums[1][None, :]))
    assert slack(y, scores) == pytest.approx(objective.max(), rel=1e-10)


@pytest.mark.parametrize(
    ("weights", "splits"), [([3, 1, 1, 2, 2, 1], True), ([3, 3, 3, 1], False), ([5, 1, 1], False)]
)
def test_theorem_5_is_false_in_general(weights, splits):
    """Slack rescaling of a modular g contains the partition problem, unless P = NP.

    With margins w / (2 W), W the sum of all, the objective of a set of weight x is x (1 - x / W):
    at most W / 4, and W / 4 exactly if some set has half of the weight.
    """
    total = sum(weights)
    scores = np.array(weights) / (2 * total)
    value = SlackRescaling(Hamming(weights))(np.ones(len(weights)), scores)
    assert (value == pytest.approx(total / 4, abs=TOLERANCE)) == splits
    assert value < total / 4 + TOLERANCE
    # Up to 16 elements by enumeration; beyond, it says that it searches.
    assert SlackRescaling(Hamming(weights)).properties(np.ones(len(weights))).is_exact is True
    assert SlackRescaling(Hamming(np.arange(17.0))).properties(np.ones(17)).is_exact is False


# --------------------------------------------------------------------------------------------- Dice


def gain_of_false_negative(m, n, q):
    """(31): what one more false negative adds to the Dice loss."""
    return (2 * m + 2 * q) / ((2 * m - n + q - 1) * (2 * m - n + q))


@pytest.mark.parametrize("p", [3, 4, 5, 6])
def test_proposition_6_dice_is_neither_submodular_nor_supermodular(p):
    """With at least two positives and a negative; otherwise it is one of the two."""
    for m in range(p + 1):
        function = Dice().set_function(np.arange(p) < m)
        values = reference.all_values(function)
        assert reference.is_submodular(values) is (m < 2)
        # One element short of p positives and one of each is enough to break supermodularity.
        assert reference.is_supermodular(values) is (m == p)
        assert function.is_submodular is (m < 2)
        assert function.is_supermodular is (m == p)


def test_lemma_3_figure_1_the_two_gains_cross():
    """m = 10, n_A = 1..8, n_B = n_A - 1, q_A = 8, q_B = 5: neither curve bounds the other."""
    n = np.arange(1, 9)
    larger, smaller = gain_of_false_negative(10, n, 8), gain_of_false_negative(10, n - 1, 5)
    assert (larger < smaller).any()
    assert (larger > smaller).any()
    for k, count in enumerate(n):
        function = Dice().set_function(np.arange(30) < 10)
        chain = [*range(10, 18), *range(count + 1)]
        assert function.gains(chain)[-1] == pytest.approx(larger[k])


def test_dice_can_be_zero_at_a_wrong_prediction():
    """One false positive, all else right by far: no value and no gradient (the notes)."""
    y = np.array([1, 1, -1, -1, -1, -1])
    scores = np.array([100, 100, 0.1, -100, -100, -100.0])
    assert Dice()(y, np.sign(scores)) > 0
    value, gradient = DecomposedHinge("dice").value_and_gradient(y, scores)
    assert value == 0
    assert not gradient.any()
    assert DecomposedHinge("dice").is_upper_bound is None
    assert DecomposedHinge("dice").properties(y).is_upper_bound is None


def test_dice_is_tight_on_the_unit_cube():
    """Where f >= 0, as it is for F-beta with beta >= 1: equal to the loss at every corner."""
    masks = reference.all_masks(6)
    for m in range(7):
        positive = np.arange(6) < m
        for loss in (Dice(), FBeta(1.5), FBeta(2.0)):
            scores = (1.0 - masks) * np.where(positive, 1.0, -1.0)
            y = np.tile(positive, (64, 1))
            expected = loss(y, y ^ masks)
            np.testing.assert_allclose(DecomposedHinge(loss)(y, scores), expected, atol=TOLERANCE)
            assert DecomposedHinge(loss).properties(positive).is_extension is True


def test_the_submodular_part_of_dice_is_in_general_not_increasing():
    falls = decompose(Dice().set_function(np.arange(6) < 2)).f
    rises = decompose(Dice().set_function(np.arange(5) < 2)).f
    assert falls.is_increasing is False
    assert rises.is_increasing is True
    assert reference.is_increasing(reference.all_values(rises))
    assert not reference.is_increasing(reference.all_values(falls))


def test_f_beta_below_one_may_have_a_negative_part():
    """beta = 1/2 at 3 positives of 9: convex, no extension, and it warns."""
    y = np.arange(9) < 3
    f = decompose(FBeta(0.5).set_function(y)).f
    assert f.grid().min() < -0.02
    with pytest.warns(UserWarning, match=r"submodular part of FBeta\(beta=0.5\) is negative"):
        DecomposedHinge(FBeta(0.5))(y, np.zeros(9))
    assert DecomposedHinge(FBeta(0.5)).properties(y).is_extension is False


def test_the_definition_needs_both_cases_of_the_lovasz_hinge():
    """Definition 8 prints case 2 only; with it the Hamming loss at s = (2, -10) would cost 0."""
    scores = np.array([-1.0, 11.0])
    assert DecomposedHinge("hamming")(np.ones(2), scores) == 2
    assert LovaszHinge("hamming", case=2)(np.ones(2), scores) == 0


@pytest.mark.parametrize("m", [2, 7, 30])
def test_g_of_dice_is_the_least_that_is_feasible(m):
    """G's second difference is the largest over q of that of l, so that no g can be smaller."""
    r = 40
    grid = Counts(Ratio(m, 1.0), np.arange(m + r) < m).grid()
    bend = np.diff(grid, 2, axis=0)
    g = Ratio(m, 1.0).parts()[1](np.arange(m + 1), 0)
    np.testing.assert_allclose(np.diff(g, 2), bend.max(axis=1), atol=1e-12)
    np.testing.assert_array_equal(bend.argmax(axis=1), 0)
    assert np.diff(grid, 2, axis=1).max() <= 1e-14
    assert np.diff(np.diff(grid, axis=0), axis=1).max() <= 1e-14


def test_slack_of_g_with_modular_g_is_zero_for_submodular_losses():
    assert DecomposedHinge("jaccard").supermodular_part is None
    zero = decompose(Dice().set_function([1, 0, 0])).g
    assert isinstance(zero, Modular)
    assert not zero.weights.any()
