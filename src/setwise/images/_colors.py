"""Colour models: densities of the colours of each label, learned from a few labelled pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.images._mixture import mixture_densities
from setwise.images._pixels import Pixels

# The number of cells along each axis of the colour space, by the number of axes. Chosen by hand; no
# measurement is on record.
_CELLS = {1: 256, 2: 64, 3: 32, 4: 16}
# The share of the uniform density over all colours that is added to the density of a label, which
# bounds the cost of a colour that the label has never had. For boxes in five pictures, a quarter of
# this share changes up to 0.4 % of the labels, and four times the share up to 1.1 %.
_FLOOR = 0.3
# The count, in pixels, that is assumed for unmarked colours, far below the count of any marked one.
# For strokes in five pictures, a quarter or four times this value changes no label.
_LEAST_COUNT = 1e-3
# The weight, in pixels, of the colours of a label that covers much of the image: about one stroke.
# A quarter or four times this value changes up to 0.02 % of the labels in such pictures.
_STROKE = 1000.0
# Costs of histograms and locations are rounded to multiples of 1 / STEPS nats. Their sums are then
# exact, and a stroke over colours that were marked before changes almost no cost, so that the
# previous cut can be continued.
STEPS = 8.0


class ColorModel:
    r"""Costs of labels by colour, for the pixels of one image.

    The colours are binned once: into 256 cells for grey images, 32 x 32 x 32 for three channels, 16
    along each of four channels; for more channels, along the four directions in which the colours
    vary most. Colour models are then evaluated for a few thousand cells instead of all pixels, so
    that the costs of a stroke take a few milliseconds.

    With a mixture, a label's cost at a colour c is :math:`-\log(p(c) + 0.3 / V)`, p the density of
    the colours that have the label and V the volume of all colours. With a histogram, :math:`e_l(c)
    = \log(1 + h_l(c) / 0.001)` is the evidence for label l, where h are its counts, each smoothed
    over adjacent cells, and the cost is :math:`\max_k e_k(c) - e_l(c)`: a stroke changes only the
    costs of its own colours. In both models, a colour that a label has never had has the largest
    cost, and a colour that no label had has the same cost for all labels.
    """

    def __init__(self, pixels: Pixels, kind: str = "mixture") -> None:
        self.kind = kind
        values = pixels.values
        low, high = values.min(axis=0), values.max(axis=0)
        scale = high.astype(np.float64) - low
        scale[scale == 0] = 1.0
        axes = values if values.shape[1] <= 4 else _principal(values)
        self._cells = _CELLS[axes.shape[1]]
        self._grid = (self._cells,) * axes.shape[1]
        codes = _codes(axes, self._cells)
        count = np.bincount(codes, minlength=self._cells ** axes.shape[1])
        self._used = np.flatnonzero(count)
        place = np.zeros(len(count), np.int32)
        place[self._used] = np.arange(len(self._used), dtype=np.int32)
        self.codes: NDArray[np.int32] = place[codes]
        """(N,): the cell of each pixel, among those that have a pixel."""
        self.counts: FloatArray = count[self._used].astype(np.float64)
        """(K,): pixels of each cell."""
        sums = [np.bincount(self.codes, channel, minlength=len(self._used)) for channel in values.T]
        means = np.stack(sums, axis=1) / self.counts[:, None]
        self.colors: FloatArray = np.clip((means - low) / scale, 0.0, 1.0)
        """(K, C): the mean colour of each cell, every channel from 0 to 1."""

    @property
    def n(self) -> int:
        """The number N of pixels."""
        return len(self.codes)

    def costs(self, marks: IntArray, n_labels: int, *, covering: bool = False) -> FloatArray:
        """Return costs (N, L), given labels (N,) with -1 for unknown labels."""
        return np.take(self.cell_costs(marks, n_labels, covering=covering), self.codes, axis=0)

    def cell_costs(self, marks: IntArray, n_labels: int, *, covering: bool = False) -> FloatArray:
        """Return costs (K, L) of the cells; a pixel has the costs of its cell.

        A label without marks is forbidden. If only one label is marked, the next label gets the
        colours of the whole image, with the same weight. Labels that cover the image (``covering``)
        have the weight of one stroke each, so that the larger one has no advantage.
        """
        marks = marks.ravel()
        known = np.flatnonzero(marks >= 0)
        cells = len(self._used)
        keys = marks[known].astype(np.int64) * cells + self.codes[known]
        drawn = np.bincount(keys, minlength=n_labels * cells).reshape(n_labels, cells)
        weights = drawn.astype(np.float64)
        seen = [label for label in range(n_labels) if weights[label].any()]
        if len(seen) < 2:
            rest = [label for label in range(n_labels) if label not in seen][:1]
            weights[rest] = self.counts * (max(len(known), 1) / self.n)
            seen += rest
        costs = np.full((cells, n_labels), np.inf)
        if self.kind == "mixture":
            # The standard deviation of a uniform distribution over a cell's side.
            width = 12**-0.5 / self._cells
            for label in seen:
                density = mixture_densities(self.colors, weights[label], width)
                costs[:, label] = -np.log(density + _FLOOR)
            return costs
        for label in seen:
            if covering:
                weights[label] *= _STROKE / weights[label].sum()
            evidence = np.log1p(self._spread(weights[label]) / _LEAST_COUNT)
            costs[:, label] = np.rint(-STEPS * evidence) / STEPS
        costs -= costs.min(axis=1, keepdims=True)
        return costs

    def _spread(self, weights: FloatArray) -> FloatArray:
        """Smooth the counts (K,) of the cells with a standard deviation of one cell."""
        table = np.zeros(self._grid)
        table.ravel()[self._used] = weights
        spread = gaussian_filter(table, sigma=1.0, mode="reflect", truncate=3.0)
        return np.asarray(spread.ravel()[self._used])


def _codes(values: NDArray[Any], cells: int) -> NDArray[np.int64]:
    """Return the cell of each row, as one number for all axes."""
    codes = np.zeros(len(values), np.int64)
    for channel in values.T:
        if channel.dtype == np.uint8:
            table = _places(np.arange(256), channel, cells)
            codes = codes * cells + table[channel]
        else:
            codes = codes * cells + _places(channel, channel, cells)
    return codes


def _places(values: NDArray[Any], channel: NDArray[Any], cells: int) -> NDArray[np.int64]:
    """Return the cells of values, with the range of a channel divided evenly."""
    low, high = float(channel.min()), float(channel.max())
    step = cells / (high - low) if high > low else 0.0
    places = np.clip((values.astype(np.float64) - low) * step, 0, cells - 1)
    return places.astype(np.int64)


def _principal(values: NDArray[Any]) -> FloatArray:
    """Return the four coordinates (N, 4) in which channels, each from 0 to 1, vary most."""
    rows = values.astype(np.float64)
    rows = (rows - rows.mean(axis=0)) / np.maximum(np.ptp(rows, axis=0), 1e-300)
    _, vectors = np.linalg.eigh(rows.T @ rows)
    return np.asarray(rows @ vectors[:, -4:])
