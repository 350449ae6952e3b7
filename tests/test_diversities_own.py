"""Diversities written outside the library, in a few lines each: lists, bounds and guarantees."""

import pickle

import numpy as np
import pytest
import reference
from diverse_steps import check_guarantee, check_steps
from diversity_registry import chain
from field_registry import grid, of_seed

import setwise as sw
from setwise.diversities import Addition, Diversity
from setwise.fields import CardinalityPotential, LabelCost

# ------------------------------------------------------------------------- what a user would write


class Worth(Diversity):
    """sum_i w_i [y_i != y'_i] over the earlier items y': a change of unaries."""

    is_monotone, is_submodular = True, False

    def __init__(self, weights):
        self._set(weights=np.asarray(weights, float))

    def gain_of(self, labels, labelings, n_labels):
        return float(((labelings != labels) @ self.weights).sum())

    def addition(self, labelings, n_labels):
        return Addition(prices=[(y, self.weights) for y in labelings])


class Tent(Diversity):
    """-weight max(0, 1 - Ham(y, y') / reach) for each earlier item: functions of counts."""

    is_monotone, is_submodular, copies_take_most = False, True, True

    def __init__(self, weight, reach):
        self._set(weight=weight, reach=reach)

    def _tent(self, counts):
        return self.weight * np.maximum(0.0, 1.0 - counts / self.reach)

    def gain_of(self, labels, labelings, n_labels):
        return -float(self._tent((labelings != labels).sum(axis=1)).sum())

    def addition(self, labelings, n_labels):
        table = self._tent(np.arange(labelings.shape[1] + 1.0))
        return Addition(counts=[CardinalityPotential(y, table) for y in labelings])


class Boredom(Diversity):
    """-weight times how many earlier items used each label of y: another potential."""

    is_monotone, is_submodular, copies_take_most = False, True, True

    def __init__(self, weight):
        self._set(weight=weight)

    def _uses(self, labelings, n_labels):
        return (labelings[:, :, None] == np.arange(n_labels)).any(axis=1)

    def gain_of(self, labels, labelings, n_labels):
        uses = self._uses(labelings, n_labels).sum(axis=0)
        return -self.weight * float(uses[np.unique(labels)].sum())

    def addition(self, labelings, n_labels):
        counts = self._uses(labelings, n_labels).sum(axis=0)
        return Addition(potentials=[LabelCost(self.weight * counts)])


class Silent(Tent):
    """Says nothing of copies."""

    copies_take_most = None


def worth(n):
    return Worth(np.linspace(0.1, 0.9, n))


OWN = {
    "worth": worth,
    "tent": lambda n: Tent(2.0, 2.5),
    "boredom": lambda n: Boredom(0.7),
    "all": lambda n: worth(n) + 0.5 * Tent(2.0, 3.0) + Boredom(0.3),
    "with-theirs": lambda n: Boredom(0.4) + sw.diversities.HammingBall(1.0, 0.5) + worth(n),
}
FIELDS = ["potts-on-two-labels", "potts-on-three-labels", "any-cardinality", "forbidden-labels"]


# ---------------------------------------------------------------------------------- what they get


@pytest.mark.parametrize("method", ["auto", "multipliers"])
@pytest.mark.parametrize("field_name", FIELDS)
@pytest.mark.parametrize("name", OWN)
def test_steps(name, field_name, method):
    """Every step against all labellings."""
    field = of_seed(field_name, 0)
    diversity = OWN[name](field.n_variables)
    check_steps(field, diversity, sw.diverse(field, 3, diversity, method=method))


@pytest.mark.parametrize("name", OWN)
def test_the_addition_is_minus_the_gain(name):
    """Up to one constant for all labellings, which is what ``augment`` adds to the field."""
    field = of_seed("potts-on-three-labels", 1)
    n, labels = field.unary.shape
    diversity = OWN[name](n)
    every = reference.all_labelings(n, labels)[::7]
    for earlier in (every[:0], every[3:5]):
        gains = [diversity.gain(y, earlier, labels) for y in every]
        added = diversity.augment(field, earlier).energy(every) - field.energy(every)
        assert np.ptp(added + gains) < 1e-9


def test_prices_keep_a_cut_a_cut():
    field = sw.fields.Field(np.random.default_rng(0).normal(size=(60, 2)))
    field += sw.fields.Potts(grid(6, 10), 0.5)
    result = sw.diverse(field, 4, worth(60))
    assert result.exact
    assert set(result.methods) == {"cut"}
    tents = sw.diverse(field, 4, Tent(5.0, 12.0))
    assert set(tents.methods[1:]) <= {"multipliers", "messages"}
    assert np.isfinite(tents.gaps).all()


@pytest.mark.parametrize("name", ["tent", "boredom"])
def test_guarantees_by_what_they_declare(name):
    """Lemma 2 for a diversity that says what it needs, against all lists."""
    rng = np.random.default_rng(0)
    for n, labels in ((3, 2), (2, 3)):
        field = sw.fields.Field(rng.normal(size=(n, labels))) + sw.fields.Potts(chain(n), 0.4)
        for m in (1, 3):
            check_guarantee(field, OWN[name](n), m)


