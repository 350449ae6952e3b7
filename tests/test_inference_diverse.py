"""Diverse lists: every step against all labellings, every guarantee against all lists."""

import numpy as np
import pytest
import reference
from diverse_steps import check_guarantee, check_steps
from diversity_registry import DIVERSITIES, chain
from field_registry import FIELDS, grid, of_seed
from hypothesis import given
from hypothesis import strategies as st

import setwise as sw
from setwise import diversities as d
from setwise import fields

STEPS = list(DIVERSITIES)
WITHOUT_POTENTIAL = [name for name, entry in DIVERSITIES.items() if not entry.steps]
METHODS = ["auto", "multipliers", "branches"]
SUBSET = [
    "potts-on-two-labels",
    "potts-on-three-labels",
    "any-tables-on-three-labels",
    "segmentation",
    "label-costs",
    "label-transitions",
    "concave-cardinality",
    "any-cardinality",
    "forbidden-labels-on-two-labels",
    "forbidden-labels",
    "ties",
    "one-label",
    "one-variable",
]


# ------------------------------------------------------------------------------------------- steps


@pytest.mark.parametrize(
    ("field_name", "name"),
    [
        (field_name, name)
        for field_name in SUBSET
        for name in STEPS
        if (field_name, name) != ("one-label", "groups-with-parsimony")  # groups of two labels
    ],
)
def test_steps_by_default(field_name, name):
    field = of_seed(field_name, 0)
    diversity = DIVERSITIES[name].make(field.n_variables)
    result = sw.diverse(field, 3, diversity)
    check_steps(field, diversity, result)
    # Few labellings: all are tried, so only a first item that is no greedy step can have a gap.
    assert (result.relative_gaps[1:] <= 1e-9).all()


@pytest.mark.parametrize("field_name", ["potts-on-two-labels", "potts-on-three-labels", "ties"])
@pytest.mark.parametrize("name", WITHOUT_POTENTIAL)
def test_steps_without_a_potential_where_labellings_are_many(name, field_name, monkeypatch):
    field = of_seed(field_name, 0)
    diversity = DIVERSITIES[name].make(field.n_variables)
    where = "setwise.inference._diverse._greedy_list.can_list_all"
    monkeypatch.setattr(where, lambda n, n_labels: False)
    if name == "groups-of-labellings":
        with pytest.raises(ValueError, match="groups must be of labels"):
            sw.diverse(field, 3, diversity)
        return
    result = sw.diverse(field, 3, diversity)
    check_steps(field, diversity, result)


def test_coverage_of_balls_in_a_picture():
    rng = np.random.default_rng(0)
    field = fields.Field(rng.normal(size=(100, 2))) + fields.Potts(grid(10, 10), 0.3)
    result = sw.diverse(field, 4, d.BallCoverage(30.0, 1))
    assert not result.repeated.any()
    assert (result.gaps <= 30.0).all()
    assert result.guarantee is not None
    assert result.guarantee.score >= result.guarantee.factor * result.guarantee.bound - sum(
        result.gaps
    )


@pytest.mark.parametrize("method", ["multipliers", "messages", "convex", "enumerate"])
@pytest.mark.parametrize("field_name", ["potts-on-two-labels", "potts-on-three-labels", "ties"])
@pytest.mark.parametrize("name", ["hamming-ball", "wide-hamming-ball", "ball-coverage-bound"])
def test_balls_by_every_method(name, field_name, method):
    field = of_seed(field_name, 1)
    diversity = DIVERSITIES[name].make(field.n_variables)
    result = sw.diverse(field, 3, diversity, method=method)
    check_steps(field, diversity, result)
    assert all(used in (method, "cut", "expansion", "enumerate") for used in result.methods)


