"""Bad input: one sentence that names the argument, what it was and what it must be.

A wrong type is a TypeError, a wrong value a ValueError, both before any work is done; the compiled
kernels refuse sizes that do not fit instead of reading or writing out of bounds.
"""

import numpy as np
import pytest

from setwise import _core
from setwise.functions import (
    Cardinality,
    ConcaveOfModular,
    Counts,
    Modular,
    Table,
    base_vertex,
    lovasz_extension,
)
from setwise.functions._families._compose import Sum
from setwise.losses import Dice, Hamming, Jaccard
from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling

F = Cardinality([0.0, 1.0, 1.5, 1.75])


def raises(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


# ---------------------------------------------------------------------------------------- functions


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: F([1, 0, 1]), TypeError, "mask must be boolean, got dtype int"),
        (
            lambda: F([True, False]),
            ValueError,
            r"mask must have shape \(3,\) or \(m, 3\), got \(2,",
        ),
        (lambda: F(np.zeros((2, 4), bool)), ValueError, r"mask must have shape .* got \(2, 4\)"),
        (lambda: F(True), ValueError, r"mask must have shape \(3,\) or \(m, 3\), got \(\)"),
        (lambda: F(np.zeros((1, 1, 3), bool)), ValueError, "mask must have shape"),
        (lambda: F.gains([0, 3]), ValueError, "order must lie between 0 and 2, got 3"),
        (lambda: F.gains([0, -1]), ValueError, "order must lie between 0 and 2, got -1"),
        (lambda: F.gains([0, 0]), ValueError, "order must hold distinct elements, got 0 more than"),
        (lambda: F.gains([0.0, 1.0]), TypeError, "order must hold integers, got dtype float64"),
        (lambda: F.gains([True, False]), TypeError, "order must hold integers, got dtype bool"),
        (lambda: F.gains([[0, 1]]), ValueError, r"order must be one-dimensional, got shape \(1, 2"),
        (lambda: F.gains([2**63 - 1]), ValueError, "order must lie between 0 and 2, got 92233720"),
        (lambda: F.restrict([3]), ValueError, "subset must lie between 0 and 2, got 3"),
        (lambda: F.restrict([True]), ValueError, r"subset must have shape \(3,\) when boolean"),
        (lambda: F + 1.0, TypeError, "unsupported operand"),
        (lambda: F * "2", TypeError, "scale must be a real number, got str"),
        (lambda: F * np.nan, ValueError, "scale must be finite, got nan"),
        (lambda: F + Modular([1.0]), ValueError, "terms must have one ground set, got 3 and 1"),
        (lambda: Sum([]), ValueError, "terms must hold at least one set function, got none"),
        (lambda: Sum([F], [1.0, 2.0]), ValueError, r"coefficients must have shape \(1\), got \(2,"),
        (lambda: Sum([F, 3]), TypeError, "terms must be set functions, got int"),
        (lambda: Cardinality([]), ValueError, r"values must hold n \+ 1 numbers, got none"),
        (lambda: Cardinality([0.0, np.nan]), ValueError, "values must be finite, got nan"),
        (lambda: Cardinality([[0.0]]), ValueError, r"values must have shape \(any\), got \(1, 1\)"),
        (lambda: Cardinality("abc"), TypeError, "values must hold real numbers, got dtype <U3"),
        (lambda: Cardinality([0, 1j]), TypeError, "values must hold real numbers, got dtype comp"),
        (lambda: Modular([np.inf]), ValueError, "weights must be finite, got inf"),
        (lambda: Modular([None]), TypeError, "weights must hold real numbers, got dtype object"),
        (lambda: Table([0.0, 1.0, 2.0]), ValueError, "a length that is a power of 2, got 3"),
        (lambda: Table([]), ValueError, "a length that is a power of 2, got 0"),
        (lambda: Counts(np.zeros((2, 2)), [True]), ValueError, r"formula must have shape \(2, 1\)"),
        (lambda: Counts(np.add, [1, 0]), TypeError, "positive must be boolean, got dtype int"),
        (lambda: Counts(np.add, [[True]]), ValueError, r"positive must have shape \(n,\), got"),
        (lambda: ConcaveOfModular(np.sqrt, [-1.0]), ValueError, "weights must not be negative"),
        (lambda: ConcaveOfModular("sqrt", [1.0]), TypeError, "concave must be a function, got str"),
        (lambda: base_vertex(F, [1.0]), ValueError, r"w must have shape \(3\), got \(1,\)"),
        (lambda: lovasz_extension(F, [1, np.nan, 0]), ValueError, "w must be finite, got nan"),
        (lambda: lovasz_extension(F, ["a"] * 3), TypeError, "w must hold real numbers, got dtype"),
    ],
)
def test_functions(call, error, sentence):
    raises(call, error, sentence)