def test_without_a_declaration_there_is_no_guarantee():
    field = of_seed("potts-on-two-labels", 0)
    silent, declared = Silent(2.0, 2.5), Tent(2.0, 2.5)
    result = sw.diverse(field, 3, silent)
    assert result.guarantee is None
    assert "not known how much a list may take off the gain of an item" in result.reason
    assert result.labelings.tolist() == sw.diverse(field, 3, declared).labelings.tolist()
    assert (declared + silent).copies_take_most is None
    assert sw.diverse(field, 3, declared + silent).guarantee is None
    assert sw.diverse(field, 3, declared + Boredom(1.0)).guarantee is not None
    assert "is not known to be submodular" in sw.diverse(field, 3, worth(8)).reason


def test_sums_multiples_and_lists_of_lists():
    y, items = [0, 1, 1], [[0, 0, 1], [0, 1, 1]]
    tripled = 3.0 * Tent(2.0, 2.0)
    assert isinstance(tripled, Tent)
    assert (tripled.weight, tripled.reach) == (6.0, 2.0)
    assert (tripled + worth(3)).gain(y, items, 2) == pytest.approx(
        3.0 * Tent(2.0, 2.0).gain(y, items, 2) + worth(3).gain(y, items, 2)
    )
    with pytest.raises(TypeError, match=r"Worth must have a weight .* got neither"):
        2.0 * worth(3)
    field = of_seed("potts-on-three-labels", 0)
    both = sw.diversities.Concatenated([Tent(2.0, 2.0), worth(field.n_variables)])
    assert sw.diverse(field, 5, both).labelings.shape == (5, field.n_variables)
    again = pickle.loads(pickle.dumps(tripled))
    assert again.gain(y, items, 2) == tripled.gain(y, items, 2)
    tuned = sw.inference.tune_diversity(
        [field], [np.zeros(field.n_variables, int)], Tent, {"weight": [1.0], "reach": [2.0]}, m=2
    )
    assert isinstance(tuned.diversity, Tent)


# ---------------------------------------------------------------------------------------- additions


def test_additions_add_up_in_order():
    field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0], [0.0, 0.5]])
    count = CardinalityPotential([0, 1, 1], [3.0, 1.0, 0.5, 0.0])
    cost = LabelCost([1.0, 2.0])
    priced = Addition(prices=[([0, 1, 1], 2.0), ([0, 0, 0], [1.0, 2.0, 3.0])])
    both = Addition(potentials=[cost]) + priced + Addition(counts=[count])
    assert both.counts == (count,)
    assert both.potentials == (cost,)
    added = both.added_to(field)
    assert added.potentials == (cost, count)
    assert added.unary.tolist() == [[3.0, 1.0], [4.0, 2.0], [3.0, 2.5]]
    assert repr(both) == "Addition(prices=2, counts=1, potentials=1)"
    assert Addition().is_empty
    assert Addition().added_to(field) is field
    assert not any(part.is_empty for part in (both, priced, Addition(counts=[count])))
    with pytest.raises(ValueError, match="read-only"):
        priced.prices[0][0][0] = 1


FIELD = sw.fields.Field(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: Addition(prices=3), TypeError, "prices must be a sequence of pairs"),
        (lambda: Addition(prices=[3]), TypeError, "prices must be a sequence of pairs"),
        (lambda: Addition(prices=[([0], 1.0, 2)]), ValueError, "prices must be pairs .* got 3"),
        (lambda: Addition(prices=[([[0]], 1.0)]), ValueError, r"labels of shape \(N,\), got"),
        (lambda: Addition(prices=[([-1], 1.0)]), ValueError, "prices must lie between 0"),
        (lambda: Addition(prices=[([0], np.nan)]), ValueError, "prices must be finite, got nan"),
        (lambda: Addition(prices=[([0], [1, 2])]), ValueError, r"prices must be a number or have"),
        (lambda: Addition(counts=[3]), TypeError, "counts must be objects of Cardin.* got int"),
        (lambda: Addition(counts=[LabelCost([1.0])]), TypeError, "counts must be .* got LabelCost"),
        (lambda: Addition(potentials=LabelCost([1.0])), TypeError, "potentials must be a sequence"),
        (lambda: Addition() + 3, TypeError, "unsupported operand"),
        (
            lambda: Addition(prices=[([0, 1], 1.0)]).added_to(FIELD),
            ValueError,
            "prices must have a label for each of the field's 3 variables, got 2",
        ),
        (
            lambda: Addition(prices=[([0, 1, 2], 1.0)]).added_to(FIELD),
            ValueError,
            "prices must hold some of the field's 2 labels, numbered from 0, got 2",
        ),
    ],
)
def test_bad_input(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
