"""Boosting for a moving box: an online tracker that optimises the overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from setwise._foundation._arguments import (
    FloatArray,
    as_choice,
    as_count,
    as_number,
    as_numbers,
)
from setwise._foundation._base_classes import Versioned
from setwise._foundation._keywords import hints_at_names
from setwise.estimators._boosting._boosted import importances
from setwise.estimators._tracking._box_features import FEATURES, BoxFeatures, looks
from setwise.estimators._tracking._box_learner import ByteStumps, learn
from setwise.estimators._tracking._boxes import boxes_around, boxes_over, boxes_scaled, overlaps
from setwise.estimators._tracking._frames import as_box, as_frame, as_next_frame, check_sides
from setwise.estimators._tracking._memory import Example, TargetMemory
from setwise.learning._weak_learners._stumps import Stump

# The largest number of boxes that a parameter may ask for: their features take gigabytes.
_MOST_BOXES = 1 << 24
# The rounds of new stumps at the start, which allow 300 stumps, and in an update, which continues
# from the last stumps and must be fast. Not tuned.
_ROUNDS_AT_START, _ROUNDS = 30, 3
# A frame whose box is given has this many times as many training boxes, because its box is certain
# and the first frame is the only one at the start. Not tuned.
_FOR_LABELED = 4
# The factor of the search radius after an uncertain frame, in which the object may have moved
# farther. Not tuned.
_WIDER = 1.5
# An update rejects a box whose confidence is below ``unsure_below`` by more than this. Not tuned.
_REJECTED_BELOW = 0.1
# A lost object is searched on a grid. The best _PLACES boxes of the grid are refined by _NEARBY
# boxes within _NEAR_RADIUS around each. They bound the work of such a frame and are not tuned.
_PLACES, _NEARBY, _NEAR_RADIUS = 3, 150, 0.15

# The boxes of an update have centres up to this distance from the right one, relative to the square
# root of its area. On 20 drawn sequences of 60 frames the mean overlap was 0.71 at 0.25, 0.74 at
# 0.5 and 0.73 at 1.
_TRAINING_RADIUS = 0.5
_AS_IT_IS = np.ones(1)  # the scales of a search in one size


class StructBoostTracker(Versioned, BaseEstimator):  # type: ignore[misc]
    r"""A tracker that follows a box through a sequence of images.

    The score of a box is a sum of decision stumps on its features, and the box of a frame is the
    best of about ``n_candidates`` boxes around the last one. Every ``update_every`` frames the
    stumps are updated from the boxes around each answer, by column generation on

    .. math:: \min_{w \ge 0} \; 1'w + \frac{C}{m} \sum_{i} \max_{y}
        \bigl[ \Delta(y_i, y) + f_i(y) - f_i(y_i) \bigr]

    over m frames i, where :math:`\Delta` is one minus the area of the intersection over that of the
    union (Pascal overlap): the margin between boxes increases as their overlap decreases
    (StructBoost, Sections 3.5 and 4.4). An update continues from the last stumps.

    The tracker learns from the frames whose box was given, the last ``memory`` frames, and
    ``reservoir`` older ones that look different from one another. It also recognises the object by
    them: its confidence is the similarity of the found box to the most similar of them, and
    determines its state.

    - "following": the object was recognised, and the tracker learns from the frame.
    - "unsure": the found box is not similar to any remembered frame. The tracker does not learn
      from it, and the next search is wider.
    - "lost": the tracker has been unsure for ``patience`` frames. It searches the whole frame for
      boxes that are similar to remembered frames, and takes the best one if its similarity is above
      ``found_above``.

    While the object is not recognised, the box stays in place.

    A frame costs O((candidates + pixels) features) and an update a few rounds of O(boxes (features
    + stumps)), compiled.

    Parameters
    ----------
    n_estimators : int
        The largest number of stumps.
    C : float
        Weight of the risk; the paper tries 10^0.5 to 10^2.
    tol : float
        Relative gap at which an update ends before its rounds are over.
    features : sequence of "pixels" and "hog"
        Grey values at 16 x 16 and histograms of oriented gradients.
    n_candidates, n_training : int
        The number of boxes per frame that a prediction evaluates, and that an update learns from; a
        given frame has four times as many.
    search_radius : float
        The largest distance of the centres of candidates from the current one, relative to the
        square root of the box's area.
    scales : sequence of floats
        Sizes, relative to the current box, that are tried at the found position; the one most
        similar to the remembered frames is taken. In the paper boxes keep their size.
    memory, reservoir : int
        The numbers of last frames and of older frames that an update learns from.
    update_every : int
        The number of frames between two updates.
    unsure_below, found_above : float
        The confidence, 0 to 1, below which the object counts as not seen, and above which a lost
        object counts as found.
    patience : int
        The number of frames without the object after which it is lost.

    Attributes
    ----------
    box_ : (4,) floats
        The box of the object in the latest frame: x, y of the upper left corner, width, height.
    state_ : {"following", "unsure", "lost"}
        The state of the tracker after the latest frame.
    confidence_ : float
        The similarity of the found box to a remembered frame, 0 to 1: the mean over ``features`` of
        their correlation. It is 1 if the box was given.
    estimators_, estimator_weights_
        The stumps and their weights.
    feature_importances_ : (n_features,) floats
        The weights of the stumps, distributed to the features in the order of ``features``: 256 of
        "pixels", row by row, 324 of "hog". They sum to 1.
    gap_ : float
        The relative gap of the latest update. Later updates continue from its stumps.
    n_frames_ : int
        The number of frames so far.

    References
    ----------
    C. Shen, G. Lin, A. van den Hengel, StructBoost: Boosting methods for predicting structured
    output variables, 2014. S. Hare, A. Saffari, P. Torr, Struck: structured output tracking with
    kernels, 2011. Z. Kalal, K. Mikolajczyk, J. Matas, Tracking-learning-detection, 2012 (a memory
    of appearances that selects training frames and finds the object again).

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
    >>> tracker.state_
    'following'
    """

    box_: FloatArray
    state_: str
    confidence_: float
    n_frames_: int
    _kinds: tuple[str, ...]
    _shape: tuple[int, int]
    _stumps: ByteStumps
    _memory: TargetMemory
    _n_unseen: int

    @hints_at_names
    def __init__(
        self,
        *,
        n_estimators: int = 300,
        C: float = 10.0,
        tol: float = 0.05,
        features: Sequence[str] = ("pixels", "hog"),
        n_candidates: int = 2000,
        n_training: int = 120,
        search_radius: float = 0.25,
        scales: Sequence[float] = (1.0,),
        memory: int = 20,
        reservoir: int = 40,
        update_every: int = 2,
        unsure_below: float = 0.5,
        found_above: float = 0.85,
        patience: int = 5,
    ) -> None:
        self.n_estimators = n_estimators
        self.C = C
        self.tol = tol
        self.features = features
        self.n_candidates = n_candidates
        self.n_training = n_training
        self.search_radius = search_radius
        self.scales = scales
        self.memory = memory
        self.reservoir = reservoir
        self.update_every = update_every
        self.unsure_below = unsure_below
        self.found_above = found_above
        self.patience = patience

    def start(self, frame: ArrayLike, box: ArrayLike) -> StructBoostTracker:
        """Learn the object in the box of the first frame, and discard any earlier object.

        Parameters
        ----------
        frame : (h, w) or (h, w, 3)
            Grey or colour; integers in 0..255 or floats in 0..1.
        box : (4,)
            x, y, width, height; it must overlap the frame.
        """
        self._check_parameters()
        image = as_frame(frame)
        present = as_box(box, image)
        kinds = tuple(self.features)
        view = BoxFeatures(image, kinds)
        example = self._example(view, present, kinds, _FOR_LABELED)
        memory = TargetMemory().with_labeled(example, self._most_labeled())
        stumps = self._learn(ByteStumps(), memory, _ROUNDS_AT_START)
        # The state is updated in one step, so that Ctrl-C leaves the tracker unchanged and the call
        # can be repeated.
        self.__dict__.update(
            box_=present,
            state_="following",
            confidence_=1.0,
            n_frames_=1,
            _kinds=kinds,
            _shape=view.shape,
            _stumps=stumps,
            _memory=memory,
            _n_unseen=0,
        )
        return self

    def update(self, frame: ArrayLike, box: ArrayLike | None = None) -> FloatArray:
        """Find the object in the next frame, and learn from the frame if the answer is reliable.

        Parameters
        ----------
        frame : (h, w) or (h, w, 3)
            As in ``start``, and of the same size.
        box : (4,), optional
            The box of the object, if it is known. Then there is no search, and the frame is
            remembered as long as that of ``start``. In the paper the first three boxes are given.

        Returns
        -------
        (4,) floats
            The box, as in ``box_``; ``state_`` and ``confidence_`` describe its reliability. Ctrl-C
            raises ``KeyboardInterrupt`` and leaves the tracker as it was before the call.
        """
        self._check_started("update")
        self._check_parameters()
        image = as_next_frame(frame, self._shape)
        view = BoxFeatures(image, self._kinds)
        memory, n_unseen, confidence = self._memory, 0, 1.0
        if box is not None:
            found = as_box(box, image)
            example = self._example(view, found, self._kinds, _FOR_LABELED)
            memory = memory.with_labeled(example, self._most_labeled())
        else:
            found, confidence = self._search(view)
            if confidence >= self.unsure_below:
                example = self._example(view, found, self._kinds)
                memory = memory.with_found(example, self.memory, self.reservoir)
            else:
                n_unseen = self._n_unseen + 1
                if confidence < self.unsure_below - _REJECTED_BELOW:
                    found = self.box_
        n_frames = self.n_frames_ + 1
        stumps = self._stumps
        if n_unseen == 0 and (box is not None or n_frames % self.update_every == 0):
            stumps = self._learn(stumps, memory, _ROUNDS)
        unseen = "lost" if n_unseen >= self.patience else "unsure"
        self.__dict__.update(
            box_=found,
            state_=unseen if n_unseen else "following",
            confidence_=confidence,
            n_frames_=n_frames,
            _stumps=stumps,
            _memory=memory,
            _n_unseen=n_unseen,
        )
        return self.box_.copy()

    def score_boxes(self, frame: ArrayLike, boxes: ArrayLike) -> FloatArray:
        """Return the scores (n,) of boxes (n, 4) of a frame; the highest is the best."""
        self._check_started("score_boxes")
        places = as_numbers(boxes, "boxes", shape=(None, 4))
        check_sides(places, "boxes")
        return self._stumps.scores(BoxFeatures(as_frame(frame), self._kinds)(places))

    @property
    def estimators_(self) -> list[Stump]:
        """The stumps."""
        self._check_started("estimators_")
        return self._stumps.learners()

    @property
    def estimator_weights_(self) -> FloatArray:
        """The weights of the stumps."""
        self._check_started("estimator_weights_")
        return self._stumps.weights.copy()

    @property
    def gap_(self) -> float:
        """The relative gap of the latest update."""
        self._check_started("gap_")
        return self._stumps.gap

    @property
    def feature_importances_(self) -> FloatArray:
        """The weights of the stumps, distributed to their features; they sum to 1."""
        self._check_started("feature_importances_")
        width = sum(FEATURES[kind] for kind in self._kinds)
        return importances(self.estimators_, self.estimator_weights_, width)

    def _search(self, view: BoxFeatures) -> tuple[FloatArray, float]:
        """Find the best box of a frame, and its similarity to the remembered ones."""
        radius = float(self.search_radius) * (_WIDER if self._n_unseen else 1.0)
        near = boxes_around(self.box_, self.n_candidates, radius, _AS_IT_IS, view.shape, even=True)
        best = near[int(np.argmax(self._stumps.scores(view(near))))]
        # Overlaps differ little between sizes, and so do scores, so the similarity chooses the
        # size.
        sized = boxes_scaled(best, np.asarray(self.scales, dtype=np.float64))
        likeness = self._likeness(view(sized))
        found = sized[likeness.argmax()], float(likeness.max())
        if self._n_unseen >= self.patience:
            anywhere = self._search_frame(view)
            if anywhere[1] >= max(found[1], float(self.found_above)):
                return anywhere
            if found[1] < self.found_above:  # a lost object needs a high similarity
                return found[0], min(found[1], np.nextafter(self.unsure_below, -1.0))
        return found

    def _search_frame(self, view: BoxFeatures) -> tuple[FloatArray, float]:
        """Find the box of the current size that is most similar to the remembered ones."""
        grid = boxes_over(view.shape, self.box_[2:], self.n_candidates)
        likeness = self._likeness(view(grid))
        places = [
            boxes_around(grid[k], _NEARBY, _NEAR_RADIUS, _AS_IT_IS, view.shape, even=True)
            for k in np.argsort(-likeness, kind="stable")[:_PLACES]
        ]
        boxes = np.concatenate(places)
        likeness = self._likeness(view(boxes))
        best = int(likeness.argmax())
        return boxes[best], float(likeness[best])

    def _likeness(self, features: Any) -> FloatArray:
        return np.clip(self._memory.likeness(looks(features, self._kinds)), 0.0, 1.0)

    def _example(
        self, view: BoxFeatures, box: FloatArray, kinds: tuple[str, ...], times: int = 1
    ) -> Example:
        """Return features and losses of ``times * n_training`` boxes around this one."""
        around = boxes_around(
            box,
            times * self.n_training,
            _TRAINING_RADIUS,
            np.asarray(self.scales, dtype=np.float64),
            view.shape,
            even=False,  # training needs many boxes that nearly match
        )
        features = view(around)
        return Example(features, 1.0 - overlaps(box, around), looks(features[:1], kinds)[0])

    def _learn(self, stumps: ByteStumps, memory: TargetMemory, rounds: int) -> ByteStumps:
        """Learn stumps for the frames in memory."""
        return learn(
            stumps,
            memory.examples(),
            float(self.C),
            tol=float(self.tol),
            n_estimators=self.n_estimators,
            rounds=rounds,
        )

    def _most_labeled(self) -> int:
        return self.memory + self.reservoir

    def _check_started(self, what: str) -> None:
        if not hasattr(self, "_stumps"):
            raise NotFittedError(f"{what} needs a call of start first")

    def _check_parameters(self) -> None:
        as_count(self.n_estimators, "n_estimators", least=1)
        as_number(self.C, "C", positive=True)
        as_number(self.tol, "tol", nonnegative=True)
        features: Any = self.features  # typed as Any, because it is checked below
        if isinstance(features, str) or not isinstance(features, Sequence) or len(features) == 0:
            raise ValueError(
                f"features must be a sequence of 'pixels' and 'hog', got {self.features!r}"
            )
        for kind in self.features:
            as_choice(kind, "features", FEATURES)
        as_count(self.n_candidates, "n_candidates", least=1, most=_MOST_BOXES)
        as_count(self.n_training, "n_training", least=2, most=_MOST_BOXES)
        as_number(self.search_radius, "search_radius", positive=True)
        if not np.all(as_numbers(self.scales, "scales") > 0) or len(self.scales) == 0:
            raise ValueError(f"scales must be positive numbers, got {self.scales!r}")
        as_count(self.memory, "memory", least=1, most=_MOST_BOXES)
        as_count(self.reservoir, "reservoir", most=_MOST_BOXES)
        as_count(self.update_every, "update_every", least=1)
        as_number(self.unsure_below, "unsure_below", nonnegative=True, largest=1.0)
        as_number(self.found_above, "found_above", nonnegative=True, largest=1.0)
        as_count(self.patience, "patience", least=1)
