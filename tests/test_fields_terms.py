"""Terms: their own answers, and potentials that are written outside the library."""

import dataclasses
import pickle

import numpy as np
import pytest
from examples_of_fields import TERMS
from field_registry import FIELDS, of_seed
from field_terms import ANY, random_term
from reference import all_labelings, term_energy

import setwise as sw
from setwise import fields
from setwise.diversities import DivMBest
from setwise.fields._terms import KINDS, ConstantTerm, PottsTerm, TableTerm, UnaryTerm, fold
from setwise.inference._map._methods import METHODS

DRAWN = [pytest.param(kind, seed, id=f"{kind}-{seed}") for kind in ANY for seed in range(4)]


def drawn(kind: str, seed: int) -> tuple[fields.Term, int, int]:
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    return random_term(kind, n, n_labels, rng), n, n_labels


@pytest.mark.parametrize(("kind", "seed"), DRAWN)
def test_a_term_knows_its_energies_and_how_far_they_go(kind: str, seed: int) -> None:
    term, n, n_labels = drawn(kind, seed)
    labelings = all_labelings(n, n_labels)
    energies = term._energies(labelings, n_labels)
    expected = [term_energy(term, x) for x in labelings]
    np.testing.assert_allclose(energies, expected, rtol=1e-12, atol=1e-12)
    assert term._least(n, n_labels) <= energies.min() + 1e-12
    assert np.abs(energies).max() <= term._most(n_labels) + 1e-12
    term._check(n, n_labels)


def test_counts_of_labels_that_nobody_takes() -> None:
    term = fields.CountTerm([0, 0, -1], [0, 3], [1.0, 3.0, 4.0])
    energies = term._energies(np.array([[0, 0, 0], [0, 1, 0]]), 3)
    assert energies.tolist() == [4.0 + 1.0 + 1.0, 3.0 + 3.0 + 1.0]
    assert term._least(3, 3) == 6.0


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_public_and_may_be_pickled(kind: type[fields.Term]) -> None:
    assert getattr(fields, kind.__name__) is kind
    arguments = TERMS[kind.__name__]
    term = kind(**arguments)
    assert set(arguments) == set(kind.__match_args__)
    again = pickle.loads(pickle.dumps(term))
    assert repr(again) == repr(term)
    with pytest.raises(AttributeError, match="is immutable"):
        term.is_submodular = True


def test_constants_and_unaries_are_folded_in_order() -> None:
    rng = np.random.default_rng(0)
    first, second, third = rng.normal(size=(3, 4, 2))
    potts = fields.PottsTerm([[0, 1]], 1.0)
    terms = [UnaryTerm(second), ConstantTerm(0.1), potts, UnaryTerm(third), ConstantTerm(0.2)]
    constant, unary, rest = fold(first, [(None, term) for term in terms])
    assert constant == 0.1 + 0.2
    np.testing.assert_array_equal(unary, (first + second) + third)
    assert [term for _, term in rest] == [potts]
    field = fields.Field(first) + fields.Pairwise([[0, 1]], rng.normal(size=(2, 2)))
    assert field._folded() is field._folded()


# --------------------------------------------------------- potentials from outside the library


