"""Boosting for a moving box: an online tracker that optimises the overlap it is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from setwise._foundation._arguments import (
    FloatArray,
    as_choice,
    as_count,
    as_number,
    as_numbers,
)
from setwise._foundation._interrupts import whole
from setwise.estimators._boosting._boosted import importances, warn_of_gap
from setwise.estimators._tracking._box_features import FEATURES, box_features
from setwise.estimators._tracking._box_risk import BoxRisk
from setwise.estimators._tracking._boxes import boxes_around, overlaps
from setwise.estimators._tracking._frames import as_box, as_frame, check_sides
from setwise.learning import StumpSearch, struct_boost
from setwise.learning._weak_learners._rows import respond

_MOST_BOXES = 1 << 24
_PER_ROUND = 5  # stumps that enter together: they are on different features

_Examples = tuple[NDArray[np.uint8], FloatArray]  # features of boxes and their losses


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
        Relative gap at which an update ends. The first update since ``start`` that ends above it
        warns (``ConvergenceWarning``); ``n_unconverged_`` counts them all.
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
        Relative gap of the latest update: how much of what there was to gain may be left.
    n_unconverged_ : int
        How many updates since ``start`` ended above ``tol``.
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
    >>> tracker = sw.StructBoostTracker(n_estimators=30, n_candidates=200)
    >>> tracker = tracker.start(frames[0], (10, 20, 20, 20))
    >>> [tracker.update(frame).tolist()[:2] for frame in frames[1:]][-1]
    [20.0, 20.0]
    """

    box_: FloatArray
    n_frames_: int
    estimators_: list[Any]
    estimator_weights_: FloatArray
    gap_: float
    _kinds: tuple[str, ...]
    n_unconverged_: int
    _memory: list[_Examples]

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
        image = as_frame(frame)
        present = as_box(box, image)
        kinds = tuple(self.features)
        memory = [self._examples(image, present, kinds)]
        learnt = self._learnt(memory, 0)
        # All in one step: Ctrl-C leaves the tracker as it was, so that the call can be made again.
        self.__dict__.update(learnt, _kinds=kinds, _memory=memory, box_=present, n_frames_=1)
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
            The box, as in ``box_``. Ctrl-C raises ``KeyboardInterrupt`` and leaves the tracker as
            it was before the call.
        """
        self._check_started("update")
        self._check_parameters()
        image = as_frame(frame)
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
            found = as_box(box, image)
        latest = self._examples(image, found, self._kinds)
        memory = [*self._memory, latest][-self.memory :]
        n_frames = self.n_frames_ + 1
        due = box is not None or n_frames % self.update_every == 0
        learnt = self._learnt(memory, self.n_unconverged_) if due else {}
        self.__dict__.update(learnt, _memory=memory, box_=found, n_frames_=n_frames)
        return self.box_.copy()

    def score_boxes(self, frame: ArrayLike, boxes: ArrayLike) -> FloatArray:
        """The scores of boxes (n, 4) of a frame, (n,); the best-scored one is the answer."""
        self._check_started("score_boxes")
        places = as_numbers(boxes, "boxes", shape=(None, 4))
        check_sides(places, "boxes")
        return self._scores(as_frame(frame), places)

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

    def _examples(self, image: FloatArray, box: FloatArray, kinds: tuple[str, ...]) -> _Examples:
        """Features of the boxes around this one, and their losses."""
        around = boxes_around(
            box,
            self.n_training,
            float(self.training_radius),
            np.asarray(self.scales, dtype=np.float64),
            (image.shape[0], image.shape[1]),
            even=False,  # near misses are what there is to learn from
        )
        features = box_features(image, around, kinds)
        return features.astype(np.uint8), 1.0 - overlaps(box, around)

    def _learnt(self, memory: list[_Examples], before: int) -> dict[str, Any]:
        """The stumps for the frames in memory, as attributes.

        ``before`` updates since the start did not converge.
        """
        features = np.concatenate([rows for rows, _ in memory]).astype(np.float64)
        losses = np.concatenate([loss for _, loss in memory])
        sizes = [0, *(len(loss) for _, loss in memory)]
        # A slack a frame: there are few, and the finer model saves most of the questions.
        fit = struct_boost(
            BoxRisk(losses, np.cumsum(sizes, dtype=np.int64)),
            StumpSearch(features, n_columns=_PER_ROUND),
            self.C,
            tol=self.tol,
            n_estimators=self.n_estimators,
            slack="example",
            columns_per_round=_PER_ROUND,
        )
        used = np.flatnonzero(whole(fit).w)
        unconverged = int(fit.relative_gap > self.tol)
        if unconverged and not before:  # not in every second frame again
            warn_of_gap(type(self).__name__, fit, self.tol, self.n_estimators)
        return {
            "estimators_": [fit.columns[k].learner for k in used],
            "estimator_weights_": fit.w[used],
            "gap_": fit.relative_gap,
            "n_unconverged_": before + unconverged,
        }

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
