"""A picture with strokes on it and an undo stack: the core that the page and the widget share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from sys import getsizeof
from threading import Lock, RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.app._drawing._levels import (
    CUT_BYTES,
    LEVEL_BYTES,
    ImageLevel,
    State,
    Tilt,
    factor_for,
    search_nbytes,
)
from setwise.app._drawing._memory import MemoryBudget, MemoryShare
from setwise.app._drawing._strokes import Marks, Patch, Stroke, bounding_box, check_work, draw
from setwise.images._colors import ColorModel
from setwise.images._field import SMOOTHNESS
from setwise.images._pixels import as_pixels

# The most pixels of a preview, whose cut then takes some milliseconds. Not tuned.
QUICK_PIXELS = 50_000
# The most steps that can be undone. Each of them refers to all boxes and choices before it, so the
# memory grows with the square of their number. Not tuned.
MOST_STEPS = 10_000
_BYTES_PER_POINT = sum(map(getsizeof, ((0.0, 0.0), 0.0, 0.0)))  # a point is a tuple of two numbers


@dataclass(frozen=True, eq=False)
class DrawingStep:
    """An entry of the undo stack: a stroke, a chosen alternative, or (neither) a clearing."""

    stroke: Stroke | None
    tilt: Tilt | None
    patch: Patch
    """the changed part of the marks, before the step"""
    after: Marks
    boxes: tuple[tuple[int, int, int, int, int], ...]
    tilts: tuple[Tilt, ...]
    """boxes and choices before the step"""
    total: int
    """about the bytes of this step and all steps before it"""
    number: int
    """a unique number"""


class Drawing:
    """An image (H, W, 3) of bytes, steps that can be undone, and a version that counts changes.

    Threads may share a drawing. Every result belongs to one version, and a result for an old
    version is dropped.
    """

    def __init__(
        self, image: NDArray[np.uint8], name: str = "image", smoothness: float = SMOOTHNESS
    ) -> None:
        self.image = np.ascontiguousarray(image)
        self.name = name
        self.shape: tuple[int, int] = image.shape[0], image.shape[1]
        self.original: tuple[int, int] = self.shape
        """height and width before the image was reduced to its working size"""
        self.guarantee: Any = None
        """a calibrated ``ConformalMasks``, whose inner and outer masks are shown"""
        self._smoothness = smoothness
        self._lock, self._making = RLock(), Lock()
        self._marks: Marks = np.full(self.shape, -1, np.int8)
        self._boxes: tuple[tuple[int, int, int, int, int], ...] = ()
        self._tilts: tuple[Tilt, ...] = ()
        self._done: list[DrawingStep] = []
        self._undone: list[DrawingStep] = []
        self._version = 0
        self._model: ColorModel | None = None
        self._levels: dict[int, ImageLevel] = {}
        self._numbers = count()
        self._history = 0  # the bytes of all steps, done and undone
        self.memory = MemoryBudget()
        self._share = self.memory.share(self)

    # ---- strokes and other steps

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._version

    def state(self) -> State:
        """Return the present state of the drawing."""
        with self._lock:
            return State(
                self._version, self._marks.copy(), self._boxes, self._tilts, self._smoothness
            )

    @property
    def empty(self) -> bool:
        """Whether there is neither a stroke nor a box."""
        with self._lock:
            return not (self._boxes or (self._marks >= 0).any())

    @property
    def steps(self) -> tuple[DrawingStep, ...]:
        """The steps that were done and not undone, in order."""
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
        """Draw a stroke. It replaces the last stroke if both have the same key."""
        with self._lock:
            last = self._done[-1].stroke if self._done else None
            again = bool(stroke.key) and last is not None and last.key == stroke.key
            if again and stroke == last:
                return self._version  # the pen did not move before it was lifted
            self._check_limits(1 if again else 0)
            pixels = 0
            if stroke.kind != "box":
                check_work(stroke, self.shape)
                rows, columns = bounding_box(stroke, self.shape)
                pixels = (rows.stop - rows.start) * (columns.stop - columns.start)
            total = self._grow(pixels, len(stroke.points), 1 if again else 0)
            if again:
                self._put_back(self._done.pop())
            boxes, tilts = self._boxes, self._tilts
            if stroke.kind == "box":
                self._boxes = (*boxes, (*stroke.box(self.shape), stroke.label))
                patch = Patch(slice(0, 0), slice(0, 0), self._marks[:0, :0].copy())
            else:
                patch = draw(self._marks, stroke)
            return self._push(stroke, None, patch, boxes, tilts, total)

    def take(self, tilt: Tilt) -> int:
        """Apply the choice of an alternative."""
        with self._lock:
            self._check_limits()
            total = self._grow(0, 0, nbytes=sum(other.nbytes for other in tilt.against))
            boxes, tilts = self._boxes, self._tilts
            self._tilts = (*tilts, tilt)
            nothing = Patch(slice(0, 0), slice(0, 0), self._marks[:0, :0].copy())
            return self._push(None, tilt, nothing, boxes, tilts, total)

    def clear(self) -> int:
        """Remove all strokes, boxes and choices. This can be undone."""
        with self._lock:
            self._check_limits()
            height, width = self.shape
            total = self._grow(height * width, 0)
            boxes, tilts = self._boxes, self._tilts
            patch = Patch(slice(0, height), slice(0, width), self._marks.copy())
            self._marks[:] = -1
            self._boxes, self._tilts = (), ()
            return self._push(None, None, patch, boxes, tilts, total)

    def _check_limits(self, without: int = 0) -> None:
        """Raise an error if the steps, without the last ``without``, reach a limit."""
        number = len(self._done) - without
        if number >= MOST_STEPS:
            raise ValueError(f"a drawing must have at most {MOST_STEPS} steps")
        most = self.memory.limit / 2
        if number and self._done[number - 1].total >= most:
            raise ValueError(
                f"the steps of a drawing must take at most {most / 2**20:.0f} MiB: undo some"
            )

    def _push(
        self,
        stroke: Stroke | None,
        tilt: Tilt | None,
        patch: Patch,
        boxes: tuple[tuple[int, int, int, int, int], ...],
        tilts: tuple[Tilt, ...],
        total: int,
    ) -> int:
        after = self._marks[patch.rows, patch.columns].copy()
        number = next(self._numbers)
        self._done.append(DrawingStep(stroke, tilt, patch, after, boxes, tilts, total, number))
        self._undone.clear()
        if self._history > total:  # the undone steps have been removed
            self._share.shrink(self._history - total)
            self._history = total
        self._version += 1
        return self._version

    def _grow(self, pixels: int, points: int, without: int = 0, nbytes: int = 0) -> int:
        """Reserve memory for a step that changes ``pixels``. Return the new ``total``."""
        before = len(self._done) - without
        total = (self._done[before - 1].total if before else 0) + nbytes
        total += 2 * pixels + _BYTES_PER_POINT * points
        if total > self._history:
            self._share.grow(total - self._history, self)
            self._history = total
        return total

    def undo(self) -> bool:
        """Undo the last step. Return whether there was one."""
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
        """Redo the step that was undone last. Return whether there was one."""
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

    def _put_back(self, step: DrawingStep) -> None:
        self._marks[step.patch.rows, step.patch.columns] = step.patch.before
        self._boxes, self._tilts = step.boxes, step.tilts

    @property
    def smoothness(self) -> float:
        """The cost of a unit of border, in nats."""
        return self._smoothness

    def set_smoothness(self, smoothness: float) -> int:
        """Set the cost of a unit of border and return the version."""
        if not 0.0 <= smoothness <= 1000.0:
            raise ValueError(f"smoothness must lie between 0 and 1000, got {smoothness}")
        with self._lock:
            rounded = round(64 * smoothness) / 64  # multiples of 1/64 make the sums of a cut exact
            if rounded != self._smoothness:
                self._smoothness = rounded
                self._version += 1
            return self._version

    # ---- levels and memory

    @property
    def quick_factor(self) -> int:
        """The factor by which the preview reduces each side; 1 for a small image."""
        return factor_for(self.shape, QUICK_PIXELS)

    def count_in(self, memory: MemoryBudget) -> None:
        """Count the bytes of the drawing in a memory budget that it shares with others."""
        if memory is self.memory:
            return
        share = memory.share(self)
        with self._lock:
            share.grow(self.least_nbytes, self)
            self._share, self.memory = share, memory

    def level(self, factor: int = 1) -> ImageLevel:
        """Return the level of this reduction, which is made on first use."""
        with self.memory.holding(lambda: self._wanted(factor, CUT_BYTES), self) as share:
            return self._level(factor, share)

    @contextmanager
    def working_level(
        self, factor: int, state: State, nbytes: int = 0, check: Callable[[], None] | None = None
    ) -> Iterator[ImageLevel]:
        """Reserve the memory of a level, its solution, and a job with ``nbytes`` per pixel.

        See ``MemoryBudget.holding``.
        """

        def wanted() -> int:
            level = self._levels.get(factor)
            if level is not None:
                level.drop_useless_cut(state)
            n_labels = len(state.labels)
            per_pixel = nbytes if n_labels == 2 else max(nbytes, search_nbytes(n_labels))
            if n_labels == 2 and (level is None or level.cut is None):
                per_pixel += CUT_BYTES
            return self._wanted(factor, per_pixel)

        with self.memory.holding(wanted, self, check) as share:
            level = self._level(factor, share)
            try:
                yield level
            finally:
                with self._making:
                    if level.cut is not None and not level.cut_is_counted:
                        level.cut_is_counted = True
                        share.hand_over(level.cut, CUT_BYTES * self._pixels(factor))

    def _pixels(self, factor: int) -> int:
        height, width = self.shape
        return ceil(height / factor) * ceil(width / factor)

    def _wanted(self, factor: int, per_pixel: int) -> int:
        """Return the bytes of a job on a level, including those of a level to be made.

        Making a level takes less memory than a cut on it.
        """
        pixels = self._pixels(factor)
        if factor in self._levels:
            return per_pixel * pixels
        reduced = 60 * self._pixels(1) if factor > 1 else 0  # while the picture is reduced
        return (LEVEL_BYTES + per_pixel) * pixels + reduced

    def _level(self, factor: int, share: MemoryShare) -> ImageLevel:
        with self._making:  # prevents two threads from making the same level
            found, model = self._levels.get(factor), self._model
            if found is not None:
                return found
            if model is None:
                model = ColorModel(as_pixels(self.image, 2), "histogram")
            made = ImageLevel(self.image, model, factor)
            share.hand_over(made, LEVEL_BYTES * self._pixels(factor))
            self._model = model
            self._levels[factor] = made
            return made

    @property
    def nbytes(self) -> int:
        """The approximate number of bytes that the drawing holds, without its levels."""
        return self._share.nbytes

    @property
    def least_nbytes(self) -> int:
        """The bytes that the drawing holds after ``release``.

        Each pixel takes 20: the picture (3), its marks and a copy of them (2), the masks of the
        last answers (3), six alternatives (6), an uncertainty map (1), a copy of a mask for sending
        (1), and its colour code (4).
        """
        return 20 * self.shape[0] * self.shape[1] + self._history

    @property
    def most_nbytes(self) -> int:
        """The bytes that the drawing holds while a mask of two labels is computed."""
        pixels = self.shape[0] * self.shape[1]
        small = self._pixels(self.quick_factor) if self.quick_factor > 1 else 0
        return self.least_nbytes + (LEVEL_BYTES + CUT_BYTES) * (pixels + small)

    def release(self, factor: int | None = None) -> None:
        """Release everything that can be computed again, or one level.

        This takes no lock, because it is called by a thread that holds the lock of another drawing.
        """
        if factor is not None:
            self._levels.pop(factor, None)
        else:
            self._levels, self._model = {}, None
