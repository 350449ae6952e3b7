"""The linear program behind the operator D, over all sets or over a grid of counts.

Every constraint has the form g(top) - g(left) - g(right) + g(bottom) >= c, where c is the positive
part of the same combination of F: then g is supermodular and F - g submodular. An increasing
supermodular g also needs g({i}) >= 0. The least g has g({i}) = 0, because otherwise a modular part
could be subtracted.
"""

from __future__ import annotations

import numpy as np

from setwise._foundation import _kernels as _core
from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._imports import load


def least_supermodular(values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Return the g of least (weighted) sum for F as a table (2^n,) or a grid (m + 1, r + 1).

    The solver is an interior point method over the 2^n sets (n = 12: 4096 unknowns, 67584 rows,
    about two seconds), and the simplex method over the much smaller grid of counts.
    """
    linprog, coo_array = load("scipy.optimize").linprog, load("scipy.sparse").coo_array
    on_grid = values.ndim == 2
    corners = _grid_corners(values.shape) if on_grid else _cube_corners(values.size)
    flat = values.ravel()
    if corners.shape[1] == 0:
        return np.zeros_like(values)
    top, left, right, bottom = corners
    least = np.maximum(flat[top] - flat[left] - flat[right] + flat[bottom], 0.0)
    scale = float(least.max())
    if scale == 0:
        return np.zeros_like(values)
    rows = np.tile(np.arange(len(top)), 4)
    signs = np.repeat([1.0, -1.0, -1.0, 1.0], len(top))
    matrix = coo_array((signs, (rows, corners.ravel())), shape=(len(top), flat.size)).tocsr()
    fixed = _grid_singles(values.shape) if on_grid else _cube_singles(values.size)
    upper = np.full(flat.size, np.inf)
    upper[fixed] = 0.0
    cost = np.ones(flat.size) if weights is None else weights.ravel() / weights.max()
    answer = linprog(
        cost,
        A_ub=-matrix,
        b_ub=-least / scale,
        bounds=np.stack([np.zeros(flat.size), upper], axis=1),
        method="highs-ds" if on_grid else "highs-ipm",
    )
    if answer.status != 0:
        raise RuntimeError(f"the linear program of decompose was not solved: {answer.message}")
    g: FloatArray = np.maximum(answer.x, 0.0) * scale
    return g.reshape(values.shape)


def supermodular_recursion(values: FloatArray, at_least: FloatArray) -> FloatArray:
    """Raise the table ``at_least`` where rounding violates a constraint.

    Each constraint bounds its top set from below by smaller sets, so one pass in the order of size
    satisfies all of them.
    """
    n = int(values.size).bit_length() - 1
    g = at_least.copy()
    g[_cube_singles(values.size)] = 0.0
    top, left, right, bottom = _cube_corners(values.size)
    sizes = np.bitwise_count(top)
    least = np.maximum(values[top] - values[left] - values[right] + values[bottom], 0.0)
    for size in range(2, n + 1):
        now = sizes == size
        bound = g[left[now]] + g[right[now]] - g[bottom[now]] + least[now]
        np.maximum.at(g, top[now], bound)
    return g


def supermodular_recursion_on_grid(
    values: FloatArray, at_least: FloatArray | None = None
) -> FloatArray:
    """Return a feasible grid, the largest lower bound at each (n, q); it need not be least."""
    g = np.zeros(values.shape) if at_least is None else at_least.copy()
    _core.supermodular_grid(np.ascontiguousarray(values), g)
    return g


def _cube_corners(size: int) -> IntArray:
    """Return the indices of (A+i+j, A+i, A+j, A) for all i < j and all A that contain neither."""
    n = size.bit_length() - 1
    sets = np.arange(size)
    corners = [np.empty((4, 0), np.int64)]
    for i in range(n):
        for j in range(i + 1, n):
            both = (1 << i) | (1 << j)
            bottom = sets[(sets & both) == 0]
            corners.append(np.stack([bottom | both, bottom | 1 << i, bottom | 1 << j, bottom]))
    return np.concatenate(corners, axis=1)


def _cube_singles(size: int) -> IntArray:
    sets = np.arange(size)
    return sets[np.bitwise_count(sets) <= 1]


def _grid_corners(shape: tuple[int, ...]) -> IntArray:
    """Return the second differences in n, in q, and mixed, as flat indices into the grid."""
    index = np.arange(shape[0] * shape[1]).reshape(shape)
    in_n = (index[2:], index[1:-1], index[1:-1], index[:-2])
    in_q = (index[:, 2:], index[:, 1:-1], index[:, 1:-1], index[:, :-2])
    mixed = (index[1:, 1:], index[1:, :-1], index[:-1, 1:], index[:-1, :-1])
    return np.concatenate(
        [np.stack([corner.ravel() for corner in kind]) for kind in (in_n, in_q, mixed)], axis=1
    )


def _grid_singles(shape: tuple[int, ...]) -> IntArray:
    index = np.arange(shape[0] * shape[1]).reshape(shape)
    return np.unique(np.concatenate([index[:2, 0], index[0, :2]]))
