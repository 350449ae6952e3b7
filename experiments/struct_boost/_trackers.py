"""Trackers side by side: ours, AdaBoost with the same stumps, and those of OpenCV."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import setwise as sw
from setwise import _core
from setwise.estimators._tracking._box_learner import ByteStumps
from setwise.estimators._tracking._boxes import overlaps

SCALES = (0.96, 1.0, 1.04)
OURS = ("StructBoost", "StructBoost, one box", "StructBoost, sizes", "AdaBoost")
OPENCV = ("MIL (OpenCV)", "KCF (OpenCV)", "CSRT (OpenCV)")


@dataclass(frozen=True)
class Run:
    """The boxes of all frames, frames per second on one core, and the tracker's own scores."""

    boxes: np.ndarray
    speed: float
    states: list[str]


class AdaBoostTracker(sw.StructBoostTracker):
    """A tracker by AdaBoost: boxes of overlap over 0.8 against boxes of overlap of at most 0.3.

    Boxes and features are those of our tracker.
    """

    def _learn(self, stumps, memory, rounds):
        """Run AdaBoost from the start, as in the paper: nothing is kept from the last update."""
        features = np.concatenate([example.features for example in memory.examples()])
        overlap = 1.0 - np.concatenate([example.losses for example in memory.examples()])
        used = (overlap > 0.8) | (overlap <= 0.3)
        sign = np.where(overlap[used] > 0.8, 1.0, -1.0)
        codes = np.ascontiguousarray(features[used].T)
        weight = np.where(sign > 0, 0.5 / np.sum(sign > 0), 0.5 / max(np.sum(sign < 0), 1))
        gains, thresholds = np.empty(len(codes)), np.empty(len(codes), np.int64)
        chosen = []
        for _ in range(self.n_estimators):
            _core.byte_stumps(codes, weight * sign, gains, thresholds)
            best = int(np.abs(gains).argmax())
            side = 1 if gains[best] > 0 else -1
            says = np.where(codes[best] > thresholds[best], side, -side)
            error = float(weight[says != sign].sum())
            if error >= 0.5:
                break
            alpha = 0.5 * np.log((1 - error) / max(error, 1e-10))
            chosen.append((best, thresholds[best], side, alpha))
            if error == 0:
                break
            weight = weight * np.exp(-alpha * sign * says)
            weight /= weight.sum()
        columns = list(zip(*chosen, strict=True)) or [(), (), (), ()]
        whole = [np.array(column, np.int64) for column in columns[:2]]
        return ByteStumps(*whole, np.array(columns[2], np.int8), np.array(columns[3], float))


def opencv(name: str) -> Callable[[], object]:
    """Return a tracker of OpenCV that runs on one thread."""
    import cv2

    cv2.setNumThreads(1)
    makers = (cv2.TrackerMIL_create, cv2.TrackerKCF_create, cv2.TrackerCSRT_create)
    return dict(zip(OPENCV, makers, strict=True))[name]


def follow_opencv(name: str, frames: np.ndarray, box: np.ndarray) -> Run:
    """Follow the box of the first frame. The box stays where a tracker reports a failure."""
    tracker = opencv(name)()
    pictures = [np.repeat(frame[:, :, None], 3, axis=2) for frame in frames]
    begin = time.process_time()
    tracker.init(pictures[0], tuple(round(side) for side in box))
    boxes, states = [box], ["following"]
    for picture in pictures[1:]:
        found, at = tracker.update(picture)
        boxes.append(np.array(at, float) if found and min(at[2:]) > 0 else boxes[-1])
        states.append("following" if found else "lost")
    return Run(np.array(boxes), len(frames) / (time.process_time() - begin), states)


def follow(name: str, frames: np.ndarray, given: Mapping[int, np.ndarray]) -> Run:
    """Follow a box through grey frames (t, h, w) of bytes.

    ``given`` maps frames to known boxes, frame 0 among them. OpenCV's trackers use the first alone.
    """
    if name in OPENCV:
        return follow_opencv(name, frames, given[0])
    if name == "AdaBoost":
        tracker = AdaBoostTracker(n_estimators=100)
    else:
        tracker = sw.StructBoostTracker(scales=SCALES if name.endswith("sizes") else (1.0,))
    start_boxes = {0: given[0]} if name.endswith("one box") else given
    begin = time.process_time()
    tracker.start(frames[0], given[0])
    boxes, states = [given[0]], ["following"]
    for t in range(1, len(frames)):
        boxes.append(tracker.update(frames[t], start_boxes.get(t)))
        states.append(tracker.state_)
    return Run(np.array(boxes), len(frames) / (time.process_time() - begin), states)


def overlap_of(truth: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return overlaps frame by frame: (t, 4), (t, 4) -> (t,)."""
    return np.array([overlaps(a, b[None])[0] for a, b in zip(truth, boxes, strict=True)])


def distance_of(truth: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return the distance of the centres, frame by frame: (t,)."""
    return np.hypot(*(truth[:, :2] + truth[:, 2:] / 2 - boxes[:, :2] - boxes[:, 2:] / 2).T)
