"""A picture at one size: costs of labels by what was drawn, and the cut that is kept warm."""

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
from setwise.app._drawing_strokes import MOST_LABELS, Marks
from setwise.fields import Field, Potts
from setwise.images._colors import ColorModel
from setwise.images._contrast import contrast_edges
from setwise.images._field import LOCATION, SMOOTHNESS
from setwise.images._location import block_costs, spread_blocks
from setwise.images._pixels import as_pixels
from setwise.inference import solve_map
from setwise.inference._flows._two_label_cut import TwoLabelCut

# About what a pixel takes: its edges, weights and colour, and its part of the flow.
BYTES_A_PIXEL = 420
# Rounds of "colours from labels and labels from colours" for a box.
_MOST_ROUNDS = 20
_NEIGHBORS = 8


@dataclass(frozen=True)
class Tilt:
    """A choice among alternatives, as prices: the labelling that was taken is best under them."""

    bias: float = 0.0
    """two labels: what the second one costs more, at every pixel"""
    against: tuple[NDArray[np.uint8], ...] = ()
    """more labels: labellings (h, w) that cost ``weight`` at every pixel that agrees"""
    weight: float = 0.0


@dataclass(frozen=True)
class State:
    """All that an answer depends on, as it was at one version."""

    version: int
    marks: Marks
    boxes: tuple[tuple[int, int, int, int, int], ...] = ()
    """rows and columns (top, left, bottom, right), and the label of what is inside"""
    tilts: tuple[Tilt, ...] = ()
    smoothness: float = SMOOTHNESS

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The labels in use, in increasing order: what was drawn, at least two of them."""
        drawn = {label for label in range(MOST_LABELS) if (self.marks == label).any()}
        drawn |= {box[4] for box in self.boxes}
        if len(drawn) == 1:
            drawn.add(0 if drawn != {0} else 1)
        return tuple(sorted(drawn))


@dataclass(frozen=True, eq=False)
class Solution:
    """A labelling of a level, and what is known of it."""

    labels: NDArray[np.uint8]
    """(h, w)"""
    value: float
    bound: float
    relative_gap: float
    exact: bool


class Level:
    """A picture and how its field is solved; ``factor`` is how many pixels a side become one."""

    def __init__(self, image: NDArray[np.uint8], model: ColorModel, factor: int = 1) -> None:
        self.full: tuple[int, int] = image.shape[0], image.shape[1]
        self.shape = ceil(self.full[0] / factor), ceil(self.full[1] / factor)
        self.factor = factor
        small = image if factor == 1 else reduced(image, factor)
        self.edges, self.weights = contrast_edges(as_pixels(small, 2), _NEIGHBORS)
        self._model = model
        self._codes = _samples(model.codes.reshape(self.full), factor)
        self._counts = np.bincount(self._codes.ravel(), minlength=len(model.counts))
        self.n = self.shape[0] * self.shape[1]
        self._warm: TwoLabelCut | None = None
        self._smoothness = 0.0
        self._last: Solution | None = None
        self._lock = RLock()  # one flow, for one state after the other

    def solve(self, state: State) -> Solution:
        """The best labelling: two labels by one cut, more by expansion moves.

        Inside a box colours are learned from labels and labels found by colours in turn, until
        nothing changes.
        """
        with self._lock:
            return self._solve_all(state)

    def _solve_all(self, state: State) -> Solution:
        labels = state.labels
        fixed, learned = _fixed(state)
        found: Solution | None = None
        for _ in range(_MOST_ROUNDS if state.boxes else 1):
            before, found = found, self._solve(state, fixed, learned)
            if before is not None and (before.labels == found.labels).all():
                break
            if state.boxes:
                learned = self._relearned(found, fixed, labels)
                if len(np.unique(learned)) < len(labels):
                    break
        assert found is not None
        self._last = found
        return found

    def field(self, state: State) -> Field:
        """The field of a state, over the labels in use; of a box, with the colours it ends with."""
        fixed, learned = _fixed(state)
        if state.boxes:
            learned = self._relearned(self.solve(state), fixed, state.labels)
        return Field(self._unary(state, fixed, learned)) + self._potts(state)

    def _relearned(self, found: Solution, fixed: Marks, labels: tuple[int, ...]) -> Marks:
        """What colours are learned from next: the labels found, where none is sure."""
        number = _numbers(labels)[enlarged(found.labels, self.full, self.factor)]
        return np.where(fixed >= 0, fixed, number)

    def _potts(self, state: State) -> Potts:
        return Potts(self.edges, (state.smoothness * self.factor) * self.weights)

    def _table(self, state: State, learned: Marks) -> FloatArray:
        """Costs (K, L) of the colours, for a small pixel those of the pixels that it stands for."""
        marks: Any = learned.ravel()  # integers of a byte will do
        table = self._model.cell_costs(marks, len(state.labels), covering=bool(state.boxes))
        if len(state.labels) == 2:
            table[:, 1] += sum(tilt.bias for tilt in state.tilts)
        table *= self.factor**2 / len(self._codes)
        return table

    def _sure(self, fixed: Marks) -> tuple[IntArray, IntArray]:
        """Pixels that have a label in any case, and its number."""
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
        """Costs (..., L) of blocks that are far from a label's strokes, and the blocks' side.

        None are there where a box says what is meant.
        """
        price = 0.0 if state.boxes else LOCATION
        costs, step = block_costs(places, numbers, self.shape, len(state.labels), price)
        costs *= self.factor**2
        return costs, step

    def _unary(self, state: State, fixed: Marks, learned: Marks) -> FloatArray:
        """Costs (n, L)."""
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

    def _solve(self, state: State, fixed: Marks, learned: Marks) -> Solution:
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
        return Solution(labels, best.value, best.bound, best.relative_gap, best.exact)

    def _cut(self, state: State, fixed: Marks, learned: Marks) -> Solution:
        """One cut, from the flow of the last one: only what two labels cost apart is computed.

        Costs and weights are such numbers that their sums are exact: what a stroke does not change
        is not computed again, and nothing is lost to rounding.
        """
        if self._warm is None or self._smoothness != state.smoothness:
            self._smoothness = state.smoothness
            field = Field(np.zeros((self.n, 2))) + self._potts(state)
            self._warm = TwoLabelCut(field, as_threads(None), apart=True)
        table = self._table(state, learned)
        apart = table[:, 1] - table[:, 0]
        costs = apart[self._codes[0]]
        for codes in self._codes[1:]:
            costs += apart[codes]
        places, numbers = self._sure(fixed)
        far, step = self._far(state, places, numbers)
        costs += spread_blocks(far[..., 1] - far[..., 0], self.shape, step).ravel()
        costs[places] = np.where(numbers == 1, -np.inf, np.inf)
        ones = self._warm.ones(costs)
        labels = np.array(state.labels, np.uint8)[ones.view(np.int8)].reshape(self.shape)
        if self.factor > 1:  # a first look needs no proof
            return Solution(labels, np.nan, np.nan, np.inf, False)
        # What the first label costs everywhere, what the second one costs more, and the border.
        costs[places] = 0.0
        value = float(self._counts @ table[:, 0] - table[self._codes[0][places], 0].sum())
        value += self._sum_of_blocks(far[..., 0], step)
        rows, columns = np.divmod(places, self.shape[1])
        value -= float(far[rows // step, columns // step, 0].sum())
        value += float(costs @ ones) + self._warm.value
        lost, paid = self._warm.lost, self._warm.paid
        gap = min(lost / paid, 1.0) if lost else 0.0
        return Solution(labels, value, value - lost, gap, lost == 0.0)

    def _sum_of_blocks(self, costs: FloatArray, step: int) -> float:
        """The sum over the pixels of what each pixel of a block costs."""
        tall, wide = (
            np.minimum(step, side - step * np.arange(blocks))
            for side, blocks in zip(self.shape, costs.shape, strict=True)
        )
        return float(tall @ costs @ wide)

    @property
    def nbytes(self) -> int:
        """About what the level holds."""
        return BYTES_A_PIXEL * self.shape[0] * self.shape[1]


def _numbers(labels: tuple[int, ...]) -> NDArray[np.int8]:
    """The number among the labels in use of each label; -1 of what is none, and of -1."""
    number = np.full(256, -1, np.int8)
    number[list(labels)] = np.arange(len(labels))
    return number


def _fixed(state: State) -> tuple[Marks, Marks]:
    """The labels that are sure, and those that colours are first learned from; as numbers."""
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
    """(S, n): the colours of a few pixels of every block, which stand for all of it."""
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
    """How many pixels a side must become one, so that there are about so many."""
    return max(1, ceil(sqrt(shape[0] * shape[1] / pixels) - 0.1))


def reduced(image: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """The mean of every block of pixels."""
    channels = [block_sums(image[..., c].astype(np.float64), factor) for c in range(3)]
    counts = block_sums(np.ones(image.shape[:2]), factor)
    return np.stack([np.rint(channel / counts) for channel in channels], axis=2).astype(np.uint8)


def block_sums(values: FloatArray, factor: int) -> FloatArray:
    """The sum over every block; those at the end may be smaller."""
    if factor == 1:
        return values
    rows = np.add.reduceat(values, np.arange(0, values.shape[0], factor), axis=0)
    return np.asarray(np.add.reduceat(rows, np.arange(0, values.shape[1], factor), axis=1))


def enlarged(labels: NDArray[np.uint8], shape: tuple[int, ...], factor: int) -> NDArray[np.uint8]:
    """Every pixel as a block again."""
    if factor == 1:
        return labels
    wide = np.repeat(np.repeat(labels, factor, axis=0), factor, axis=1)
    return wide[: shape[0], : shape[1]]


def resampled(labels: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The nearest pixel of another size."""
    if labels.shape == shape:
        return labels
    rows = (np.arange(shape[0]) + 0.5) * labels.shape[0] / shape[0]
    columns = (np.arange(shape[1]) + 0.5) * labels.shape[1] / shape[1]
    return np.asarray(labels[rows.astype(int)[:, None], columns.astype(int)])
