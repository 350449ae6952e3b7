"""The best item of a list: accuracies, tuning by them, and lists by chance."""

import numpy as np
import pytest
from field_registry import grid, of_seed

import setwise as sw
from setwise import diversities as d
from setwise import fields
from setwise.inference import oracle_accuracy, tune_diversity
from setwise.inference._diverse._baseline_lists import perturbed_list, sampled_list
from setwise.inference._diverse._oracle_accuracy import oracle_items


def iou(pairs, classes):
    """Over pooled pixels, class by class, as the definition says."""
    scores = []
    for c in classes:
        both = sum(np.sum((y == c) & (t == c)) for y, t in pairs)
        either = sum(np.sum(((y == c) | (t == c)) & (t >= 0)) for y, t in pairs)
        scores.append(both / either)
    return np.mean(scores)


def test_one_image():
    rng = np.random.default_rng(0)
    items, truth = rng.integers(0, 3, (4, 50)), rng.integers(-1, 3, 50)
    known = truth >= 0
    shares = [(y[known] == truth[known]).mean() for y in items]
    assert oracle_accuracy(items, truth) == pytest.approx(max(shares))
    assert oracle_items(items, truth).tolist() == [np.argmax(shares)]
    overlaps = [iou([(y, truth)], range(3)) for y in items]
    assert oracle_accuracy(items, truth, "iou") == pytest.approx(max(overlaps))
    assert oracle_items(items, truth, "iou").tolist() == [np.argmax(overlaps)]


def test_a_corpus_is_pooled():
    rng = np.random.default_rng(1)
    lists = [rng.integers(0, 3, (m, n)) for m, n in ((3, 40), (2, 20), (4, 60))]
    truths = [rng.integers(-1, 3, n) for n in (40, 20, 60)]
    best = oracle_items(lists, truths, "iou")
    chosen = [(items[k], t) for items, k, t in zip(lists, best, truths, strict=True)]
    assert oracle_accuracy(lists, truths, "iou") == pytest.approx(iou(chosen, range(3)))
    each = [oracle_accuracy(items, t) for items, t in zip(lists, truths, strict=True)]
    assert oracle_accuracy(lists, truths) == pytest.approx(np.mean(each))


def test_corners():
    assert oracle_accuracy([[0, 1]], [-1, -1]) == 1.0
    assert oracle_accuracy([[0, 1]], [-1, -1], "iou") == 1.0
    assert oracle_accuracy([[0, 1]], [255, 1], ignore=255) == 1.0
    # a class that the truth does not hold lowers others, and is no class of the mean
    assert oracle_accuracy([[0, 1, 1]], [0, 0, 0], "iou") == pytest.approx(1 / 3)


def test_lists_by_chance():
    field = of_seed("potts-on-two-labels", 0)
    best = sw.solve_map(field)
    for draw in (perturbed_list, sampled_list):
        items = draw(field, 5, n_draws=200, rng=0)
        energies = field.energy(items)
        assert items.shape == (5, 8)
        assert energies[0] == pytest.approx(best.value)
        assert (np.diff(energies) >= 0).all()
        assert len(np.unique(items, axis=0)) == 5
        again = draw(field, 5, n_draws=200, rng=0)
        assert again.tolist() == items.tolist()
        assert draw(field, 1).tolist() == [best.labels.tolist()]
        assert draw(field, 3, rng=1).shape == (3, 8)
    forbidden = of_seed("forbidden-labels", 0)
    assert np.isfinite(forbidden.energy(sampled_list(forbidden, 20, rng=0))).all()
    three = of_seed("potts-on-three-labels", 0)
    assert perturbed_list(three, 3, rng=0).shape == (3, 6)


@pytest.mark.parametrize("draw", [perturbed_list, sampled_list])
def test_a_list_ends_with_the_labellings_there_are(draw):
    """However many are asked for, and however many may be drawn."""
    field = fields.Field([[0.0, 1.0], [np.inf, 0.0], [0.2, 0.0]])
    items = draw(field, 10**6, n_draws=10**9, rng=0)
    assert items.tolist() == [[0, 1, 1], [0, 1, 0], [1, 1, 1], [1, 1, 0]]
    assert draw(field, 10**12, rng=0).shape == (4, 3)


def test_tuning_with_longer_lists_than_there_are():
    field = fields.Field([[0.0, 1.0], [2.0, 0.0]])
    points = {"weight": [9.0], "gamma": [1.0]}
    tuned = tune_diversity([field], [[1, 0]], d.HammingBall, points, m=10**6)
    assert tuned.score == 1.0  # all four labellings are in the list