@given(st.integers(0, 2**32 - 1))
def test_multipliers_bound_every_labelling(seed):
    rng = np.random.default_rng(seed)
    links = grid(2, 3)
    field = fields.Field(rng.normal(0.0, 1.0, (6, 2)))
    field += fields.Potts(links, rng.uniform(0.0, 1.0, len(links)))
    diversity = d.HammingBall(rng.uniform(0.1, 4.0), rng.uniform(0.05, 1.0))
    if seed % 3 == 0:
        diversity = diversity + d.DivMBest(rng.uniform(0.0, 0.3))
    if seed % 3 == 1:
        diversity = diversity + d.LabelDiversity("sqrt", rng.uniform(0.0, 1.0))
    for method in ("multipliers", "branches"):
        check_steps(field, diversity, sw.diverse(field, 3, diversity, method=method))


@pytest.mark.parametrize("seed", range(3))
def test_branches_close_what_small_balls_under_strong_smoothing_leave(seed):
    """Parts that only a mixture can halve: multipliers alone bound them by what a half costs."""
    rng = np.random.default_rng(seed)
    blocks = (rng.normal(size=(6, 6)) + 0.3).repeat(5, axis=0).repeat(5, axis=1).ravel()
    unary = np.stack([0.1 * blocks, -0.1 * blocks], axis=1)
    unary += 0.05 * rng.normal(size=unary.shape)
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((30, 30)), 0.2)
    ball = d.HammingBall(2.0, 0.1)
    plain = sw.diverse(field, 4, ball, method="multipliers")
    closed = sw.diverse(field, 4, ball, method="branches")
    assert plain.gaps.max() > 0.09 * 2.0
    assert closed.gaps.max() <= 0.05 * 2.0
    assert closed.bounds[1] >= plain.bounds[1] - 1e-9


@pytest.mark.parametrize("field_name", ["potts-on-two-labels", "segmentation", "submodular-tables"])
def test_div_m_best_of_two_labels_is_exact(field_name):
    field = of_seed(field_name, 2)
    result = sw.diverse(field, 5, d.DivMBest(0.4))
    assert result.exact
    assert result.methods == ("cut",) * 5
    check_steps(field, d.DivMBest(0.4), result)


@pytest.mark.parametrize("field_name", list(FIELDS))
def test_the_first_item_is_the_best_labelling(field_name):
    field = of_seed(field_name, 3)
    for diversity in (d.HammingBall(1.0, 0.5), d.LabelDiversity("log1p", 1.0)):
        result = sw.diverse(field, 2, diversity)
        assert result.values[0] == pytest.approx(sw.solve_map(field).value, abs=1e-9)
        assert len(result.labelings) == min(2, field.n_labels**field.n_variables)


def test_a_first_item_that_is_no_greedy_step_has_a_gap():
    """log(2) < 1: parsimony charges for labels that are new too, and the gap says so."""
    field = of_seed("potts-on-three-labels", 0)
    diversity = d.LabelDiversity("log1p", 3.0)
    check_steps(field, diversity, sw.diverse(field, 1, diversity))
    free = d.LabelDiversity("log1p", 3.0, parsimony=float(np.log(2.0)))
    assert sw.diverse(field, 1, free).exact


def test_large_grids_have_small_gaps():
    """Many cuts meet at the best multipliers, and parts of them close the gap between."""
    rng = np.random.default_rng(0)
    field = fields.Field(rng.normal(0.0, 1.0, (2000, 2))) + fields.Potts(grid(40, 50), 0.4)
    weight = 20.0
    result = sw.diverse(field, 6, d.HammingBall(weight, 0.02))
    assert set(result.methods[1:]) <= {"multipliers", "messages"}
    assert result.gaps.max() < 0.02 * weight
    assert not result.repeated.any()
    far = (result.labelings[:, None] != result.labelings[None]).sum(axis=2)
    assert far[np.triu_indices(6, 1)].min() > 50


