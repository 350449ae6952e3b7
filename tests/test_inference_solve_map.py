"""Laws of solve_map, over every field of the registry and every method."""

import re
from pathlib import Path

import numpy as np
import pytest
from field_registry import FIELDS, of_seed
from reference import all_labelings

import setwise as sw
from setwise.fields._terms import KINDS
from setwise.inference import MapResult
from setwise.inference._conditioning._magnitude import trivial_bound
from setwise.inference._map._methods import METHODS
from setwise.inference._map._result import MapProgress

SEEDS = range(3)
IN_ROUNDS = [m for m, r in METHODS.items() if r.gives_bound and r.takes_start]


def least_energy(field: sw.fields.Field) -> float:
    return float(field.energy(all_labelings(field.n_variables, field.n_labels)).min())


def solve_if_possible(field: sw.fields.Field, method: str) -> MapResult | None:
    """The answer; None when the method says in a sentence that it cannot take the field."""
    try:
        return sw.solve_map(field, method)
    except ValueError as error:
        why = str(error)
    assert why.startswith((f"{method} cannot take", f"{method} needs"))
    assert "\n" not in why
    return None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FIELDS)
def test_value_and_bound_enclose_the_least_energy(name: str, method: str, seed: int) -> None:
    field = of_seed(name, seed)
    best = solve_if_possible(field, method)
    if best is None:
        return
    least = least_energy(field)
    slack = 1e-9 * max(1.0, abs(least))
    assert best.method == method
    assert best.labels.shape == (field.n_variables,)
    assert best.labels.dtype == np.int64
    assert best.value == pytest.approx(field.energy(best.labels), abs=slack)
    assert best.bound - slack <= least <= best.value + slack
    assert best.gap == max(best.value - best.bound, 0.0)
    assert (type(best.value), type(best.bound), type(best.exact)) == (float, float, bool)
    if best.exact:
        assert best.value == pytest.approx(least, abs=2 * slack)


@pytest.mark.parametrize("method", IN_ROUNDS)
@pytest.mark.parametrize("name", FIELDS)
def test_no_round_leaves_the_least_values_of_the_terms(name: str, method: str) -> None:
    field = of_seed(name, 0)
    try:
        none = sw.solve_map(field, method, max_iter=0)
    except ValueError:
        return
    slack = 1e-9 * max(1.0, abs(none.bound))
    assert trivial_bound(field) - slack <= none.bound <= least_energy(field) + slack
    assert type(none.bound) is float


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FIELDS)
def test_auto_answers_every_field_and_says_why(name: str, seed: int) -> None:
    field = of_seed(name, seed)
    best = sw.solve_map(field)
    assert best.method in METHODS
    assert best.reason
    assert best.exact, "small fields are solved exactly"
    assert best.value == pytest.approx(least_energy(field), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FIELDS)
