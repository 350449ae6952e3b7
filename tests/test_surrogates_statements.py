"""Surrogates: whether what they say of themselves (convex, extension, upper bound, exact) is true.

Of every pair of a loss in LOSSES and a surrogate in SURROGATES, and of any table of quarters.
"""

import warnings

import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import numbers, submodular_functions
from surrogate_registry import (
    SURROGATES,
    TOLERANCE,
    Evaluation,
    assert_subgradients,
    each_pair,
    evaluation_of,
    evaluations,
    score_rows,
    surrogate_of,
    truths,
)

from setwise import losses
from setwise.functions import Modular, Table, decompose
from setwise.surrogates import DecomposedHinge, LovaszHinge

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
    margins = np.full((p, p), 1e5)
    np.fill_diagonal(margins, -1e-3)
    scores = margins * np.where(one.positive, 1.0, -1.0)
    values, gradients = surrogate.value_and_gradient(np.tile(one.positive, (p, 1)), scores)
    return Evaluation(one.positive, scores, values, gradients, values, one.losses)


def test_costs_that_differ_by_rounding_sink_no_sum():
    """max(0, 0.3 s) of the larger s is an upper bound, whatever 0.1 + 0.2 is."""
    surrogate = LovaszHinge(losses.SetLoss(Table([0.0, 0.3, 0.3, 0.1 + 0.2])), case=2)
    assert surrogate.properties([0, 0]).is_upper_bound is None


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