def images(seed, count=4):
    rng = np.random.default_rng(seed)
    links = grid(4, 5)
    made, truths = [], []
    for _ in range(count):
        truth = rng.integers(0, 2, 20)
        made.append(
            fields.Field(rng.normal(size=(20, 2)) + 0.8 * (truth[:, None] != np.arange(2)))
            + fields.Potts(links, 0.2)
        )
        truths.append(truth)
    return made, truths


def test_tuning_finds_the_best_of_the_grid():
    made, truths = images(0)
    grid_of = {"weight": [0.1, 1.0, 3.0], "gamma": [0.1, 0.5]}
    seen = []
    tuned = tune_diversity(made, truths, d.HammingBall, grid_of, m=4, callback=seen.append)
    assert len(tuned.grid) == len(tuned.scores) == len(seen) == 6
    for point, score in zip(tuned.grid, tuned.scores, strict=True):
        lists = [sw.diverse(field, 4, d.HammingBall(**point)).labelings for field in made]
        assert score == pytest.approx(oracle_accuracy(lists, truths))
    assert tuned.score == tuned.scores.max()
    assert isinstance(tuned.diversity, d.HammingBall)
    assert tuned.diversity.weight == tuned.parameters["weight"]
    assert [step.n_done for step in seen] == [1, 2, 3, 4, 5, 6]
    one = tune_diversity(made, truths, d.HammingBall, grid_of, m=4, n_jobs=1)
    assert one.scores.tolist() == tuned.scores.tolist()


def test_tuning_over_superpixels_and_its_end():
    made, truths = images(1)
    regions = [np.repeat(np.arange(20), 3) for _ in made]
    pixels = [np.repeat(truth, 3) for truth in truths]
    both = lambda a, b: d.Concatenated([d.DivMBest(a), d.HammingBall(b, 0.2)])  # noqa: E731
    tuned = tune_diversity(
        made,
        pixels,
        both,
        {"a": [0.1, 0.3], "b": [1.0]},
        m=3,
        scoring="iou",
        regions=regions,
        callback=lambda step: True,
    )
    assert tuned.interrupted
    assert len(tuned.scores) == 1
    assert tuned.parameters == {"a": 0.1, "b": 1.0}


FIELD = fields.Field(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: oracle_accuracy([[0, 1]], [0, 1], "dice"), ValueError, "scoring must be one of"),
        (lambda: oracle_accuracy([0, 1], [0, 1]), ValueError, r"labelings must have shape \(m, N"),
        (lambda: oracle_accuracy([[0, 1]], 3), ValueError, r"truth must have shape \(N,\)"),
        (lambda: oracle_accuracy([[0, 1]], [0, 1, 1]), ValueError, r"shape \(m, 3\) with m at"),
        (lambda: oracle_accuracy([[0.5, 1]], [0, 1]), TypeError, "labelings must hold integers"),
        (lambda: oracle_accuracy([[-1, 1]], [0, 1]), ValueError, "labelings must not be negative"),
        (lambda: oracle_accuracy([[0, 1]], [0, -2]), ValueError, "truth must not be negative but"),
        (
            lambda: oracle_accuracy([[[0, 1]]], [[0, 1], [1, 1]]),
            ValueError,
            "labelings must hold a list for each of the 2 truths, got 1",
        ),
        (lambda: perturbed_list(3, 2), TypeError, "field must be a Field, got int"),
        (lambda: perturbed_list(FIELD, 0), ValueError, "m must be at least 1"),
        (lambda: perturbed_list(FIELD, 5, n_draws=2), ValueError, "n_draws must be at least 4"),
        (lambda: perturbed_list(FIELD, 2, temperature=0.0), ValueError, "temperature must be pos"),
        (lambda: tune_diversity([], [], d.DivMBest, {}, m=2), TypeError, "fields must be a seq"),
        (
            lambda: tune_diversity([FIELD], [], d.DivMBest, {"weight": [1.0]}, m=2),
            ValueError,
            "truths must hold one for each of the 1 fields, got 0",
        ),
        (
            lambda: tune_diversity([FIELD], [[0, 0, 0]], 3, {"weight": [1.0]}, m=2),
            TypeError,
            "diversity must be callable, got int",
        ),
        (
            lambda: tune_diversity([FIELD], [[0, 0, 0]], d.DivMBest, [1.0], m=2),
            TypeError,
            "grid must be a mapping, got list",
        ),
        (
            lambda: tune_diversity([FIELD], [[0, 0, 0]], d.DivMBest, {"weight": []}, m=2),
            ValueError,
            "grid must hold at least one value of each parameter",
        ),
        (
            lambda: tune_diversity(
                [FIELD], [[0, 0, 0]], d.DivMBest, {"weight": [1.0]}, m=2, regions=[]
            ),
            ValueError,
            "regions must hold an array for each of the 1 fields, got 0",
        ),
    ],
)
def test_bad_input(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
