"""MAP by the Lovász relaxation: bounds hold, and two labels are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from field_registry import FIELDS, of_seed
from field_terms import ANY, BY_LABEL, Given, least_energy, random_field, random_term
from searches import convex, expansion

from setwise.fields import Potts
from setwise.fields import _terms as t
from setwise.fields._field import Field
from setwise.inference._map._convex import certify
from setwise.inference._map._options import MapOptions


@pytest.mark.parametrize("seed", range(60))
def test_two_labels_and_a_submodular_energy_are_exact(seed):
    rng = np.random.default_rng(seed)
    field = random_field(BY_LABEL, int(rng.integers(1, 9)), 2, seed, forbidden=0.1)
    answer = convex(field)
    least = least_energy(field)
    assert answer.exact
    assert answer.value == pytest.approx(least, abs=1e-9)
    assert answer.bound == pytest.approx(least, abs=1e-8)


@pytest.mark.parametrize("seed", range(25))
def test_two_labels_are_exact_where_everything_ties(seed):
    # integers: many labellings share the least energy, and s is 0 all over
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    term = random_term("potts", n, 2, rng)
    term = t.PottsTerm(term.edges, np.round(term.weights))
    field = Field(rng.integers(-1, 2, (n, 2))) + Given(term)
    answer = convex(field)
    assert answer.exact
    assert answer.value == least_energy(field)


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "hard-cliques"])
@pytest.mark.parametrize("seed", range(3))
def test_every_listed_field(name, seed):
    field = of_seed(name, seed)
    answer = convex(field)
    least = least_energy(field)
    assert answer.bound <= least + 1e-9 * max(1.0, abs(least))
    assert answer.value >= least - 1e-9
    assert answer.converged
    if field.n_labels <= 2 and field.is_submodular:
        assert answer.exact
    if answer.exact:
        assert answer.value == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_bound_and_value_enclose_the_least_energy_of_any_field(seed):
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    field = random_field(ANY, n, n_labels, seed, forbidden=0.2)
    answer = convex(field, max_iter=60)
    least = least_energy(field)
    assert answer.bound <= least + 1e-8
    assert answer.value >= least - 1e-9
    assert answer.value == pytest.approx(field.energy(answer.labels), abs=1e-9)
    certified = certify(field, replace(answer, bound=-np.inf), MapOptions.read(field))
    assert certified.bound <= least + 1e-8
    assert certified.bound <= certified.value


def test_a_cardinality_with_centers_of_both_labels_need_not_be_exact():
    # submodular in the pairs, not in the set of variables with label 1: [x_0 = 0] + [x_1 = 1]
    table = np.array([0.0, 1.0, 0.0])
    field = Field(np.zeros((2, 2))) + Given(t.CardinalityTerm(np.array([0, 1]), table))
    answer = convex(field, init=[1, 1])
    assert answer.bound <= least_energy(field) + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_is_that_of_the_linear_programme(seed):
    # trees of Potts terms have a tight relaxation
    rng = np.random.default_rng(seed)
    n = 6
    edges = np.array([[int(rng.integers(0, i)), i] for i in range(1, n)])
    field = Field(rng.normal(size=(n, 3))) + Given(t.PottsTerm(edges, rng.random(n - 1)))
    answer = convex(field, max_iter=2000)
    assert answer.converged
    assert answer.relative_gap <= 1e-6
    assert answer.value == pytest.approx(least_energy(field), abs=1e-9)


def test_a_bound_stops_once_it_has_closed_the_gap():
    field = random_field(["potts", "count"], 6, 3, 2)
    seen = []
    answer = expansion(field)
    options = MapOptions.read(field, tol=10.0, callback=seen.append)
    certified = certify(field, replace(answer, bound=-np.inf), options)
    assert certified.bound <= least_energy(field)
    assert len(seen) <= 1


def test_an_interrupted_certificate_keeps_the_bound_so_far():
    field = random_field(["potts"], 6, 3, 3)
    answer = replace(expansion(field), bound=-np.inf)

    def stop(progress):
        raise KeyboardInterrupt

    certified = certify(field, answer, MapOptions.read(field, tol=0.0, callback=stop))
    if certified.interrupted:
        assert -np.inf < certified.bound <= least_energy(field) + 1e-9
    assert certified.value == answer.value


def test_an_initial_labelling_is_kept_unless_beaten():
    field = random_field(["robust", "potts"], 5, 3, 4)
    labels = np.array([0, 1, 2, 0, 1])
    answer = convex(field, init=labels, max_iter=0)
    assert answer.n_iter == 0
    assert answer.value <= field.energy(labels)
    with pytest.raises(ValueError, match="init must have shape"):
        convex(field, init=[0, 1])
    with pytest.raises(ValueError, match="init must lie between 0 and 2"):
        convex(field, init=[0, 1, 2, 3, 0])


def test_no_variables_one_label_no_potentials():
    empty = convex(Field(np.zeros((0, 2))) + Given(t.ConstantTerm(1.5)))
    assert (empty.value, empty.bound, empty.labels.shape, empty.exact) == (1.5, 1.5, (0,), True)
    single = random_field(["potts", "count", "label"], 4, 1, 0)
    answer = convex(single)
    assert answer.exact
    assert answer.value == pytest.approx(least_energy(single))
    alone = convex(Field([[1.0, 0.5, np.inf], [0.0, 2.0, 1.0]]))
    assert alone.exact
    assert alone.n_iter == 0
    np.testing.assert_array_equal(alone.labels, [1, 0])


def test_answers_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    index = np.arange(40 * 50).reshape(40, 50)
    edges = np.concatenate(
        [
            np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()]),
            np.column_stack([index[:-1].ravel(), index[1:].ravel()]),
        ]
    )
    field = Field(rng.normal(size=(2000, 6))) + Given(t.PottsTerm(edges, np.full(len(edges), 0.6)))
    one, two = (convex(field, max_iter=12, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert (one.value, one.bound) == (two.value, two.bound)


def test_a_callback_ends_it_with_what_holds_so_far():
    field = random_field(["potts", "label"], 7, 3, 5)
    answer = convex(field, tol=0.0, callback=lambda progress: True)
    assert answer.interrupted
    assert answer.n_iter == 0
    assert answer.bound <= least_energy(field) + 1e-9


def test_ctrl_c_leaves_a_valid_answer():
    field = random_field(["potts", "label"], 7, 3, 5)

    def interrupt(progress) -> None:
        if progress.n_iter > 0:
            raise KeyboardInterrupt

    answer = convex(field, callback=interrupt)
    assert answer.interrupted
    assert answer.bound <= least_energy(field) + 1e-9


def test_weights_at_the_end_of_the_numbers():
    """A temperature of theirs is none: it would be cooled down to 0."""
    field = Field([[0.0, 1e-300], [2e-300, 0.0], [0.0, 3e-300]])
    best = convex(field + Potts([[0, 1], [1, 2]], 1e-319))
    assert best.labels.tolist() == [0, 1, 0]
    assert best.exact
