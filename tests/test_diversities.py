"""Diversities: their laws, by brute force over all lists of small labellings."""

import pickle
from itertools import combinations, pairwise

import numpy as np
import pytest
import reference
from diversity_registry import DIVERSITIES
from field_registry import of_seed
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise import diversities as d
from setwise.diversities._balls import ball_intersections
from setwise.diversities._combined import CombinedDiversity

SPACES = [(3, 2), (2, 3)]  # 8 and 9 labellings: 256 and 512 sets of them
names = pytest.mark.parametrize("name", DIVERSITIES)
steps = pytest.mark.parametrize("name", [name for name, e in DIVERSITIES.items() if e.steps])


def set_values(diversity: d.Diversity, n: int, n_labels: int) -> np.ndarray:
    """d of every set of labellings, in bit order."""
    every = reference.all_labelings(n, n_labels)
    masks = reference.all_masks(len(every))
    return np.array([diversity.value(every[mask], n_labels) for mask in masks])


# --------------------------------------------------------------------------------------------- laws


@names
def test_laws(name):
    """Monotone and submodular exactly as listed: every set, or a counterexample."""
    entry = DIVERSITIES[name]
    values = [set_values(entry.make(n), n, labels) for n, labels in SPACES]
    assert all(reference.is_increasing(v) for v in values) == entry.monotone
    assert all(reference.is_submodular(v) for v in values) == entry.submodular


@names
def test_what_it_says_of_itself_is_true(name):
    """None where it cannot tell, which is for sums and callables alone."""
    entry = DIVERSITIES[name]
    diversity = entry.make(3)
    assert diversity.is_monotone in (entry.monotone, None)
    assert diversity.is_submodular in (entry.submodular, None)
    if not isinstance(diversity, CombinedDiversity):
        assert diversity.is_submodular is not None
        assert diversity.is_monotone is not None or name == "own-concave"


@names
@given(seed=st.integers(0, 2**32 - 1))
def test_lists_with_copies(name, seed):
    """Gains are differences, the order does not matter, and gains fall, copies included.

    Copies of an item take most off its gain: what the shift of a guarantee is made of.
    """
    entry = DIVERSITIES[name]
    rng = np.random.default_rng(seed)
    n, labels = SPACES[seed % 2]
    diversity = entry.make(n)
    items = rng.integers(0, labels, (rng.integers(0, 6), n))
    items = np.concatenate([items, items[: rng.integers(0, 3)]])
    y = rng.integers(0, labels, n)
    value = diversity.value(items, labels)
    gain = diversity.gain(y, items, labels)
    after = diversity.value(np.concatenate([items, y[None]]), labels)
    assert after - value == pytest.approx(gain, abs=1e-9)
    assert diversity.value(rng.permutation(items), labels) == pytest.approx(value, abs=1e-9)
    assert diversity.value(items[:0], labels) == 0.0
    more = rng.integers(0, labels, (rng.integers(1, 4), n))
    later = diversity.gain(y, np.concatenate([items, more]), labels)
    last = diversity.gain(y, np.concatenate([items, np.tile(y, (len(more), 1))]), labels)
    assert diversity.copies_take_most
    assert last - 1e-9 <= later
    if entry.submodular:
        assert later <= gain + 1e-9


ASKS = "n_labels must be the number of labels of the field"


def without_labels(call):
    """What a call without the number of labels gives: a number, or the words that ask for it."""
    try:
        return call()
    except ValueError as error:
        return str(error)[: len(ASKS)]


@names
@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_the_number_of_labels_is_never_guessed(name, n_labels):
    """A gain or a value without it is what it is with any, or a sentence asks for it."""
    rng = np.random.default_rng(n_labels)
    diversity = DIVERSITIES[name].make(3)
    for m in range(4):
        items, y = rng.integers(0, 2, (m, 3)), rng.integers(0, 2, 3)
        for call in (
            lambda *known, y=y, s=items: diversity.gain(y, s, *known),
            lambda *known, s=items: diversity.value(s, *known),
        ):
            assert without_labels(call) in (call(n_labels), ASKS)


@steps
@pytest.mark.parametrize("field_name", ["potts-on-two-labels", "potts-on-three-labels"])
def test_the_gains_of_a_list_are_those_of_its_diversity(name, field_name):
    """What ``diverse`` records is d(y | S) with the labels of the field, used or not."""
    field = of_seed(field_name, 3)
    diversity = DIVERSITIES[name].make(field.n_variables)
    result = sw.diverse(field, 4, diversity)
    for k, labels in enumerate(result.labelings):
        earlier = result.labelings[:k]
        assert diversity.gain(labels, earlier, field.n_labels) == result.gains[k]
        guessed = without_labels(lambda y=labels, s=earlier: diversity.gain(y, s))
        assert guessed in (result.gains[k], ASKS)


