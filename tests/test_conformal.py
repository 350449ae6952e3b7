"""Masks, label sets and lists: nested families, guarantees, groups, files, and what is refused."""

import json
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import setwise as sw
from setwise.conformal import ConformalLabels, ConformalLists, ConformalMasks, load
from setwise.conformal._families import Profile, as_nested
from setwise.conformal._labels import expected_shares
from setwise.conformal._masks import _losses

SIDES = (4, 5)
GRID = sw.fields.grid_edges(SIDES)


def fields(n, seed=0, strength=0.6):
    """Fields of noisy images with a half plane as their object, and the truths."""
    rng = np.random.default_rng(seed)
    columns = np.arange(SIDES[1]) < rng.integers(1, SIDES[1], size=(n, 1, 1))
    truths = np.broadcast_to(columns, (n, *SIDES))
    costs = rng.normal(1.0 - 2.0 * truths, 1.5)
    made = [sw.fields.Field(np.stack([0 * c.ravel(), c.ravel()], 1)) for c in costs]
    return (
        [f + sw.fields.Potts(GRID, strength) for f in made],
        list(truths),
        1 / (1 + np.exp(costs)),
    )


def rates(masks, truths):
    """False negatives over the object, and false positives over the background."""
    lost = [(t & ~m.outer).sum() / max(t.sum(), 1) for m, t in zip(masks, truths, strict=True)]
    extra = [(m.inner & ~t).sum() / max((~t).sum(), 1) for m, t in zip(masks, truths, strict=True)]
    return np.array(lost), np.array(extra)


# ------------------------------------------------------------------------------------- families


@pytest.mark.parametrize("resolution", [0.0, 0.1])
def test_every_path_is_nested_and_ends_in_the_full_and_the_empty_mask(resolution):
    for field in fields(12)[0]:
        masks = as_nested(field, "X", None, resolution, 1)
        path = sw.inference.bias_path(field, resolution=resolution)
        pieces = path.pieces(np.arange(path.n_pieces)).astype(bool)
        for k, level in enumerate(path.breakpoints):  # ties: larger outside, smaller inside
            np.testing.assert_array_equal(masks.outer(level).ravel(), pieces[k])
            np.testing.assert_array_equal(masks.inner(level).ravel(), pieces[k + 1])
        levels = [-np.inf, *np.sort([*path.breakpoints, *path.biases]), np.inf]
        chain = [m(b) for b in levels for m in (masks.outer, masks.inner)]
        assert all((small <= large).all() for large, small in pairwise(chain))
        assert chain[0].all()
        assert not chain[-1].any()
        np.testing.assert_array_equal(masks.plain, sw.solve_map(field).label_image == 1)


def test_the_labeling_of_a_path_without_bias_is_the_least_minimiser():
    """Whole numbers have ties in most fields."""
    rng = np.random.default_rng(0)
    ties = 0
    for _ in range(150):
        unary = rng.integers(-2, 3, size=(6, 2)).astype(float)
        pairs = np.array([(i, j) for i in range(6) for j in range(i) if rng.random() < 0.4])
        field = sw.fields.Field(unary)
        if len(pairs):
            field = field + sw.fields.Potts(pairs, rng.integers(0, 3, len(pairs)).astype(float))
        path = sw.inference.bias_path(field)
        items = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T
        energies = field.energy(items)
        best = items[energies == energies.min()]
        ties += len(best) > 1
        least = best[best.sum(axis=1).argmin()]
        np.testing.assert_array_equal(path.labeling(0.0), least)
        np.testing.assert_array_equal(sw.solve_map(field).labels, least)
    assert ties > 50


def test_stacks_must_be_nested():
    stack = np.array([[True, False, False], [True, True, False]])
    masks = as_nested(stack, "X", None, 0.0, 1)
    assert masks.scores.tolist() == [2.0, 1.0, 0.0]
    assert [masks.outer(k).sum() for k in (0.0, 1.0, 2.0, np.inf)] == [3, 2, 1, 0]
    with pytest.raises(
        ValueError, match="must hold nested masks, each within the next, got mask 0"
    ):
        as_nested(stack[::-1], "X", None, 0.0, 1)


