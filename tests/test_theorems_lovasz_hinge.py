"""The propositions of "The Lovász Hinge", each under the conditions under which it is true.

Where the paper's statement is false as printed, the corrected one is tested, and the counterexample
to the printed one beside it.
"""

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import arrays, increasing_functions, submodular_functions

from setwise.functions import Modular, Table, base_vertex, lovasz_extension
from setwise.losses import Hamming, Jaccard, SetLoss
from setwise.surrogates import LovaszHinge, MarginRescaling, SlackRescaling

TOLERANCE = 1e-9

# Section 4.4: submodular increasing, submodular non-monotone, supermodular increasing.
INCREASING = np.array([0, 1, 1, 1.2])
NON_MONOTONE = np.array([0, 1, 1, 0.4])
SUPERMODULAR = np.array([0, 1, 1, 2.8])

sizes = st.integers(1, 4)


def corners(p):
    """Scores at which s = 1 - g y is the indicator of each set, for y = 1."""
    return 1.0 - reference.all_masks(p)


def at(surrogate, scores):
    """The surrogate for y = 1, so that scores are margins."""
    return surrogate(np.ones(scores.shape), scores)


def rounded(values):
    """Quarters: an inequality that fails, fails by a quarter."""
    return np.round(4 * values) / 4


def non_negative_tables(p):
    """From zero, in quarters."""
    return arrays((1 << p) - 1, 0.0, 4.0).map(lambda values: rounded(np.append(0.0, values)))


def table_of(function):
    values = reference.all_values(function)
    return values - values[0]


def points(p, seed=0, low=-3.0, high=3.0, k=40):
    return np.random.default_rng(seed).uniform(low, high, size=(k, p))


def assert_convex(surrogate, p):
    first, second = points(p, 0), points(p, 1)
    ends = (at(surrogate, first) + at(surrogate, second)) / 2
    assert np.all(at(surrogate, (first + second) / 2) <= ends + TOLERANCE)


def assert_extension(surrogate, values):
    p = reference.size_of(values)
    np.testing.assert_allclose(at(surrogate, corners(p)), values, atol=TOLERANCE)


# ----------------------------------------------------------------------- margin and slack rescaling


@given(sizes.flatmap(non_negative_tables))
def test_proposition_1_slack_rescaling_is_an_extension_iff_l_is_increasing(values):
    surrogate = SlackRescaling(SetLoss(Table(values)))
    at_corners = at(surrogate, corners(reference.size_of(values)))
    is_extension = np.allclose(at_corners, values, atol=TOLERANCE)
    assert is_extension == reference.is_increasing(values)


@given(sizes.flatmap(increasing_functions))
def test_proposition_2_the_largest_scale_of_margin_rescaling(function):
    """The largest scale is 2 / max over B and i of l(B + i) - l(B), the empty B included."""
    values, loss = table_of(function), SetLoss(function)
    p, gain = function.n, reference.largest_gain(table_of(function))
    if gain < 1e-6:
        return
    scale = 2 / gain
    assert MarginRescaling(loss).extension_scale(np.ones(p)) == pytest.approx(scale, rel=1e-9)
    assert_extension(MarginRescaling(loss, scale=scale), values)
    beyond = at(MarginRescaling(loss, scale=1.01 * scale), corners(p))
    assert np.max(beyond - values) > 1e-3 * gain


def test_proposition_2_as_printed_forgets_the_empty_set():
    """l = min(1, |I|): no two non-empty sets differ, so that printed every scale will do.

    At scale 4 it fails where nothing is wrong: one mistake gains 1 and costs 2 / 4.
    """
    values = np.array([0, 1, 1, 1.0])
    loss = SetLoss(Table(values))
    assert np.ptp(values[1:]) == 0
    assert at(MarginRescaling(loss, scale=4.0), np.ones(2)) == pytest.approx(0.5)
    assert at(MarginRescaling(loss, scale=2.0), np.ones(2)) == 0
    assert MarginRescaling(loss).extension_scale([1, 1]) == 2.0


# ----------------------------------------------------------------------------- the greedy algorithm


def polyhedron(values):
    """A and b of the submodular polyhedron P(l) = {mu : mu(A) <= l(A) for all A}."""
    return reference.all_masks(reference.size_of(values)).astype(float)[1:], values[1:]


