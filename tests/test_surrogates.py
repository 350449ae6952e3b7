"""Surrogates: their definitions by brute force, gradients, and whether what they say is true.

Every law runs over all pairs of a loss in LOSSES and a surrogate in SURROGATES.
"""

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from loss_registry import LOSSES
from strategies import numbers, submodular_functions

from setwise import functions, losses
from setwise.functions import Cardinality, Cut, Modular, Table, decompose
from setwise.surrogates import (
    DecomposedHinge,
    LovaszHinge,
    MarginRescaling,
    SlackRescaling,
    Surrogate,
)
from setwise.surrogates._maximizers import Rule, most_violated

# Values below a hundred from some dozens of operations.
TOLERANCE = 1e-10


# ----------------------------------------------------------------------------------- the registries


def lovasz(values, margins, part=None):
    case = 1 if reference.is_increasing(values) else 2
    return reference.lovasz_hinge(values, margins, case)


def margin_extension(values, margins, part=None):
    """The scale is 2 / (largest gain); a loss that nowhere rises has any scale, and its maximum."""
    gain = max(reference.largest_gain(values), 0.0)
    sums = margins @ reference.all_masks(margins.shape[1]).T
    return (values - gain * sums).max(axis=1)


def decomposed(values, margins, part):
    f, g = part
    return lovasz(f, margins) + reference.slack_rescaling(g, margins)


@dataclass(frozen=True)
class Kind:
    make: Callable[[losses.Loss], Surrogate]
    definition: Callable[..., np.ndarray]
    """Of the table of the loss, the margins g y (k, p) and, for B_D, the tables of f and g."""
    needs: str = "nothing"


SURROGATES = {
    "lovasz": Kind(LovaszHinge, lovasz, "submodular"),
    "lovasz case 1": Kind(
        lambda loss: LovaszHinge(loss, case=1),
        lambda values, margins, part: reference.lovasz_hinge(values, margins, 1),
        "increasing submodular",
    ),
    "lovasz case 2": Kind(
        lambda loss: LovaszHinge(loss, case=2),
        lambda values, margins, part: reference.lovasz_hinge(values, margins, 2),
        "submodular",
    ),
    "margin": Kind(
        MarginRescaling,
        lambda values, margins, part: reference.margin_rescaling(values, margins),
    ),
    "margin scaled": Kind(
        lambda loss: MarginRescaling(loss, scale=0.3),
        lambda values, margins, part: reference.margin_rescaling(values, margins, 0.3),
    ),
    "margin extension": Kind(
        lambda loss: MarginRescaling(loss, scale="extension"), margin_extension, "increasing"
    ),
    "slack": Kind(
        SlackRescaling,
        lambda values, margins, part: reference.slack_rescaling(values, margins),
        "non-negative",
    ),
    "decomposed": Kind(DecomposedHinge, decomposed),
}


@cache
def truths(loss_name: str) -> list[np.ndarray]:
    """Every ground truth of up to three elements, and some of four."""
    everything = list(LOSSES[loss_name].truths())
    return [y for k, y in enumerate(everything) if len(y) < 4 or k % 5 == 0]


@cache
def facts(loss_name: str) -> dict[str, bool]:
    """What the definition of a loss is for every truth of the sizes it is tested on."""
    tables = [LOSSES[loss_name].table(positive) for positive in LOSSES[loss_name].truths()]
    return {
        "nothing": True,
        "submodular": all(map(reference.is_submodular, tables)),
        "increasing": all(map(reference.is_increasing, tables)),
        "non-negative": all(table.min() >= -1e-12 for table in tables),
    }


def suits(loss_name: str, kind_name: str) -> bool:
    return all(facts(loss_name)[need] for need in SURROGATES[kind_name].needs.split())


PAIRS = [(loss, kind) for loss in LOSSES for kind in SURROGATES if suits(loss, kind)]
each_pair = pytest.mark.parametrize(
    ("loss_name", "kind_name"), PAIRS, ids=[f"{kind}: {loss}" for loss, kind in PAIRS]
)


