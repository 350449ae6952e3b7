"""Boosting for a moving box: an online tracker that optimises the overlap it is judged by."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from setwise.estimators._boosted import importances
from setwise.estimators._box_features import FEATURES, box_features, grey
from setwise.estimators._box_risk import BoxRisk
from setwise.estimators._boxes import LARGEST, boxes_around, overlaps
from setwise.functions._arguments import (
    FloatArray,
    as_array,
    as_choice,
    as_count,
    as_number,
    as_numbers,
)
from setwise.learning import Stumps, struct_boost
from setwise.learning._rows import respond

_MOST_BOXES = 1 << 24
_PER_ROUND = 5  # stumps that enter together: they are on different features


class StructBoostTracker(BaseEstimator):  # type: ignore[misc]
    r"""Follow a box through a sequence of images.

    The score of a box is a sum of decision stumps on what is inside it, and the box of a frame is
    the best of about ``n_candidates`` around the last one. From the boxes around each answer the
    stumps are learnt anew every ``update_every`` frames, by column generation on

    .. math:: \min_{w \ge 0} \; 1'w + \frac{C}{m} \sum_{i} \max_{y}
        \bigl[ \Delta(y_i, y) + f_i(y) - f_i(y_i) \bigr]

    over the last ``memory`` frames i, where :math:`\Delta` is one minus the area of the
    intersection over that of the union (Pascal overlap): boxes are told apart the more, the less
    they overlap (StructBoost, Sections 3.5 and 4.4, whose protocol is the default here).

    A frame costs O((candidates + n_estimators) features); an update is one ``struct_boost`` over
    memory * n_training boxes.

    Parameters
    ----------
    n_estimators : int
        The most stumps.
    C : float
        Weight of the risk; the paper tries 10^0.5 to 10^2.
    tol : float
        Relative gap at which an update ends.
    features : sequence of "pixels" and "hog"
        Grey values at 16 x 16 and histograms of oriented gradients.
    n_candidates, n_training : int
        How many boxes a prediction looks at, and an update learns from, in each frame.
    search_radius, training_radius : float
        How far their centres lie from the present one, at most, relative to the box's size, the
        square root of its area.
    scales : sequence of floats
        Sizes that are tried, relative to the present box. The paper's boxes keep their size.
    memory : int
        How many frames an update learns from.
    update_every : int
        How many frames lie between two updates.

    Attributes
    ----------
    box_ : (4,) floats
        Where the object is in the latest frame: x, y of the upper left corner, width, height.
    estimators_, estimator_weights_
        The stumps and their weights.
    feature_importances_ : (n_features,) floats
        The weights of the stumps, shared out to the features in the order of ``features``: 256 of
        "pixels", row by row, 324 of "hog". They sum to 1.
    gap_ : float
        Relative gap of the latest update.
    n_frames_ : int
        How many frames were seen.

    References
    ----------
    C. Shen, G. Lin, A. van den Hengel, StructBoost: Boosting methods for predicting structured
    output variables, 2014.
    S. Hare, A. Saffari, P. Torr, Struck: structured output tracking with kernels, 2011.

    Examples
    --------
    A bright square that moves two pixels to the right in each frame:

    >>> import numpy as np
    >>> import setwise as sw
    >>> frames = np.zeros((6, 60, 80))
    >>> for t, frame in enumerate(frames):
    ...     frame[20:40, 10 + 2 * t : 30 + 2 * t] = 1.0
    >>> tracker = sw.StructBoostTracker(n_estimators=20, n_candidates=200)
    >>> tracker = tracker.start(frames[0], (10, 20, 20, 20))
    >>> [tracker.update(frame).tolist()[:2] for frame in frames[1:]][-1]
    [20.0, 20.0]
    """

    def __init__(
        self,
        *,
        n_estimators: int = 300,
        C: float = 10.0,
        tol: float = 0.01,
        features: Sequence[str] = ("pixels", "hog"),
        n_candidates: int = 2000,
        n_training: int = 200,
        search_radius: float = 0.25,
        training_radius: float = 0.5,
        scales: Sequence[float] = (1.0,),
        memory: int = 60,
        update_every: int = 2,
    ) -> None:
        self.n_estimators = n_estimators
        self.C = C
        self.tol = tol
        self.features = features
        self.n_candidates = n_candidates
        self.n_training = n_training
        self.search_radius = search_radius
        self.training_radius = training_radius
        self.scales = scales
        self.memory = memory
        self.update_every = update_every

    def start(self, frame: ArrayLike, box: ArrayLike) -> StructBoostTracker:
        """Learn what is inside the box of the first frame.

        Parameters
        ----------
        frame : (h, w) or (h, w, 3)
            Grey or colour; integers in 0..255 or floats in 0..1.
        box : (4,)
            x, y, width, height; some of it inside the frame.
        """
        self._check_parameters()
        image = _as_frame(frame)
        present = _as_box(box, image)
        self._kinds = tuple(self.features)
        self._memory: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=int(self.memory))
        self.n_frames_ = 0
        self._learn_from(image, present)
        self._fit()
        return self

    def update(self, frame: ArrayLike, box: ArrayLike | None = None) -> FloatArray:
        """Find the object in the next frame, and learn from the answer.

        Parameters
        ----------
        frame : (h, w) or (h, w, 3)
            As in ``start``.
        box : (4,), optional
            Where the object is, if it is known: then nothing is searched for. The paper gives the
            first three.

        Returns
        -------
        (4,) floats
            The box, as in ``box_``.
        """
        self._check_started("update")
        self._check_parameters()
        image = _as_frame(frame)
        if box is None:
            candidates = boxes_around(
                self.box_,
                self.n_candidates,
                float(self.search_radius),
                np.asarray(self.scales, dtype=np.float64),
                (image.shape[0], image.shape[1]),
                even=True,
            )
            found = candidates[np.argmax(self._scores(image, candidates))]
        else:
            found = _as_box(box, image)
        self._learn_from(image, found)
        if box is not None or self.n_frames_ % self.update_every == 0:
            self._fit()
        return self.box_.copy()

    def score_boxes(self, frame: ArrayLike, boxes: ArrayLike) -> FloatArray:
        """The scores of boxes (n, 4) of a frame, (n,); the best-scored one is the answer."""
        self._check_started("score_boxes")
        places = as_numbers(boxes, "boxes", shape=(None, 4))
        _check_sides(places, "boxes")
        return self._scores(_as_frame(frame), places)

    @property
    def feature_importances_(self) -> FloatArray:
        """The weights of the stumps, shared out to their features; they sum to 1."""
        self._check_started("feature_importances_")
        return importances(self.estimators_, self.estimator_weights_, self._memory[0][0].shape[1])

    def _scores(self, image: FloatArray, boxes: FloatArray) -> FloatArray:
        scores = np.zeros(len(boxes))
        features = box_features(image, boxes, self._kinds)
        for learner, weight in zip(self.estimators_, self.estimator_weights_, strict=True):
            scores += weight * respond(learner, features)
        return scores

    def _learn_from(self, image: FloatArray, box: FloatArray) -> None:
        """Keep the boxes around this one, with their losses, for the next fit."""
        around = boxes_around(
            box,
            self.n_training,
            float(self.training_radius),
            np.asarray(self.scales, dtype=np.float64),
            (image.shape[0], image.shape[1]),
            even=False,  # near misses are what there is to learn from
        )
        features = box_features(image, around, self._kinds)
        self._memory.append((features.astype(np.uint8), 1.0 - overlaps(box, around)))
        self.box_ = box
        self.n_frames_ += 1

    def _fit(self) -> None:
        """Learn the stumps from the frames in memory."""
        features = np.concatenate([rows for rows, _ in self._memory]).astype(np.float64)
        losses = np.concatenate([loss for _, loss in self._memory])
        sizes = [0, *(len(loss) for _, loss in self._memory)]
        # A slack a frame: there are few, and the finer model saves most of the questions.
        fit = struct_boost(
            BoxRisk(losses, np.cumsum(sizes, dtype=np.int64)),
            Stumps(features, n_columns=_PER_ROUND),
            self.C,
            tol=self.tol,
            n_estimators=self.n_estimators,
            slack="example",
            columns_per_round=_PER_ROUND,
        )
        used = np.flatnonzero(fit.w)
        self.estimators_ = [fit.columns[k].learner for k in used]
        self.estimator_weights_ = fit.w[used]
        self.gap_ = fit.relative_gap

    def _check_started(self, what: str) -> None:
        if not hasattr(self, "estimators_"):
            raise NotFittedError(f"{what} needs a call of start first")

    def _check_parameters(self) -> None:
        as_count(self.n_estimators, "n_estimators", least=1)
        as_number(self.C, "C", positive=True)
        as_number(self.tol, "tol", nonnegative=True)
        features: Any = self.features  # whatever was given
        if isinstance(features, str) or not isinstance(features, Sequence) or len(features) == 0:
            raise ValueError(
                f"features must be a sequence of 'pixels' and 'hog', got {self.features!r}"
            )
        for kind in self.features:
            as_choice(kind, "features", FEATURES)
        as_count(self.n_candidates, "n_candidates", least=1, most=_MOST_BOXES)
        as_count(self.n_training, "n_training", least=2, most=_MOST_BOXES)
        as_number(self.search_radius, "search_radius", positive=True)
        as_number(self.training_radius, "training_radius", positive=True)
        if not np.all(as_numbers(self.scales, "scales") > 0) or len(self.scales) == 0:
            raise ValueError(f"scales must be positive numbers, got {self.scales!r}")
        as_count(self.memory, "memory", least=1, most=_MOST_BOXES)
        as_count(self.update_every, "update_every", least=1)


def _as_frame(frame: ArrayLike) -> FloatArray:
    """A frame as grey values (h, w) in 0..255."""
    image: Any = as_array(frame, "frame")
    if image.dtype.kind not in "fu" and image.dtype.kind != "i":
        raise TypeError(f"frame must hold numbers, got {image.dtype}")
    if not (image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 3)) or image.size == 0:
        raise ValueError(f"frame must have shape (h, w) or (h, w, 3), got {image.shape}")
    if not np.isfinite(image).all():
        raise ValueError("frame must be finite, got NaN or infinity")
    # Another range would leave the 256 values that the search for stumps counts on.
    most, kind = (1, "floats") if image.dtype.kind == "f" else (255, "integers")
    low, high = float(image.min()), float(image.max())
    if low < -1e-6 or high > most + 1e-6:  # resampled images exceed it by rounding
        raise ValueError(
            f"frame must hold {kind} between 0 and {most}, got {high if high > most else low:g}"
        )
    return grey(image)


def _as_box(box: ArrayLike, image: FloatArray) -> FloatArray:
    """A box with sides of a pixel at least, some of it in the image."""
    checked = as_numbers(box, "box", shape=(4,))
    _check_sides(checked[None], "box")
    height, width = image.shape
    if (checked[:2] >= (width, height)).any() or (checked[:2] + checked[2:] <= 0).any():
        raise ValueError(
            f"box must lie at least partly in the frame, {width} wide and {height} high, "
            f"got {checked.tolist()}"
        )
    return checked


def _check_sides(boxes: FloatArray, name: str) -> None:
    for box in boxes[((boxes[:, 2:] < 1) | (boxes[:, 2:] > LARGEST)).any(axis=1)][:1]:
        raise ValueError(
            f"{name} must be (x, y, w, h) with positive w and h, 1 to {LARGEST:g} pixels, "
            f"got {box.tolist()}"
        )
