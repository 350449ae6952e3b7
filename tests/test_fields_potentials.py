"""Every potential is its definition, and the sum of its terms."""

import pickle

import numpy as np
import pytest
import reference
from field_registry import FIELDS, of_seed
from scipy.optimize import linprog

from setwise import fields
from setwise.fields import _terms

CASES = [pytest.param(name, seed, id=f"{name}-{seed}") for name in FIELDS for seed in range(3)]


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_energy_is_the_definition(name: str, seed: int) -> None:
    field = of_seed(name, seed)
    labelings = reference.all_labelings(field.n_variables, field.n_labels)
    expected = [reference.field_energy(field, labels) for labels in labelings]
    scale = max((abs(e) for e in expected if np.isfinite(e)), default=0.0)
    np.testing.assert_allclose(field.energy(labelings), expected, rtol=1e-12, atol=1e-12 * scale)
    assert field.energy(labelings[-1]) == field.energy(labelings)[-1]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_potential_is_the_sum_of_its_terms(name: str, seed: int) -> None:
    field = of_seed(name, seed)
    n, n_labels = field.n_variables, field.n_labels
    labelings = reference.all_labelings(n, n_labels)
    for potential in field.potentials:
        terms = potential.terms(n, n_labels)
        summed = [sum(reference.term_energy(term, x) for term in terms) for x in labelings]
        energies = potential.energies(labelings, n_labels)
        scale = np.abs(energies).max(initial=1.0, where=np.isfinite(energies))
        np.testing.assert_allclose(summed, energies, rtol=1e-11, atol=1e-11 * scale)
        read = [term for owner, term in field._terms() if owner is potential]
        summed = [sum(reference.term_energy(term, x) for term in read) for x in labelings]
        np.testing.assert_allclose(summed, energies, rtol=1e-11, atol=1e-11 * scale)
    assert [potential for potential, _ in field._given()] == [
        potential for potential in field.potentials for _ in potential.terms(n, n_labels)
    ]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_terms_are_what_they_promise(name: str, seed: int) -> None:
    field = of_seed(name, seed)
    n, n_labels = field.n_variables, field.n_labels
    for _, term in field._terms():
        match term:
            case _terms.ConstantTerm():
                assert np.isfinite(term.value)
            case _terms.UnaryTerm():
                assert term.unary.shape == (n, n_labels)
                assert np.isfinite(term.unary).all()
            case _terms.PottsTerm():
                assert term.weights.shape == (len(term.edges),)
                assert (term.weights >= 0).all()
            case _terms.TableTerm():
                assert term.tables.shape == (len(term.edges), n_labels, n_labels)
                assert term.tables.flags.c_contiguous or term.tables.strides[0] == 0
                assert term.weights.shape == (len(term.edges),)
                assert (term.weights >= 0).all()
            case _terms.CountTerm():
                sizes = np.bincount(term.regions[term.regions >= 0])
                assert (sizes > 0).all()
                np.testing.assert_array_equal(np.diff(term.starts), sizes + 1)
                for begin, end in zip(term.starts, term.starts[1:], strict=False):
                    bends = np.diff(term.table[begin:end], 2)
                    assert (bends <= 1e-12 * max(1.0, np.abs(term.table).max())).all()
            case _terms.RobustTerm():
                assert term.weights.shape == term.truncation.shape == (term.regions.max() + 1,)
                assert n_labels > 2
            case _terms.LabelTerm():
                assert term.labels.shape == (n_labels,)
                assert term.cost > 0
        for array in ("edges", "regions"):
            if hasattr(term, array):
                assert getattr(term, array).dtype == np.int64


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_submodular_terms_are_submodular(name: str, seed: int) -> None:
    """On all sets of pairs (variable, label), for the first variables of the field."""
    field = of_seed(name, seed)
    for _, term in field._terms():
        if not term.is_submodular:
            continue
        term, n, n_labels = shrink(term, field.n_variables, field.n_labels)
        values = reference.lifted(term, n, n_labels)
        assert reference.is_submodular(values)
        for labels in reference.all_labelings(n, n_labels):
            chosen = reference.index_of([i * n_labels + j for i, j in enumerate(labels)])
            close(values[chosen], reference.term_energy(term, labels))