def test_a_formula_of_counts_that_is_not_finite():
    function = Counts(lambda n, q: np.where(n > 0, np.inf, 0.0), [True, False])
    with pytest.raises(ValueError, match="formula must return finite numbers, got inf"):
        function([True, False])


# ------------------------------------------------------------------------------- losses, surrogates

# What both take: labels, and something of the same shape.
LABELS = [
    ([1, 2], ValueError, r"must hold labels in \{-1, \+1\} or \{0, 1\}, got 2"),
    ([-1, 0], ValueError, r"must hold labels in \{-1, \+1\} or in \{0, 1\}, got -1 and 0"),
    ([0.5, 1.0], ValueError, r"must hold labels in \{-1, \+1\} or \{0, 1\}, got 0.5"),
    ([np.nan, 1.0], ValueError, r"must hold labels in \{-1, \+1\} or \{0, 1\}, got nan"),
    ([np.inf, 1.0], ValueError, r"must hold labels in \{-1, \+1\} or \{0, 1\}, got inf"),
    (np.array([255, 1], np.uint8), ValueError, r"must hold labels in .* got 255"),
    (np.array([2**40, 1]), ValueError, r"must hold labels in .* got 1099511627776"),
    (["a", "b"], TypeError, r"must hold labels in \{-1, \+1\} or \{0, 1\}, got <U1"),
    ([1j, 1], TypeError, r"must hold labels in \{-1, \+1\} or \{0, 1\}, got complex128"),
    ([None, 1], TypeError, r"must hold labels in \{-1, \+1\} or \{0, 1\}, got object"),
    (np.zeros((1, 1, 2)), ValueError, r"must have shape \(p,\) or \(n, p\), got \(1, 1, 2\)"),
    (1, ValueError, r"must have shape \(p,\) or \(n, p\), got \(\)"),
]


@pytest.mark.parametrize(("labels", "error", "sentence"), LABELS)
def test_labels_of_losses(labels, error, sentence):
    other = np.ones(np.shape(labels))
    raises(lambda: Jaccard()(labels, other), error, f"y_true {sentence}")
    raises(lambda: Jaccard()(other, labels), error, "y_(pred|true) must")
    raises(lambda: Jaccard().set_function(labels), error, f"y {sentence}")


SURROGATES = [
    LovaszHinge("jaccard"),
    LovaszHinge("early_detection"),
    MarginRescaling("jaccard"),
    SlackRescaling("hamming"),
    DecomposedHinge("dice"),
]
each_surrogate = pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)


@each_surrogate
@pytest.mark.parametrize(("labels", "error", "sentence"), LABELS)
def test_labels_of_surrogates(surrogate, labels, error, sentence):
    scores = np.zeros(np.shape(labels))
    raises(lambda: surrogate.value_and_gradient(labels, scores), error, f"y {sentence}")
    raises(lambda: surrogate.properties(labels), error, f"y {sentence}")


@pytest.mark.parametrize(
    ("scores", "error", "sentence"),
    [
        ([np.nan, 0.0], ValueError, "scores must be finite, got nan"),
        ([np.inf, 0.0], ValueError, "scores must be finite, got inf"),
        ([0.0, -np.inf], ValueError, "scores must be finite, got -inf"),
        (np.array([np.nan, 0], np.float32), ValueError, "scores must be finite, got nan"),
        (np.array([np.inf, 0], np.float16), ValueError, "scores must be finite, got inf"),
        ([True, False], TypeError, "scores must be real numbers, got dtype bool"),
        (["1", "0"], TypeError, "scores must be real numbers, got dtype <U1"),
        ([1j, 0], TypeError, "scores must be real numbers, got dtype complex128"),
        ([None, 1.0], TypeError, "scores must be real numbers, got dtype object"),
        ([0.0], ValueError, r"scores must have the shape of y, \(2,\), got \(1,\)"),
        ([[0.0, 0.0]], ValueError, r"scores must have the shape of y, \(2,\), got \(1, 2\)"),
        (0.0, ValueError, r"scores must have the shape of y, \(2,\), got \(\)"),
    ],
)
@each_surrogate
def test_scores(surrogate, scores, error, sentence):
    raises(lambda: surrogate.value_and_gradient([1, -1], scores), error, sentence)
    raises(lambda: surrogate([1, -1], scores), error, sentence)