@pytest.mark.parametrize("kind", [d.BallCoverage, d.BallCoverageBound])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_counted_balls_may_know_the_number_of_labels(kind, n_labels):
    any_field, ball = kind(1.5, 1), kind(1.5, 1, n_labels)
    items, y = np.array([[0, 0, 0], [1, 0, 1]]), [1, 0, 0]
    both = 2.0 * (ball + d.DivMBest(0.5))
    assert ball.gain(y, items) == any_field.gain(y, items, n_labels)
    assert ball.gain(y, items) == ball.gain(y, items, n_labels)
    assert ball.value(items) == any_field.value(items, n_labels)
    assert both.gain(y, items) == 2.0 * (ball.gain(y, items) + d.DivMBest(0.5).gain(y, items))
    wrong = rf"n_labels must be {n_labels}, which .*n_labels={n_labels}\) is for, got 5"
    with pytest.raises(ValueError, match=wrong):
        ball.gain(y, items, 5)
    with pytest.raises(ValueError, match=wrong):
        sw.diverse(sw.fields.Field(np.zeros((3, 5))), 2, ball)
    with pytest.raises(ValueError, match=r"terms must be for fields of as many labels, got \["):
        ball + kind(1.0, 1, 7)
    with pytest.raises(ValueError, match="labelings must"):
        ball.gain([n_labels, 0, 0], items)


def test_counted_balls_ask_for_the_number_of_labels():
    ball = d.BallCoverageBound(1.0, 1)
    with pytest.raises(ValueError, match=r"n_labels must be the number of labels .* got None"):
        ball.gain([1, 0, 0], [[0, 0, 0]])
    assert ball.gain([1, 0, 0], [[0, 0, 0]], 2) != ball.gain([1, 0, 0], [[0, 0, 0]], 3)
    assert ball.gain([1, 0, 0], []) == 1.0
    assert d.BallCoverageBound(1.0, 0).gain([1, 0, 0], [[0, 0, 0]]) == 1.0


@steps
@pytest.mark.parametrize("field_name", ["potts-on-two-labels", "ties", "forbidden-labels"])
def test_the_step_is_an_energy(name, field_name):
    """augment(field, S) has the energy E(y) - d(y | S), up to a constant."""
    rng = np.random.default_rng(0)
    field = of_seed(field_name, 0)
    n, labels = field.unary.shape
    diversity = DIVERSITIES[name].make(n)
    every = reference.all_labelings(n, labels)
    every = every[rng.permutation(len(every))[:200]]
    every = every[np.isfinite(field.energy(every))]
    for m in (0, 1, 3):
        earlier = every[:m]
        wanted = field.energy(every) - [diversity.gain(y, earlier, labels) for y in every]
        offset = diversity.augment(field, earlier).energy(every) - wanted
        assert np.ptp(offset) < 1e-9


def test_steps_without_a_potential():
    field = sw.fields.Field(np.zeros((3, 2)))
    rewards = d.TransitionDiversity([[0, 1]], "sqrt", 1.0, parsimony=0.5)
    with pytest.raises(ValueError, match=r"parsimony must be at least h\(1\) - h\(0\) = 1"):
        rewards.augment(field, np.zeros((0, 3), int))
    with pytest.raises(ValueError, match="groups must be of labels, and of one label each unless"):
        d.GroupCoverage([[0, 1]], parsimony=0.0).augment(field, np.zeros((0, 3), int))
    with pytest.raises(ValueError, match="BallCoverage has no potential"):
        d.BallCoverage(1.0, 1).augment(field, np.zeros((1, 3), int))


# -------------------------------------------------------------------------------------------- balls


@pytest.mark.parametrize(("n", "labels"), [(0, 2), (1, 1), (4, 1), (5, 2), (4, 3), (3, 4)])
def test_ball_intersections(n, labels):
    every = reference.all_labelings(n, labels)
    far = (every[:, None] != every[None]).sum(axis=2)
    for radius in range(n + 2):
        counts = ball_intersections(n, labels, radius)
        assert len(counts) == n + 1
        for y in range(len(every)):
            both = np.count_nonzero((far[0] <= radius) & (far[y] <= radius))
            assert counts[far[0, y]] == both


def test_large_balls_are_counted_too():
    counts = ball_intersections(68_160, 2, 12)
    assert len(counts) == 68_161
    assert all(a >= b for a, b in pairwise(counts[:31]))
    assert counts[24] > 0 == counts[25]


