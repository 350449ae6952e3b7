"""Every weak learner, and the minimum over all of their combinations by one linear program."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import linprog, minimize


def all_stumps(X: np.ndarray) -> list[tuple[int, float, int]]:
    """Feature, threshold and sign of every stump: constants, and one between any two values."""
    stumps = []
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for threshold in [-np.inf, *((values[1:] + values[:-1]) / 2)]:
            stumps += [(feature, float(threshold), sign) for sign in (1, -1)]
    return stumps


def stump_gain(X: np.ndarray, weights: np.ndarray, stump: tuple[int, float, int]) -> float:
    """sum_i weights_i h(x_i), row by row."""
    feature, threshold, sign = stump
    responses = [sign if x > threshold else -sign for x in X[:, feature]]
    return sum(u * h for u, h in zip(weights, responses, strict=True))


def ranked_pairs(levels: np.ndarray, groups: np.ndarray | None = None) -> list[tuple[int, int]]:
    """(i, j) with a higher level for i than for j, in the same group."""
    n = len(levels)
    return [
        (i, j)
        for i in range(n)
        for j in range(n)
        if levels[i] > levels[j] and (groups is None or groups[i] == groups[j])
    ]


def class_planes(
    y: np.ndarray, cost: np.ndarray, code: np.ndarray
) -> list[list[tuple[float, np.ndarray]]]:
    """For each example its planes, a class each: Delta(y_i, y) and the slope in the scores."""
    m, segments = len(y), code.shape[1]
    planes = []
    for i, truth in enumerate(y):
        own = []
        for label in range(len(cost)):
            slope = np.zeros((segments, m))
            slope[:, i] = code[label] - code[truth]
            own.append((float(cost[truth, label]), slope.ravel()))
        planes.append(own)
    return planes


def boosted_minimum(
    planes: list[list[tuple[float, np.ndarray]]], columns: np.ndarray, C: float
) -> float:
    """min 1'w + C/m sum_i xi_i over w, xi >= 0: all columns (J, S), all planes in one program."""
    m, J = len(planes), len(columns)
    rows, right = [], []
    for i, own in enumerate(planes):
        for offset, slope in own:
            row = np.zeros(J + m)
            row[:J] = columns @ slope
            row[J + i] = -1.0
            rows.append(row)
            right.append(-offset)
    cost = np.concatenate([np.ones(J), np.full(m, C / m)])
    answer = linprog(cost, A_ub=np.array(rows), b_ub=right, method="highs")
    assert answer.status == 0
    return float(answer.fun)


def stump_columns(X: np.ndarray, segments: int) -> np.ndarray:
    """Every stump on every segment, (J, segments m)."""
    m = len(X)
    columns = []
    for feature, threshold, sign in all_stumps(X):
        response = np.where(X[:, feature] > threshold, sign, -sign)
        for segment in range(segments):
            column = np.zeros((segments, m))
            column[segment] = response
            columns.append(column.ravel())
    return np.array(columns)


def stump_answers(x: np.ndarray, *, categorical: bool = False, trend: int = 0) -> list[np.ndarray]:
    """All that a stump may answer on one feature, value by value, NaN for missing ones.

    Numbers: constants, and both sides of every threshold, or the one of a trend; missing values on
    either side. Categories: all subsets, missing values being one more category.
    """
    missing = np.isnan(x)
    values = np.unique(x[~missing])
    answers = []
    if categorical:
        groups = [x == value for value in values] + [missing] * bool(missing.any())
        return [
            sum(sign * group for sign, group in zip(signs, groups, strict=True))
            for signs in product((1.0, -1.0), repeat=len(groups))
        ]
    for threshold in [-np.inf, *((values[1:] + values[:-1]) / 2)]:
        for sign in (1.0, -1.0):
            if threshold == -np.inf or trend in (0, sign):
                sides = np.where(x > threshold, sign, -sign)
                answers += [np.where(missing, side, sides) for side in (1.0, -1.0)]
    return answers


def logistic_minimum(X: np.ndarray, y: np.ndarray, code: np.ndarray, C: float) -> float:
    """min 1'w + C times the mean logistic loss over all stumps, w >= 0, by quasi-Newton steps."""
    columns = stump_columns(X, code.shape[1])
    m, rows = len(y), np.arange(len(y))

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = code @ (columns.T @ w).reshape(-1, m)
        p = np.exp(scores - scores.max(axis=0))
        p /= p.sum(axis=0)
        value = w.sum() - C * np.log(p[y, rows]).mean()
        p[y, rows] -= 1.0
        return float(value), 1.0 + C / m * (columns @ (code.T @ p).ravel())

    start = np.zeros(len(columns))
    bounds = [(0.0, None)] * len(start)
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-14, "gtol": 1e-9}
    found = minimize(objective, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    return float(found.fun)


def group_minimum(columns: np.ndarray, y: np.ndarray, k: int, C: float) -> float:
    """min of the sum of the norms of the columns' weights, (n, k), + C times the logistic loss.

    As a program over exponential and second-order cones: log sum_y exp(f_y - f_t) <= s says that
    exp(f_y - f_t - s) <= u_y, whose sum over y is at most 1.
    """
    import clarabel
    from scipy.sparse import coo_array

    n, m = columns.shape
    # Variables: w (n k), the norms (n), s (m), u (m k).
    norms, s, u = n * k, n * k + n, n * k + n + m
    size = u + m * k
    entries: list[tuple[int, int, float]] = []  # of A, where A x + slack = b
    b: list[float] = []
    cones: list[object] = []

    def row(items: list[tuple[int, float]], right: float) -> None:
        entries.extend((len(b), variable, value) for variable, value in items)
        b.append(right)

    for i in range(m):
        row([(u + i * k + c, 1.0) for c in range(k)], 1.0)
    cones.append(clarabel.NonnegativeConeT(m))
    for j in range(n):
        row([(norms + j, -1.0)], 0.0)
        for c in range(k):
            row([(j * k + c, -1.0)], 0.0)
        cones.append(clarabel.SecondOrderConeT(k + 1))
    for i in range(m):
        for c in range(k):
            scores = [(j * k + c, -columns[j, i]) for j in range(n)]
            scores += [(j * k + y[i], columns[j, i]) for j in range(n)]
            row([*scores, (s + i, 1.0)], 0.0)
            row([], 1.0)
            row([(u + i * k + c, -1.0)], 0.0)
            cones.append(clarabel.ExponentialConeT())
    places = np.array([(r, v) for r, v, _ in entries]).T
    A = coo_array(([value for *_, value in entries], places), (len(b), size)).tocsc()
    q = np.zeros(size)
    q[norms:s], q[s:u] = 1.0, C / m
    options = clarabel.DefaultSettings()
    options.verbose = False
    nothing = coo_array((size, size)).tocsc()
    found = clarabel.DefaultSolver(nothing, q, A, np.array(b), cones, options).solve()
    return float(found.obj_val)