OFFSETS = [
    ([], ValueError, r"offsets must hold n \+ 1 integers, got shape \(0,\)"),
    ([[0, 3]], ValueError, r"offsets must hold n \+ 1 integers, got shape \(1, 2\)"),
    (3, ValueError, r"offsets must hold n \+ 1 integers, got shape \(\)"),
    ([0.0, 3.0], TypeError, "offsets must hold integers, got dtype float64"),
    ([False, True], TypeError, "offsets must hold integers, got dtype bool"),
    ([0, 2], ValueError, "offsets must go from 0 to 3, got 0 to 2"),
    ([1, 3], ValueError, "offsets must go from 0 to 3, got 1 to 3"),
    ([0, 4], ValueError, "offsets must go from 0 to 3, got 0 to 4"),
    ([0, 2, 1, 3], ValueError, "offsets must not decrease"),
    ([0, -1, 3], ValueError, "offsets must not decrease"),
    (np.array([0, 2**64 - 1, 3], np.uint64), ValueError, "offsets must not decrease"),
]


@pytest.mark.parametrize(("offsets", "error", "sentence"), OFFSETS)
def test_offsets(offsets, error, sentence):
    y = np.ones(3)
    raises(lambda: Jaccard()(y, y, offsets=offsets), error, sentence)
    for surrogate in SURROGATES:
        raises(lambda s=surrogate: s(y, np.zeros(3), offsets=offsets), error, sentence)


def test_offsets_need_flat_labels():
    y = np.ones((1, 3))
    sentence = r"must be flat when offsets are given, got \(1, 3\)"
    raises(lambda: Jaccard()(y, y, offsets=[0, 3]), ValueError, f"y_true {sentence}")
    raises(lambda: SURROGATES[0](y, y, offsets=[0, 3]), ValueError, f"y {sentence}")


@pytest.mark.parametrize("other", [np.ones(2), np.ones((1, 3)), np.ones((3, 1))])
def test_predictions_of_another_shape(other):
    sentence = r"y_pred must have the shape of y_true, \(3,\), got"
    raises(lambda: Hamming()(np.ones(3), other), ValueError, sentence)


def test_questions_are_about_one_ground_truth():
    y = np.ones((2, 3))
    raises(lambda: Dice().set_function(y), ValueError, r"y must have shape \(p,\), got \(2, 3\)")
    for surrogate in SURROGATES:
        raises(
            lambda s=surrogate: s.properties(y), ValueError, r"y must have shape \(p,\), got \(2, 3"
        )


@each_surrogate
def test_empty_sets_and_empty_batches_are_no_bad_input(surrogate):
    value, gradient = surrogate.value_and_gradient([], [])
    assert value == 0.0
    assert gradient.shape == (0,)
    values, gradients = surrogate.value_and_gradient(np.zeros((3, 0)), np.zeros((3, 0)))
    assert values.tolist() == [0.0, 0.0, 0.0]
    assert gradients.shape == (3, 0)
    values, gradients = surrogate.value_and_gradient([1, 0], [0.0, 0.0], offsets=[0, 0, 2, 2])
    assert values[[0, 2]].tolist() == [0.0, 0.0]
    assert gradients.shape == (2,)
    surrogate.properties([])


@each_surrogate
def test_the_arguments_are_not_written_to(surrogate):
    y, scores = np.array([1, -1, 1]), np.array([0.3, -0.2, -1.0])
    y.flags.writeable = scores.flags.writeable = False
    surrogate.value_and_gradient(y, scores)
    assert scores.tolist() == [0.3, -0.2, -1.0]


# -------------------------------------------------------------------------------------- the kernels

POSITIVE = np.array([1, 0, 1], np.uint8)
SCORES = np.zeros(3)
ROW = np.array([0, 3])


def outputs(rows=1, elements=3, dtype=np.float64):
    return np.empty(rows), np.empty(elements, dtype)


def doubles(n):
    return np.zeros(n)


def ints(*values):
    return np.array(values, np.int64)


def flags(n=1):
    return np.ones(n, np.uint8)


RATIO = (1.0, 1.0, 0.0, 0)