def test_many_labels_have_bounds():
    rng = np.random.default_rng(0)
    links = grid(10, 12)
    field = fields.Field(rng.normal(0.0, 1.0, (120, 5))) + fields.Potts(links, 0.3)
    for diversity in (
        d.HammingBall(5.0, 0.1),
        d.LabelDiversity("sqrt", 5.0),
        d.TransitionDiversity(links, "min1", 2.0),
        d.DivMBest(0.1),
        d.HammingBall(5.0, 0.1) + d.LabelDiversity("min1", 2.0) + d.DivMBest(0.05),
    ):
        result = sw.diverse(field, 4, diversity)
        augmented = diversity.augment(field, result.labelings[:3])
        offset = augmented.energy(result.labelings[3]) - (result.values[3] - result.gains[3])
        certified = sw.solve_map(augmented, "convex", max_iter=300)
        assert result.bounds[3] <= certified.value - offset + 1e-9
        assert np.isfinite(result.gaps).all()
        assert result.values[3] - result.gains[3] <= certified.value - offset + 0.5


# -------------------------------------------------------------------------------------- guarantees


@pytest.mark.parametrize("name", [name for name in STEPS if DIVERSITIES[name].submodular])
@pytest.mark.parametrize("method", METHODS)
def test_theorem_lemma_2(name, method):
    """The list meets its guarantee against the best of all lists, for the shifted score."""
    rng = np.random.default_rng([3, *name.encode()])
    for n, labels in ((3, 2), (2, 3)):
        links = chain(n)
        field = fields.Field(rng.normal(0.0, 1.0, (n, labels)))
        field += fields.Potts(links, rng.uniform(0.0, 1.0, len(links)))
        diversity = DIVERSITIES[name].make(n)
        for m in (1, 3, 4):
            check_guarantee(field, diversity, m, method)


def test_the_shift_keeps_items_worth_adding():
    """Put behind any m items and those before it, no item of the list lowers the score."""
    rng = np.random.default_rng(0)
    field = fields.Field(rng.normal(0.0, 1.0, (3, 2))) + fields.Potts(chain(3), 0.4)
    every = reference.all_labelings(3, 2)
    for diversity in (d.HammingBall(2.0, 0.5), d.LabelDiversity("sqrt", 1.0)):
        result = sw.diverse(field, 3, diversity)
        for t, y in enumerate(result.labelings):
            for _ in range(200):
                others = every[rng.integers(0, 8, 3)]
                before = np.concatenate([result.labelings[:t], others])
                gain = result.guarantee.shift - result.values[t] + diversity.gain(y, before, 2)
                assert gain >= -1e-9


def test_no_guarantee_where_nothing_is_known():
    field = of_seed("potts-on-two-labels", 0)
    for diversity in (d.DivMBest(1.0), d.DivMBest(1.0) + d.HammingBall(1.0, 1.0)):
        result = sw.diverse(field, 3, diversity)
        assert result.guarantee is None
        assert "is not known to be submodular" in result.reason
    pair = d.Concatenated([d.HammingBall(1.0, 1.0), d.LabelDiversity()])
    result = sw.diverse(field, 3, pair)
    assert result.guarantee is None
    assert "concatenated lists maximise no score" in result.reason


# ------------------------------------------------------------------------------------------- lists


def test_more_items_than_labellings():
    field = fields.Field([[0.0, 0.3], [0.5, 0.0]])
    result = sw.diverse(field, 7, d.HammingBall(3.0, 1.0))
    assert result.labelings.shape == (4, 2)
    assert not result.repeated.any()
    assert result.reason.endswith("The list ends at 4 items: the field has no more labellings.")
    assert not result.interrupted
    check_steps(field, d.HammingBall(3.0, 1.0), result)
    four = sw.diverse(field, 4, d.HammingBall(3.0, 1.0))
    assert result.labelings.tolist() == four.labelings.tolist()
    assert "ends" not in four.reason