def test_profiles_count_what_masks_hold():
    _, truths, chances = fields(5)
    for truth, p in zip(truths, np.round(chances, 1), strict=True):
        masks = as_nested(p, "X", None, 0.0, 1)
        profile = Profile.of(masks, truth, None)
        levels = np.linspace(-0.05, 1.05, 23)
        hits, extra = profile.counts_at(levels)
        back, false = profile.complement.counts_at(-levels)
        for k, level in enumerate(levels):
            outer = masks.outer(level)
            assert (hits[k], extra[k]) == ((outer & truth).sum(), (outer & ~truth).sum())
            kept = masks.inner(level)  # the complement of a mask with its ties
            assert (back[k], false[k]) == ((~kept & ~truth).sum(), (~kept & truth).sum())
        for measure, loss in (("jaccard", "jaccard"), ("dice", "dice")):
            known = [sw.losses.get(loss)(truth.ravel(), masks.outer(b).ravel()) for b in levels]
            np.testing.assert_allclose(_losses(profile, levels, measure), known)
        wrong = [(masks.outer(b) & ~truth).sum() / max(masks.outer(b).sum(), 1) for b in levels]
        np.testing.assert_allclose(_losses(profile, levels, "precision"), wrong)


# ---------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize("risks", [(None, None), ("miss", "excess")])
@pytest.mark.parametrize(("n", "alpha"), [(5, 0.25), (30, 0.1)])
def test_inner_and_outer_masks_keep_their_risks(n, alpha, risks):
    repeats = 150
    made, truths, _ = fields(60 + n)
    rng = np.random.default_rng(n)
    paths = [sw.inference.bias_path(f) for f in made]
    flat = [t.ravel() for t in truths]
    options = {} if risks[0] is None else dict(zip(("outer", "inner"), risks, strict=True))
    seen = np.zeros((repeats, 2))
    for k in range(repeats):
        order = rng.permutation(len(made))
        model = ConformalMasks(alpha=alpha, **options)
        model.conformalize([paths[i] for i in order[:n]], [flat[i] for i in order[:n]])
        test = order[n : n + 12]
        masks = model.predict_set([paths[i] for i in test])
        found = rates(masks, [flat[i] for i in test])
        seen[k] = [np.mean(r > 0) if risks[0] else r.mean() for r in found]
        assert all((m.inner <= m.outer).all() for m in masks)
    assert (seen.mean(axis=0) <= alpha + 2.5 * seen.std(axis=0) / np.sqrt(repeats)).all()


def test_fields_paths_functions_and_classifiers_are_families():
    made, truths, chances = fields(40)
    model = ConformalMasks(alpha=0.2).conformalize(made, truths)
    by_path = ConformalMasks(alpha=0.2, resolution=0.05)
    paths = [sw.inference.bias_path(f, resolution=0.05) for f in made]
    by_path.conformalize(paths, [t.ravel() for t in truths])
    by_function = ConformalMasks(made.__getitem__, alpha=0.2, n_jobs=2)
    by_function.conformalize(range(40), truths)
    level = model.controls_["outer"].level
    assert by_path.controls_["outer"].level == by_function.controls_["outer"].level == level
    assert model.predict_set(made[:2])[0].outer.shape == SIDES
    for mask, field in zip(model.predict(made), made, strict=True):
        np.testing.assert_array_equal(mask, sw.solve_map(field).label_image == 1)
    features = np.stack([chances, chances**2], axis=-1)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    learnt = ConformalMasks(pipeline, alpha=0.2).fit(features[:20], truths[:20])
    learnt.conformalize(features[20:], truths[20:])
    assert learnt.predict_set(features[:1])[0].outer.shape == SIDES
    assert not hasattr(pipeline[-1], "coef_")  # a clone is fitted
    pipeline.fit(features[:20].reshape(-1, 2), np.array(truths[:20]).ravel())
    fitted = ConformalMasks(pipeline, alpha=0.2).conformalize(features[20:], truths[20:])
    assert fitted.controls_["outer"].level == pytest.approx(learnt.controls_["outer"].level)


@pytest.mark.parametrize("measure", ["precision", "jaccard", "dice"])
def test_precision_jaccard_and_dice_are_certified_or_not(measure):
    made, truths, _ = fields(160, strength=1.5)
    options = {"outer": None, "inner": None, "mask": measure, "delta": 0.2}
    model = ConformalMasks(alpha=0.5, **options)
    with pytest.raises(ValueError, match=f"mask='{measure}' needs fit on other images first"):
        model.conformalize(made, truths)
    model.fit(made[:40], truths[:40]).conformalize(made[40:120], truths[40:120])
    control = model.controls_["mask"]
    assert control.level is not None
    assert control.bound <= 0.5
    found = model.predict_set(made[120:])
    test = [
        1
        - _losses(
            Profile.of(as_nested(m.mask.astype(float), "X", None, 0, 1), t, None),
            np.array([0.5]),
            measure,
        )[0]
        for m, t in zip(found, truths[120:], strict=True)
    ]
    assert np.mean(test) >= 0.5
    assert found[0].words.startswith("With probability 0.8 over calibrations, the ")
    nothing = clone(model).set_params(alpha=0.03).fit(made[:40], truths[:40])
    nothing.conformalize(made[:120] * 2, truths[:120] * 2)
    if measure != "precision":  # of the smallest masks it is high enough
        assert nothing.controls_["mask"].level is None
        assert nothing.predict_set(made[:1])[0].mask is None
        assert nothing.predict_set(made[:1])[0].words == f"Nothing is certified for the {measure}."


