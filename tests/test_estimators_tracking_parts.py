"""What the tracker is made of: boxes and their looks, the risk it lowers, what it remembers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from setwise import _core
from setwise.estimators._tracking._box_features import BoxFeatures, grey, looks
from setwise.estimators._tracking._box_learner import ByteStumps, learn
from setwise.estimators._tracking._boxes import (
    boxes_around,
    boxes_over,
    boxes_scaled,
    overlaps,
)
from setwise.estimators._tracking._memory import Example, TargetMemory

BOTH = ("pixels", "hog")


def covered(box, shape=(40, 40)):
    """The pixels of a box with whole coordinates."""
    mask = np.zeros(shape, bool)
    x, y, w, h = np.asarray(box, int)
    mask[y : y + h, x : x + w] = True
    return mask


@given(st.integers(0, 2**32 - 1))
def test_overlap_counts_pixels(seed):
    rng = np.random.default_rng(seed)
    boxes = np.column_stack([rng.integers(0, 20, (6, 2)), rng.integers(1, 20, (6, 2))]).astype(
        float
    )
    for got, other in zip(overlaps(boxes[0], boxes), boxes, strict=True):
        a, b = covered(boxes[0]), covered(other)
        assert got == pytest.approx((a & b).sum() / (a | b).sum(), abs=1e-15)


def test_boxes_around_fill_the_disc():
    box = np.array([30.0, 20.0, 8.0, 8.0])
    around = boxes_around(box, 500, 1.5, np.array([1.0]), (60, 80), even=True)
    assert np.array_equal(around[0], box)
    assert len(np.unique(around, axis=0)) == len(around)
    assert np.hypot(*(around[:, :2] - box[:2]).T).max() <= 12.0 + np.sqrt(0.5)
    assert len(around) > 0.8 * np.pi * 12**2
    corner = np.array([0.0, 0.0, 4.0, 4.0])
    assert len(boxes_around(corner, 100, 7.5, np.array([1.0]), (20, 20), even=True)) < 100
    sizes = boxes_around(box, 50, 1.5, np.array([0.75, 1.25]), (60, 80), even=True)[1:, 2]
    assert set(sizes) == {6.0, 10.0}
    near = [
        np.mean(np.hypot(*(boxes[:, :2] - box[:2]).T) <= 6.0)
        for boxes in (around, boxes_around(box, 500, 1.5, np.ones(1), (60, 80), even=False))
    ]
    assert near[1] > 1.2 * near[0]


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_candidates_have_sides_of_a_frame(scale):
    box = np.array([5.0, 5.0, 4.0, 4.0])
    around = boxes_around(box, 50, 0.5, np.array([scale, 1.0]), (20, 20), even=True)
    assert np.all(around[:, 2:] == 4.0)


def test_a_box_in_other_sizes_keeps_its_centre():
    box = np.array([5.0, 7.0, 4.0, 2.0])
    sized = boxes_scaled(box, np.array([0.5, 1.0, 2.0, 1e9, 0.1]))
    assert sized.tolist() == [[6, 7.5, 2, 1], [5, 7, 4, 2], [3, 6, 8, 4]]
    assert boxes_scaled(box, np.array([1e9])).tolist() == [box.tolist()]


@pytest.mark.parametrize("sides", [(16.0, 12.0), (1.0, 1.0), (300.0, 200.0)])
def test_a_grid_of_boxes_lies_over_the_frame(sides):
    grid = boxes_over((60, 80), np.array(sides), 500)
    assert 1 <= len(grid) <= 700
    assert np.all(grid[:, 2:] == sides)
    beyond = np.maximum(-grid[:, :2], grid[:, :2] + grid[:, 2:] - (80, 60))
    assert np.all((beyond <= grid[:, 2:] / 4 + 1e-6) | (np.array(sides) > (80, 60)))
    places = np.random.default_rng(0).uniform(0, 1, (50, 2)) * np.maximum(
        np.array([80, 60]) - sides, 0
    )
    apart = np.abs(places[:, None] - grid[None, :, :2]).max(axis=2).min(axis=1)
    assert sides[0] > 80 or apart.max() <= max(np.sqrt(np.prod(sides)) / 8, 3.2)


def cell_means(channels, boxes, cells):
    """Means over cells, by painting each pixel finely: channels (h, w, c) -> (n, cells, cells, c).

    Boxes and their cells begin and end at multiples of 1/4 pixel; the outermost pixels go on.
    """
    fine = np.pad(channels, ((40, 40), (40, 40), (0, 0)), mode="edge")
    fine = np.repeat(np.repeat(fine, 4, axis=0), 4, axis=1)
    answers = []
    for x, y, w, h in np.asarray(boxes):
        left, top = round(4 * (x + 40)), round(4 * (y + 40))
        part = fine[top : top + round(4 * h), left : left + round(4 * w)]
        split = part.reshape(cells, len(part) // cells, cells, part.shape[1] // cells, -1)
        answers.append(split.mean(axis=(1, 3)))
    return np.array(answers)


@pytest.fixture(scope="module")
def picture():
    return np.random.default_rng(0).integers(0, 256, (30, 41)).astype(np.float64)


BOXES = np.array(
    [[4, 2, 16, 8], [4.25, 2.75, 12, 20], [-9, -6.5, 16, 12], [35, 22, 20, 24], [-30, 3, 8, 8.0]]
)


def test_grey_values_are_means_of_the_cells(picture):
    boxes = np.concatenate([BOXES, [[7, 3, 4, 4]]])  # the last has cells of a quarter of a pixel
    expected = cell_means(picture[:, :, None], boxes, 16).reshape(len(boxes), 256)
    got = BoxFeatures(picture, ("pixels",))(boxes).astype(float)
    assert np.abs(got - expected).max() <= 0.5 + 1e-9


def test_gradients_are_histograms_of_the_cells_by_blocks(picture):
    down, right = np.gradient(picture)
    turn = np.mod(np.arctan2(down, right), np.pi) * (9 / np.pi)
    length = np.hypot(down, right)
    away = np.abs(turn[:, :, None] - np.arange(10))  # 9 is 0 again
    votes = length[:, :, None] * np.maximum(1 - away, 0)
    votes[:, :, 0] += votes[:, :, 9]
    cells = cell_means(votes[:, :, :9], BOXES, 4)
    expected = []
    for histogram in cells:
        for i in range(3):
            for j in range(3):
                block = histogram[i : i + 2, j : j + 2].reshape(36)
                size = np.linalg.norm(block)
                expected.append(255 * block / size if size > 1e-6 else 0 * block)
    got = BoxFeatures(picture, ("hog",))(BOXES).astype(float)
    assert np.abs(got - np.reshape(expected, (len(BOXES), 324))).max() <= 0.5 + 1e-6
    both = BoxFeatures(picture, BOTH)(BOXES)
    assert np.array_equal(both[:, 256:], got)


def test_features_of_what_has_no_content():
    flat = BoxFeatures(np.full((20, 20), 7.0), BOTH)(np.array([[2.0, 2, 9, 9]]))
    assert flat.shape == (1, 580)
    assert np.array_equal(np.unique(flat), [0, 7])
    assert BoxFeatures(np.ones((1, 1)), ("hog",))(np.array([[0.0, 0, 1, 1]])).shape == (1, 324)
    far = BoxFeatures(np.ones((3, 4)), BOTH)(np.array([[1e6, -1e6, 1.0, 1e6]]))
    assert far.shape == (1, 580)  # nothing is allocated for it


def test_floats_are_read_like_bytes():
    frame = np.random.default_rng(1).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    for floats in (np.float64, np.float32):
        assert np.array_equal(grey(frame), grey((frame / 255).astype(floats)))


def test_looks_are_correlations():
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 256, (4, 580)).astype(np.uint8)
    got = looks(rows, BOTH)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1.0, atol=1e-6)
    pixels, hog = np.corrcoef(rows[:, :256]), np.corrcoef(rows[:, 256:])
    np.testing.assert_allclose(got @ got.T, (pixels + hog) / 2, atol=2e-3)
    flat = looks(np.full((2, 256), 9, np.uint8), ("pixels",))
    assert float(flat[0] @ flat[1]) == pytest.approx(1.0)
    assert float(flat[0] @ looks(rows[:, :256], ("pixels",))[0]) < 0.1


def example(rng, n=6, d=4, values=4):
    losses = np.concatenate([[0.0], rng.uniform(0.1, 1, n - 1)])
    features = rng.integers(0, values, (n, d)).astype(np.uint8)
    return Example(features, losses, rng.normal(size=d).astype(np.float32))


def all_stumps(examples):
    """What every stump that can tell two boxes apart says of them all: (stumps, boxes)."""
    rows = np.concatenate([e.features for e in examples])
    answers = [
        sign * np.where(column > cut, 1.0, -1.0)
        for column in rows.T
        for cut in np.unique(column)[:-1]
        for sign in (1, -1)
    ]
    return np.array(answers)


def optimum(examples, C):
    """The least 1'w + C/m sum of hinges over all stumps, as one linear program."""
    answers = all_stumps(examples)
    starts = np.cumsum([0, *(len(e.losses) for e in examples)])
    losses, m = np.concatenate([e.losses for e in examples]), len(examples)
    frame = np.repeat(np.arange(m), np.diff(starts))
    rows = answers.T - answers.T[starts[frame]]  # f(y) - f(true) - slack <= -loss
    A = np.hstack([rows, -np.eye(m)[frame]])
    cost = np.concatenate([np.ones(len(answers)), np.full(m, C / m)])
    return linprog(cost, A_ub=A, b_ub=-losses, bounds=(0, None)).fun


