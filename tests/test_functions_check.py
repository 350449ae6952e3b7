"""Reports on set functions: exact ones against brute force, random ones against what is known."""

import pickle

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import set_functions, submodular_functions

from setwise.functions import Cardinality, Cut, Modular, Oracle, Table, check

PROPERTIES = ("submodular", "supermodular", "increasing", "normalized", "nonnegative")


def assert_verifiable(function, report):
    """Every counterexample is one: its sets, put into F, break the inequality."""
    refuted = {name for name in PROPERTIES if getattr(report, name) is False}
    assert set(report.counterexamples) == set(report.witness) == refuted
    for name, sets in report.witness.items():
        if name in ("submodular", "supermodular"):
            a, b = sets
            excess = function(a | b) + function(a & b) - function(a) - function(b)
            assert (excess if name == "submodular" else -excess) > report.tolerance
        elif name == "increasing":
            inner, outer = sets
            assert not np.any(inner & ~outer)
            assert function(inner) > function(outer) + report.tolerance
        elif name == "normalized":
            assert not sets[0].any()
            assert abs(function(sets[0])) > report.tolerance
        else:
            assert function(sets[0]) < -report.tolerance


@given(set_functions())
def test_exact_reports_are_the_definitions(function):
    values = reference.all_values(function)
    report = check(function)
    assert report.exact
    assert report.n == function.n
    assert report.n_sets == len(values)
    assert report.submodular is reference.is_submodular(values)
    assert report.supermodular is reference.is_supermodular(values)
    assert report.increasing is reference.is_increasing(values)
    assert report.normalized is bool(abs(values[0]) <= report.tolerance)
    assert report.nonnegative is bool(values.min() >= -report.tolerance)
    assert_verifiable(function, report)


@given(submodular_functions())
def test_what_families_say_of_themselves_is_true(function):
    report = check(function)
    assert function.is_submodular is True
    assert report.submodular is True
    assert function.is_supermodular in (report.supermodular, None)
    assert function.is_increasing in (report.increasing, None)


@given(submodular_functions(n=20), st.integers(0, 2**32 - 1))
def test_a_random_search_never_refutes_what_is_true(function, seed):
    report = check(function, n_trials=64, rng=seed)
    assert not report.exact
    assert report.submodular is None
    assert_verifiable(function, report)


def test_a_random_search_finds_what_is_everywhere():
    n = 40
    function = Cardinality(np.arange(n + 1.0) ** 2) + Modular(np.full(n, -50.0))
    report = check(function, n_trials=100, rng=0)
    assert report.submodular is False
    assert report.increasing is False
    assert report.nonnegative is False
    assert report.supermodular is None
    assert report.normalized is True
    assert_verifiable(function, report)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([0.0] * 30 + [1.0], "submodular"),
        ([1.0] + [0.0] * 30, "submodular"),
        ([1.0] + [0.0] * 30, "increasing"),
        ([0.0] * 29 + [1.0, 0.0], "increasing"),
        ([0.0] * 29 + [-1.0, 0.0], "nonnegative"),
        ([0.0, 1.0] + [0.0] * 29, "increasing"),
        ([0.0] * 30 + [-1.0], "supermodular"),
    ],
)
def test_a_random_search_looks_near_the_ends(values, name):
    function = Cardinality(values)
    report = check(function, n_trials=2000, rng=0)
    assert getattr(report, name) is False
    assert_verifiable(function, report)


def test_a_search_stops_when_nothing_is_left_to_refute():
    rng = np.random.default_rng(0)
    function = Cardinality(rng.normal(size=31))
    report = check(function, n_trials=10**9, rng=0)
    assert report.n_sets < 10**5
    assert (report.submodular, report.supermodular) == (False, False)


def test_a_search_over_more_elements_than_fit_a_batch():
    n = 5000
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    report = check(Cut(chain, n=n), n_trials=40, rng=0)
    assert report.submodular is None
    assert report.supermodular is False
    assert report.n_sets == 161


def test_rng_makes_a_report_repeatable():
    function = Cardinality(np.sqrt(np.arange(31.0)))
    first, second, other = (check(function, n_trials=50, rng=seed) for seed in (1, 1, 2))
    assert first.counterexamples == second.counterexamples
    assert first.counterexamples != other.counterexamples
    generator = np.random.default_rng(1)
    third = check(function, n_trials=50, rng=generator)
    assert third.counterexamples == first.counterexamples


def test_no_trials_answer_nothing_but_the_empty_set():
    report = check(Cardinality(np.ones(31)), n_trials=0)
    assert report.submodular is None
    assert report.normalized is False
    assert report.n_sets == 1


def test_declarations_are_not_believed():
    oracle = Oracle(lambda mask: mask.sum() ** 2, 3, submodular=True)
    assert check(oracle).submodular is False


def test_sentences():
    report = check(Table([0.5, 0.0, -1.0, 2.0]))
    assert report.counterexamples == {
        "submodular": "F({0}) + F({1}) = -1 < F({0, 1}) + F({}) = 2.5",
        "increasing": "F({}) = 0.5 > F({1}) = -1",
        "normalized": "F({}) = 0.5 != 0",
        "nonnegative": "F({1}) = -1 < 0",
    }
    concave = check(Table([0.0, 1.0, 1.0, 1.0]))
    assert concave.counterexamples == {
        "supermodular": "F({0}) + F({1}) = 2 > F({0, 1}) + F({}) = 1"
    }


def test_printed():
    assert str(check(Table([0.0, 1.0, 1.0, 1.0]))).splitlines() == [
        "A set function of 2 elements, 4 sets evaluated (all of them):",
        "  submodular:   yes",
        "  supermodular: no, F({0}) + F({1}) = 2 > F({0, 1}) + F({}) = 1",
        "  increasing:   yes",
        "  normalized:   yes",
        "  nonnegative:  yes",
    ]
    search = str(check(Cardinality([0.0] * 29 + [1.0]), n_trials=2000, rng=0))
    assert "(a random search)" in search
    assert "  supermodular: not known, no counterexample found" in search
    assert "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... (29 elements)}" in search


def test_no_element():
    report = check(Table([2.0]))
    assert (report.submodular, report.supermodular, report.increasing) == (True, True, True)
    assert report.normalized is False


def test_pickle():
    report = pickle.loads(pickle.dumps(check(Table([0.0, 1.0, 1.0, 3.0]))))
    assert report.submodular is False
    assert report.witness["submodular"][0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"n_trials": -1}, ValueError, "n_trials must be at least 0, got -1"),
        ({"n_trials": 1.0}, TypeError, "n_trials must be an integer, got float"),
        ({"rng": "a"}, TypeError, "rng must be None, an integer or .*, got str"),
        ({"rng": -1}, ValueError, "rng must not be negative, got -1"),
    ],
)
def test_bad_input(options, error, sentence):
    with pytest.raises(error, match=sentence):
        check(Table([0.0, 1.0]), **options)
