"""A picture at one size, the costs of its labels, and a graph cut with warm starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._threads import as_threads
from setwise.app._drawing._strokes import MOST_LABELS, Marks
from setwise.fields import Field, Potts
from setwise.images._colors import ColorModel
from setwise.images._contrast import contrast_edges
from setwise.images._field import LOCATION, SMOOTHNESS
from setwise.images._location import block_costs, spread_blocks
from setwise.images._pixels import as_pixels
from setwise.inference._flows._two_label_cut import TwoLabelCut
from setwise.inference._map._solve_map import solve_map

# Upper bounds on the peak of resident memory, in bytes per pixel, from measurements with 0.3 to 4
# million pixels: of a level with the arrays for a cut, and of the cut itself.
LEVEL_BYTES, CUT_BYTES = 150, 300


@dataclass(frozen=True)
class Tilt:
    """A change of costs under which a chosen alternative is the best labelling."""

    bias: float = 0.0
    """for two labels: added to the cost of the second label at every pixel"""
    against: tuple[NDArray[np.uint8], ...] = ()
    """for more labels: labellings (h, w) that cost ``weight`` per pixel that agrees with them"""
    weight: float = 0.0


@dataclass(frozen=True)
class State:
    """The data of one version of a drawing that its mask depends on."""

    version: int
    marks: Marks
    boxes: tuple[tuple[int, int, int, int, int], ...] = ()
    """rows and columns (top, left, bottom, right), and the label of the inside"""
    tilts: tuple[Tilt, ...] = ()
    smoothness: float = SMOOTHNESS

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The labels in use, at least two, in increasing order."""
        drawn = {label for label in range(MOST_LABELS) if (self.marks == label).any()}
        drawn |= {box[4] for box in self.boxes}
        if len(drawn) == 1:
            drawn.add(0 if drawn != {0} else 1)
        return tuple(sorted(drawn))


@dataclass(frozen=True, eq=False)
class LevelSolution:
    """A labelling of a level, and its certificate."""

    labels: NDArray[np.uint8]
    """(h, w)"""
    value: float
    bound: float
    relative_gap: float
    exact: bool


