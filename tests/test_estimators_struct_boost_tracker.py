"""The tracker: sequences it follows, loses and finds again, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, zoom

import setwise as sw
from setwise.estimators._tracking._boxes import overlaps


def overlap(box, other):
    return overlaps(np.asarray(box, float), np.asarray(other, float)[None])[0]


def texture(rng, height, width, low, high, coarse=1.5):
    """Smooth noise between two grey values."""
    noise = gaussian_filter(rng.normal(size=(height, width)), coarse)
    return np.rint(low + (high - low) * (noise - noise.min()) / np.ptp(noise))


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


SMALL = {"n_estimators": 60, "n_candidates": 300, "n_training": 60, "search_radius": 0.5}


def test_follows_a_patch(sequence):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    assert (tracker.state_, tracker.confidence_) == ("following", 1.0)
    path = []
    for image in frames[1:]:
        path.append(tracker.update(image))
        assert tracker.state_ == "following"
        assert tracker.confidence_ > 0.8
    assert min(overlap(a, b) for a, b in zip(boxes[1:], path, strict=True)) > 0.8
    assert tracker.n_frames_ == 10
    assert np.array_equal(tracker.box_, path[-1])
    scores = tracker.score_boxes(frames[-1], [path[-1], [0, 0, 16, 20]])
    assert scores[0] > scores[1]
    again = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    assert all(np.array_equal(again.update(f), b) for f, b in zip(frames[1:], path, strict=True))
    assert 0 <= tracker.gap_ <= 1


def test_started_again_it_knows_nothing_of_before(sequence):
    frames, boxes = sequence
    fresh = sw.StructBoostTracker(**SMALL).start(frames[4], boxes[4])
    used = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    for image in frames[1:4]:
        used.update(image)
    used.update(np.zeros_like(frames[0]))
    assert used.state_ == "unsure"
    used.start(frames[4], boxes[4])
    assert (used.state_, used.confidence_, used.n_frames_) == ("following", 1.0, 1)
    assert np.array_equal(used.update(frames[5]), fresh.update(frames[5]))
    small = used.start(frames[0][:40, :50], (10, 10, 16, 20))  # frames of another size, too
    assert small.update(frames[1][:40, :50]).shape == (4,)


def covered_sequence():
    """A patch that a wall hides while it moves on, beyond the reach of the search."""
    rng = np.random.default_rng(11)
    ground, patch = texture(rng, 80, 120, 0, 160), texture(rng, 20, 16, 60, 255)
    wall = texture(rng, 80, 44, 90, 140, coarse=4)
    frames, boxes, seen = [], [], []
    for t in range(34):
        x = 12 + 2 * t if t < 20 else 86 - (t - 20)
        image = ground.copy()
        image[30:50, x : x + 16] = patch
        if 12 <= t < 20:
            image[:, 28:72] = wall
        frames.append(image.astype(np.uint8))
        boxes.append((x, 30, 16, 20))
        seen.append(not 12 <= t < 20)
    return frames, boxes, seen


def test_a_patch_that_was_hidden_is_found_again():
    frames, boxes, seen = covered_sequence()
    tracker = sw.StructBoostTracker(**SMALL, patience=3).start(frames[0], boxes[0])
    states = ["following"]
    for image, truth, visible in zip(frames[1:], boxes[1:], seen[1:], strict=True):
        box = tracker.update(image)
        states.append(tracker.state_)
        assert (tracker.confidence_ >= tracker.unsure_below) == (tracker.state_ == "following")
        assert not visible or overlap(truth, box) > 0.7
    assert states == ["following"] * 12 + ["unsure"] * 2 + ["lost"] * 6 + ["following"] * 14


def test_what_is_not_seen_is_not_learnt_and_the_box_stays(sequence):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL, update_every=1).start(frames[0], boxes[0])
    tracker.update(frames[1])
    weights, box = tracker.estimator_weights_, tracker.box_
    rng = np.random.default_rng(4)
    for _ in range(7):
        other = rng.integers(0, 256, frames[0].shape).astype(np.uint8)
        assert np.array_equal(tracker.update(other), box)
        assert np.array_equal(tracker.estimator_weights_, weights)
    assert tracker.state_ == "lost"
    tracker.update(frames[2], boxes[2])  # a given box ends it
    assert (tracker.state_, tracker.confidence_) == ("following", 1.0)


@pytest.mark.parametrize("at", [(0, 0), (74, 0), (0, 50), (74, 50), (-6, -8), (84, 62)])
def test_boxes_at_the_border_and_beyond(sequence, at):
    rng = np.random.default_rng(8)
    ground, patch = rng.integers(0, 120, (70, 90)), rng.integers(60, 256, (20, 16))
    padded = np.pad(ground, 30, mode="edge").astype(np.uint8)
    x, y = at
    padded[30 + y : 50 + y, 30 + x : 46 + x] = patch
    frame = padded[30:100, 30:120]
    tracker = sw.StructBoostTracker(**SMALL).start(frame, (*at, 16, 20))
    for _ in range(3):
        box = tracker.update(frame)
    assert overlap(box, (*at, 16, 20)) > 0.6
    assert tracker.state_ == "following"


def test_a_patch_that_leaves_the_frame_is_lost():
    rng = np.random.default_rng(9)
    ground, patch = rng.integers(0, 120, (60, 100)), rng.integers(60, 256, (16, 16))
    tracker = sw.StructBoostTracker(**SMALL)
    states = []
    for t in range(24):
        image = np.pad(ground, ((0, 0), (0, 40)))
        x = 70 + 3 * t
        image[20:36, x : x + 16] = patch[:, : max(min(16, 140 - x), 0)]
        frame = image[:, :100].astype(np.uint8)
        if t == 0:
            tracker.start(frame, (70, 20, 16, 16))
        else:
            assert np.isfinite(tracker.update(frame)).all()
            states.append(tracker.state_)
    assert states[0] == "following"
    assert states[-1] == "lost"


@pytest.mark.parametrize("size", [(1, 1), (1, 20), (200, 300)])
def test_boxes_of_one_pixel_and_larger_than_the_frame(sequence, size):
    frames, _ = sequence
    tracker = sw.StructBoostTracker(**SMALL).start(frames[0], (30, 20, *size))
    for image in [*frames[1:3], *[np.zeros_like(frames[0])] * 7, frames[3]]:  # lost, and back
        box = tracker.update(image)
        assert np.array_equal(box[2:], size)
        assert 0 <= tracker.confidence_ <= 1


def test_floats_and_bytes_give_the_same_answers(sequence):
    frames, boxes = sequence
    paths = []
    for read in (lambda f: f, lambda f: f / 255, lambda f: (f / 255).astype(np.float32)):
        tracker = sw.StructBoostTracker(**SMALL).start(read(frames[0]), boxes[0])
        paths.append([(*tracker.update(read(f)), tracker.confidence_) for f in frames[1:6]])
    assert paths[0] == paths[1] == paths[2]


def test_the_size_of_the_box_follows_the_scale():
    rng = np.random.default_rng(10)
    ground, patch = texture(rng, 100, 100, 0, 120), texture(rng, 80, 80, 60, 255, coarse=6)
    few = {"n_candidates": 1500, "n_training": 150}
    tracker = sw.StructBoostTracker(**SMALL | few, scales=(0.96, 1.0, 1.04))
    for t in range(25):
        side = 32 + 16 * t // 24
        frame = ground.copy()
        frame[30 : 30 + side, 24 : 24 + side] = zoom(patch, side / 80, order=1)
        frame = np.clip(frame, 0, 255).astype(np.uint8)
        box = tracker.update(frame) if t else tracker.start(frame, (24, 30, 32, 32)).box_
    assert overlap(box, (24, 30, 48, 48)) > 0.75
    assert box[2] > 40


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
    assert set(np.flatnonzero(shares)) == {stump.feature for stump in tracker.estimators_}
    assert len(tracker.estimators_) == len(tracker.estimator_weights_)
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


@pytest.mark.parametrize("shape", [(8, 6), (1, 1), (70, 91), (90, 70)])
def test_frames_of_another_size_are_refused(sequence, shape):
    frames, boxes = sequence
    tracker = sw.StructBoostTracker(**SMALL).start(frames[0], boxes[0])
    with pytest.raises(
        ValueError, match=f"first one, 90 wide and 70 high, got {shape[1]} wide and {shape[0]} high"
    ):
        tracker.update(np.full(shape, 0.5))
    assert tracker.n_frames_ == 1


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
        ({"reservoir": -1}, "reservoir must be at least 0"),
        ({"unsure_below": 1.5}, "unsure_below must be at most 1"),
        ({"found_above": -0.5}, "found_above must not be negative"),
        ({"patience": 0}, "patience must be at least 1"),
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


def test_the_settings_of_the_paper():
    tracker = sw.StructBoostTracker.as_in_paper(n_estimators=30, n_candidates=200)
    assert (tracker.memory, tracker.reservoir, tracker.n_training) == (60, 0, 200)
    assert tracker.n_estimators == 30
    frames = np.zeros((6, 60, 80))
    for t, frame in enumerate(frames):
        frame[20:40, 10 + 2 * t : 30 + 2 * t] = 1.0
    tracker.start(frames[0], (10, 20, 20, 20))
    assert [tracker.update(frame)[0] for frame in frames[1:]] == [12.0, 14.0, 16.0, 18.0, 20.0]
    assert tracker.update(np.zeros((60, 80))).shape == (4,)
    assert tracker.state_ == "following"  # it never doubts
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        sw.StructBoostTracker.as_in_paper(speed=2)