def shrink(term, n, n_labels):
    """The term on so few variables and labels that all sets of pairs can be compared."""
    few = min(n, 8 // n_labels)
    match term:
        case _terms.UnaryTerm():
            term = _terms.UnaryTerm(term.unary[:few])
        case _terms.PottsTerm():
            inside = (term.edges < few).all(axis=1)
            term = _terms.PottsTerm(term.edges[inside], term.weights[inside])
        case _terms.CountTerm():
            # One region at a time is enough, with as many pairs as variables: one label.
            sizes = np.diff(term.starts) - 1
            size = int(sizes.max())
            first = int(np.argmax(sizes))
            table = term.table[term.starts[first] : term.starts[first + 1]]
            regions = np.zeros(size, np.int64)
            return _terms.CountTerm(regions, np.array([0, size + 1]), table), size, 1
        case _terms.CardinalityTerm():
            few = min(n, 4) if n_labels == 2 else few
            term = _terms.CardinalityTerm(term.center[:few], term.table[: few + 1])
    return term, few, n_labels


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_fields_say_what_their_potentials_say(name: str, seed: int) -> None:
    field = of_seed(name, seed)
    known = [potential.is_submodular for potential in field.potentials]
    if None not in known:
        assert field.is_submodular == all(known)
    assert not (field.is_submodular and False in known)


def test_two_labels_tell_submodular_tables() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        table = rng.integers(-2, 3, (2, 2)).astype(float)
        values = np.array([table[0, 0], table[1, 0], table[0, 1], table[1, 1]])
        assert fields.Pairwise([[0, 1]], table).is_submodular == reference.is_submodular(values)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5])
def test_robust_region_is_a_sum_over_labels_exactly_where_it_says(n_labels: int) -> None:
    """A linear program looks for any h with sum_j h(n_j) = price, concave or not."""
    for size in range(1, 9):
        spreads = [s for s in partitions(size, size) if len(s) <= n_labels]
        for limit in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.5, 20.0):
            potential = fields.RobustPn([0] * size, 1.0, limit)
            rows = np.zeros((len(spreads), size + 1))
            for row, spread in zip(rows, spreads, strict=True):
                for count in [*spread, *[0] * (n_labels - len(spread))]:
                    row[count] += 1
            price = [min(1.0, (size - max(s)) / limit) for s in spreads]
            bends = np.array([np.eye(size + 1)[k : k + 3] for k in range(size - 1)])
            found = linprog(
                np.zeros(size + 1),
                A_ub=bends.transpose(0, 2, 1) @ [1.0, -2.0, 1.0] if size > 1 else None,
                b_ub=np.zeros(size - 1) if size > 1 else None,
                A_eq=rows,
                b_eq=price,
                bounds=(None, None),
            )
            terms = fields.Field(np.zeros((size, n_labels)))._terms_of(potential)
            assert (found.status == 0) == isinstance(terms[0], _terms.CountTerm), (size, limit)


def partitions(n: int, most: int):
    if n == 0:
        yield ()
    for part in range(min(n, most), 0, -1):
        for rest in partitions(n - part, part):
            yield (part, *rest)


def test_robust_potential_knows_when_labels_matter() -> None:
    assert fields.RobustPn([0] * 6, 1.0, 3.0).is_submodular is True
    deep = fields.RobustPn([0] * 6, 1.0, 4.0)
    assert deep.is_submodular is None
    for n_labels, submodular in [(1, True), (2, True), (3, False), (6, False)]:
        field = fields.Field(np.zeros((6, n_labels))) + deep
        assert field.is_submodular is submodular


@pytest.mark.parametrize("name", FIELDS)
def test_fields_survive_pickle(name: str) -> None:
    field = of_seed(name, 0)
    copy = pickle.loads(pickle.dumps(field))
    labelings = reference.all_labelings(field.n_variables, field.n_labels)
    np.testing.assert_array_equal(copy.energy(labelings), field.energy(labelings))
    assert repr(copy) == repr(field)


def test_a_relative_truncation_must_stay_finite() -> None:
    with pytest.raises(
        ValueError, match=r"truncation times a region's size must be finite.*1e\+308"
    ):
        fields.RobustPn([0] * 6, 2.0, 1e308, relative=True)
    assert fields.RobustPn([0] * 6, 2.0, 1e308).truncation.tolist() == [1e308]