@given(st.data())
def test_proposition_3_the_greedy_algorithm_over_the_base_polyhedron(data):
    """Any s: the paper's (i) and (ii) are swapped, the base polyhedron needs no s >= 0."""
    function = data.draw(submodular_functions(data.draw(sizes)))
    s, values = data.draw(arrays(function.n)), table_of(function)
    mu = base_vertex(function, s)
    assert reference.in_base_polytope(values, mu)
    rows, bounds = polyhedron(values)
    best = linprog(
        -s, A_ub=rows, b_ub=bounds, A_eq=rows[-1:], b_eq=bounds[-1:], bounds=(None, None)
    )
    assert best.status == 0
    # The program is solved to 1e-7.
    assert s @ mu == pytest.approx(-best.fun, abs=1e-6)
    assert lovasz_extension(function, s) == pytest.approx(s @ mu, abs=TOLERANCE)


@given(st.data())
def test_proposition_3_the_greedy_algorithm_over_the_submodular_polyhedron(data):
    """s >= 0 is needed here: with a negative entry the maximum is infinite."""
    function = data.draw(submodular_functions(data.draw(sizes)))
    s = data.draw(arrays(function.n, 0.0, 4.0))
    rows, bounds = polyhedron(table_of(function))
    best = linprog(-s, A_ub=rows, b_ub=bounds, bounds=(None, None))
    assert -best.fun == pytest.approx(lovasz_extension(function, s), abs=1e-6)
    s[0] = -1.0
    unbounded = 3
    assert linprog(-s, A_ub=rows, b_ub=bounds, bounds=(None, None)).status == unbounded


@given(st.data())
def test_proposition_4_the_greedy_order_is_the_best_permutation(data):
    function = data.draw(submodular_functions(data.draw(sizes)))
    s = data.draw(arrays(function.n))
    best = reference.lovasz_by_permutations(reference.all_values(function), s)
    assert lovasz_extension(function, s) == pytest.approx(best, abs=TOLERANCE)


@given(sizes.flatmap(lambda p: arrays(1 << p)))
def test_proposition_5_the_extension_is_convex_iff_l_is_submodular(values):
    """At the indicators of A and B the midpoint has (l(A | B) + l(A & B)) / 2."""
    function = Table(rounded(values))
    p, masks = function.n, reference.all_masks(function.n).astype(float)
    at_sets = np.array([lovasz_extension(function, mask) for mask in masks])
    convex = all(
        lovasz_extension(function, (masks[a] + masks[b]) / 2)
        <= (at_sets[a] + at_sets[b]) / 2 + TOLERANCE
        for a in range(1 << p)
        for b in range(a)
    )
    assert convex == reference.is_submodular(function.values)
    if convex:
        for first, second in zip(points(p, 0, k=10), points(p, 1, k=10), strict=True):
            middle = lovasz_extension(function, (first + second) / 2)
            ends = lovasz_extension(function, first) + lovasz_extension(function, second)
            assert middle <= ends / 2 + TOLERANCE


# --------------------------------------------------------------------------------- the Lovász hinge


@given(st.data())
def test_proposition_6_case_2_is_convex_and_an_extension(data):
    """For submodular non-negative l."""
    function = data.draw(submodular_functions(data.draw(sizes)))
    values = table_of(function)
    lowest = np.minimum(values / np.maximum(np.bitwise_count(np.arange(len(values))), 1), 0).min()
    # A modular function that lifts l above zero leaves it submodular.
    heights = values + np.bitwise_count(np.arange(len(values))) * -lowest
    rounding = 1e-14 * np.abs(values).max()  # what is left where the two cancel
    lifted = Table(np.where(np.abs(heights) > rounding, heights, 0.0))
    assert lifted.values.min() > -TOLERANCE
    surrogate = LovaszHinge(SetLoss(lifted), case=2)
    assert_convex(surrogate, function.n)
    assert_extension(surrogate, lifted.values)


@given(sizes.flatmap(increasing_functions))
def test_proposition_7_case_1_is_convex_and_an_extension(function):
    """For submodular increasing l; and an upper bound of the loss everywhere (the notes)."""
    surrogate = LovaszHinge(SetLoss(function), case=1)
    values, p = table_of(function), function.n
    assert_convex(surrogate, p)
    assert_extension(surrogate, values)
    scores = points(p, 2, -20.0, 20.0)
    mistakes = (scores <= 0) @ np.left_shift(1, np.arange(p))
    assert np.all(at(surrogate, scores) >= values[mistakes] - TOLERANCE)