def objective(stumps, examples, C):
    hinges = []
    for e in examples:
        f = stumps.scores(e.features)
        hinges.append(np.max(e.losses + f - f[0]))
    return stumps.weights.sum() + C * np.mean(hinges)


@given(st.integers(0, 2**32 - 1))
def test_learning_comes_near_the_optimum_and_its_gap_is_true(seed):
    rng = np.random.default_rng(seed)
    examples = [example(rng) for _ in range(3)]
    C = float(rng.choice([1.0, 4.0, 20.0]))
    least = optimum(examples, C)
    stumps = learn(ByteStumps(), examples, C, tol=0.0, n_estimators=60, rounds=20)
    value = objective(stumps, examples, C)
    zero = C * np.mean([e.losses.max() for e in examples])
    # The maximum is softened: by at most tau log(boxes) a frame.
    assert least - 1e-7 <= value <= least + C * 0.05 * np.log(6) + 0.06 * least + 1e-6
    gap_scale = min(zero - least, value)
    if gap_scale > 1e-6:
        assert stumps.gap >= min((value - least) / (zero - least + 1e-12), 1.0) - 1e-6
    assert np.all(stumps.weights > 0)


def test_scores_are_what_the_stumps_say():
    rng = np.random.default_rng(5)
    examples = [example(rng, values=256) for _ in range(3)]
    stumps = learn(ByteStumps(), examples, 10.0, tol=0.0, n_estimators=60, rounds=5)
    rows = rng.integers(0, 256, (20, 4)).astype(np.uint8)
    said = [learner.predict(rows.astype(float)) for learner in stumps.learners()]
    np.testing.assert_allclose(stumps.scores(rows), stumps.weights @ np.array(said), atol=1e-12)
    assert np.array_equal(stumps.respond(rows.T), said)
    assert np.array_equal(ByteStumps().scores(rows), np.zeros(20))


