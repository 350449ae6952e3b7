"""The methods of marginals: their records, what they refuse, arguments that they cannot take."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from field_registry import FIELDS, of_seed
from marginals_cases import METHODS, UPPER, close, small_grid, taking

import setwise as sw
from setwise import _core
from setwise.fields._terms import KINDS, PottsTerm, TableTerm
from setwise.inference._marginals import _lower_bound
from setwise.inference._relaxation._relaxation import Relaxation


@pytest.mark.parametrize("method", taking(sw.fields.Field(np.zeros((0, 3)))))
def test_no_variables_and_one_label(method):
    nothing = sw.marginals(sw.fields.Field(np.zeros((0, 3))), method)
    assert nothing.probabilities.shape == (0, 3)
    assert nothing.log_partition_lower == 0
    field = sw.fields.Field([[1.5], [-0.5]]) + sw.fields.Potts([[0, 1]], 1.0)
    single = sw.marginals(field, method)
    assert single.probabilities.tolist() == [[1.0], [1.0]]
    assert close(single.log_partition_lower, -1.0)
    assert (single.entropy.tolist(), single.labels.tolist()) == ([0.0, 0.0], [0, 0])


def test_what_a_method_cannot_take_is_refused_in_one_sentence():
    robust = of_seed("robust-pn-beyond-half", 0)
    for method in set(UPPER) - {"elimination"}:
        with pytest.raises(ValueError, match=rf"{method} cannot take RobustPn\(.*not submodular"):
            sw.marginals(robust, method)
    post = sw.marginals(robust, init=sw.marginals(robust))
    assert post.method == "mean_field"
    assert post.reason.startswith("projection cannot take RobustPn(")
    with pytest.raises(ValueError, match=r"cannot take RobustPn\(.*it joins more than pairs"):
        sw.marginals(robust, "belief_propagation")
    with pytest.raises(ValueError, match="exact_binary needs a field of two labels, got 3"):
        sw.marginals(small_grid(), "exact_binary")
    wide = sw.fields.Field(np.zeros((4000, 2)))
    wide += sw.fields.RegionConsistency(np.zeros(4000, int), 1.0, 0.5)
    with pytest.raises(ValueError, match=r"4000000 auxiliary arcs .* RegionConsistency"):
        sw.marginals(wide, "exact_binary")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FIELDS)
def test_a_method_is_what_its_record_says(name, method):
    field, record = of_seed(name, 0), METHODS[method]
    why = record.obstacle(field)
    if why is not None:
        with pytest.raises(ValueError, match=r"cannot take|needs") as error:
            sw.marginals(field, method)
        assert str(error.value).partition("(")[0] == why.partition("(")[0]
        return
    post = sw.marginals(field, method, max_iter=2, rng=0)
    assert (post.method, post.reason, post.certified) == (method, "asked for", record.certified)
    assert np.isfinite(post.log_partition_upper) == record.gives_bound
    if record.takes_start:
        assert sw.marginals(field, method, max_iter=2, init=post).method == method
    else:
        with pytest.raises(ValueError, match=f"init must be None for {method}, which starts afr"):
            sw.marginals(field, method, init=post)


@pytest.mark.parametrize("name", FIELDS)
def test_auto_is_exact_where_that_is_cheap_and_else_has_an_upper_bound(name):
    """A start is for methods that go on from one; large fields are chosen for as with a start."""
    field = of_seed(name, 0)
    joined = field.n_labels > 1 and len(field._folded().terms) > 0
    if joined:
        assert METHODS.choose(field)[0] == "elimination"
    chosen, reason = METHODS.choose(field, started=True)
    pairs = any(isinstance(term, PottsTerm | TableTerm) for _, term in field._terms())
    refused = METHODS["projection"].obstacle(field)
    assert (refused is None) == field.is_submodular
    if pairs and METHODS["trees"].obstacle(field) is None:
        assert chosen == "trees"
    else:
        assert chosen == ("projection" if field.is_submodular else "mean_field")
        assert field.is_submodular or reason.startswith(refused)
    assert joined or METHODS.choose(field)[0] == chosen


def test_every_method_is_in_the_docstring_in_the_guide_and_in_the_error():
    for row in METHODS.table():
        assert row in sw.marginals.__doc__
    guide = Path(__file__).parents[1] / "docs" / "guide" / "marginals.md"
    listed = guide.read_text(encoding="utf-8").partition("## The methods")[2].partition("`auto`")[0]
    rows = re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)
    assert rows == list(METHODS)
    with pytest.raises(ValueError, match="must be one of 'auto', " + ", ".join(map(repr, METHODS))):
        sw.marginals(small_grid(), "magic")


def test_records_know_every_kind_of_term():
    for record in METHODS.values():
        assert set(record.takes) == set(KINDS)


@pytest.mark.parametrize("method", METHODS)
def test_both_bounds_are_of_one_translation(method, monkeypatch):
    """A potential gives its terms once, and each bound is set up once, whatever it starts from."""
    made: list[str] = []

    def counted(kind: type, name: str) -> None:
        before = getattr(kind, name)

        def count(self, *args):
            made.append(kind.__name__)
            return before(self, *args)

        monkeypatch.setattr(kind, name, count)

    class Kernels:
        def __getattr__(self, name: str) -> object:
            made.extend([name] if name == "MeanField" else [])
            return getattr(_core, name)

    counted(sw.fields.Potts, "_terms")
    counted(sw.fields.Pairwise, "_terms")
    counted(Relaxation, "_translate")
    monkeypatch.setattr(_lower_bound, "_core", Kernels())
    rng = np.random.default_rng(0)
    edges = sw.fields.grid_edges((3, 4))
    field = sw.fields.Field(rng.normal(size=(12, 2))) + sw.fields.Potts(edges, 0.3)
    field += sw.fields.Pairwise(edges[:3], [[0.0, 0.5], [0.7, 0.0]])
    post = sw.marginals(field, method, rng=0, max_iter=12)
    assert sorted(made) == sorted(set(made))
    lower = set() if method == "elimination" else {"MeanField"}  # whose bounds are one number
    assert {"Potts", "Pairwise"} | lower <= set(made)
    made.clear()
    if post.certified:
        sw.inference.log_partition_gradient(field, post)
    assert set(made) <= {"Relaxation"}


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"method": "magic"}, ValueError, "method must be one of 'auto', 'elimination'"),
        ({"tol": -1.0}, ValueError, "tol must not be negative"),
        ({"tol": "low"}, TypeError, "tol must be a real number"),
        ({"max_iter": 1.5}, TypeError, "max_iter must be an integer"),
        ({"temperature": 0.0}, ValueError, "temperature must be positive"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0, got 0"),
        ({"dtype": "float16"}, ValueError, "dtype must be 'float64' or 'float32'"),
        ({"init": 3}, TypeError, "init must be a MarginalsResult"),
        ({"method": ["cut"]}, TypeError, "method must be a string, got list"),
        ({"method": np.zeros(2)}, TypeError, "method must be a string, got ndarray"),
        ({"tol": np.zeros(2)}, TypeError, "tol must be a real number, got ndarray"),
        ({"dtype": np.zeros(2)}, TypeError, "dtype must be a string or a numpy dtype, got ndarray"),
        ({"dtype": None}, TypeError, "dtype must be a string or a numpy dtype, got NoneType"),
        ({"dtype": np.int32}, ValueError, "dtype must be 'float64' or 'float32'"),
        ({"rng": "abc"}, TypeError, "rng must be None, an integer"),
        ({"rng": np.nan}, TypeError, "rng must be None, an integer"),
        ({"rng": {}}, TypeError, "rng must be None, an integer"),
        ({"temperature": 5e-324}, ValueError, "temperature must be at least .* in float64 for en"),
        ({"temperature": 1e308}, ValueError, "temperature must be at most"),
        ({"temperature": 1e-35, "dtype": "float32"}, ValueError, "temperature must be at least"),
    ],
)
def test_bad_arguments(arguments, error, match):
    with pytest.raises(error, match=match):
        sw.marginals(small_grid(), **arguments)
