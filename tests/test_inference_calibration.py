"""Calibration: measures against scikit-learn, temperatures against what made the data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import setwise as sw


@pytest.mark.parametrize("weighted", [False, True])
def test_measures_are_those_of_scikit_learn(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 600)
    y = np.array([rng.choice(4, p=row) for row in p])
    weight = rng.uniform(size=600) if weighted else None
    told = sw.inference.reliability(y, p, sample_weight=weight)
    assert told.nll == pytest.approx(log_loss(y, p, sample_weight=weight))
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    assert told.auroc == pytest.approx(roc_auc_score(right, sure, sample_weight=weight))
    assert told.accuracy == pytest.approx(np.average(right, weights=weight))
    squares = ((p - np.eye(4)[y]) ** 2).sum(axis=1)
    assert told.brier == pytest.approx(np.average(squares, weights=weight))
    if not weighted:
        true, said = calibration_curve(right, sure, n_bins=15)
        some = told.bin_weights > 0
        np.testing.assert_allclose(told.prob_true[some], true)
        np.testing.assert_allclose(told.prob_pred[some], said)
        assert told.ece == pytest.approx(np.abs(true - said) @ told.bin_weights[some])


def test_two_labels_and_images() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(size=(20, 30))
    y = (rng.uniform(size=p.shape) < p).astype(int)
    told = sw.inference.reliability(y, p)
    same = sw.inference.reliability(y.ravel(), np.stack([1 - p, p], axis=-1).reshape(-1, 2))
    assert told.brier == pytest.approx(2 * brier_score_loss(y.ravel(), p.ravel()))
    assert (told.nll, told.ece, told.auroc) == (same.nll, same.ece, same.auroc)
    assert told.ece < 0.05
    assert told.n == 600
    hidden = np.where(np.arange(30) < 10, 255, y)
    part = sw.inference.reliability(hidden, p, ignore=255)
    assert part.n == 400
    assert part.nll == pytest.approx(sw.inference.reliability(y[:, 10:], p[:, 10:]).nll)


def test_bins_of_equal_shares() -> None:
    p = np.random.default_rng(2).uniform(0.5, 1.0, 1000)
    told = sw.inference.reliability(np.ones(1000, int), p, n_bins=5, strategy="quantile")
    np.testing.assert_allclose(told.bin_weights, 0.2, atol=0.005)
    same = sw.inference.reliability([1, 1, 0], [0.8, 0.8, 0.8], n_bins=4, strategy="quantile")
    assert same.bin_weights.sum() == pytest.approx(1.0)
    assert same.auroc == 0.5


def test_what_cannot_be_measured() -> None:
    all_right = sw.inference.reliability([0, 1], [[1.0, 0.0], [0.0, 1.0]])
    assert np.isnan(all_right.auroc)
    assert all_right.nll == all_right.ece == all_right.brier == 0.0
    assert sw.inference.reliability([1, 1], [[1.0, 0.0], [0.0, 1.0]]).nll == np.inf
    with pytest.raises(ValueError, match=r"y_prob must sum to 1 over the labels, got 0.5"):
        sw.inference.reliability([0], [[0.25, 0.25]])
    with pytest.raises(ValueError, match=r"y_prob must hold probabilities, at most 1, got 2"):
        sw.inference.reliability([0], [[2.0, 0.0]])
    with pytest.raises(ValueError, match=r"y_true must lie between 0 and 1, or be ignore = -1"):
        sw.inference.reliability([2], [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"y_true must have an element that counts, got none"):
        sw.inference.reliability([-1], [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"y_prob must have a probability of each label"):
        sw.inference.reliability([0, 1], [[0.5, 0.5]])


def drawn_fields(n: int, t: float) -> tuple[list[sw.fields.Field], list[np.ndarray]]:
    """Chains whose labels are drawn from themselves at a temperature."""
    rng = np.random.default_rng(0)
    chain = np.stack([np.arange(39), np.arange(1, 40)], axis=1)
    potts = sw.fields.Potts(chain, 1.0)
    fields = [sw.fields.Field(rng.normal(0.0, 1.5, (40, 3))) + potts for _ in range(n)]
    return fields, [
        sw.sample(f, 1, temperature=t, rng=k).labelings[0] for k, f in enumerate(fields)
    ]


@pytest.mark.parametrize("scoring", ["nll", "brier"])
def test_the_temperature_that_made_the_labels_is_found(scoring: str) -> None:
    fields, labels = drawn_fields(40, 2.0)
    grid = [0.5, 1.0, 1.4, 2.0, 2.8, 4.0]
    found = sw.calibrate_temperature(fields, labels, grid={"temperature": grid}, scoring=scoring)
    assert found.temperature == 2.0
    assert found.scale == 1.0
    assert found.score == found.scores.min()
    assert found.score - 1e-12 <= found.cv_score < found.scores[found.temperatures == 1.0][0]
    np.testing.assert_array_equal(found.folds, np.arange(40) % 5)
    levels, best = found.curve
    np.testing.assert_allclose(best, found.scores)
    assert (np.diff(levels) > 0).all()


def test_the_scale_of_the_unaries_is_found() -> None:
    fields, labels = drawn_fields(25, 1.0)
    loud = [field.with_unary(4.0 * field.unary) for field in fields]
    scales = [0.125, 0.25, 0.5]
    found = sw.calibrate_temperature(
        loud, labels, grid={"temperature": [0.7, 1.0, 1.4], "scale": scales}
    )
    assert (found.temperature, found.scale) == (1.0, 0.25)
    p = found.marginals(loud[0], tol=1e-9).probabilities
    np.testing.assert_allclose(p, sw.marginals(fields[0], tol=1e-9).probabilities, atol=1e-6)
    assert len(found.curve[0]) == 3


def grids(n: int, t: float) -> tuple[list[sw.fields.Field], list[np.ndarray]]:
    """Grids with cycles whose labels are drawn from themselves, in a unit of t."""
    rng = np.random.default_rng(3)
    potts = sw.fields.Potts(sw.fields.grid_edges((12, 12)), 0.5 * t)
    fields = [sw.fields.Field(t * rng.normal(size=(144, 3))) + potts for _ in range(n)]
    draws = [sw.sample(f, 4, temperature=t, rng=k, n_jobs=1) for k, f in enumerate(fields)]
    return fields, [drawn.labelings[-1] for drawn in draws]


def test_no_unit_of_energies_lies_beyond_the_search() -> None:
    fields, labels = grids(6, 1000.0)
    found = sw.calibrate_temperature(fields, labels, "projection", cv=1, tol=1e-2)
    assert 250.0 <= found.temperature <= 4000.0
    assert 0.25 <= found.scale <= 4.0
    assert found.reason == "no step was worth it any more"
    assert set(found.methods) == {"projection"}


def test_each_fold_has_what_the_others_find_on_their_own() -> None:
    fields, labels = grids(6, 1.0)
    found = sw.calibrate_temperature(fields, labels, "mean_field", cv=3)
    held = 0.0
    for fold in range(3):
        outside = np.flatnonzero(found.folds != fold)
        alone = sw.calibrate_temperature(
            [fields[k] for k in outside], [labels[k] for k in outside], "mean_field", cv=1
        )
        chosen = found.fold_temperatures[fold], found.fold_scales[fold]
        assert chosen == (alone.temperature, alone.scale)
        for k in np.flatnonzero(found.folds == fold):
            p = alone.marginals(fields[k]).probabilities
            held += sw.inference.reliability(labels[k], p).nll / 6
    assert found.cv_score == pytest.approx(held)


def test_the_default_is_not_behind_unaries_where_potentials_mislead() -> None:
    fields, _ = grids(1, 1.0)
    rng = np.random.default_rng(0)
    odds = [np.exp(-f.unary) / np.exp(-f.unary).sum(axis=1, keepdims=True) for f in fields]
    labels = [np.array([rng.choice(3, p=row) for row in p]) for p in odds]
    found = sw.calibrate_temperature(fields, labels, cv=1, tol=1e-2)
    tried = {"trees", "projection", "mean_field", "belief_propagation", "unaries"}
    assert set(found.methods) == tried
    assert found.score == found.scores.min()
    alone = sw.calibrate_temperature(fields, labels, "unaries", cv=1)
    assert found.score <= alone.score
    assert alone.method == "unaries"
    u = -alone.scale * fields[0].unary / alone.temperature
    p = np.exp(u) / np.exp(u).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(alone.marginals(fields[0]).probabilities, p, atol=1e-9)
    assert alone.scaled(fields[0]).potentials == ()


def test_exact_marginals_have_no_other_beside_them() -> None:
    fields, labels = drawn_fields(2, 1.0)
    found = sw.calibrate_temperature(fields, labels, cv=1)
    assert found.method == "elimination"
    assert set(found.methods) == {"elimination"}


def test_scores_are_those_of_the_marginals() -> None:
    fields, labels = drawn_fields(4, 1.0)
    labels[1] = np.where(np.arange(40) < 20, -1, labels[1])
    labels[3] = np.full(40, -1)
    grid = {"temperature": [0.5, 2.0], "scale": [0.5]}
    found = sw.calibrate_temperature(fields, labels, cv=list("aabb"), grid=grid)
    told = [
        sw.inference.reliability(
            np.concatenate(labels),
            np.concatenate(
                [sw.marginals(found.scaled(f), temperature=t).probabilities for f in fields]
            ),
        )
        for t in (0.5, 2.0)
    ]
    np.testing.assert_allclose(found.scores, [one.nll for one in told])
    np.testing.assert_array_equal(found.folds, [0, 0, 1, 1])
    assert np.isnan(found.field_scores[:, 3]).all()
    counts, table = np.array([40, 20, 40, 0]), np.nan_to_num(found.field_scores)
    chosen = [int((table[:, 2:] @ counts[2:]).argmin()), int((table[:, :2] @ counts[:2]).argmin())]
    np.testing.assert_array_equal(found.fold_temperatures, found.temperatures[chosen])
    held = table[chosen[0], :2] @ counts[:2] + table[chosen[1], 2:] @ counts[2:]
    assert found.cv_score == pytest.approx(held / 100)
    same = sw.calibrate_temperature(fields, labels, cv=list("aabb"), n_jobs=1, grid=grid)
    np.testing.assert_array_equal(same.scores, found.scores)
    assert np.isnan(sw.calibrate_temperature(fields, labels, cv=1, grid=grid).cv_score)


def test_labels_that_cannot_be() -> None:
    field = sw.fields.Field([[0.0, np.inf], [0.0, 1.0]])
    with pytest.raises(ValueError, match="labels must have a positive probability"):
        sw.calibrate_temperature([field], [[1, 0]])
    found = sw.calibrate_temperature([field], [[1, 0]], scoring="brier")
    assert found.score >= 1.0
    stopped = sw.calibrate_temperature([field], [[0, 0]], callback=lambda step: step.n_iter == 2)
    assert stopped.interrupted
    assert len(stopped.scores) == 2


def test_labels_of_bytes_may_be_ignored() -> None:
    truth = np.array([0, 1, 255], np.uint8)  # as masks are stored
    p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    assert sw.inference.reliability(truth, p, ignore=255).n == 2
    field = sw.fields.Field([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    found = sw.calibrate_temperature([field], [truth], ignore=255)
    alike = sw.calibrate_temperature([field], [[0, 1, -1]])
    np.testing.assert_array_equal(found.scores, alike.scores)


def test_what_is_shown_changes_no_answer(capsys) -> None:
    fields = [sw.fields.Field([[0.0, 2.0], [1.0, 0.0]])] * 3
    truths = [[0, 1], [1, 1], [0, 7]]
    asked = {"grid": {"temperature": [0.5, 1.0]}, "ignore": 7}
    found = sw.calibrate_temperature(fields, truths, cv=[0, 1, 1], **asked)
    shown = sw.calibrate_temperature(
        iter(fields), iter(truths), cv=iter([0, 1, 1]), verbose=True, **asked
    )
    np.testing.assert_array_equal(shown.scores, found.scores)
    assert shown.cv_score == found.cv_score