@given(st.integers(0, 6).flatmap(lambda p: st.tuples(arrays(p, 0.0, 3.0), arrays(p), arrays(p))))
def test_proposition_8_for_hamming_it_is_the_sum_of_the_hinge_losses(drawn):
    weights, scores, truth = drawn
    y = np.where(truth > 0, 1, -1)
    hinges = np.maximum(1 - scores * y, 0.0)
    assert LovaszHinge(Hamming())(y, scores) == pytest.approx(hinges.sum(), abs=TOLERANCE)
    weighted = LovaszHinge(Hamming(weights))(y, scores)
    assert weighted == pytest.approx(weights @ hinges, abs=TOLERANCE)


def test_case_2_of_hamming_is_no_upper_bound():
    """Outside the unit cube: s = (2, -10) has one mistake and the value 0 (the notes)."""
    y, scores = np.ones(2), np.array([-1.0, 11.0])
    assert Hamming()(y, np.sign(scores)) == 1
    value, gradient = LovaszHinge("hamming", case=2).value_and_gradient(y, scores)
    assert value == 0
    assert not gradient.any()
    assert LovaszHinge("hamming", case=2).is_upper_bound is None
    assert LovaszHinge("hamming", case=2).properties(y).is_upper_bound is False
    assert LovaszHinge("hamming")(y, scores) == 2


@given(sizes.flatmap(increasing_functions), st.integers(0, 9))
def test_lemma_1_the_extension_is_the_convex_closure(function, seed):
    values = table_of(function)
    s = points(function.n, seed, 0.0, 1.0, k=1)[0]
    closure = reference.convex_closure(values, s)
    assert lovasz_extension(function, s) == pytest.approx(closure, abs=1e-6)


@given(sizes.flatmap(increasing_functions))
def test_proposition_9_it_is_above_slack_and_margin_rescaling_in_the_unit_cube(function):
    """For increasing l, and margin rescaling with a scale that makes it an extension."""
    loss = SetLoss(function)
    scores = np.concatenate([points(function.n, 0, 0.0, 1.0), corners(function.n)])
    hinge = at(LovaszHinge(loss), scores)
    assert np.all(hinge >= at(SlackRescaling(loss), scores) - TOLERANCE)
    assert np.all(hinge >= at(MarginRescaling(loss, scale="extension"), scores) - TOLERANCE)


def test_proposition_9_needs_an_increasing_loss():
    loss, both_wrong = SetLoss(Table(NON_MONOTONE)), np.zeros(2)
    assert at(LovaszHinge(loss), both_wrong) == pytest.approx(0.4)
    assert at(SlackRescaling(loss), both_wrong) == 1


def test_proposition_9_needs_a_small_scale():
    loss, all_right = SetLoss(Modular([5.0, 5.0])), np.ones(2)
    assert at(LovaszHinge(loss), all_right) == 0
    assert at(MarginRescaling(loss), all_right) == 6
    assert at(MarginRescaling(loss, scale="extension"), all_right) == 0


def test_corollary_1_rescalings_bend_inside_the_unit_cube_where_the_hinge_does_not():
    """Figure 3, the submodular increasing l along s = (t, 0.05): a kink of both at t = 1/2."""
    loss = SetLoss(Table(INCREASING))
    s = np.array([[t, 0.05] for t in (0.1, 0.5, 0.9)])

    def bend(surrogate):
        low, middle, high = at(surrogate, 1 - s)
        return low - 2 * middle + high

    assert bend(LovaszHinge(loss)) == pytest.approx(0, abs=TOLERANCE)
    assert bend(SlackRescaling(loss)) > 0.5
    assert bend(MarginRescaling(loss)) > 0.5


def test_proposition_10_case_1_of_a_non_monotone_loss_is_not_convex():
    """Figure 4: along s = (1, t) the value falls for t > 0 and is flat for t < 0."""
    surrogate = LovaszHinge(SetLoss(Table(NON_MONOTONE)), case=1)
    before, kink, after = at(surrogate, 1 - np.array([[1, -0.5], [1, 0], [1, 0.5]]))
    assert kink > (before + after) / 2 + 0.1
    assert surrogate.is_convex is None
    assert surrogate.properties([1, 1]).is_convex is False
    assert_extension(surrogate, NON_MONOTONE)  # "although the red dots touch the surface"
    assert_convex(LovaszHinge(SetLoss(Table(NON_MONOTONE))), 2)


