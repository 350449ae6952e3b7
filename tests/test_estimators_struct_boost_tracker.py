"""The tracker: boxes, what they look like, the risk it minimises, and a sequence it follows."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import setwise as sw
from setwise.estimators._tracking._box_features import box_features, cell_means, hog_features
from setwise.estimators._tracking._box_risk import BoxRisk
from setwise.estimators._tracking._boxes import boxes_around, overlaps


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


def test_cell_means_are_means_of_the_cells():
    image = np.random.default_rng(0).random((30, 40, 2))
    whole = cell_means(image, np.array([[4.0, 2.0, 16.0, 8.0]]), 4)
    expected = image[2:10, 4:20].reshape(4, 2, 4, 4, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(whole[0], expected, atol=1e-12)
    # Between pixels: the mean over a finer grid on which the image is constant.
    fine = np.repeat(np.repeat(image, 4, axis=0), 4, axis=1)
    between = cell_means(image, np.array([[4.25, 2.75, 3.0, 5.0]]), 1)
    np.testing.assert_allclose(between[0, 0, 0], fine[11:31, 17:29].mean(axis=(0, 1)), atol=1e-12)
    # Beyond the border the outermost pixels are repeated.
    beyond = cell_means(image, np.array([[-8.0, 0.0, 4.0, 30.0]]), 1)
    np.testing.assert_allclose(beyond[0, 0, 0], image[:, 0].mean(axis=0), atol=1e-12)


def test_beyond_the_border_the_outermost_pixels_are_repeated():
    rng = np.random.default_rng(1)
    image = rng.random((12, 9, 2))
    padded = np.pad(image, ((40, 40), (40, 40), (0, 0)), mode="edge")
    boxes = np.column_stack([rng.uniform(-30, 30, (40, 2)), rng.uniform(1, 18, (40, 2))])
    moved = boxes + np.array([40, 40, 0, 0])
    np.testing.assert_allclose(cell_means(image, boxes, 3), cell_means(padded, moved, 3), atol=1e-9)
    far = cell_means(image, np.array([[1e12, 1e12, 3.0, 3.0]]), 2)  # nothing is allocated for it
    assert far.shape == (1, 2, 2, 2)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_candidates_have_sides_of_a_frame(scale):
    box = np.array([5.0, 5.0, 4.0, 4.0])
    around = boxes_around(box, 50, 0.5, np.array([scale, 1.0]), (20, 20), even=True)
    assert np.all(around[:, 2:] == 4.0)


def test_gradients_know_their_direction():
    across = np.tile(np.arange(32.0), (32, 1))  # rises to the right: direction 0
    histogram = hog_features(across, np.array([[4.0, 4, 16, 16]])).reshape(9, 4, 9)
    assert np.all(histogram.argmax(axis=2) == 0)
    downwards = hog_features(across.T, np.array([[4.0, 4, 16, 16]])).reshape(9, 4, 9)
    assert np.all(np.isin(downwards.argmax(axis=2), (4, 5)))  # 90 degrees lies between two
    flat = box_features(np.full((20, 20), 7.0), np.array([[2.0, 2, 9, 9]]), ("pixels", "hog"))
    assert flat.shape == (1, 580)
    assert np.array_equal(np.unique(flat), [0.0, 7.0])
    assert box_features(np.ones((1, 1)), np.array([[0.0, 0, 1, 1]]), ("hog",)).shape == (1, 324)


@given(st.integers(0, 2**32 - 1))
def test_box_risk_is_the_enumerated_hinge(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 3)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    losses, scores, other = rng.random(starts[-1]), *rng.normal(size=(2, starts[-1]))
    losses[starts[:-1]] = 0.0
    risk = BoxRisk(losses, starts)
    spans = [slice(a, b) for a, b in pairwise(starts)]
    expected = [max(losses[s] + scores[s] - scores[s.start]) for s in spans]
    value, slope = risk(scores)
    assert value == pytest.approx(np.mean(expected), abs=1e-12)
    assert risk(other)[0] >= value + slope @ (other - scores) - 1e-12
    values, rows = risk.each(scores)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose(rows.toarray().mean(axis=0), slope, atol=1e-12)


@pytest.fixture(scope="module")
def sequence():
    """A textured patch that wanders over a textured ground."""
    rng = np.random.default_rng(3)
    ground, patch = rng.integers(0, 120, (70, 90)), rng.integers(80, 256, (20, 16))
    steps = np.clip(np.cumsum(rng.integers(-3, 4, (10, 2)), axis=0), -18, 18)
    boxes = np.column_stack([36 + steps[:, 0], 24 + steps[:, 1], np.full(10, 16), np.full(10, 20)])
    frames = np.repeat(ground[None], 10, axis=0).astype(np.uint8)
    for image, (x, y, w, h) in zip(frames, boxes, strict=True):
        image[y : y + h, x : x + w] = patch
    return frames, boxes.astype(float)


SMALL = {"n_estimators": 25, "n_candidates": 300, "n_training": 60, "search_radius": 0.5}


def test_follows_a_patch(sequence):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    path = [tracker.update(image) for image in frames[1:]]
    overlap = [overlaps(a, b[None])[0] for a, b in zip(boxes[1:], path, strict=True)]
    assert min(overlap) > 0.8
    assert tracker.n_frames_ == 10
    assert np.array_equal(tracker.box_, path[-1])
    scores = tracker.score_boxes(frames[-1], [path[-1], [0, 0, 16, 20]])
    assert scores[0] > scores[1]
    again = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    assert all(np.array_equal(again.update(f), b) for f, b in zip(frames[1:], path, strict=True))


def test_too_few_stumps_are_told_once_a_start(sequence):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL | {"n_estimators": 5, "C": 100.0})
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match=r"StructBoostTracker stopped at n_est.*=5 "):
            tracker.start(frames[0], boxes[0])
        for image, box in zip(frames[1:4], boxes[1:4], strict=True):
            tracker.update(image, box)  # warnings are errors
        assert tracker.n_unconverged_ == 4
        assert tracker.gap_ > tracker.tol


def test_a_given_box_is_taken_and_learnt_from(sequence):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    assert np.array_equal(tracker.update(frames[1], boxes[1]), boxes[1])
    copy = pickle.loads(pickle.dumps(tracker))
    assert np.array_equal(copy.update(frames[2]), tracker.update(frames[2]))


def test_importances_and_scores(sequence):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL, features=("hog", "pixels")).start(frames[0], boxes[0])
    shares = tracker.feature_importances_
    assert shares.shape == (324 + 256,)
    assert shares.sum() == pytest.approx(1.0)
    used = {stump.feature for stump in tracker.estimators_ if stump.threshold > -np.inf}
    assert set(np.flatnonzero(shares)) == used
    assert tracker.score_boxes(frames[0], np.zeros((0, 4))).shape == (0,)
    far = [[1e6, 0, 16, 20], [-1e6, 0, 16, 20]]  # what is repeated there
    assert np.isfinite(tracker.score_boxes(frames[0], far)).all()


def test_parameters_that_change_on_the_way(sequence):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    tracker.set_params(features=("hog",))  # what was learnt stays: a new start takes it up
    assert tracker.update(frames[1]).shape == (4,)
    assert tracker.feature_importances_.shape == (580,)
    with pytest.raises(ValueError, match="n_candidates must be at least 1, got -1"):
        tracker.set_params(n_candidates=-1).update(frames[2])


@pytest.mark.parametrize("shape", [(8, 6), (1, 1), (140, 180)])
def test_frames_may_change_their_size(sequence, shape):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    assert np.isfinite(tracker.update(np.full(shape, 0.5))).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be at least 1, got 0"),
        ({"C": -1.0}, "C must be positive"),
        ({"features": "hog"}, "features must be a sequence of 'pixels' and 'hog', got 'hog'"),
        ({"features": 3}, "features must be a sequence of 'pixels' and 'hog', got 3"),
        ({"features": ["colour"]}, "features must be one of 'pixels', 'hog', got 'colour'"),
        ({"scales": [0.0]}, "scales must be positive numbers"),
        ({"memory": 0}, "memory must be at least 1"),
    ],
)
def test_bad_parameters(sequence, change, message):
    frames, boxes = sequence
    with pytest.raises(ValueError, match=message):
        sw.StructBoostTracker(**change).start(frames[0], boxes[0])


def test_bad_frames_and_boxes(sequence):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL)
    with pytest.raises(ValueError, match="update needs a call of start first"):
        tracker.update(frames[0])
    with pytest.raises(ValueError, match=r"frame must have shape \(h, w\) or \(h, w, 3\)"):
        tracker.start(frames, boxes[0])
    with pytest.raises(ValueError, match="frame must be finite"):
        tracker.start(np.full((9, 9), np.nan), boxes[0])
    with pytest.raises(ValueError, match=r"box must be \(x, y, w, h\) with positive w and h"):
        tracker.start(frames[0], (3, 3, 0, 5))
    for box in ((90, 3, 5, 5), (3, -5, 5, 5), (1e300, 0, 5, 5)):
        with pytest.raises(ValueError, match="box must lie at least partly in the frame, 90 wide"):
            tracker.start(frames[0], box)
    for side in (1e-200, 0.5, 1e9):
        with pytest.raises(ValueError, match=r"positive w and h, 1 to 1e\+06 pixels, got \[3.0"):
            tracker.start(frames[0], (3, 3, side, side))
    with pytest.raises(ValueError, match="score_boxes needs a call of start first"):
        tracker.score_boxes(frames[0], boxes)
    with pytest.raises(ValueError, match="frame must hold integers between 0 and 255, got 256"):
        tracker.start(np.full((9, 9), 256, np.uint16), (3, 3, 5, 5))
    with pytest.raises(ValueError, match="frame must hold floats between 0 and 1, got 255"):
        tracker.start(np.full((9, 9), 255.0), (3, 3, 5, 5))
    with pytest.raises(ValueError, match=r"frame must hold floats between 0 and 1, got -0\.5"):
        tracker.start(np.full((9, 9), -0.5), (3, 3, 5, 5))
    tracker.start(frames[0], boxes[0])
    with pytest.raises(ValueError, match=r"boxes must be \(x, y, w, h\) with positive w and h"):
        tracker.score_boxes(frames[0], [[3, 3, 0, 5]])
    with pytest.raises(TypeError, match="frame must hold numbers, got bool"):
        tracker.start(np.zeros((9, 9), bool), boxes[0])
