"""Regions from label maps: superpixels, segments, or the pieces of a segmentation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from setwise._foundation._arguments import IntArray, as_array
from setwise.fields._pixels._grid import grid_edges


def regions_from_labels(
    labels: ArrayLike,
    *,
    ignore: int | None = None,
    connected: bool = False,
    connectivity: int | ArrayLike | None = None,
) -> IntArray:
    """Make a layer of regions, one for each label of a map or each of its connected pieces.

    Parameters
    ----------
    labels : array-like of int, of any shape
        Superpixels, a segmentation or an annotation, as any integers.
    ignore : int, optional
        The label of pixels without a region.
    connected : bool
        Whether pixels of one label that do not touch are regions of their own.
    connectivity : int or array-like of int, optional
        The neighbours of a pixel, as in ``grid_edges``; only with ``connected``.

    Returns
    -------
    array of shape (N,), int64
        The region of each pixel in C order, -1 for none. Regions are numbered 0..R-1: in the order
        of their labels, or, when connected, in the order of their first pixels.

    Examples
    --------
    >>> import setwise as sw
    >>> segments = [[7, 7, 0], [3, 0, 7]]
    >>> sw.fields.regions_from_labels(segments, ignore=0).tolist()
    [1, 1, -1, 0, -1, 1]
    >>> sw.fields.regions_from_labels(segments, ignore=0, connected=True).tolist()
    [0, 0, -1, 1, -1, 2]
    """
    array = as_array(labels, "labels")
    if array.ndim == 0:
        raise ValueError("labels must be a map with at least one axis, got a number")
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"labels must hold integers, got dtype {array.dtype}")
    if ignore is not None and (
        isinstance(ignore, bool) or not isinstance(ignore, int | np.integer)
    ):
        raise TypeError(f"ignore must be an integer or None, got {type(ignore).__name__}")
    if not isinstance(connected, bool | np.bool_):
        raise TypeError(f"connected must be True or False, got {type(connected).__name__}")
    if connectivity is not None and not connected:
        raise ValueError("connectivity must be left out unless connected is True")
    flat = array.ravel()
    inside = np.ones(len(flat), np.bool_) if ignore is None else flat != ignore
    keys = flat
    if connected:
        edges = grid_edges(array.shape, connectivity)
        keys = _first_pixels(edges[flat[edges[:, 0]] == flat[edges[:, 1]]], len(flat))
    regions = np.full(len(flat), -1, np.int64)
    regions[inside] = np.unique(keys[inside], return_inverse=True)[1]
    return regions


def _first_pixels(edges: IntArray, n: int) -> IntArray:
    """Return the first pixel of each pixel's connected component."""
    if n == 0:
        return np.zeros(0, np.int64)
    ones = np.ones(len(edges), np.bool_)
    graph = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    first = np.unique(component, return_index=True)[1]
    return np.asarray(first[component], np.int64)