def kernels(positive, scores, offsets, values, gradient):
    """Every kernel over rows, its other arguments fitting one row of three elements."""
    rows, out = (positive, scores, offsets), (values, gradient)
    weights = np.ones(1)
    yield lambda: _core.lovasz_ratio(*rows, *RATIO, 0, *out)
    yield lambda: _core.lovasz_cardinality(*rows, doubles(4), ints(0), flags(), *out)
    yield lambda: _core.lovasz_counts(*rows, doubles(6), ints(0), flags(), *out)
    yield lambda: _core.hinge_of_gains(*rows, ints(0), ints(0, 1), doubles(1), flags(), *out)
    yield lambda: _core.hinge_modular(*rows, doubles(3), weights, *out)
    yield lambda: _core.rescale_ratio(*rows, *RATIO, True, weights, *out)
    yield lambda: _core.rescale_cardinality(*rows, doubles(4), ints(0), True, weights, *out)
    yield lambda: _core.rescale_counts(*rows, doubles(6), ints(0), True, weights, *out)
    yield lambda: _core.rescale_prefix(*rows, doubles(3), doubles(3), weights, *out)


def test_kernels_take_what_fits():
    for call in kernels(POSITIVE, SCORES, ROW, *outputs()):
        call()


@pytest.mark.parametrize(
    ("rows", "out", "sentence"),
    [
        ((POSITIVE, SCORES, ints()), outputs(), "offsets must start with 0"),
        ((POSITIVE, SCORES, ints(1, 3)), outputs(), "offsets must start with 0"),
        ((POSITIVE, SCORES, ints(0, 2)), outputs(), "offsets must end with the number of scores"),
        ((POSITIVE, SCORES, ints(0, 4)), outputs(), "offsets must end with the number of scores"),
        ((POSITIVE, SCORES, ints(0, 5, 3)), outputs(2), "offsets must not decrease"),
        ((POSITIVE, SCORES, ints(0, 2**40)), outputs(), "a set must have fewer than 2"),
        ((POSITIVE[:2], SCORES, ROW), outputs(), "offsets must end with the number of scores"),
        ((POSITIVE, SCORES[:2], ROW), outputs(), "offsets must end with the number of scores"),
        ((POSITIVE, SCORES, ROW), outputs(elements=2), "offsets must end with the number of"),
        ((POSITIVE, SCORES, ROW), outputs(rows=2), "values must have a row each"),
        ((POSITIVE, SCORES, ROW), outputs(rows=0), "values must have a row each"),
    ],
)
def test_kernels_refuse_rows_that_do_not_fit(rows, out, sentence):
    for call in kernels(*rows, *out):
        raises(call, ValueError, sentence)


TWO = (np.zeros(6, np.uint8), np.zeros(6), ints(0, 3, 6))


@pytest.mark.parametrize(
    "call",
    [
        lambda out: _core.lovasz_cardinality(*TWO, doubles(4), ints(0), flags(2), *out),
        lambda out: _core.lovasz_cardinality(*TWO, doubles(4), ints(0, 1), flags(2), *out),
        lambda out: _core.lovasz_cardinality(*TWO, doubles(4), ints(0, -1), flags(2), *out),
        lambda out: _core.lovasz_cardinality(*TWO, doubles(4), ints(0, 0), flags(1), *out),
        lambda out: _core.lovasz_cardinality(*TWO, doubles(4), ints(0, 2**62), flags(2), *out),
        lambda out: _core.lovasz_counts(*TWO, doubles(3), ints(0, 0), flags(2), *out),
        lambda out: _core.lovasz_counts(*TWO, doubles(4), ints(0), flags(2), *out),
        lambda out: _core.lovasz_counts(*TWO, doubles(4), ints(0, 0), flags(3), *out),
        lambda out: _core.rescale_ratio(*TWO, *RATIO, False, doubles(1), *out),
        lambda out: _core.rescale_cardinality(
            *TWO, doubles(3), ints(0, 0), False, doubles(2), *out
        ),
        lambda out: _core.rescale_cardinality(
            *TWO, doubles(4), ints(0, 0), False, doubles(3), *out
        ),
        lambda out: _core.rescale_counts(*TWO, doubles(3), ints(0, 0), False, doubles(2), *out),
        lambda out: _core.rescale_counts(*TWO, doubles(4), ints(0), False, doubles(2), *out),
        lambda out: _core.rescale_prefix(*TWO, doubles(2), doubles(2), doubles(2), *out),
        lambda out: _core.rescale_prefix(*TWO, doubles(3), doubles(2), doubles(2), *out),
        lambda out: _core.rescale_prefix(*TWO, doubles(3), doubles(3), doubles(1), *out),
        lambda out: _core.hinge_modular(*TWO, doubles(5), doubles(2), *out),
        lambda out: _core.hinge_modular(*TWO, doubles(6), doubles(1), *out),
    ],
)
def test_kernels_refuse_tables_that_do_not_fit(call):
    raises(lambda: call(outputs(2, 6)), ValueError, "must")