@names
@given(seed=st.integers(0, 2**32 - 1))
def test_gains_of_all_labellings_and_what_encloses_them(name, seed):
    rng = np.random.default_rng(seed)
    n, labels = SPACES[seed % 2]
    diversity = DIVERSITIES[name].make(n)
    items = rng.integers(0, labels, (rng.integers(0, 5), n))
    every = reference.all_labelings(n, labels)
    gains = diversity._gains_of_all(items, labels)
    np.testing.assert_allclose(gains, [diversity.gain(y, items, labels) for y in every], atol=1e-12)
    lower, upper, more = diversity._around(items, labels)
    least = np.array([lower.gain(y, items, labels) for y in every])
    most = np.array([upper.gain(y, items, labels) for y in every])
    assert (gains >= least - 1e-12).all()
    assert (gains <= most + more + 1e-12).all()


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_a_ball_is_counted_as_all_labellings_are(seed, radius):
    rng = np.random.default_rng(seed)
    items, y = rng.integers(0, 3, (rng.integers(0, 4), 4)), rng.integers(0, 3, 4)
    ball = d.BallCoverage(2.0, radius)
    expected = ball.gain(y, items, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("setwise.diversities._balls.can_list_all", lambda n, n_labels: False)
        assert ball.gain(y, items, 3) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_equation_10_clamped(seed, radius):
    """The best labelling for the gain max(0, d) is the best for d, or the best for none."""
    rng = np.random.default_rng(seed)
    items, bound = rng.integers(0, 2, (3, 4)), d.BallCoverageBound(2.0, radius)
    every = reference.all_labelings(4, 2)
    energies = rng.normal(size=len(every))
    gains = np.array([bound.gain(y, items, 2) for y in every])
    least = (energies - np.maximum(gains, 0.0)).min()
    assert least == min(energies.min(), (energies - gains).min())


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_equation_10_is_a_lower_bound(seed, radius):
    """Equal for one earlier item, and where balls meet in pairs at most."""
    rng = np.random.default_rng(seed)
    items = rng.integers(0, 3, (rng.integers(0, 4), 4))
    y = rng.integers(0, 3, 4)
    exact = d.BallCoverage(2.0, radius).gain(y, items, 3)
    bound = d.BallCoverageBound(2.0, radius).gain(y, items, 3)
    assert bound <= exact + 1e-12
    if len(items) <= 1:
        assert bound == pytest.approx(exact, abs=1e-12)


def test_theorem_lemma_1():
    """A sample of M out of N items has an M / N part of the best value, on average."""
    wanted = d.GroupCoverage([[0]], "min1", 1.0, parsimony=0.0)  # one item of N has it
    n_items, m = 7, 3
    items = np.arange(n_items)[:, None]
    values = [wanted.value(items[list(s)], n_items) for s in combinations(range(n_items), m)]
    assert max(values) == 1.0
    assert np.mean(values) == pytest.approx(m / n_items)
    assert wanted.is_monotone
    assert wanted.is_submodular


# --------------------------------------------------------------------------------------- operations


def test_sums_and_multiples():
    ball, best = d.HammingBall(2.0, 0.5), d.DivMBest(1.0)
    items, y = [[0, 0, 1], [1, 1, 1]], [0, 1, 1]
    both = 0.5 * ball + best * 3.0 + ball
    assert len(both.terms) == 3
    assert both.gain(y, items) == pytest.approx(1.5 * ball.gain(y, items) + 3 * best.gain(y, items))
    twice = 2.0 * both
    assert twice.gain(y, items) == pytest.approx(2 * both.gain(y, items))
    assert both.is_submodular is None
    assert (ball + ball).is_submodular is True
    for entry in DIVERSITIES.values():
        diversity = entry.make(3)
        tripled = 3.0 * diversity
        assert tripled.gain(y, items, 2) == pytest.approx(3 * diversity.gain(y, items, 2))
        assert type(tripled) is type(diversity)


def test_nothing_is_no_diversity():
    nothing = 0.0 * d.DivMBest(1.0)
    assert nothing.is_submodular
    assert nothing.gain([0, 1], [[1, 0]]) == 0.0
    assert (0.0 * d.HammingBall(1.0, 1.0)).is_monotone


@names
def test_they_never_change_and_can_be_stored(name):
    diversity = DIVERSITIES[name].make(3)
    items = [[0, 1, 1], [1, 1, 0]]
    with pytest.raises(AttributeError, match="is immutable"):
        diversity.weight = 3.0
    again = pickle.loads(pickle.dumps(diversity))
    assert again.value(items, 2) == diversity.value(items, 2)
    assert repr(again) == repr(diversity)


def test_concatenated_shares():
    parts = [d.DivMBest(1.0), d.HammingBall(1.0, 1.0), d.LabelDiversity()]
    assert d.Concatenated(parts).shares_of(6) == [2, 2, 1]
    assert d.Concatenated(parts).shares_of(1) == [0, 0, 0]
    assert d.Concatenated(parts, [0, 4, 1]).shares_of(6) == [0, 4, 1]
    assert "DivMBest" in repr(d.Concatenated(parts, [0, 4, 1]))


# ---------------------------------------------------------------------------------------- bad input


def convex(counts):
    return counts**2


def falling(counts):
    return -counts


def late(counts):
    """Concave at first, but not as far as lists go."""
    return np.where(counts < 4, np.sqrt(counts), counts)


FIELD = sw.fields.Field(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: d.DivMBest(-1.0), ValueError, "weight must not be negative, got -1"),
        (lambda: d.DivMBest("1"), TypeError, "weight must be a real number, got str"),
        (lambda: d.HammingBall(1.0, np.nan), ValueError, "gamma must be finite, got nan"),
        (lambda: d.HammingBall(1.0, -0.1), ValueError, "gamma must not be negative"),
        (lambda: d.BallCoverage(1.0, 1.5), TypeError, "radius must be an integer, got float"),
        (lambda: d.BallCoverageBound(1.0, -1), ValueError, "radius must be at least 0, got -1"),
        (
            lambda: d.BallCoverage(1.0, 9).value(np.zeros((1, 30), int), 2),
            ValueError,
            r"counts at most 1048576 labellings, got 2\^30",
        ),
        (lambda: d.LabelDiversity("min"), ValueError, "h must be one of 'min1', 'sqrt', 'log1p'"),
        (lambda: d.LabelDiversity(3), TypeError, "h must be a string, got int"),
        (
            lambda: d.LabelDiversity(convex),
            ValueError,
            "h must be concave, got an upward bend at 1",
        ),
        (lambda: d.LabelDiversity(falling), ValueError, "h must be increasing, got a fall from 0"),
        (
            lambda: d.LabelDiversity(late).value(np.zeros((6, 2), int)),
            ValueError,
            "h must be concave, got an upward bend at 3",
        ),
        (lambda: d.LabelDiversity(parsimony=-1.0), ValueError, "parsimony must not be negative"),
        (lambda: d.LabelDiversity(background=-1), ValueError, "background must be at least 0"),
        (lambda: d.GroupCoverage([[]]), ValueError, "groups must each hold at least one label"),
        (
            lambda: d.GroupCoverage(3),
            TypeError,
            "groups must be a sequence of lists of labels, got int",
        ),
        (lambda: d.GroupCoverage([[0, -1]]), ValueError, "groups must lie between 0"),
        (lambda: d.TransitionDiversity([[0, 0]]), ValueError, "edges must"),
        (
            lambda: d.TransitionDiversity([[0, 9]]).value([[0, 1]]),
            ValueError,
            "edges must",
        ),
        (lambda: d.DivMBest(1.0) + 3, TypeError, "unsupported operand"),
        (lambda: -1.0 * d.DivMBest(1.0), ValueError, "scale must not be negative"),
        (lambda: CombinedDiversity([]), ValueError, "terms must hold at least one diversity"),
        (lambda: CombinedDiversity([3]), TypeError, "terms must be diversities, got int"),
        (lambda: CombinedDiversity(3), TypeError, "terms must be a sequence of diversities"),
        (lambda: d.Concatenated([]), ValueError, "parts must hold at least one diversity"),
        (lambda: d.Concatenated([3]), TypeError, "parts must be diversities, got int"),
        (lambda: d.Concatenated(3), TypeError, "parts must be a sequence of diversities"),
        (
            lambda: d.Concatenated([d.DivMBest(1.0)], [1, 2]),
            ValueError,
            "shares must have an entry for each of the 1 parts, got 2",
        ),
        (
            lambda: d.Concatenated([d.DivMBest(1.0)], [3]).shares_of(6),
            ValueError,
            "shares must sum to m - 1 = 5, got 3",
        ),
        (lambda: d.DivMBest(1.0).value([0, 1]), ValueError, r"labelings must have shape \(m, N\)"),
        (lambda: d.DivMBest(1.0).value([[0.5]]), TypeError, "labelings must hold integers"),
        (
            lambda: d.DivMBest(1.0).value([[0, 3]], n_labels=2),
            ValueError,
            "labelings must lie between 0 and 1, got 3",
        ),
        (lambda: d.DivMBest(1.0).gain([[0]], []), ValueError, r"labels must have shape \(N,\)"),
        (
            lambda: d.DivMBest(1.0).gain([0, 1], [[0]]),
            ValueError,
            r"labelings must have shape \(m, 2\), got \(1, 1\)",
        ),
        (lambda: d.DivMBest(1.0).augment(3, [[0]]), TypeError, "field must be a Field, got int"),
        (
            lambda: d.DivMBest(1.0).augment(FIELD, [[0]]),
            ValueError,
            r"labelings must have shape \(m, 3\), got \(1, 1\)",
        ),
        (lambda: ball_intersections(-1, 2, 1), ValueError, "n must be at least 0, got -1"),
    ],
)
def test_bad_input(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