def test_two_labels_agree_between_cut_convex_and_enumeration(name: str, seed: int) -> None:
    field = of_seed(name, seed)
    if field.n_labels != 2 or not field.is_submodular:
        return
    cut = solve_if_possible(field, "cut")
    if cut is None:  # a concave cardinality around a labelling of both labels
        return
    convex, enumerated = (sw.solve_map(field, method) for method in ("convex", "enumerate"))
    assert cut.exact
    assert enumerated.exact
    assert cut.value == pytest.approx(enumerated.value, rel=1e-9, abs=1e-9)
    assert convex.value == pytest.approx(enumerated.value, rel=1e-9, abs=1e-9)
    assert convex.bound == pytest.approx(enumerated.value, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_forbidden_labels_are_never_taken(method: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        unary = rng.normal(size=(8, 2))
        unary[rng.permutation(8)[:4], rng.integers(0, 2, 4)] = np.inf
        edges = sw.fields.grid_edges((2, 4))
        field = sw.fields.Field(unary) + sw.fields.Potts(edges, rng.uniform(0, 2, len(edges)))
        if method not in ("odd_cycles", "branch_and_bound", "windows"):  # for small tables only
            field = field + sw.fields.RegionConsistency([0, 0, 1, 1, 0, 0, 1, 1], 0.7, 0.5)
        best = sw.solve_map(field, method)
        assert np.isfinite(best.value)
        assert best.bound <= least_energy(field) + 1e-9


def three_labels(n: int = 30, seed: int = 0) -> sw.fields.Field:
    rng = np.random.default_rng(seed)
    edges = sw.fields.grid_edges((5, n // 5))
    return sw.fields.Field(rng.normal(size=(n, 3))) + sw.fields.Potts(edges, 0.8)


OF_THREE_LABELS = [m for m, r in METHODS.items() if r.obstacle(three_labels()) is None]


@pytest.mark.parametrize("method", OF_THREE_LABELS)
def test_the_answer_is_no_worse_than_init(method: str) -> None:
    field = three_labels()
    good = sw.solve_map(field, "expansion").labels
    best = sw.solve_map(field, method, init=good, max_iter=1)
    assert best.value <= field.energy(good) + 1e-12


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_labels", [1, 2])
def test_labels_are_the_callers_own(method: str, n_labels: int) -> None:
    field = sw.fields.Field(np.eye(4, n_labels)) + sw.fields.Potts([[0, 1], [1, 2], [2, 3]], 0.1)
    first = solve_if_possible(field, method)
    if first is not None:
        before = first.labels.copy()
        first.labels[:] = -1
        np.testing.assert_array_equal(sw.solve_map(field, method).labels, before)


@pytest.mark.parametrize("method", OF_THREE_LABELS)
def test_a_callback_sees_the_search_and_may_end_it(method: str) -> None:
    field = three_labels()
    seen: list[MapProgress] = []

    def note(progress: MapProgress) -> bool:
        seen.append(progress)
        return True

    best = sw.solve_map(field, method, callback=note)
    assert seen[0].value >= seen[0].bound
    assert len(seen) == 1
    assert best.value == pytest.approx(field.energy(best.labels))
    assert best.bound <= best.value


@pytest.mark.parametrize("method", [m for m, r in METHODS.items() if not r.gives_bound])
def test_with_an_infinite_tolerance_moves_do_not_look_for_a_bound(method: str) -> None:
    field = three_labels()
    quick, full = sw.solve_map(field, method, tol=np.inf), sw.solve_map(field, method)
    assert full.value <= quick.value  # the search for a bound meets labellings too
    assert quick.converged
    assert -np.inf < quick.bound <= full.bound


def test_the_order_of_moves_is_random_on_request_and_repeats_with_a_seed() -> None:
    field = three_labels()
    first, second = (sw.solve_map(field, "expansion", rng=3) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)


def test_the_answer_does_not_depend_on_the_threads() -> None:
    field = three_labels(500)
    one, two = (sw.solve_map(field, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert (one.value, one.bound) == (two.value, two.bound)


def test_tables_are_bounded_by_messages_not_by_a_minorant() -> None:
    rng = np.random.default_rng(1)
    edges = sw.fields.grid_edges((4, 4))
    ends = np.arange(5)
    truncated = np.minimum(np.abs(ends[:, None] - ends), 2.0)
    field = sw.fields.Field(rng.normal(size=(16, 5))) + sw.fields.Pairwise(edges, truncated)
    best = sw.solve_map(field, "expansion")
    assert sw.solve_map(field).exact
    assert best.relative_gap < sw.solve_map(field, "convex").relative_gap


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"field": 3}, TypeError, "field must be a Field, got int"),
        ({"method": "icm"}, ValueError, "method must be one of 'auto', 'cut'"),
        ({"method": ["cut"]}, TypeError, "method must be a string, got list"),
        ({"tol": -1.0}, ValueError, "tol must not be negative, got -1.0"),
        ({"tol": "small"}, TypeError, "tol must be a real number, got str"),
        ({"tol": np.zeros(2)}, TypeError, "tol must be a real number, got ndarray"),
        ({"tol": np.nan}, ValueError, "tol must be finite, got nan"),
        ({"max_iter": -1}, ValueError, "max_iter must be at least 0, got -1"),
        ({"max_iter": 1.5}, TypeError, "max_iter must be an integer, got float"),
        ({"init": [0.0, 1.0, 0.0]}, TypeError, "init must hold integers, got dtype float64"),
        ({"init": [0, 1]}, ValueError, r"init must have shape \(3,\), got \(2,\)"),
        ({"init": [0, 1, 5]}, ValueError, "init must lie between 0 and 1, got 5"),
        ({"init": [0, 1, 1]}, ValueError, "init must take labels of finite unary, got 1 for var"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0, got 0"),
        ({"n_jobs": "a"}, TypeError, "n_jobs must be an integer or None, got str"),
        ({"rng": "a"}, TypeError, "rng must be None, an integer"),
        ({"callback": 3}, TypeError, "callback must be callable or None, got int"),
        ({"method": "enumerate", "field": three_labels(100)}, ValueError, "enumerate needs at mo"),
        ({"method": "cut", "field": three_labels()}, ValueError, "cut needs a field of at most"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, error: type, sentence: str) -> None:
    field = sw.fields.Field([[0.0, 1.0], [1.0, 0.0], [0.0, np.inf]])
    with pytest.raises(error, match=sentence):
        sw.solve_map(**{"field": field, **arguments})


def test_every_method_is_in_the_docstring_in_the_guide_and_in_the_error() -> None:
    for row in METHODS.table():
        assert row in sw.solve_map.__doc__
    guide = Path(__file__).parents[1] / "docs" / "guide" / "map.md"
    listed = guide.read_text(encoding="utf-8").partition("## The methods")[2].partition("With")[0]
    rows = re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)
    assert rows == list(METHODS)
    with pytest.raises(ValueError, match="must be one of 'auto', " + ", ".join(map(repr, METHODS))):
        sw.solve_map(three_labels(), "magic")


@pytest.mark.parametrize("name", FIELDS)
def test_a_method_takes_a_field_or_its_record_says_why_not(name: str) -> None:
    field = of_seed(name, 0)
    for method, record in METHODS.items():
        why = record.obstacle(field)
        if why is not None:
            with pytest.raises(ValueError, match=r"cannot take|needs") as error:
                sw.solve_map(field, method)
            assert str(error.value).partition("(")[0] == why.partition("(")[0]
        else:
            assert sw.solve_map(field, method).method == method


def test_records_know_every_kind_of_term() -> None:
    for record in METHODS.values():
        assert set(record.takes) == set(KINDS)
        assert record.certified  # a bound of MAP is a proof