# held at label 0, those of hard cliques forbid everything
@pytest.mark.parametrize("field_name", [name for name in FIELDS if name != "hard-cliques"])
def test_a_list_ends_with_the_labellings_there_are(field_name):
    """A field of few labellings, two variables free and the others held, and a million items."""
    drawn = of_seed(field_name, 0)
    unary = drawn.unary.copy()
    unary[2:] = np.where(np.arange(drawn.n_labels) == 0, 0.0, np.inf)
    field = drawn.with_unary(unary)
    most = int(np.isfinite(unary).sum(axis=1).prod())
    for diversity in (d.HammingBall(3.0, 1.0), d.DivMBest(0.0)):
        result = sw.diverse(field, 10**6, diversity)
        assert len(result.labelings) == most
        assert result.reason.endswith(f"ends at {most} items: the field has no more labellings.")
    both = sw.diverse(field, 10**6, d.Concatenated([d.HammingBall(3.0, 1.0), d.DivMBest(0.1)]))
    assert len(both.labelings) == 2 * most - 1  # the first item once
    assert "no more labellings" in both.reason


def test_a_small_weight_repeats_the_best():
    field = fields.Field([[0.0, 10.0], [10.0, 0.0]])
    result = sw.diverse(field, 3, d.HammingBall(0.1, 1.0))
    assert result.labelings.tolist() == [[0, 1]] * 3
    assert result.repeated.tolist() == [False, True, True]
    assert result.gains.tolist() == [0.0, -0.1, -0.2]


def test_one_label_and_no_variables():
    for field in (of_seed("one-label", 0), of_seed("no-variables", 0)):
        for diversity in (d.HammingBall(1.0, 1.0), d.LabelDiversity(), d.DivMBest(1.0)):
            result = sw.diverse(field, 3, diversity)
            assert result.labelings.shape == (1, field.n_variables)
            assert result.repeated.tolist() == [False]
            assert result.gaps.max() < 1e-9


def test_concatenated_lists():
    """The first item once, then each part's own list, which knows nothing of the others."""
    rng = np.random.default_rng(1)
    field = fields.Field(rng.normal(size=(60, 2))) + fields.Potts(grid(6, 10), 0.5)
    ball, linear = d.HammingBall(8.0, 0.1), d.DivMBest(0.2)
    both = sw.diverse(field, 6, d.Concatenated([ball, linear]))
    alone = [sw.diverse(field, 4, ball), sw.diverse(field, 3, linear)]
    assert both.values.shape == (6,)
    assert both.values[:4].tolist() == alone[0].values.tolist()
    assert both.values[4:].tolist() == alone[1].values[1:].tolist()
    assert both.gains[4:] == pytest.approx(alone[1].gains[1:])
    only = sw.diverse(field, 3, d.Concatenated([ball, linear], shares=[0, 2]))
    assert only.labelings.tolist() == alone[1].labelings.tolist()


def test_answers_do_not_depend_on_threads():
    rng = np.random.default_rng(2)
    field = fields.Field(rng.normal(size=(120, 4))) + fields.Potts(grid(10, 12), 0.3)
    diversity = d.HammingBall(5.0, 0.1) + d.LabelDiversity("sqrt", 1.0)
    one, two = (sw.diverse(field, 3, diversity, n_jobs=k) for k in (1, 2))
    assert one.labelings.tolist() == two.labelings.tolist()
    assert one.bounds.tolist() == two.bounds.tolist()


def test_a_callback_sees_every_item_and_may_end_the_list():
    field = of_seed("potts-on-two-labels", 0)
    seen = []
    result = sw.diverse(field, 4, d.HammingBall(1.0, 0.5), callback=seen.append)
    assert [step.n_items for step in seen] == [1, 2, 3, 4]
    assert [step.value for step in seen] == result.values.tolist()
    assert [step.gap for step in seen] == pytest.approx(result.gaps)
    assert not result.interrupted
    for stop in (1, 2):
        short = sw.diverse(
            field, 4, d.HammingBall(1.0, 0.5), callback=lambda step, k=stop: step.n_items == k
        )
        assert short.labelings.tolist() == result.labelings[:stop].tolist()
        assert short.interrupted
        assert short.guarantee.n_items == stop
    whole = sw.diverse(field, 2, d.DivMBest(1.0), callback=lambda step: step.n_items == 2)
    assert not whole.interrupted