def score_rows(positive: np.ndarray) -> np.ndarray:
    """Ties, zeros, the corners of the unit cube of s = 1 - g y, scores near it and far from it."""
    p = len(positive)
    rng = np.random.default_rng(p)
    corners = 1.0 - reference.all_masks(p)
    rows = [
        corners * np.where(positive, 1.0, -1.0),
        rng.normal(scale=1.5, size=(10, p)),
        rng.integers(-2, 3, size=(8, p)) / 2,
        rng.normal(scale=30.0, size=(4, p)),
        rng.random((4, p)) * np.where(positive, 1.0, -1.0),  # inside the cube
    ]
    return np.concatenate(rows)


@dataclass(frozen=True)
class Evaluation:
    """A surrogate of one truth at many scores, beside its definition."""

    positive: np.ndarray
    scores: np.ndarray
    values: np.ndarray
    gradients: np.ndarray
    defined: np.ndarray
    losses: np.ndarray
    """The loss of every set of mistakes."""

    @property
    def corners(self) -> slice:
        return slice(0, len(self.losses))

    def loss_of_signs(self, zero_is_positive: bool) -> np.ndarray:
        predicted = self.scores >= 0 if zero_is_positive else self.scores > 0
        mistakes = predicted != self.positive
        return self.losses[mistakes @ np.left_shift(1, np.arange(len(self.positive)))]


@cache
def surrogate_of(loss_name: str, kind_name: str) -> Surrogate:
    return SURROGATES[kind_name].make(LOSSES[loss_name].loss)


@cache
def evaluations(loss_name: str, kind_name: str) -> list[Evaluation]:
    listed, surrogate = LOSSES[loss_name], surrogate_of(loss_name, kind_name)
    return [
        evaluation_of(surrogate, kind_name, listed.table(positive), positive)
        for positive in truths(loss_name)
    ]


def evaluation_of(surrogate, kind_name, table, positive, scores=None):
    scores = score_rows(positive) if scores is None else scores
    margins = scores * np.where(positive, 1.0, -1.0)
    part = None
    if kind_name == "decomposed":
        function = surrogate.loss.set_function(positive)
        part = [reference.all_values(half) for half in decompose(function)]
    defined = SURROGATES[kind_name].definition(table, margins, part)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the submodular part of")  # has a test of its own
        values, gradients = surrogate.value_and_gradient(
            np.tile(positive, (len(scores), 1)), scores
        )
    return Evaluation(positive, scores, values, gradients, defined, table)


# -------------------------------------------------------------------------------- values, gradients


@each_pair
def test_value_is_the_definition(loss_name, kind_name):
    for one in evaluations(loss_name, kind_name):
        np.testing.assert_allclose(one.values, one.defined, rtol=1e-12, atol=TOLERANCE)


@each_pair
def test_subgradient_inequality(loss_name, kind_name):
    """v(h) >= v(g) + <gradient at g, h - g> for all pairs of scores g, h."""
    for one in evaluations(loss_name, kind_name):
        assert_subgradients(one)


def assert_subgradients(one):
    steps = one.scores[None, :, :] - one.scores[:, None, :]
    lines = one.values[:, None] + np.einsum("gi,ghi->gh", one.gradients, steps)
    # Lines over distances of a hundred and slopes of ten.
    assert np.all(one.values[None, :] >= lines - 1e-9)


