"""SetClassifier: bad input to fit and score, refused in one sentence."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from set_classifier_problem import GROUPS, X, Y, n, y

from setwise import SetClassifier
from setwise.losses import CardinalityLoss, Dice, SetLoss

NOT_LABELS = r"y must hold labels in \{0, 1\} or \{-1, \+1\} when it is a matrix, got "
BAD = [
    (
        {"surrogate": "hinges"},
        {},
        ValueError,
        "surrogate must be 'auto' or one of decomposed, .*, got 'hinges'",
    ),
    ({"loss": "overlap"}, {}, ValueError, "loss must be one of dice, .*, got 'overlap'"),
    ({"loss": 3}, {}, TypeError, "loss must be a Loss or a name, got int"),
    (
        {"loss": "dice", "surrogate": "lovasz"},
        {},
        ValueError,
        r"surrogate must be 'auto', 'decomposed', .* for Dice\(\), which is not submodular, got",
    ),
    (
        {"loss": CardinalityLoss(lambda k, p: k**2), "surrogate": "lovasz"},
        {},
        ValueError,
        r"surrogate must be 'auto', .* for CardinalityLoss.*, which is not submodular, got",
    ),
    *(
        (
            {"loss": SetLoss(lambda mistakes, positive: float(mistakes.sum()), submodular=known)},
            {"y": y},
            ValueError,
            "surrogate must be named for SetLoss.*, which is not known to be submodular and cannot "
            "be decomposed for 60 elements, got 'auto': give 'lovasz' if it is submodular",
        )
        for known in (None, False)
    ),
    ({"warm_start": 1}, {}, TypeError, "warm_start must be True or False, got int"),
    ({"C": 0.0}, {}, ValueError, "C must be positive, got 0"),
    ({"C": "1"}, {}, TypeError, "C must be a real number, got str"),
    ({"tol": -1.0}, {}, ValueError, "tol must not be negative, got -1"),
    ({"max_iter": 0}, {}, ValueError, "max_iter must be at least 1, got 0"),
    ({"max_iter": 1e3}, {}, TypeError, "max_iter must be an integer, got float"),
    ({"surrogate": ["lovasz"]}, {}, TypeError, "surrogate must be a Surrogate or a name, got list"),
    ({"n_jobs": 0}, {}, ValueError, "n_jobs must not be 0, got 0"),
    ({"n_jobs": "a"}, {}, TypeError, "n_jobs must be an integer or None, got str"),
    ({"n_jobs": 1.5}, {}, TypeError, "n_jobs must be an integer or None, got float"),
    (
        {"sets": "bags"},
        {},
        ValueError,
        "sets must be one of 'auto', 'rows', 'columns', 'cells', 'groups', 'sample', got 'bags'",
    ),
    ({"sets": "groups"}, {"y": y}, ValueError, "groups must be given when sets='groups', got None"),
    (
        {"sets": "groups"},
        {"groups": GROUPS},
        ValueError,
        r"y must have shape \(n,\) when samples are grouped into sets, got \(60, 3\)",
    ),
    ({"sets": "sample"}, {}, ValueError, r"y must have shape \(n,\) when samples are grouped"),
    ({}, {"groups": GROUPS}, ValueError, r"y must have shape \(n,\) when samples are grouped"),
    *(
        (
            {"sets": sets},
            {"y": y},
            ValueError,
            rf"y must have shape \(n, p\) when sets='{sets}', got \(60,\)",
        )
        for sets in ("rows", "columns", "cells")
    ),
    *(
        (
            {"sets": sets, "surrogate": "slack"},
            {"sample_weight": np.full(n, 0.5)},
            ValueError,
            "sample_weight must be whole numbers when samples are elements of a set, got 0.5",
        )
        for sets in ("columns", "cells")
    ),
    ({}, {"y": y, "groups": GROUPS[:9]}, ValueError, r"groups must have shape \(60,\), got \(9,\)"),
    *(
        ({}, {"y": y, "groups": groups}, ValueError, "groups must name a set for every sample, got")
        for groups in (
            [None] * n,
            [None, *GROUPS[1:]],
            [None, *map(str, GROUPS[1:])],
            np.array([np.nan, *map(str, GROUPS[1:])], object),
            np.where(GROUPS == 0, np.nan, GROUPS),
            np.where(GROUPS == 0, np.datetime64("NaT"), np.datetime64("2020-01-01")),
        )
    ),
    (
        {},
        {"y": y, "groups": np.array(["a", *GROUPS[1:].tolist()], object)},
        TypeError,
        "groups must be of one type, got int and str",
    ),
    (
        {"sets": "sample"},
        {"y": y, "groups": GROUPS},
        ValueError,
        "groups must be None when sets='sample'",
    ),
    ({}, {"y": Y + 1}, ValueError, NOT_LABELS + r"\[1, 2\]"),
    ({}, {"y": Y - X[:, :1]}, ValueError, NOT_LABELS),
    ({}, {"y": np.where(Y > 0, 1, -Y[::-1])}, ValueError, NOT_LABELS + r"\[-1, 0, 1\]"),
    ({}, {"y": Y.astype(str)}, ValueError, NOT_LABELS + r"\['0', '1'\]"),
    (
        {},
        {"y": Y.astype(object)},
        TypeError,
        "y must hold numbers or bools when it is a matrix, got dtype object",
    ),
    ({}, {"y": np.where(Y > 0, "a", None)}, TypeError, "y must hold numbers or bools"),
    ({}, {"y": [["a"], ["b", "c"]] * (n // 2)}, ValueError, "y must be a matrix .* MultiLabelB"),
    ({}, {"y": np.zeros((n, 2, 2))}, ValueError, "Found array with dim 3"),
    ({}, {"y": np.zeros((n, 0))}, ValueError, r"Found array with 0 feature\(s\)"),
    (
        {},
        {"y": np.ones(n)},
        ValueError,
        r"only one class is present: y must hold two classes, got \[1.0\]",
    ),
    ({}, {"y": np.arange(n) % 3}, ValueError, "Only binary classification is supported"),
    ({}, {"y": X[:, 0]}, ValueError, "Unknown label type"),
    ({}, {"y": np.where(y == 1, 1.0, np.nan)}, ValueError, "Input y contains NaN"),
    ({}, {"y": y[:9]}, ValueError, "inconsistent numbers of samples"),
    ({}, {"X": np.where(X > 2, np.nan, X)}, ValueError, "Input X contains NaN"),
    ({}, {"X": np.where(X > 2, np.inf, X)}, ValueError, "Input X contains infinity"),
    ({}, {"X": X[:, 0]}, ValueError, "Expected 2D array, got 1D array"),
    (
        {},
        {"sample_weight": np.ones(9)},
        ValueError,
        r"sample_weight must have shape \(60,\), got \(9,\)",
    ),
    *(
        ({}, {"sample_weight": weight}, TypeError, "sample_weight must hold real numbers, got")
        for weight in (["a"] * n, ["1"] * n, "balanced")
    ),
    (
        {},
        {"sample_weight": [[1], [1, 2]]},
        TypeError,
        "sample_weight must be an array of numbers, got rows of different lengths",
    ),
    (
        {},
        {"sample_weight": -np.ones(n)},
        ValueError,
        "sample_weight must not be negative, got -1",
    ),
    (
        {},
        {"sample_weight": np.full(n, np.nan)},
        ValueError,
        "sample_weight must be finite, got nan",
    ),
    (
        {},
        {"sample_weight": np.zeros(n)},
        ValueError,
        "sample_weight must not be zero for every sample, got only zeros",
    ),
    ({}, {"y": y, "sample_weight": np.zeros(n)}, ValueError, "sample_weight must not be zero"),
    (
        {},
        {"y": y, "groups": GROUPS, "sample_weight": np.full(n, 0.5)},
        ValueError,
        "sample_weight must be whole numbers when samples are elements of a set, got 0.5",
    ),
    (
        {"loss": "exponential"},
        {"y": y, "sample_weight": np.full(n, 1.5)},
        ValueError,
        "sample_weight must be whole numbers when samples are elements of a set, got 1.5",
    ),
    (
        {"surrogate": "slack"},
        {"y": y, "sample_weight": np.full(n, 1.5)},
        ValueError,
        "sample_weight must be whole numbers when samples are elements of a set, got 1.5",
    ),
    (
        {"class_weight": {0: 1, 1: 2}},
        {},
        ValueError,
        r"class_weight must be None when y is a matrix, got \{0: 1, 1: 2\}: give weights",
    ),
    ({"class_weight": "heavy"}, {"y": y}, ValueError, "class_weight"),
]


@pytest.mark.parametrize(("options", "arguments", "error", "sentence"), BAD)
def test_bad_input_to_fit(options, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        SetClassifier(**options).fit(**{"X": X, "y": Y, **arguments})


@pytest.mark.parametrize(
    ("options", "arguments", "sentence"),
    [
        (
            {"loss": "hamming"},
            {"groups": GROUPS[:9]},
            r"groups must have shape \(60,\), got \(9,\)",
        ),
        (
            {"class_weight": {0: 1, 1: 2}},
            {"sample_weight": np.ones(9)},
            r"sample_weight must have shape \(60,\), got \(9,\)",
        ),
        (
            {"class_weight": {0: 1, 1: 2}},
            {"sample_weight": np.ones((n, 1))},
            r"sample_weight must have shape \(60,\), got \(60, 1\)",
        ),
        (
            {},
            {"y": sparse.csr_array(3 * Y)},
            r"y must hold labels in \{0, 1\} when it is sparse, got 3",
        ),
        ({}, {"y": sparse.coo_array(y)}, r"y must have shape \(n, p\) when it is sparse"),
    ],
)
def test_bad_input_that_is_found_late(options, arguments, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        SetClassifier(**options).fit(**{"X": X, "y": y, **arguments})


@pytest.mark.parametrize(
    ("truth", "arguments", "sentence"),
    [
        (Y, {"y": 2 * Y - 1}, r"y must hold the labels of fit, \[0, 1\], got .*-1"),
        (Y, {"y": Y[:, :2]}, r"y must have shape \(60, 3\), got \(60, 2\)"),
        (Y, {"y": y}, r"y must have shape \(60, 3\), got \(60,\)"),
        (Y, {"y": Y[:5]}, r"y must have shape \(60, 3\), got \(5, 3\)"),
        (Y, {"y": Y, "groups": GROUPS}, r"y must have shape \(n,\) when samples are grouped"),
        (Y, {"y": Y, "sample_weight": -np.ones(n)}, "sample_weight must not be negative"),
        (y, {"y": y[:5]}, r"y must have shape \(60,\), got \(5,\)"),
        (y, {"y": np.array(["a", "b"])[y]}, r"y must hold the labels of fit, \[0, 1\], got .*'"),
        (y, {"y": y, "groups": GROUPS[:5]}, r"groups must have shape \(60,\), got \(5,\)"),
    ],
)
def test_bad_input_to_score(truth, arguments, sentence):
    model = SetClassifier().fit(X, truth)
    with pytest.raises(ValueError, match=sentence):
        model.score(X, **arguments)


def test_a_score_of_groups_needs_groups():
    model = SetClassifier(sets="groups").fit(X, y, groups=GROUPS)
    with pytest.raises(ValueError, match=r"groups must be given .* set_score_request\(groups=True"):
        model.score(X, y)


def test_parameters_are_left_as_they_were_given():
    loss = Dice()
    model = SetClassifier(loss, "decomposed", C=np.float32(2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, Y)
    assert model.loss is loss
    assert type(model.C) is np.float32