def test_empty_truths_count_as_nothing_missed_unless_they_are_left_out():
    made, truths, _ = fields(60)
    nothing = [np.zeros_like(t) for t in truths]
    model = ConformalMasks(alpha=0.2, inner=None)
    plain = model.conformalize(made[:30], truths[:30]).controls_["outer"]
    mixed = model.conformalize(made, truths[:30] + nothing[30:]).controls_["outer"]
    assert mixed.n_examples == 60
    assert mixed.level >= plain.level
    model.set_params(nonempty=True).conformalize(made, truths[:30] + nothing[30:])
    assert model.controls_["outer"].n_examples == 30
    assert model.controls_["outer"].level == plain.level
    with pytest.raises(ValueError, match="at least 4 examples whose truths are not empty for"):
        model.conformalize(made, nothing)


def test_pixels_that_do_not_count_are_ignored():
    _, truths, chances = fields(30)
    void = [np.where(np.arange(SIDES[1]) == 0, 255, t.astype(int)) for t in truths]
    model = ConformalMasks(alpha=0.2, ignore=255).conformalize(list(chances), void)
    cut = ConformalMasks(alpha=0.2).conformalize(
        list(chances[:, :, 1:].copy()), [t[:, 1:] for t in truths]
    )
    assert model.controls_["outer"].level == cut.controls_["outer"].level


def test_a_band_lies_between_the_masks_and_is_drawn():
    made, truths, _ = fields(40)
    model = ConformalMasks(alpha=0.05).conformalize(made, truths)
    found = model.predict_set(made[:1])[0]
    np.testing.assert_array_equal(found.band, found.outer & ~found.inner)
    image = np.full((*SIDES, 3), 100, np.uint8)
    picture = found.overlay(image, opacity=1.0)
    assert (picture[~found.outer] == 100).all()
    assert (picture[found.inner] == [0, 114, 178]).all()
    assert (picture[found.band] == [230, 159, 0]).all()
    assert "of the object lies outside the outer mask" in found.words
    with pytest.raises(ValueError, match="image must have"):
        found.overlay(np.zeros((3, 3)))


# --------------------------------------------------------------------------------------- labels


def rows(n, seed=0, width=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    weights = np.random.default_rng(1).normal(size=(4, width))
    return X, (X @ weights + rng.logistic(size=(n, width)) - 0.5 > 0).astype(int)


def test_gains_are_the_expected_shares_of_labels():
    rng = np.random.default_rng(0)
    p = rng.random((4, 5))
    p[0, :2] = 0.0, 1.0
    sets = np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
    for row, found in zip(p, expected_shares(p), strict=True):
        chances = np.prod(np.where(sets, row, 1 - row), axis=1)
        shares = sets / np.maximum(sets.sum(axis=1, keepdims=True), 1)
        np.testing.assert_allclose(found, chances @ shares, atol=1e-12)
    np.testing.assert_allclose(expected_shares(p[:, :1]), p[:, :1])


@pytest.mark.parametrize("order", ["gains", "probability"])
@pytest.mark.parametrize(("n", "alpha"), [(5, 0.3), (100, 0.05)])
def test_label_sets_keep_their_recall(n, alpha, order):
    X, Y = rows(600)
    p = 1 / (1 + np.exp(-2 * X @ np.random.default_rng(1).normal(size=(4, 5))))
    rng = np.random.default_rng(0)
    seen = np.zeros(300)
    for k in range(300):
        split = rng.permutation(600)
        model = ConformalLabels(alpha=alpha, order=order)
        model.conformalize(p[split[:n]], Y[split[:n]])
        test = split[n:]
        sets = model.predict_set(p[test])
        lost = (Y[test] & ~sets).sum(axis=1) / np.maximum(Y[test].sum(axis=1), 1)
        seen[k] = lost.mean()
    error = seen.std() / np.sqrt(300)
    assert alpha - 2 / (n + 1) - 2.5 * error <= seen.mean() <= alpha + 2.5 * error


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        MultiOutputClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
        RandomForestClassifier(20, random_state=0),
    ],
    ids=["one-vs-rest", "pipelines", "forest"],
)
def test_any_classifier_will_do_fitted_or_not(model):
    X, Y = rows(400)
    ours = ConformalLabels(model, alpha=0.2).fit(X[:200], Y[:200])
    sets = ours.conformalize(X[200:300], Y[200:300]).predict_set(X[300:])
    prefit = ConformalLabels(FrozenEstimator(model.fit(X[:200], Y[:200])), alpha=0.2)
    np.testing.assert_array_equal(
        prefit.conformalize(X[200:300], Y[200:300]).predict_set(X[300:]), sets
    )
    assert (Y[300:] & ~sets).sum() / Y[300:].sum() < 0.35
    assert ours.predict(X[300:]).shape == (100, 5)