def test_learning_goes_on_from_what_was_learnt():
    rng = np.random.default_rng(6)
    examples = [example(rng, n=20, d=8, values=30) for _ in range(4)]
    once = learn(ByteStumps(), examples, 10.0, tol=0.0, n_estimators=100, rounds=15)
    short = learn(ByteStumps(), examples, 10.0, tol=0.0, n_estimators=100, rounds=1)
    on = learn(once, examples, 10.0, tol=0.0, n_estimators=100, rounds=1)
    values = [objective(stumps, examples, 10.0) for stumps in (on, once, short)]
    assert values[0] <= values[1] + 0.05
    assert values[0] < values[2]
    few = learn(ByteStumps(), examples, 10.0, tol=0.0, n_estimators=3, rounds=15)
    assert len(few.weights) <= 3


@given(st.integers(0, 2**32 - 1))
def test_stumps_of_bytes_are_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 9))
    codes = rng.choice([0, 1, 7, 255], (3, rows)).astype(np.uint8)
    weights = rng.integers(-4, 5, rows).astype(float)
    gains, thresholds = np.empty(3), np.empty(3, np.int64)
    _core.byte_stumps(codes, weights, gains, thresholds)
    for column, gain, cut in zip(codes, gains, thresholds, strict=True):
        every = [weights @ np.where(column > c, 1, -1) for c in range(255)]
        assert abs(gain) == np.max(np.abs(every))
        assert gain == 0 or weights @ np.where(column > cut, 1, -1) == gain


def test_memory_keeps_frames_that_differ():
    rng = np.random.default_rng(7)
    ways = np.linalg.qr(rng.normal(size=(6, 6)))[0].astype(np.float32)

    def seen(k):
        noisy = ways[k] + 0.05 * rng.normal(size=6).astype(np.float32)
        look = noisy / np.linalg.norm(noisy)
        return Example(np.zeros((2, 6), np.uint8), np.array([0.0, 1.0]), look)

    memory = TargetMemory().with_labeled(seen(0), 5)
    for k in [1] * 10 + [2] * 10 + [3] * 30:
        memory = memory.with_found(seen(k), 4, 3)
    assert [len(memory.labeled), len(memory.reservoir), len(memory.recent)] == [1, 3, 4]
    kept = {int(np.argmax(ways @ e.look)) for e in memory.reservoir}
    assert kept == {1, 2, 3}
    likeness = memory.likeness(np.stack([ways[0], ways[2], ways[5]]))
    assert likeness[0] > 0.95
    assert likeness[1] > 0.95
    assert likeness[2] < 0.5
    for _ in range(9):
        memory = memory.with_labeled(seen(4), 5)
    assert len(memory.labeled) == 5
    assert int(np.argmax(ways @ memory.labeled[0].look)) == 0  # the first stays
    without = (
        TargetMemory().with_labeled(seen(0), 1).with_found(seen(1), 1, 0).with_found(seen(2), 1, 0)
    )
    assert [len(without.reservoir), len(without.recent)] == [0, 1]