@dataclasses.dataclass(frozen=True, eq=False)
class Squares(fields.Potential):
    """(x_i - x_{i+1})^2 along a row, plus a price of how many are not 0, plus 2."""

    prices: tuple[float, ...]

    def terms(self, n_variables: int, n_labels: int) -> list[fields.Term]:
        edges = [(i, i + 1) for i in range(n_variables - 1)]
        square = np.subtract.outer(np.arange(n_labels), np.arange(n_labels)) ** 2.0
        zeros = np.zeros(n_variables, int)
        return [
            fields.TableTerm(edges, np.tile(square, (len(edges), 1, 1))),
            fields.CardinalityTerm(zeros, self.prices[: n_variables + 1]),
            fields.ConstantTerm(2.0),
        ]

    def true(self, x: np.ndarray) -> float:
        return float((np.diff(x) ** 2).sum() + self.prices[np.count_nonzero(x)] + 2.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Crowd(fields.Potential):
    """The root of each label's count, w for each pair of neighbours that differ, a bonus for 1."""

    w: float
    bonus: float

    def terms(self, n_variables: int, n_labels: int) -> tuple[fields.Term, ...]:
        edges = [(i, i + 1) for i in range(n_variables - 1)]
        roots = np.sqrt(np.arange(n_variables + 1))
        unary = np.zeros((n_variables, n_labels))
        unary[:, 1] = -self.bonus
        everyone = np.zeros(n_variables, int)
        return (
            fields.PottsTerm(edges, self.w),
            fields.UnaryTerm(unary),
            fields.CountTerm(everyone, [0, n_variables + 1], roots),
        )

    def true(self, x: np.ndarray) -> float:
        roots = np.sqrt(np.bincount(x)).sum()
        return float(roots + self.w * np.count_nonzero(np.diff(x)) - self.bonus * (x == 1).sum())


OWN = {
    "squares": (Squares((0.0, 1.0, 0.5, 2.0, -1.0, 0.0, 1.0)), 3),
    "crowd": (Crowd(0.5, 0.25), 3),
    "crowd of two labels": (Crowd(0.5, 0.25), 2),
}


def own(name: str, seed: int) -> tuple[fields.Field, np.ndarray, np.ndarray]:
    """A field with a potential of one's own, all labellings, and their energies by definition."""
    potential, n_labels = OWN[name]
    unary = np.random.default_rng(seed).normal(size=(5, n_labels))
    labelings = all_labelings(5, n_labels)
    energies = [unary[np.arange(5), x].sum() + potential.true(x) for x in labelings]
    return fields.Field(unary) + potential, labelings, np.array(energies)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", OWN)
class TestOwnPotential:
    def test_energies_are_the_sum_of_the_terms(self, name: str, seed: int) -> None:
        field, labelings, energies = own(name, seed)
        np.testing.assert_allclose(field.energy(labelings), energies, rtol=1e-12, atol=1e-12)
        assert field.is_submodular == (name != "squares")

    def test_solve_map(self, name: str, seed: int) -> None:
        field, _, energies = own(name, seed)
        best = sw.solve_map(field)
        assert best.exact
        assert best.value == pytest.approx(energies.min(), abs=1e-9)
        for method, record in METHODS.items():
            if record.obstacle(field) is None:
                found = sw.solve_map(field, method)
                assert found.bound - 1e-9 <= energies.min() <= found.value + 1e-9
                assert found.value == pytest.approx(field.energy(found.labels), abs=1e-12)

    def test_marginals(self, name: str, seed: int) -> None:
        field, _, energies = own(name, seed)
        log_z = np.logaddexp.reduce(-energies)
        post = sw.marginals(field)
        assert post.log_partition_lower - 1e-9 <= log_z <= post.log_partition_upper + 1e-9
        kinds = {type(term) for _, term in field._terms()}
        bounded = "trees" if kinds & {PottsTerm, TableTerm} else "projection"
        assert post.method == "elimination"
        post = sw.marginals(field, init=post)
        assert post.log_partition_lower - 1e-9 <= log_z <= post.log_partition_upper + 1e-9
        assert post.method == ("mean_field" if name == "squares" else bounded)
        if field.n_labels == 2:
            exact = sw.marginals(field, "exact_binary")
            assert log_z <= exact.log_partition_upper + 1e-9

    def test_diverse(self, name: str, seed: int) -> None:
        field, labelings, energies = own(name, seed)
        found = sw.diverse(field, 2, DivMBest(0.5))
        first = labelings[np.argmin(energies)]
        assert found.labelings[0].tolist() == first.tolist()
        away = energies - 0.5 * (labelings != first).sum(axis=1)
        second = energies - 0.5 * (labelings != found.labelings[0]).sum(axis=1)
        chosen = np.flatnonzero((labelings == found.labelings[1]).all(axis=1))[0]
        assert second[chosen] == pytest.approx(away.min(), abs=1e-9)


def test_a_file_holds_what_its_terms_say(tmp_path) -> None:
    class Pair(fields.Potential):
        def terms(self, n_variables: int, n_labels: int) -> tuple[fields.Term, ...]:
            table = np.arange(n_labels**2, dtype=float).reshape(1, n_labels, n_labels)
            return fields.PottsTerm([[0, 1]], 0.5), fields.TableTerm([[1, 2]], table)

    field = fields.Field(np.zeros((3, 2))) + Pair()
    fields.write_uai(field, tmp_path / "own.uai")
    labelings = all_labelings(3, 2)
    read = fields.read_uai(tmp_path / "own.uai")
    np.testing.assert_allclose(read.energy(labelings), field.energy(labelings), atol=1e-12)
    with pytest.raises(ValueError, match=r"Pairwise and clique potentials only, got Crowd\("):
        fields.write_uai(fields.Field(np.zeros((3, 2))) + Crowd(1.0, 0.0), tmp_path / "no.uai")


def test_large_prices_of_an_own_potential_hide_nothing() -> None:
    """What rounding may have done to a bound is taken off it."""

    class Steep(fields.Potential):
        def terms(self, n_variables: int, n_labels: int) -> tuple[fields.Term, ...]:
            return (fields.TableTerm([[0, 1]], [[[1.0, 3.75], [3e20, 1.5]]]),)

    field = fields.Field([[0.0, 0.0], [1e20, 0.0]]) + Steep()
    for method in METHODS:
        best = sw.solve_map(field, method)
        assert best.bound <= 1.5
        assert not best.exact or best.value == 1.5


@dataclasses.dataclass(frozen=True, eq=False)
class Offset(fields.Potential):
    """Small terms, each with a constant of a size, and with costs that no good labelling pays."""

    constant: float
    cost: float

    def terms(self, n_variables: int, n_labels: int) -> tuple[fields.Term, ...]:
        c, high = self.constant, self.cost
        table = np.array([[0.25, 1.5, 3.0], [1.0, 0.5, high], [2.5, 1.75, 0.0]])
        unary = np.zeros((n_variables, n_labels))
        unary[0], unary[1] = c, [c + 1.0, c, high]
        alone = np.array([c + 2.0, c, c + 1.0, c + high, *[c + 3.0] * (n_variables - 3)])
        triple = np.full((1, 3, 3, 3), c)
        triple[0, 0, 1, 2], triple[0, 2, 2, 2] = c + 1.5, high
        return (
            fields.ConstantTerm(-3.0 * c),
            fields.UnaryTerm(unary),
            fields.TableTerm([[0, 1], [1, 2]], [table, table - c]),
            fields.CardinalityTerm(np.zeros(n_variables, int), alone),
            fields.CliqueTerm([[1, 2, 3]], triple),
            fields.CountTerm([0, 0, -1, -1, -1], [0, 3], [c, c + 1.0, c]),
            fields.LabelTerm(high, [False, False, True]),
        )


@pytest.mark.parametrize(("constant", "cost"), [(2.0**40, 2.0**60), (2.0**45, 1e20)])
def test_constants_and_costs_of_an_own_potential_take_no_digits(constant, cost) -> None:
    """The terms of any potential are conditioned: the small numbers in them decide."""
    unary = np.random.default_rng(3).integers(0, 64, (5, 3)) / 16
    field = fields.Field(unary) + Offset(constant, cost)
    small = fields.Field(unary) + Offset(0.0, 1e4)
    labelings = all_labelings(5, 3)
    expected = labelings[np.argmin(small.energy(labelings))]
    offset = field.energy(expected) - small.energy(expected)
    found = 0
    for method, record in METHODS.items():
        if record.obstacle(field) is not None:
            continue
        best = sw.solve_map(field, method)
        assert best.bound <= field.energy(expected) <= best.value
        if record.is_exact or best.exact:
            assert best.labels.tolist() == expected.tolist()
            assert best.exact
            found += 1
    assert found >= 2
    post, wanted = sw.marginals(field), sw.marginals(small)
    np.testing.assert_allclose(post.probabilities, wanted.probabilities, atol=1e-9)
    log_z = wanted.log_partition_lower - offset
    assert post.log_partition_lower - 1e-2 <= log_z <= post.log_partition_upper + 1e-2


PAIRS = [[0, 1], [1, 2]]


class Wrong(fields.Potential):
    def __init__(self, *terms: object) -> None:
        self._set(given=terms)

    def terms(self, n_variables: int, n_labels: int) -> object:
        return self.given[0] if self.given[0] is None else self.given


@pytest.mark.parametrize(
    ("term", "said"),
    [
        (fields.UnaryTerm(np.zeros((3, 3))), r"unary must have the field's shape \(3, 2\)"),
        (fields.PottsTerm([[0, 3]], 1.0), "edges must join the field's 3 variables"),
        (fields.TableTerm([[0, 3]], np.zeros((1, 2, 2))), "edges must join the field's 3"),
        (fields.TableTerm([[0, 1]], np.zeros((1, 3, 3))), "tables must have a row and a column"),
        (fields.TransitionTerm([[0, 1]], 1 - np.eye(3)), "costs must have a row and a column"),
        (fields.CountTerm([0, 0], [0, 3], [0.0, 1.0, 1.0]), "regions must have an entry for each"),
        (fields.RobustTerm([0, 0], [1.0], [1.0]), "regions must have an entry for each"),
        (fields.LabelTerm(1.0, [True]), "labels must have an entry for each of the field's 2"),
        (fields.CardinalityTerm([0, 0], np.zeros(3)), "center must have an entry for each"),
        (fields.CardinalityTerm([0, 2, 0], np.zeros(4)), "center must hold some of the field's 2"),
    ],
)
def test_terms_that_do_not_fit_are_refused_where_they_are_added(term, said) -> None:
    with pytest.raises(ValueError, match=said):
        fields.Field(np.zeros((3, 2))) + Wrong(term)


def test_what_is_no_term_is_refused() -> None:
    field = fields.Field(np.zeros((3, 2)))
    with pytest.raises(TypeError, match=r"terms of Wrong\(\) must be a list, got NoneType"):
        field + Wrong(None)
    with pytest.raises(TypeError, match=r"terms of Wrong\(\) must be terms, got Potts"):
        field + Wrong(fields.Potts([[0, 1]], 1.0))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: fields.CountTerm([0, 2], [0, 2, 4], np.zeros(4)), "regions must be numbered"),
        (lambda: fields.CountTerm([0, 0], [0, 2], np.zeros(3)), "starts must leave each region"),
        (lambda: fields.CountTerm([0, 0], [0, 3], np.zeros(4)), "table must have 3 entries"),
        (lambda: fields.CountTerm([0, 0], [0, 3], [0.0, 0.0, 1.0]), "table must be concave"),
        (lambda: fields.RobustTerm([0, 0], [1.0], [0.0]), "truncation must be positive"),
        (lambda: fields.TransitionTerm(PAIRS, 1 - np.eye(2), np.square), "concave must be conc"),
        (lambda: fields.TableTerm([[0, 1]], np.zeros((1, 2, 3))), "tables must have shape"),
        (lambda: fields.LabelTerm(1.0, [[True]]), "labels must have shape"),
        (lambda: fields.PottsTerm([[0, 1]], -1.0), "weights must not be negative"),
    ],
)
def test_terms_are_checked_when_they_are_made(make, said) -> None:
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("name", FIELDS)
def test_terms_of_the_potentials_are_as_good_as_checked_ones(name: str) -> None:
    field = of_seed(name, 0)
    for _, term in field._terms():
        arguments = {part: getattr(term, part) for part in term.__match_args__}
        type(term)(**arguments)._check(*field.unary.shape)


def test_a_potential_of_ones_own_is_told_how_to_set_its_fields() -> None:
    class Plain(fields.Potential):
        def __init__(self, price: float) -> None:
            self.price = price

        def terms(self, n_variables: int, n_labels: int) -> list[fields.Term]:
            return [ConstantTerm(self.price)]

    with pytest.raises(
        AttributeError, match=r"has the field price is a @dataclasses\.dataclass\(frozen=True"
    ):
        Plain(1.0)

    class Told(Plain):
        def __init__(self, price: float) -> None:
            self._set(price=price)

    @dataclasses.dataclass(frozen=True, eq=False)
    class Frozen(Plain):
        price: float

    for kind in (Told, Frozen):
        assert (fields.Field([[1.0, 2.0]]) + kind(3.0)).energy([1]) == 5.0
    with pytest.raises(AttributeError, match=r"make a new one$"):
        fields.Potts([[0, 1]], 1.0).weights = 2.0
