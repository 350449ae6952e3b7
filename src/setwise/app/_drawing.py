"""A picture, what was drawn on it, and the way back: the core that every host shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from setwise.app._drawing_levels import BYTES_A_PIXEL, Level, State, Tilt, factor_for
from setwise.app._drawing_strokes import Marks, Patch, Stroke, check_work, draw
from setwise.images._colors import ColorModel
from setwise.images._field import SMOOTHNESS
from setwise.images._pixels import as_pixels

# A first look is at no more pixels than these: some milliseconds.
QUICK_PIXELS = 50_000
MOST_STEPS = 10_000
MOST_STEP_BYTES = 2**30
_BYTES_A_POINT = 104


@dataclass(frozen=True, eq=False)
class Step:
    """One entry of the undo stack: a stroke, a choice taken, or a clean slate (neither)."""

    stroke: Stroke | None
    tilt: Tilt | None
    patch: Patch
    """the part of the marks that it changed, as it was before"""
    after: Marks
    boxes: tuple[tuple[int, int, int, int, int], ...]
    tilts: tuple[Tilt, ...]
    """boxes and choices before it"""
    total: int
    """about what it and all steps before it hold in memory"""


class Drawing:
    """An image (H, W, 3) of bytes, steps that can be undone, and a version that counts them.

    Threads may share it. What is computed of it is of one version, and whoever computed it looks
    whether that is still the present one: a late answer to an old stroke is dropped.
    """

    def __init__(
        self, image: NDArray[np.uint8], name: str = "image", smoothness: float = SMOOTHNESS
    ) -> None:
        self.image = np.ascontiguousarray(image)
        self.name = name
        self.shape: tuple[int, int] = image.shape[0], image.shape[1]
        self.original: tuple[int, int] = self.shape
        """height and width before the image was made smaller to be worked on"""
        self._smoothness = smoothness
        self._lock = RLock()
        self._marks: Marks = np.full(self.shape, -1, np.int8)
        self._boxes: tuple[tuple[int, int, int, int, int], ...] = ()
        self._tilts: tuple[Tilt, ...] = ()
        self._done: list[Step] = []
        self._undone: list[Step] = []
        self._version = 0
        self._model: ColorModel | None = None
        self._levels: dict[int, Level] = {}

    # ---- what was drawn

    @property
    def version(self) -> int:
        """How often the drawing has changed."""
        return self._version

    def state(self) -> State:
        """The drawing as it is."""
        with self._lock:
            return State(
                self._version, self._marks.copy(), self._boxes, self._tilts, self._smoothness
            )

    @property
    def empty(self) -> bool:
        """Whether there is nothing to learn from."""
        with self._lock:
            return not (self._boxes or (self._marks >= 0).any())

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was done and not undone, in order."""
        with self._lock:
            return tuple(self._done)

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo."""
        return bool(self._done)

    @property
    def can_redo(self) -> bool:
        """Whether a step was undone."""
        return bool(self._undone)

    def add(self, stroke: Stroke) -> int:
        """Draws a stroke; one that has the key of the last stroke takes its place."""
        with self._lock:
            last = self._done[-1].stroke if self._done else None
            again = bool(stroke.key) and last is not None and last.key == stroke.key
            if again and stroke == last:
                return self._version  # the pen rested before it went up
            self._check_room(1 if again else 0)
            if stroke.kind != "box":
                check_work(stroke, self.shape)
            if again:
                self._put_back(self._done.pop())
            boxes, tilts = self._boxes, self._tilts
            if stroke.kind == "box":
                self._boxes = (*boxes, (*stroke.box(self.shape), stroke.label))
                patch = Patch(slice(0, 0), slice(0, 0), self._marks[:0, :0].copy())
            else:
                patch = draw(self._marks, stroke)
            return self._push(stroke, None, patch, boxes, tilts)

    def take(self, tilt: Tilt) -> int:
        """Goes on from an alternative."""
        with self._lock:
            self._check_room()
            boxes, tilts = self._boxes, self._tilts
            self._tilts = (*tilts, tilt)
            nothing = Patch(slice(0, 0), slice(0, 0), self._marks[:0, :0].copy())
            return self._push(None, tilt, nothing, boxes, tilts)

    def clear(self) -> int:
        """Takes everything away; that can be undone too."""
        with self._lock:
            self._check_room()
            boxes, tilts = self._boxes, self._tilts
            height, width = self.shape
            patch = Patch(slice(0, height), slice(0, width), self._marks.copy())
            self._marks[:] = -1
            self._boxes, self._tilts = (), ()
            return self._push(None, None, patch, boxes, tilts)

    def _check_room(self, without: int = 0) -> None:
        """A ``ValueError`` where the steps, but for so many of the last ones, leave no room."""
        number = len(self._done) - without
        if number >= MOST_STEPS:
            raise ValueError(f"a drawing must have at most {MOST_STEPS} steps")
        if number and self._done[number - 1].total >= MOST_STEP_BYTES:
            raise ValueError(
                f"the steps of a drawing must take at most {MOST_STEP_BYTES >> 20} MiB: undo some"
            )

    def _push(
        self,
        stroke: Stroke | None,
        tilt: Tilt | None,
        patch: Patch,
        boxes: tuple[tuple[int, int, int, int, int], ...],
        tilts: tuple[Tilt, ...],
    ) -> int:
        after = self._marks[patch.rows, patch.columns].copy()
        points = len(stroke.points) if stroke else 0
        against = sum(other.nbytes for other in tilt.against) if tilt else 0
        total = (self._done[-1].total if self._done else 0) + against
        total += 2 * after.nbytes + _BYTES_A_POINT * points
        self._done.append(Step(stroke, tilt, patch, after, boxes, tilts, total))
        self._undone.clear()
        self._version += 1
        return self._version

    def undo(self) -> bool:
        """Takes the last step back, if there is one."""
        with self._lock:
            if not self._done:
                return False
            step = self._done.pop()
            kept = replace(step, boxes=self._boxes, tilts=self._tilts)
            self._put_back(step)
            self._undone.append(kept)
            self._version += 1
            return True

    def redo(self) -> bool:
        """Does the step again that was undone last, if there is one."""
        with self._lock:
            if not self._undone:
                return False
            step = self._undone.pop()
            kept = replace(step, boxes=self._boxes, tilts=self._tilts)
            self._marks[step.patch.rows, step.patch.columns] = step.after
            self._boxes, self._tilts = step.boxes, step.tilts
            self._done.append(kept)
            self._version += 1
            return True

    def _put_back(self, step: Step) -> None:
        self._marks[step.patch.rows, step.patch.columns] = step.patch.before
        self._boxes, self._tilts = step.boxes, step.tilts

    @property
    def smoothness(self) -> float:
        """The price of a unit of border, in nats."""
        return self._smoothness

    def set_smoothness(self, smoothness: float) -> int:
        """Another price of a border."""
        if not 0.0 <= smoothness <= 1000.0:
            raise ValueError(f"smoothness must lie between 0 and 1000, got {smoothness}")
        with self._lock:
            rounded = round(64 * smoothness) / 64  # with which the sums of a cut are exact
            if rounded != self._smoothness:
                self._smoothness = rounded
                self._version += 1
            return self._version

    # ---- what is computed of it

    @property
    def quick_factor(self) -> int:
        """How many pixels a side are one for a first look; 1 where the image is small."""
        return factor_for(self.shape, QUICK_PIXELS)

    def level(self, factor: int = 1) -> Level:
        """The picture at one size, made when it is first asked for."""
        with self._lock:
            found = self._levels.get(factor)
            model = self._model
        if found is not None:
            return found
        if model is None:
            model = ColorModel(as_pixels(self.image, 2), "histogram")
        made = Level(self.image, model, factor)
        with self._lock:
            self._model = self._model or model
            return self._levels.setdefault(factor, made)

    @property
    def nbytes(self) -> int:
        """About what it holds in memory."""
        with self._lock:
            own = self.image.nbytes + self._marks.nbytes
            last = (*self._undone[:1], *self._done[-1:])  # what was undone first was done last
            return (
                own
                + (last[0].total if last else 0)
                + sum(level.nbytes for level in self._levels.values())
            )

    @property
    def least_nbytes(self) -> int:
        """What is left of it after ``release``."""
        with self._lock:
            return self.nbytes - sum(level.nbytes for level in self._levels.values())

    @property
    def most_nbytes(self) -> int:
        """What it will hold when all its levels are there."""
        pixels = self.shape[0] * self.shape[1]
        small = pixels / self.quick_factor**2 if self.quick_factor > 1 else 0.0
        return self.least_nbytes + int(BYTES_A_PIXEL * (pixels + small))

    def release(self) -> None:
        """Lets go of all that can be computed again."""
        with self._lock:
            self._levels, self._model = {}, None
