"""Masks from probabilities: the measures, the law with a presence, settings of other pictures."""

import sys
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import setwise as sw

FOLDER = Path(__file__).parent.parent / "experiments"
if not FOLDER.exists():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(FOLDER.parent))
masks = import_module("experiments.decisions._decided_masks")


def _picture(rng: np.random.Generator, K: int, n: int) -> object:
    p = rng.dirichlet(np.ones(K), n).T if K > 1 else rng.random((1, n))
    truth = rng.random((K, n)) < p
    truth[1:2] = False  # of several classes one is never there
    return masks.Picture({0.0: p, 1.0: p**2}, truth, rng.random(n) < 0.9)


@pytest.mark.parametrize(("measure", "loss"), [("IoU", "jaccard"), ("Dice", "dice")])
def test_scores_are_one_minus_the_losses(measure: str, loss: str) -> None:
    rng = np.random.default_rng(0)
    picture = masks.Picture({}, rng.random((40, 6)) < 0.2, np.array([True] * 5 + [False]))
    mask = rng.random((40, 6)) < 0.2
    expected = 1 - sw.losses.get(loss)(picture.truth[:, :5], mask[:, :5])
    np.testing.assert_allclose(masks.score(mask, picture, measure), expected)
    assert np.any(~picture.truth[:, :5].any(axis=1) & ~mask[:, :5].any(axis=1))


@pytest.mark.parametrize("loss", ["jaccard", "dice"])
@pytest.mark.parametrize("q", [0.2, 0.45, 0.6, 0.75, 1.0])
def test_a_presence_gives_the_best_set_of_its_law(loss: str, q: float) -> None:
    given = np.array([1.0, 0.7, 0.45, 0.3, 0.05])  # one is certain: a class there has a pixel
    sets = np.array(list(product([False, True], repeat=5)))
    law = q * np.prod(np.where(sets, given, 1 - given), axis=1)
    law[0] += 1 - q
    delta = sw.losses.get(loss)
    cost = [law @ delta(sets, np.broadcast_to(z, sets.shape)) for z in sets]
    best = masks.decide_with_presence(q * given[None], loss, np.array([q]), "all")[0]
    assert cost[int(np.flatnonzero((sets == best).all(axis=1))[0])] == pytest.approx(min(cost))
    assert masks.decide_with_presence(q * given[None], loss, np.array([q]), "there").any()


def test_a_mean_over_single_classes_has_the_usual_error() -> None:
    values = np.random.default_rng(0).random((12, 1))
    found = masks.mean(values, np.ones((12, 1), bool))
    assert found.mean == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std(ddof=1) / np.sqrt(12))


@pytest.mark.parametrize("K", [1, 3])
def test_verdicts_are_of_the_asked_pictures_with_the_best_setting_of_the_others(K: int) -> None:
    rng = np.random.default_rng(1)
    fit, asked = (tuple(_picture(rng, K, 60) for _ in range(m)) for m in (5, 3))
    found = masks.evaluate(fit, asked)
    assert len(found) == 2 * (len(masks.RULES) + (K > 1))
    threshold = found["as they are", "tuned threshold"].settings["IoU", "there"].threshold

    def score(pictures: tuple, t: float) -> np.ndarray:
        return np.array([masks.score(p.probabilities[0.0] > t, p, "IoU") for p in pictures])

    counts = masks.counted(fit, "there")
    means = [score(fit, t)[counts].mean() for t in masks.THRESHOLDS]
    assert masks.THRESHOLDS[int(np.argmax(means))] == threshold
    ours = found["as they are", "tuned threshold"].scores["IoU", "there"]
    np.testing.assert_array_equal(ours, score(asked, threshold))


def test_a_calibration_undoes_a_change_of_scale() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(size=(1, 70_000))
    truth = rng.random(z.shape) < 1 / (1 + np.exp(-z))
    picture = masks.Picture({0.0: 1 / (1 + np.exp(-2 * z - 1))}, truth, np.ones(70_000, bool))
    assert masks.calibration([picture], 0.0) == pytest.approx((0.5, -0.5), abs=0.06)
