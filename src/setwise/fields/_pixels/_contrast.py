"""Weights of edges that decrease where the image changes."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, IntArray, as_array, as_number
from setwise.fields._edges import as_edges, check_edges, grid_of
from setwise.fields._pixels._grid import pair_slices


def contrast_weights(
    image: ArrayLike,
    edges: ArrayLike,
    beta: float | None = None,
    *,
    channels: bool | None = None,
) -> FloatArray:
    r"""Return a weight for each edge: 1 between equal colours, smaller for larger differences.

    .. math:: w_{ij} = \exp(-\beta \, \|I_i - I_j\|^2)

    Multiply the weights by the strength of the smoothing. The weights
    :math:`\exp(-\theta \|I_i - I_j\|^2 / 255^2)` of Zhang, Djolonga and Krause, *Higher-Order
    Inference for Multi-class Log-supermodular Models*, Section F.2, for colours in 0..255, are
    ``beta=theta / 255**2``.

    Parameters
    ----------
    image : array-like of shape (h, w), (h, w, channels), or any grid
        Real numbers.
    edges : array-like of int, shape (E, 2)
        Pairs of pixels in C order, as from ``grid_edges``.
    beta : float, optional
        Not negative. By default :math:`1 / (2 \langle \|I_i - I_j\|^2 \rangle)`, with the mean over
        the edges: the weights then do not depend on the scale of the colours. If all edges join
        equal colours, every weight is 1.
    channels : bool, optional
        Whether the last axis holds channels; by default it does when there are three axes.

    Returns
    -------
    array of shape (E,), between 0 and 1

    Examples
    --------
    >>> import setwise as sw
    >>> image = [[0, 0, 255]]
    >>> edges = sw.fields.grid_edges((1, 3))
    >>> sw.fields.contrast_weights(image, edges, beta=2.0 / 255**2).round(6).tolist()
    [1.0, 0.135335]
    >>> sw.fields.contrast_weights(image, edges).round(6).tolist()
    [1.0, 0.367879]
    """
    array = as_array(image, "image")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"image must hold real numbers, got dtype {array.dtype}")
    if not isinstance(channels, bool | np.bool_ | None):
        raise TypeError(f"channels must be True, False or None, got {type(channels).__name__}")
    colored = array.ndim == 3 if channels is None else bool(channels)
    if array.ndim < 1 + colored:
        raise ValueError(f"image must have axes for its pixels, got shape {array.shape}")
    depth = array.shape[-1] if colored else 1
    pixels = array.reshape(int(np.prod(array.shape[: array.ndim - colored])), depth)
    pixels = pixels.astype(np.float64)
    if not np.isfinite(pixels).all():
        raise ValueError(f"image must be finite, got {pixels[~np.isfinite(pixels)][0]}")
    pairs = as_edges(edges)
    check_edges(pairs, len(pixels))
    # Half of each value is used, because differences of halves do not overflow.
    change = _changes(pixels / 2, pairs)
    if beta is None:
        # The scale does not matter, and with the largest change near 1 its square does not
        # overflow.
        _, exponent = np.frexp(max(change.max(initial=0.0), -change.min(initial=0.0)))
        np.ldexp(change, -exponent, out=change)
        total = float(np.square(change).sum())
        root = np.sqrt(len(change) / (2 * total)) if total > 0 else 0.0
    else:
        root = 2 * np.sqrt(as_number(beta, "beta", nonnegative=True))
    with np.errstate(over="ignore"):  # overflow leads to a weight of 0
        change *= root
        np.square(change, out=change)
        sums = _sums(change)
        np.negative(sums, out=sums)
        return np.asarray(np.exp(sums, out=sums))


def _changes(pixels: FloatArray, edges: IntArray) -> FloatArray:
    """Return differences (E, C) of pixels (N, C) along edges, by slices if they are a grid."""
    grid = grid_of(edges)
    if grid is None or prod(grid.sides) != len(pixels):
        return np.asarray(pixels[edges[:, 0]] - pixels[edges[:, 1]])
    image = pixels.reshape(*grid.sides, -1)
    changes = np.empty((len(edges), pixels.shape[1]))
    start = 0
    for step in grid.steps:
        first, second = pair_slices(grid.sides, step)
        sides = image[first].shape
        end = start + prod(sides[:-1])
        np.subtract(image[first], image[second], out=changes[start:end].reshape(sides))
        start = end
    return changes


def _sums(rows: FloatArray) -> FloatArray:
    """Sum each row, column by column, because NumPy is slow along short rows."""
    if not 1 <= rows.shape[1] < 8:
        return np.asarray(rows.sum(axis=1))
    sums = rows[:, 0].copy()
    for column in rows.T[1:]:
        sums += column
    return sums