@pytest.mark.parametrize(
    ("order", "chains", "gains"),
    [
        (ints(3), ints(0, 1), doubles(1)),
        (ints(-1), ints(0, 1), doubles(1)),
        (ints(0), ints(0, 2), doubles(1)),
        (ints(0), ints(-1, 1), doubles(1)),
        (ints(0), ints(1, 0), doubles(1)),
        (ints(0), ints(0), doubles(1)),
        (ints(0), ints(0, 1, 1), doubles(1)),
        (ints(0), ints(0, 1), doubles(2)),
    ],
)
def test_given_gains_that_do_not_fit(order, chains, gains):
    rows = POSITIVE, SCORES, ROW
    raises(
        lambda: _core.hinge_of_gains(*rows, order, chains, gains, flags(), *outputs()),
        ValueError,
        "must",
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.order_rows(POSITIVE, SCORES, ROW, flags(), ints(0, 0), ints(0, 0)),
        lambda: _core.order_rows(POSITIVE, SCORES, ROW, flags(), ints(0, 0, 0), ints(0)),
        lambda: _core.order_rows(POSITIVE, SCORES, ROW, flags(2), ints(0, 0, 0), ints(0, 0)),
        lambda: _core.order_rows(POSITIVE, SCORES, ints(), flags(0), ints(0, 0, 0), ints()),
        lambda: _core.order_rows(POSITIVE, SCORES, ints(0, 9), flags(), ints(0, 0, 0), ints(0, 0)),
        lambda: _core.chain_sums(doubles(2), ints(0, 1), doubles(2)),
        lambda: _core.chain_sums(doubles(2), ints(1, 2), doubles(2)),
        lambda: _core.chain_sums(doubles(2), ints(0, 3, 2), doubles(2)),
        lambda: _core.chain_sums(doubles(2), ints(), doubles(2)),
        lambda: _core.chain_sums(doubles(2), ints(0, 2), doubles(1)),
        lambda: _core.prefix_gains(doubles(2), doubles(2), ints(2), ints(0, 1), doubles(1)),
        lambda: _core.prefix_gains(doubles(2), doubles(2), ints(-1), ints(0, 1), doubles(1)),
        lambda: _core.prefix_gains(doubles(2), doubles(1), ints(0), ints(0, 1), doubles(1)),
        lambda: _core.prefix_gains(doubles(2), doubles(2), ints(0), ints(0, 1), doubles(2)),
        lambda: _core.supermodular_grid(np.zeros((2, 3)), np.zeros((3, 2))),
        lambda: _core.encode_labels(np.zeros(2), np.zeros(3, np.uint8)),
    ],
)
def test_other_kernels_refuse_what_does_not_fit(call):
    raises(call, ValueError, "must")


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.lovasz_ratio(POSITIVE, SCORES.astype("f4"), ROW, *RATIO, 0, *outputs()),
        lambda: _core.lovasz_ratio(POSITIVE.astype(bool), SCORES, ROW, *RATIO, 0, *outputs()),
        lambda: _core.lovasz_ratio(POSITIVE, np.zeros(6)[::2], ROW, *RATIO, 0, *outputs()),
        lambda: _core.lovasz_ratio(POSITIVE, SCORES, ROW.astype("i4"), *RATIO, 0, *outputs()),
        lambda: _core.lovasz_ratio(POSITIVE, SCORES.tolist(), ROW, *RATIO, 0, *outputs()),
        lambda: _core.all_finite(np.zeros(3, int)),
        lambda: _core.encode_labels(np.zeros(2, "i2"), np.zeros(2, np.uint8)),
    ],
)
def test_kernels_copy_nothing_in_silence(call):
    """Another type or another memory order is a TypeError, not a conversion."""
    raises(call, TypeError, "incompatible function arguments")


def test_a_set_too_long_for_the_dynamic_programme():
    surrogate = MarginRescaling("early_detection")
    raises(
        lambda: surrogate(np.ones(65_537), np.zeros(65_537)),
        ValueError,
        "a set must have at most 65536 elements for its dynamic programme",
    )