@each_pair
def test_gradient_is_the_finite_difference_away_from_kinks(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    rng = np.random.default_rng(7)
    step, smooth, all_points = 1e-5, 0, 0
    for positive in truths(loss_name):
        p = len(positive)
        if p == 0:
            continue
        scores = rng.normal(size=(2, p))
        shifts = step * np.concatenate([np.zeros((1, p)), np.eye(p), -np.eye(p)])
        around = (scores[:, None, :] + shifts).reshape(-1, p)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the submodular part of")
            values, gradients = surrogate.value_and_gradient(
                np.tile(positive, (len(around), 1)), around
            )
        values = values.reshape(2, 2 * p + 1)
        up, down = values[:, 1 : p + 1] - values[:, :1], values[:, :1] - values[:, p + 1 :]
        # Between kinks a surrogate is linear: both differences are one slope, up to rounding.
        linear = np.abs(up - down) < 1e-11
        slopes = gradients.reshape(2, 2 * p + 1, p)[:, 0]
        # Values below 100 carry 1e-14, divided by the step of 1e-5.
        np.testing.assert_allclose(slopes[linear], (up / step)[linear], atol=1e-6)
        smooth, all_points = smooth + linear.sum(), all_points + linear.size
    assert smooth >= 0.9 * all_points, "kinks are rare"


@each_pair
def test_float32_is_float64_rounded_once(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    for one in evaluations(loss_name, kind_name)[-4:]:
        y = np.tile(one.positive, (len(one.scores), 1))
        single = one.scores.astype(np.float32)
        values, gradients = surrogate.value_and_gradient(y, single)
        expected, slopes = surrogate.value_and_gradient(y, single.astype(np.float64))
        assert gradients.dtype == np.float32
        assert values.dtype == slopes.dtype == np.float64
        # Two terms of B_D and a factor before the loss are three roundings to float32.
        np.testing.assert_allclose(gradients, slopes, rtol=4e-7, atol=4e-7)
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=TOLERANCE)


@each_pair
def test_batch_equals_rows_equals_ragged(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    drawn = [one for one in evaluations(loss_name, kind_name) for _ in range(2)]
    rng = np.random.default_rng(1)
    rows = rng.integers(len(drawn[0].scores), size=len(drawn))
    chosen = [
        (one.positive, one.scores[k], one.values[k], one.gradients[k])
        for one, k in zip(drawn, rows, strict=True)
    ]
    rng.shuffle(chosen)
    y = np.concatenate([one[0] for one in chosen])
    scores = np.concatenate([one[1] for one in chosen])
    offsets = np.cumsum([0, *(len(one[0]) for one in chosen)])
    values, gradients = surrogate.value_and_gradient(y, scores, offsets=offsets)
    # Sums over a batch may run in another order (BLAS) than over one row.
    close = {"rtol": 1e-13, "atol": 1e-12}
    np.testing.assert_allclose(values, [one[2] for one in chosen], **close)
    np.testing.assert_allclose(gradients, np.concatenate([one[3] for one in chosen]), **close)
    for positive, row, value, gradient in chosen[:8]:
        single, slope = surrogate.value_and_gradient(positive, row)
        assert isinstance(single, float)
        assert single == pytest.approx(value, rel=1e-13, abs=1e-12)
        np.testing.assert_allclose(slope, gradient, **close)
        assert surrogate(positive, row) == single


@pytest.mark.parametrize("kind_name", SURROGATES)
def test_encodings_and_types_of_scores(kind_name):
    surrogate = SURROGATES[kind_name].make(losses.Jaccard())
    y, scores = np.array([True, False, True]), np.array([1, -2, 0])
    expected = surrogate.value_and_gradient(y, scores.astype(float))
    for labels in (y, y.astype(int), np.where(y, 1, -1), y.tolist(), y.astype(np.float32)):
        for numbers_ in (scores, scores.tolist(), scores.astype(np.int8), scores.astype("f2")):
            value, gradient = surrogate.value_and_gradient(labels, numbers_)
            assert value == expected[0]
            assert gradient.dtype == np.float64
            np.testing.assert_array_equal(gradient, expected[1])


@pytest.mark.parametrize("kind_name", SURROGATES)
def test_rows_of_another_memory_order(kind_name):
    surrogate = SURROGATES[kind_name].make(losses.Jaccard())
    rng = np.random.default_rng(0)
    y, scores = rng.random((6, 5)) < 0.5, rng.normal(size=(6, 5))
    expected = surrogate.value_and_gradient(y, scores)
    for got in (
        surrogate.value_and_gradient(np.asfortranarray(y), np.asfortranarray(scores)),
        surrogate.value_and_gradient(np.repeat(y, 2, axis=1)[:, ::2], scores),
        surrogate.value_and_gradient(y, np.repeat(scores, 2, axis=0)[::2]),
    ):
        np.testing.assert_array_equal(got[0], expected[0])
        np.testing.assert_array_equal(got[1], expected[1])


@each_pair
def test_no_set_and_no_element(loss_name, kind_name):
    surrogate, listed = surrogate_of(loss_name, kind_name), LOSSES[loss_name]
    p = listed.sizes[-1]
    values, gradients = surrogate.value_and_gradient(np.zeros((0, p)), np.zeros((0, p)))
    assert values.shape == (0,)
    assert gradients.shape == (0, p)
    if 0 in listed.sizes:
        assert surrogate([], []) == 0.0


# ---------------------------------------------------------------------------------- true statements

STATEMENTS = ("is_convex", "is_extension", "is_upper_bound")


def violates(statement: str, one: Evaluation, slack: float) -> bool:
    """Whether the values at hand contradict a statement by more than ``slack``."""
    if statement == "is_extension":
        return bool(np.any(np.abs(one.values[one.corners] - one.losses) > slack))
    if statement == "is_upper_bound":
        signs = [one.loss_of_signs(zero_is_positive) for zero_is_positive in (False, True)]
        return any(bool(np.any(one.values < loss - slack)) for loss in signs)
    raise AssertionError(statement)


def is_convex_on_segments(surrogate, one: Evaluation, slack: float) -> bool:
    """v at the middle of two scores is at most the mean of v at the ends, for many pairs."""
    first, second = np.triu_indices(len(one.scores), 1)
    first, second = first[::3], second[::3]
    middles = (one.scores[first] + one.scores[second]) / 2
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the submodular part of")
        values = surrogate(np.tile(one.positive, (len(middles), 1)), middles)
    return bool(np.all(values <= (one.values[first] + one.values[second]) / 2 + slack))


@each_pair
def test_what_is_said_of_every_truth_is_said_of_each(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    for statement in (*STATEMENTS, "is_exact"):
        said = getattr(surrogate, statement)
        assert said in (True, None), "True only if so for every y and p, else None"
        for positive in truths(loss_name):
            here = getattr(surrogate.properties(positive), statement)
            assert here in (True, False, None)
            if said:
                assert here is True


@each_pair
def test_statements_are_true(loss_name, kind_name):
    """True: no scores contradict it; False: some scores do."""
    surrogate = surrogate_of(loss_name, kind_name)
    for one in evaluations(loss_name, kind_name):
        assert_statements(surrogate, one)


def assert_statements(surrogate, one):
    said = surrogate.properties(one.positive)
    assert said.is_exact is not False, "small sets can be enumerated"
    for statement in ("is_extension", "is_upper_bound"):
        answer = getattr(said, statement)
        if answer is True:
            assert not violates(statement, one, TOLERANCE), statement
        if answer is False:
            witness = one if statement == "is_extension" else far_evaluation(surrogate, one)
            assert violates(statement, witness, TOLERANCE), statement
    if said.is_convex is True:
        assert is_convex_on_segments(surrogate, one, TOLERANCE)
    if said.is_convex is False:
        assert not is_convex_on_segments(surrogate, one, TOLERANCE)


def far_evaluation(surrogate, one):
    """One element just wrong, all others right by far: where a thresholded sum sinks below zero."""
    p = len(one.positive)
    margins = np.full((p, p), 1000.0)
    np.fill_diagonal(margins, -1e-3)
    scores = margins * np.where(one.positive, 1.0, -1.0)
    values, gradients = surrogate.value_and_gradient(np.tile(one.positive, (p, 1)), scores)
    return Evaluation(one.positive, scores, values, gradients, values, one.losses)


@st.composite
def quarter_tables(draw, n):
    """Differences of quarters are exact: a statement that fails, fails by a quarter or more."""
    values = draw(st.lists(st.integers(-2, 8), min_size=1 << n, max_size=1 << n))
    return np.array([0, *values[1:]]) / 4.0


@pytest.mark.parametrize("kind_name", ["margin", "margin scaled", "margin extension", "slack"])
@given(st.data())
def test_rescalings_of_any_table(kind_name, data):
    p = data.draw(st.integers(1, 3))
    table = data.draw(quarter_tables(p))
    assume(kind_name != "slack" or table.min() >= 0)
    assume(kind_name != "margin extension" or reference.is_increasing(table))
    assert_all_laws(kind_name, losses.SetLoss(Table(table)), table, p, data)


@given(st.data())
def test_decomposed_hinge_of_any_table(data):
    p = data.draw(st.integers(1, 3))
    table = data.draw(quarter_tables(p))
    assert_all_laws("decomposed", losses.SetLoss(Table(table)), table, p, data)


@pytest.mark.parametrize("kind_name", ["lovasz", "lovasz case 1", "lovasz case 2"])
@given(st.data())
def test_lovasz_hinge_of_any_submodular_table(kind_name, data):
    p = data.draw(st.integers(1, 3))
    table = data.draw(quarter_tables(p))
    bend = np.abs(table).max()
    # Minus a multiple of a strictly convex function of the size: submodular, and still in quarters.
    sizes = np.bitwise_count(np.arange(1 << p)).astype(float)
    table = table - 4 * bend * sizes * (sizes - 1) / 2
    if data.draw(st.booleans()):  # increasing, by a modular function that rises enough
        table = table + 4 * bend * p * sizes
    loss = losses.SetLoss(Table(table))
    if kind_name == "lovasz case 1" and not reference.is_increasing(table):
        one = evaluation_of(LovaszHinge(loss, case=1), kind_name, table, np.arange(p) > 0)
        assert LovaszHinge(loss, case=1).properties(one.positive).is_convex is False
        assert_statements(LovaszHinge(loss, case=1), one)
        return
    assert_all_laws(kind_name, loss, table, p, data)


def assert_all_laws(kind_name, loss, table, p, data):
    positive = np.array(data.draw(st.lists(st.booleans(), min_size=p, max_size=p)), bool)
    surrogate = SURROGATES[kind_name].make(loss)
    drawn = data.draw(st.lists(numbers(), min_size=4 * p, max_size=4 * p))
    scores = np.concatenate([score_rows(positive), np.reshape(drawn, (4, p))])
    one = evaluation_of(surrogate, kind_name, table, positive, scores)
    np.testing.assert_allclose(one.values, one.defined, rtol=1e-11, atol=1e-9)
    assert_statements(surrogate, one)
    assert_subgradients(one)


@pytest.mark.parametrize("case", [1, 2])
@given(st.data())
def test_lovasz_hinge_of_sums_of_submodular_functions(case, data):
    """Through the gains of any set function."""
    function = data.draw(submodular_functions(data.draw(st.integers(1, 4))))
    positive = data.draw(st.lists(st.booleans(), min_size=function.n, max_size=function.n))
    table = reference.all_values(function) - function(np.zeros(function.n, bool))
    if case == 1 and not reference.is_increasing(table):
        return
    surrogate = LovaszHinge(losses.SetLoss(function), case=case)
    one = evaluation_of(surrogate, f"lovasz case {case}", table, np.array(positive, bool))
    np.testing.assert_allclose(one.values, one.defined, rtol=1e-11, atol=1e-9)
    assert_subgradients(one)
    assert_statements(surrogate, one)


def test_case_1_is_taken_for_an_increasing_sum_of_terms_that_are_not():
    """Definition 6 asks whether l increases, not whether each of its terms does."""
    function = Modular([2.0, 2.0]) + Modular([-1.0, 0.5])
    surrogate = LovaszHinge(losses.SetLoss(function))
    assert surrogate([1, 1], [-1.0, 11.0]) == pytest.approx(2.0, abs=TOLERANCE)


@pytest.mark.parametrize("p", [6, 12])
def test_decomposed_hinge_takes_case_1_for_an_increasing_sum(p):
    """f of Dice falls somewhere at m = 2 of p; with a Hamming loss beside it, it does not."""
    loss = losses.Dice() + losses.Hamming()
    positive = np.arange(p) < 2
    f, g = (part(reference.all_masks(p)) for part in decompose(loss.set_function(positive)))
    assert Table(f).is_increasing
    assert not decompose(losses.Dice().set_function(positive)).f.is_increasing
    surrogate = DecomposedHinge(loss)
    for scores in np.random.default_rng(0).normal(scale=3.0, size=(10, p)):
        margins = scores * np.where(positive, 1.0, -1.0)
        order = np.argsort(margins)
        hinge = np.maximum(1 - margins[order], 0.0) @ reference.gains(f, order)
        slack = reference.slack_rescaling(g, margins[None])[0]
        assert surrogate(positive, scores) == pytest.approx(hinge + slack, abs=TOLERANCE)


# ---------------------------------------------------------------------------------- what is refused


# A callable that declares nothing may be anything.
KNOWN = [name for name in LOSSES if name != "pairs of positives"]


@pytest.mark.parametrize("loss_name", [name for name in KNOWN if not facts(name)["submodular"]])
def test_lovasz_hinge_refuses_what_is_known_not_to_be_submodular(loss_name):
    listed = LOSSES[loss_name]
    worst = next(y for y in listed.truths() if not reference.is_submodular(listed.table(y)))
    with pytest.raises(ValueError, match=r"must be submodular .*: use DecomposedHinge"):
        LovaszHinge(listed.loss).value_and_gradient(worst, np.zeros(len(worst)))


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_lovasz_hinge_refuses_a_table_whatever_its_value_on_nothing(shift):
    loss = losses.SetLoss(Table(np.array([0.0, 1.0, 1.0, 3.0]) + shift))
    with pytest.raises(ValueError, match="must be submodular for LovaszHinge"):
        LovaszHinge(loss)([1, 1], [0.0, 0.0])


@pytest.mark.parametrize("loss_name", [n for n in LOSSES if not facts(n)["non-negative"]])
def test_slack_rescaling_refuses_negative_losses(loss_name):
    listed = LOSSES[loss_name]
    worst = next(y for y in listed.truths() if listed.table(y).min() < 0)
    surrogate = SlackRescaling(listed.loss)
    with pytest.raises(ValueError, match=r"must not be negative for SlackRescaling, got .* is"):
        surrogate.value_and_gradient(worst, np.zeros(len(worst)))


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: LovaszHinge("overlap"), ValueError, "loss must be one of"),
        (lambda: LovaszHinge(3), TypeError, "loss must be a Loss or a name, got int"),
        (lambda: LovaszHinge("jaccard", case=3), ValueError, "case must be 'auto', 1 or 2, got 3"),
        (lambda: LovaszHinge("dice"), ValueError, r"must be submodular .* got Dice\(\): use Decom"),
        (lambda: MarginRescaling("dice", scale=0.0), ValueError, "scale must be positive, got 0"),
        (lambda: MarginRescaling("dice", scale="best"), ValueError, "or 'extension', got 'best'"),
        (lambda: MarginRescaling("dice", scale=None), TypeError, "scale must be a real number"),
        (lambda: MarginRescaling("dice", maximizer="x"), ValueError, "maximizer must be 'auto' or"),
        (lambda: SlackRescaling("dice", maximizer=1), ValueError, "maximizer must be 'auto' or"),
    ],
)
def test_a_surrogate_that_cannot_be(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_a_scale_that_cannot_be_found():
    loss = losses.SetLoss(functions.Oracle(lambda mask: float(mask.any()), 17))
    surrogate = MarginRescaling(loss, scale="extension")
    with pytest.raises(ValueError, match=r"scale must be a number for .* at 17 elements"):
        surrogate(np.ones(17), np.zeros(17))


# ----------------------------------------------------------------------- exact maximisers, larger p

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
    rule = Rule(slack=False, weight=2.0)
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


# --------------------------------------------------------------------------------- scales, warnings


@pytest.mark.parametrize("loss_name", [name for name in LOSSES if facts(name)["increasing"]])
def test_the_extension_scale_is_the_largest(loss_name):
    """Proposition 2 as the notes correct it: at a slightly larger scale it fails at a corner."""
    listed = LOSSES[loss_name]
    for positive in listed.truths():
        table, p = listed.table(positive), len(positive)
        scale = MarginRescaling(listed.loss).extension_scale(positive)
        if not table.any():
            assert scale == np.inf
            continue
        assert scale == pytest.approx(2 / reference.largest_gain(table), rel=1e-12)
        y = np.tile(positive, (1 << p, 1))
        scores = (1.0 - reference.all_masks(p)) * np.where(positive, 1.0, -1.0)
        at_most = MarginRescaling(listed.loss, scale=scale)
        np.testing.assert_allclose(at_most(y, scores), table, atol=TOLERANCE)
        beyond = MarginRescaling(listed.loss, scale=1.01 * scale)
        assert np.max(beyond(y, scores) - table) > 1e-4 * table.max()
        # A callable that declares nothing is not known to be increasing.
        known = listed.loss.set_function(positive).is_increasing
        assert at_most.properties(positive).is_extension is (True if known else None)
        assert beyond.properties(positive).is_extension is (False if known else None)


@pytest.mark.parametrize(
    "loss",
    [
        0.5 * losses.FaceTrack(1),
        losses.FaceTrack(1) + losses.Hamming(),
        losses.FaceTrack(1) + losses.Hamming(np.linspace(0.1, 1.0, 20)),
    ],
    ids=repr,
)
def test_what_is_called_an_extension_has_a_value(loss):
    """At 20 elements, too many to enumerate: at the corner of all mistakes it is the loss."""
    surrogate, y = MarginRescaling(loss, scale="extension"), np.ones(20)
    if surrogate.properties(y).is_extension:
        assert surrogate(y, np.zeros(20)) == pytest.approx(loss(y, -y), abs=TOLERANCE)


@pytest.mark.parametrize("table", [[0.0, 1.0, 1.0, 0.4], [0.0, -1.0]])
def test_no_scale_makes_an_extension_of_a_loss_that_falls(table):
    loss = losses.SetLoss(Table(table))
    y = np.ones(loss.function.n)
    sentence = "scale must be a number for .*, which is not increasing, got 'extension'"
    with pytest.raises(ValueError, match=sentence):
        MarginRescaling(loss).extension_scale(y)
    with pytest.raises(ValueError, match=sentence):
        MarginRescaling(loss, scale="extension")(y, np.zeros(len(y)))


def test_the_extension_scale_of_jaccard_is_twice_the_positives():
    for m in (1, 3, 10):
        y = np.arange(20) < m
        assert MarginRescaling("jaccard").extension_scale(y) == pytest.approx(2 * m, rel=1e-14)


@pytest.mark.parametrize("loss_name", LOSSES)
def test_decomposed_hinge_warns_where_f_is_negative_and_names_the_loss(loss_name):
    listed = LOSSES[loss_name]
    surrogate = DecomposedHinge(listed.loss)
    for positive in truths(loss_name):
        f, _ = decompose(listed.loss.set_function(positive))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            DecomposedHinge(listed.loss)(positive, np.zeros(len(positive)))
        negative = bool(reference.all_values(f).min() < -1e-11)
        assert [warning.category for warning in caught] == [UserWarning] * negative
        assert all(repr(listed.loss) in str(warning.message) for warning in caught)
        assert surrogate.properties(positive).is_extension is not negative


def test_the_warning_comes_once_and_points_to_the_caller():
    surrogate = DecomposedHinge("face_track_3")
    with pytest.warns(UserWarning, match="submodular part of FaceTrack") as caught:
        surrogate(np.ones(9), np.zeros(9))
    assert caught[0].filename == __file__
    surrogate(np.ones(9), np.zeros(9))  # warnings are errors


# ----------------------------------------------------------------------------------------- the rest


@each_pair
def test_pickle_copies_and_repr(loss_name, kind_name):
    surrogate = surrogate_of(loss_name, kind_name)
    again = pickle.loads(pickle.dumps(surrogate))
    assert repr(again) == repr(surrogate)
    assert type(surrogate).__name__ in repr(surrogate)
    assert repr(surrogate.loss) in repr(surrogate)
    assert copy.deepcopy(surrogate) is surrogate
    with pytest.raises(AttributeError, match="immutable"):
        surrogate.loss = losses.Hamming()


def test_a_factor_before_the_loss_multiplies_the_surrogate():
    rng = np.random.default_rng(0)
    y, scores = rng.random((4, 6)) < 0.5, rng.normal(size=(4, 6))
    for kind in (LovaszHinge, SlackRescaling, DecomposedHinge):
        once = kind("jaccard").value_and_gradient(y, scores)
        thrice = kind(3.0 * losses.Jaccard()).value_and_gradient(y, scores)
        np.testing.assert_allclose(thrice[0], 3.0 * once[0], rtol=1e-14)
        np.testing.assert_allclose(thrice[1], 3.0 * once[1], rtol=1e-14)


def test_the_name_of_a_loss_stands_for_it():
    for kind in (LovaszHinge, MarginRescaling, SlackRescaling, DecomposedHinge):
        assert repr(kind("jaccard")) == repr(kind(losses.Jaccard()))


def test_cardinality_without_its_value_on_nothing():
    """A set function with F(empty) = 7: the loss is F - 7, whatever path it takes."""
    plain = losses.SetLoss(Cardinality([0.0, 2.0, 3.0]))
    shifted = losses.SetLoss(Cardinality([7.0, 9.0, 10.0]))
    y, scores = [1, -1], [0.3, 0.4]
    for kind in (LovaszHinge, MarginRescaling, SlackRescaling, DecomposedHinge):
        assert kind(shifted)(y, scores) == pytest.approx(kind(plain)(y, scores), abs=TOLERANCE)