@given(st.data())
def test_proposition_10_for_any_submodular_loss_that_falls(data):
    """There is a chain whose gain is negative: the kink lies there, at s_j = 0."""
    function = data.draw(submodular_functions(data.draw(sizes)))
    values, p = rounded(table_of(function)), function.n
    falls = [
        (a, i)
        for a in range(1 << p)
        for i in range(p)
        if not a >> i & 1 and values[a | 1 << i] < values[a]
    ]
    if not falls or not reference.is_submodular(values):
        return
    a, i = falls[0]
    surrogate = LovaszHinge(SetLoss(Table(values)), case=1)
    s = np.where(reference.all_masks(p)[a], 2.0, -2.0)
    around = np.array([np.where(np.arange(p) == i, t, s) for t in (-1.0, 0.0, 1.0)])
    before, kink, after = at(surrogate, 1 - around)
    assert kink > (before + after) / 2


# ------------------------------------------------------------------------------------------ Jaccard


def jaccard_grid(m, r=30):
    """(n + q) / (m + q) at all counts of false negatives n and false positives q."""
    n, q = np.meshgrid(np.arange(m + 1), np.arange(r + 1), indexing="ij")
    return (n + q) / (m + q)


@pytest.mark.parametrize("m", [1, 2, 5, 40])
def test_lemma_2_jaccard_restricted_to_marginal_false_negatives_is_submodular(m):
    """The gain is 1 / (m + q), equation (45): it falls with q and does not change with n."""
    gain = np.diff(jaccard_grid(m), axis=0)
    np.testing.assert_allclose(gain, 1 / (m + np.arange(31.0)) + np.zeros((m, 1)), atol=1e-14)
    y = np.arange(m + 30) < m
    function = Jaccard().set_function(y)
    assert function.gains([0]) == pytest.approx(1 / m)
    assert function.gains([m, m + 1, 0])[-1] == pytest.approx(1 / (m + 2))


@pytest.mark.parametrize("m", [1, 2, 5, 40])
def test_lemma_3_jaccard_restricted_to_marginal_false_positives_is_submodular(m):
    """The gain (m - n) / ((m + q) (m + q + 1)) falls with n and with q."""
    gain = np.diff(jaccard_grid(m), axis=1)
    n, q = np.meshgrid(np.arange(m + 1), np.arange(30), indexing="ij")
    np.testing.assert_allclose(gain, (m - n) / ((m + q) * (m + q + 1)), atol=1e-14)
    assert np.all(np.diff(gain, axis=0) <= 1e-15)
    assert np.all(np.diff(gain, axis=1) <= 1e-15)


@pytest.mark.parametrize("p", range(7))
def test_proposition_11_jaccard_is_submodular(p):
    """For every ground truth, the one without positives included; and it is increasing."""
    masks = reference.all_masks(p)
    for y in masks:
        values = np.array([Jaccard()(y, y ^ mistakes) for mistakes in masks])
        assert reference.is_submodular(values)
        assert reference.is_increasing(values)
        assert Jaccard().set_function(y).is_submodular is True


# ---------------------------------------------------------------------------------------- the notes


@given(st.data())
def test_ties_may_come_in_any_order(data):
    """The value does not depend on how equal s are sorted: renumber the elements."""
    function = data.draw(submodular_functions(data.draw(sizes)))
    p = function.n
    scores = np.array(data.draw(st.lists(st.sampled_from([-1.0, 0.5]), min_size=p, max_size=p)))
    order = np.array(data.draw(st.permutations(range(p))))
    plain = LovaszHinge(SetLoss(function), case=2)
    renumbered = LovaszHinge(SetLoss(function.restrict(order)), case=2)
    value = renumbered(np.ones(p), scores[order])
    assert plain(np.ones(p), scores) == pytest.approx(value, abs=TOLERANCE)


def test_the_supermodular_example_of_section_4_4_has_no_lovasz_hinge():
    with pytest.raises(ValueError, match="loss must be submodular for LovaszHinge"):
        LovaszHinge(SetLoss(Table(SUPERMODULAR)))