@pytest.mark.parametrize(("risk", "alpha"), [("precision", 0.4), ("jaccard", 0.7), ("dice", 0.6)])
def test_precision_and_set_losses_of_labels_are_certified(risk, alpha):
    X, Y = rows(900)
    model = ConformalLabels(OneVsRestClassifier(LogisticRegression()), alpha=alpha, risk=risk)
    with pytest.raises(ValueError, match="delta must be given for risk="):
        model.fit(X, Y)
    model.set_params(delta=0.1)
    with pytest.raises(ValueError, match="needs fit on other rows first"):
        model.conformalize(X, Y)
    model.fit(X[:300], Y[:300]).conformalize(X[300:600], Y[300:600])
    sets, truth = model.predict_set(X[600:]), Y[600:]
    if risk == "precision":
        losses = (sets & ~truth.astype(bool)).sum(axis=1) / np.maximum(sets.sum(axis=1), 1)
    else:
        losses = sw.losses.get(risk)(truth, sets)
    assert losses.mean() <= alpha
    with pytest.raises(ValueError, match=r"risk must be a loss in \[0, 1\]"):
        clone(model).set_params(risk="hamming").fit(X, Y)
    nothing = clone(model).set_params(alpha=0.02).fit(X[:300], Y[:300])
    nothing.conformalize(X[300:600], Y[300:600])
    if risk != "precision":
        with pytest.raises(ValueError, match=r"alpha=0\.02 was certified by no level"):
            nothing.predict_set(X)


# ---------------------------------------------------------------------------------------- lists


def test_lists_are_prefixes_with_a_good_item_or_are_refused():
    made, truths, _ = fields(60, strength=0.3)
    lists = [sw.diverse(f, 5) for f in made]
    options = {"tau": 0.8, "length": 5}
    model = ConformalLists(alpha=0.45, **options).conformalize(lists, truths)
    k = int(model.controls_["length"].level)
    assert 1 <= k <= 5
    for masks, known in zip(model.predict_set(made[:5]), lists, strict=False):
        np.testing.assert_array_equal(masks, known.label_images[:k] == 1)
    with pytest.raises(ValueError, match=r"alpha must be at least 0\.\d+ for lists of 5 items"):
        ConformalLists(alpha=0.02, **options).conformalize(lists, truths)
    rng = np.random.default_rng(0)
    failed = []
    for _ in range(200):
        order = rng.permutation(60)
        model = ConformalLists(alpha=0.3, **options)
        try:
            model.conformalize([lists[i] for i in order[:20]], [truths[i] for i in order[:20]])
        except ValueError:  # no list is issued
            failed.append(0.0)
            continue
        test = order[20:]
        bad = [
            max((m & truths[i]).sum() / (m | truths[i]).sum() for m in masks) < 0.8
            for masks, i in zip(model.predict_set([lists[i] for i in test]), test, strict=True)
        ]
        failed.append(np.mean(bad))
    assert np.mean(failed) <= 0.3 + 2.5 * np.std(failed) / np.sqrt(200)


# ----------------------------------------------------------------------------- groups and files


def test_each_group_has_its_own_level_and_needs_its_own_examples():
    _, Y = rows(300)
    p = np.random.default_rng(0).random(Y.shape)
    p[:150] = np.clip(p[:150] * 0.5 + 0.5 * Y[:150], 0, 1)  # the first group is easier
    names = np.where(np.arange(300) < 150, "easy", "hard")
    model = ConformalLabels(alpha=0.1).conformalize(p[::2], Y[::2], groups=names[::2])
    controls = model.controls_["labels"]
    assert controls["easy"].level > controls["hard"].level
    alone = ConformalLabels(alpha=0.1).conformalize(p[:150:2], Y[:150:2])
    assert controls["easy"].level == alone.controls_["labels"].level
    sets = model.predict_set(p, groups=names)
    np.testing.assert_array_equal(sets[:150], alone.predict_set(p[:150]))
    with pytest.raises(ValueError, match="groups must hold calibrated groups, 'easy', 'hard', got"):
        model.predict_set(p[:1], groups=["new"])
    with pytest.raises(ValueError, match="groups must be given, as they were"):
        model.predict_set(p)
    with pytest.raises(ValueError, match=r"at least 9 examples of group 'few' for alpha=0\.1"):
        ConformalLabels(alpha=0.1).conformalize(p[:30], Y[:30], groups=["few"] * 8 + ["many"] * 22)