class ImageLevel:
    """A picture, reduced by ``factor`` per side, and the solver of its field."""

    def __init__(self, image: NDArray[np.uint8], model: ColorModel, factor: int = 1) -> None:
        self.full: tuple[int, int] = image.shape[0], image.shape[1]
        self.shape = ceil(self.full[0] / factor), ceil(self.full[1] / factor)
        self.factor = factor
        small = image if factor == 1 else reduced(image, factor)
        self.edges, self.weights = contrast_edges(as_pixels(small, 2), connectivity=8)
        self._model = model
        self._codes = _samples(model.codes.reshape(self.full), factor)
        self._counts = np.bincount(self._codes.ravel(), minlength=len(model.counts))
        self.n = self.shape[0] * self.shape[1]
        self._warm: TwoLabelCut | None = None
        self.cut_is_counted = False
        """whether the memory of the present ``cut`` is counted"""
        self._smoothness = 0.0
        self._last: LevelSolution | None = None
        self._lock = RLock()  # only one thread solves at a time, because all states share one flow

    @property
    def cut(self) -> object:
        """The flow of the last answer, or None."""
        return self._warm

    def drop_useless_cut(self, state: State) -> None:
        """Release the flow if it is no warm start for the state."""
        if len(state.labels) > 2 or self._smoothness != state.smoothness:
            self._warm = None

    def solve(self, state: State) -> LevelSolution:
        """Return the best labelling: of two labels by one cut, of more by expansion moves.

        With a box, colours are learned from labels and labels from colours in turn, until nothing
        changes.
        """
        with self._lock:
            return self._solve_all(state)

    def _solve_all(self, state: State) -> LevelSolution:
        labels = state.labels
        fixed, learned = _fixed(state)
        seen: set[int] = set()  # hashes of labellings: rounds may cycle
        while True:
            found = self._solve(state, fixed, learned)
            now = hash(found.labels.tobytes())
            if not state.boxes or now in seen:
                break
            seen.add(now)
            learned = self._relearned(found, fixed, labels)
            if len(np.unique(learned)) < len(labels):
                break
        self._last = found
        return found

    def field(self, state: State) -> Field:
        """Return the field of a state over its labels. With a box, use the colours learned last."""
        fixed, learned = _fixed(state)
        if state.boxes:
            learned = self._relearned(self.solve(state), fixed, state.labels)
        return Field(self._unary(state, fixed, learned)) + self._potts(state)

    def _relearned(self, found: LevelSolution, fixed: Marks, labels: tuple[int, ...]) -> Marks:
        """Return the labels to learn colours from: the fixed ones, and elsewhere those found."""
        number = _numbers(labels)[enlarged(found.labels, self.full, self.factor)]
        return np.where(fixed >= 0, fixed, number)

    def _potts(self, state: State) -> Potts:
        return Potts(self.edges, (state.smoothness * self.factor) * self.weights)

    def _table(self, state: State, learned: Marks) -> FloatArray:
        """Return the costs (K, L) of the colours, summed over a block of pixels."""
        marks: Any = learned.ravel()  # the marks are int8
        table = self._model.cell_costs(marks, len(state.labels), covering=bool(state.boxes))
        if len(state.labels) == 2:
            table[:, 1] += sum(tilt.bias for tilt in state.tilts)
        table *= self.factor**2 / len(self._codes)
        return table

    def _sure(self, fixed: Marks) -> tuple[IntArray, IntArray]:
        """Return the pixels with a fixed label, and the index of each label."""
        places = np.flatnonzero(fixed.ravel() >= 0)
        numbers = fixed.ravel()[places].astype(np.int64)
        if self.factor > 1:
            rows, columns = np.divmod(places, self.full[1])
            places = rows // self.factor * self.shape[1] + columns // self.factor
            marks = np.full(self.n, -1, np.int8)
            marks[places] = numbers
            places = np.flatnonzero(marks >= 0)
            numbers = marks[places].astype(np.int64)
        return places, numbers

    def _far(self, state: State, places: IntArray, numbers: IntArray) -> tuple[FloatArray, int]:
        """Return costs (..., L) of blocks for their distance from strokes, and the side of a block.

        The costs are zero if there is a box.
        """
        price = 0.0 if state.boxes else LOCATION
        costs, step = block_costs(places, numbers, self.shape, len(state.labels), price)
        costs *= self.factor**2
        return costs, step

    def _unary(self, state: State, fixed: Marks, learned: Marks) -> FloatArray:
        """Return costs of shape (n, L)."""
        labels = state.labels
        table = self._table(state, learned)
        unary = table[self._codes[0]]
        for codes in self._codes[1:]:
            unary += table[codes]
        if len(labels) > 2:
            for tilt in state.tilts:
                for other in tilt.against:
                    near = resampled(other, self.shape).ravel()
                    for column, label in enumerate(labels):
                        unary[near == label, column] += self.factor**2 * tilt.weight
        places, numbers = self._sure(fixed)
        far, step = self._far(state, places, numbers)
        unary += spread_blocks(far, self.shape, step).reshape(unary.shape)
        unary[places] = np.inf
        unary[places, numbers] = 0.0
        return np.asarray(unary)

    def _solve(self, state: State, fixed: Marks, learned: Marks) -> LevelSolution:
        if len(state.labels) == 2:
            return self._cut(state, fixed, learned)
        names = np.array(state.labels, np.uint8)
        problem = Field(self._unary(state, fixed, learned)) + self._potts(state)
        init = None
        if self._last is not None and np.isin(self._last.labels, names).all():
            init = np.searchsorted(names, self._last.labels.ravel())
            places, numbers = self._sure(fixed)
            init[places] = numbers
        best = solve_map(problem, tol=np.inf, init=init)
        labels = names[best.labels].reshape(self.shape)
        return LevelSolution(labels, best.value, best.bound, best.relative_gap, best.exact)

    def _cut(self, state: State, fixed: Marks, learned: Marks) -> LevelSolution:
        """Return the labelling of one cut, with a warm start from the last flow.

        Only the difference of the costs of the two labels is computed. Costs and weights are
        rounded such that all sums are exact. Therefore the flow in the parts that a stroke does not
        change stays valid without rounding errors.
        """
        warm = self._warm if self._smoothness == state.smoothness else None
        if warm is None:
            self._warm, self._smoothness = None, state.smoothness
            field = Field(np.zeros((self.n, 2))) + self._potts(state)
            warm = TwoLabelCut(field, as_threads(None), apart=True)
            self._warm, self.cut_is_counted = warm, False
        table = self._table(state, learned)
        apart = table[:, 1] - table[:, 0]
        costs = apart[self._codes[0]]
        for codes in self._codes[1:]:
            costs += apart[codes]
        places, numbers = self._sure(fixed)
        far, step = self._far(state, places, numbers)
        costs += spread_blocks(far[..., 1] - far[..., 0], self.shape, step).ravel()
        costs[places] = np.where(numbers == 1, -np.inf, np.inf)
        try:
            ones = warm.ones(costs)
        except BaseException:
            self._warm = None  # an interrupted flow is no warm start
            raise
        labels = np.array(state.labels, np.uint8)[ones.view(np.int8)].reshape(self.shape)
        if self.factor > 1:  # a preview needs no proof
            return LevelSolution(labels, np.nan, np.nan, np.inf, False)
        # Add the cost of the first label everywhere, the extra cost of the second, and the border.
        costs[places] = 0.0
        value = float(self._counts @ table[:, 0] - table[self._codes[0][places], 0].sum())
        value += self._sum_of_blocks(far[..., 0], step)
        rows, columns = np.divmod(places, self.shape[1])
        value -= float(far[rows // step, columns // step, 0].sum())
        value += float(costs @ ones) + warm.value
        lost, above_least = warm.lost, warm.above_least
        gap = min(lost / above_least, 1.0) if lost else 0.0
        return LevelSolution(labels, value, value - lost, gap, lost == 0.0)

    def _sum_of_blocks(self, costs: FloatArray, step: int) -> float:
        """Return the sum over all pixels of the cost of their block."""
        tall, wide = (
            np.minimum(step, side - step * np.arange(blocks))
            for side, blocks in zip(self.shape, costs.shape, strict=True)
        )
        return float(tall @ costs @ wide)


def search_nbytes(n_labels: int) -> int:
    """Return the bytes per pixel of a search in a field, without the level and its cut.

    They bound peaks of resident memory with 0.3 to 4 million pixels.
    """
    return 500 + 70 * n_labels


def _numbers(labels: tuple[int, ...]) -> NDArray[np.int8]:
    """Return a table from label to index among the labels in use, or -1."""
    number = np.full(256, -1, np.int8)
    number[list(labels)] = np.arange(len(labels))
    return number


def _fixed(state: State) -> tuple[Marks, Marks]:
    """Return the indices of fixed labels, and those from which colours are first learned."""
    labels = state.labels
    number = _numbers(labels)
    fixed = number[state.marks]
    if not state.boxes:
        return fixed, fixed
    guess = fixed.copy()
    inside: BoolArray = np.zeros(fixed.shape, np.bool_)
    for top, left, bottom, right, label in state.boxes:
        part = slice(top, bottom), slice(left, right)
        inside[part] = True
        guess[part][fixed[part] < 0] = number[label]
    boxed = {box[4] for box in state.boxes}
    rest = next((label for label in labels if label not in boxed), labels[0])
    outside = (fixed < 0) & ~inside
    fixed[outside] = guess[outside] = number[rest]
    return fixed, guess


def _samples(codes: NDArray[np.int32], factor: int) -> NDArray[np.int32]:
    """Return (S, n): the colours of a few pixels per block, which represent the block."""
    if factor == 1:
        return codes.reshape(1, -1)
    height, width = (ceil(side / factor) for side in codes.shape)
    padded = np.pad(codes, ((0, factor), (0, factor)), mode="edge")
    picked = (factor // 4, factor - 1 - factor // 4)
    return np.stack(
        [
            padded[row::factor, column::factor][:height, :width].ravel()
            for row in picked
            for column in picked
        ]
    )


def factor_for(shape: tuple[int, ...], pixels: int) -> int:
    """Return the factor per side that reduces a picture to about ``pixels`` pixels."""
    return max(1, ceil(sqrt(shape[0] * shape[1] / pixels) - 0.1))


def reduced(image: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """Return the mean of every block of pixels."""
    channels = [block_sums(image[..., c].astype(np.float64), factor) for c in range(3)]
    counts = block_sums(np.ones(image.shape[:2]), factor)
    return np.stack([np.rint(channel / counts) for channel in channels], axis=2).astype(np.uint8)


def block_sums(values: FloatArray, factor: int) -> FloatArray:
    """Return the sum over every block. Blocks at the end may be smaller."""
    if factor == 1:
        return values
    rows = np.add.reduceat(values, np.arange(0, values.shape[0], factor), axis=0)
    return np.asarray(np.add.reduceat(rows, np.arange(0, values.shape[1], factor), axis=1))


def enlarged(labels: NDArray[np.uint8], shape: tuple[int, ...], factor: int) -> NDArray[np.uint8]:
    """Repeat every pixel as a block of side ``factor``."""
    if factor == 1:
        return labels
    wide = np.repeat(np.repeat(labels, factor, axis=0), factor, axis=1)
    return wide[: shape[0], : shape[1]]


def resampled(labels: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Resample labels to another shape by nearest neighbours."""
    if labels.shape == shape:
        return labels
    rows = (np.arange(shape[0]) + 0.5) * labels.shape[0] / shape[0]
    columns = (np.arange(shape[1]) + 0.5) * labels.shape[1] / shape[1]
    return np.asarray(labels[rows.astype(int)[:, None], columns.astype(int)])