def test_a_callback_ends_lists_of_lists_at_any_item():
    """At the end of a part too, be it the same diversity as the last one's, or the last empty."""
    field, ball = of_seed("potts-on-two-labels", 0), d.HammingBall(1.0, 0.5)
    for diversity in (d.Concatenated([ball, ball]), d.Concatenated([ball, d.DivMBest(1.0)])):
        for stop in range(1, 6):
            seen = []
            found = sw.diverse(
                field, 5, diversity, callback=lambda _, k=stop, s=seen: s.append(0) or len(s) == k
            )
            assert len(found.labelings) == len(seen) == stop
            assert found.interrupted == (stop < 5)
    whole = d.Concatenated([ball, d.DivMBest(1.0)], shares=[2, 0])
    assert not sw.diverse(field, 3, whole, callback=lambda step: step.n_items == 3).interrupted


def test_ctrl_c_gives_the_list_so_far():
    def interrupt(progress):
        if progress.n_items == 2:
            raise KeyboardInterrupt

    field = of_seed("potts-on-two-labels", 0)
    result = sw.diverse(field, 4, d.HammingBall(1.0, 0.5), callback=interrupt)
    assert result.interrupted
    assert len(result.labelings) == 2


FIELD = fields.Field(np.zeros((3, 2)))
LARGE = fields.Field(np.zeros((30, 2)))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: sw.diverse(3, 2, d.DivMBest(1.0)), TypeError, "field must be a Field, got int"),
        (lambda: sw.diverse(FIELD, 0, d.DivMBest(1.0)), ValueError, "m must be at least 1, got 0"),
        (lambda: sw.diverse(FIELD, 2.0, d.DivMBest(1.0)), TypeError, "m must be an integer"),
        (lambda: sw.diverse(FIELD, 2, "ball"), TypeError, "diversity must be a Diversity, Conc"),
        (
            lambda: sw.diverse(FIELD, 2, d.DivMBest(1.0), method="greedy"),
            ValueError,
            "method must be one of 'auto', 'joint', 'multipliers', 'branches', 'cut'",
        ),
        (
            lambda: sw.diverse(FIELD, 2, d.DivMBest(1.0), callback=3),
            TypeError,
            "callback must be callable or None, got int",
        ),
        (
            lambda: sw.diverse(FIELD, 2, d.DivMBest(1.0), n_jobs=0),
            ValueError,
            "n_jobs must not be 0, got 0",
        ),
        (
            lambda: sw.diverse(FIELD, 2, d.TransitionDiversity([[0, 7]])),
            ValueError,
            "edges must",
        ),
        (
            lambda: sw.diverse(LARGE, 2, d.GroupCoverage([lambda labels: True])),
            ValueError,
            "groups must be of labels",
        ),
        (
            lambda: sw.diverse(LARGE, 2, d.BallCoverage(1.0, 9)),
            ValueError,
            "take BallCoverageBound",
        ),
        (
            lambda: sw.diverse(FIELD, 2, d.GroupCoverage([np.zeros((1, 9), int)])),
            ValueError,
            "groups must hold labellings of",
        ),
        (
            lambda: sw.diverse(FIELD, 2, d.HammingBall(1.0, 1.0), method="cut"),
            ValueError,
            "cut cannot take CardinalityPotential",
        ),
        (
            lambda: sw.diverse(FIELD, 9, d.Concatenated([d.DivMBest(1.0)], [3])),
            ValueError,
            "shares must sum to m - 1 = 8, got 3",
        ),
    ],
)
def test_bad_input(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