def test_files_hold_numbers_and_give_the_same_sets(tmp_path):
    made, truths, _ = fields(80)
    _, Y = rows(100)
    p = np.random.default_rng(0).random(Y.shape)
    sizes = np.arange(80) % 2
    cases = {
        "masks": (ConformalMasks(alpha={"outer": 0.1, "inner": 0.2}), (made, truths), made, None),
        "groups": (ConformalMasks(alpha=0.2, delta=0.3), (made, truths), made, sizes),
        "labels": (ConformalLabels(alpha=0.2), (p, Y), p, None),
        "lists": (ConformalLists(alpha=0.6, length=2), (made, truths), made, None),
    }
    for name, (model, given, asked, groups) in cases.items():
        path = tmp_path / f"{name}.json"
        with pytest.raises(NotFittedError, match="is not calibrated yet: call conformalize first"):
            model.save(path)
        model.conformalize(*given, groups=groups).save(path)
        content = json.loads(path.read_text())
        assert path.stat().st_size < 5000
        assert content["controls"][0]["words"]
        again = load(path)
        assert type(again) is type(model)
        assert again.get_params()["alpha"] == model.alpha
        ours, theirs = (m.predict_set(asked, groups=groups) for m in (model, again))
        for a, b in zip(ours, theirs, strict=True):
            if name in ("masks", "groups"):
                np.testing.assert_array_equal(a.outer, b.outer)
                np.testing.assert_array_equal(a.inner, b.inner)
            else:
                np.testing.assert_array_equal(a, b)
    for spoilt in ("", "[]", "{}", '{"format": "setwise conformal", "kind": "os"}', "[" * 5000):
        path.write_text(spoilt)
        with pytest.raises(ValueError, match="path must name a file that save wrote"):
            load(path)
    content["controls"][0]["level"] = "__import__('os')"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="path must name a file that save wrote"):
        load(path)


# -------------------------------------------------------------------------------------- refusals

FIELDS, TRUTHS, MAPS = fields(12)


@pytest.mark.parametrize(
    ("options", "X", "y", "words"),
    [
        ({}, FIELDS[:5], TRUTHS[:5], "X must hold at least 9 examples for alpha=0.1"),
        ({"alpha": 0.0}, FIELDS, TRUTHS, "alpha must be positive"),
        ({"alpha": {"outer": 0.1}}, FIELDS, TRUTHS, "alpha must have a risk for each of outer, "),
        ({"outer": "fnr"}, FIELDS, TRUTHS, "outer must be one of 'false_negative_rate', 'miss'"),
        ({"outer": None, "inner": None}, FIELDS, TRUTHS, "outer must be a risk if inner and mask"),
        ({"mask": "dice"}, FIELDS, TRUTHS, "delta must be given for mask='dice'"),
        ({"resolution": 2.0}, FIELDS, TRUTHS, "resolution must be at most 1"),
        ({}, FIELDS, TRUTHS[:3], "y must hold a truth for each of the 12 examples"),
        ({}, FIELDS, [np.ones(3)] * 12, "y must hold a mask of shape"),
        ({}, FIELDS, [t * 2 for t in TRUTHS], r"y must hold masks of \{0, 1\}"),
        ({}, [], [], "X must hold at least one example"),
        ({}, 2 * MAPS, TRUTHS, r"X must hold probabilities in \[0, 1\]"),
        ({}, [*FIELDS[:6], *MAPS[6:]], TRUTHS, "X must hold families of one kind"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused_in_a_sentence(options, X, y, words):
    with pytest.raises(ValueError, match=words):
        ConformalMasks(**options).conformalize(X, y)


def test_answers_need_the_calibrated_kind():
    model = ConformalMasks(alpha=0.2)
    with pytest.raises(NotFittedError):
        model.predict_set(FIELDS)
    model.conformalize(FIELDS, TRUTHS)
    with pytest.raises(ValueError, match="X must hold families of the calibrated kind, bias path"):
        model.predict_set(list(MAPS))
    with pytest.raises(TypeError, match="estimator must be a function or a classifier"):
        ConformalMasks(3).conformalize(FIELDS, TRUTHS)
