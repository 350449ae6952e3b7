"""Brute force over all subsets and permutations: what every fast path is compared with.

A set is an index in bit order, the sum of 2^i over its elements; a set function is the array of its
2^n values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product

import numpy as np
from scipy.optimize import linprog, lsq_linear, minimize

from setwise import fields
from setwise.fields import _terms

TOLERANCE = 1e-9


def all_masks(n: int) -> np.ndarray:
    """Every subset as a row, (2^n, n), in bit order."""
    return np.array([[index >> i & 1 == 1 for i in range(n)] for index in range(1 << n)], bool)


def all_values(function: Callable[[np.ndarray], float]) -> np.ndarray:
    """The 2^n values of a set function, one call each."""
    return np.array([function(mask) for mask in all_masks(function.n)])


def index_of(elements: Sequence[int]) -> int:
    return sum(1 << int(i) for i in elements)


def size_of(values: np.ndarray) -> int:
    return len(values).bit_length() - 1


def gains(values: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """The definition: F(order[:k+1]) - F(order[:k])."""
    chain = [values[index_of(order[:k])] for k in range(len(order) + 1)]
    return np.array([after - before for before, after in pairwise(chain)])


def _pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sets = np.arange(len(values))
    return sets[:, None], sets[None, :]


def _slack(values: np.ndarray) -> float:
    return 1e-11 * np.abs(values).max()


def is_submodular(values: np.ndarray) -> bool:
    """F(A) + F(B) >= F(A | B) + F(A & B), for all pairs of sets."""
    a, b = _pairs(values)
    return bool(np.all(values[a] + values[b] >= values[a | b] + values[a & b] - _slack(values)))


def is_supermodular(values: np.ndarray) -> bool:
    return is_submodular(-values)


def is_increasing(values: np.ndarray) -> bool:
    """F(A) <= F(B) whenever A is inside B."""
    a, b = _pairs(values)
    return bool(np.all((values[a] <= values[b] + _slack(values)) | (a & b != a)))


def minimum(values: np.ndarray) -> float:
    return float(values.min())


def maximum(values: np.ndarray, k: int | None = None) -> float:
    """The largest value, or the largest over the sets of at most k elements."""
    sizes = np.bitwise_count(np.arange(len(values)))
    return float(values[sizes <= (size_of(values) if k is None else k)].max())


def lovasz_by_integral(values: np.ndarray, w: np.ndarray) -> float:
    """The integral of F({w >= t}) - F(empty) over the levels t, and F(V) below them all."""
    if len(w) == 0:
        return 0.0
    normalised = values - values[0]
    levels = np.unique(w)[::-1]
    total = levels[-1] * normalised[-1]
    for high, low in pairwise(levels):
        total += (high - low) * normalised[index_of(np.flatnonzero(w >= high))]
    return float(total)


def lovasz_by_permutations(values: np.ndarray, w: np.ndarray) -> float:
    """The largest <w, vertex> over all vertices of the base polytope: for submodular F only."""
    return max(
        float(np.dot(w[list(order)], gains(values, order))) for order in permutations(range(len(w)))
    )


def in_base_polytope(values: np.ndarray, x: np.ndarray, tolerance: float = TOLERANCE) -> bool:
    """x(A) <= F(A) - F(empty) for all A, with equality for the whole set."""
    normalised = values - values[0]
    sums = all_masks(len(x)) @ x
    slack = tolerance * max(1.0, np.abs(values).max())
    return bool(np.all(sums <= normalised + slack) and abs(sums[-1] - normalised[-1]) <= slack)


# --------------------------------------------------------------------------------------- surrogates


def base_vertices(values: np.ndarray) -> np.ndarray:
    """The gains along every permutation, each aligned with the elements: (n!, n)."""
    orders = np.array(list(permutations(range(size_of(values)))), int)
    chains = np.cumsum(np.left_shift(1, orders), axis=1)
    chains = np.concatenate([np.zeros((len(orders), 1), int), chains], axis=1)
    vertices = np.empty(orders.shape)
    np.put_along_axis(vertices, orders, np.diff(values[chains], axis=1), axis=1)
    return vertices


def lovasz_hinge(values: np.ndarray, margins: np.ndarray, case: int) -> np.ndarray:
    """Definition 6 of the Lovász hinge paper for margins g y (k, p): a maximum over permutations.

    Case 1 thresholds each s = 1 - g y at zero, case 2 the whole sum.
    """
    s = 1.0 - margins
    vertices = base_vertices(values)
    if case == 1:
        return (np.maximum(s, 0.0) @ vertices.T).max(axis=1)
    return np.maximum((s @ vertices.T).max(axis=1), 0.0)


def margin_rescaling(values: np.ndarray, margins: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Equation (21) of the Lovász hinge paper, M(scale l) / scale: a maximum over all sets."""
    sums = margins @ all_masks(margins.shape[1]).T
    return (values - 2.0 / scale * sums).max(axis=1)


def slack_rescaling(values: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Equation (22) of the Lovász hinge paper: a maximum over all sets."""
    sums = margins @ all_masks(margins.shape[1]).T
    return (values * (1.0 - 2.0 * sums)).max(axis=1)


def largest_gain(values: np.ndarray) -> float:
    """max over B, the empty set included, and i outside of l(B + i) - l(B)."""
    cube = values.reshape((2,) * size_of(values))
    return max((float(np.diff(cube, axis=k).max()) for k in range(cube.ndim)), default=0.0)


def convex_closure(values: np.ndarray, s: np.ndarray) -> float:
    """The largest convex function below l at the corners: the least mean of l with mean set s."""
    masks = all_masks(len(s)).astype(float)
    weights = linprog(
        values,
        A_eq=np.vstack([masks.T, np.ones(len(values))]),
        b_eq=np.append(s, 1.0),
        bounds=(0, None),
    )
    assert weights.status == 0, weights.message
    return float(weights.fun)


# ----------------------------------------------------------------------------------- the operator D


def least_supermodular_sum(values: np.ndarray) -> float:
    """The least sum of g over all sets in the operator D (B_D paper, Definition 6)."""
    return _least_sum(np.ones(len(values)), *_requirements(values))


def _requirements(values: np.ndarray) -> tuple[list[np.ndarray], list[float]]:
    """One row for each, as printed: g increasing, g supermodular, l - g submodular."""
    size, n = len(values), size_of(values)
    rows, bounds = [], []

    def at_least(terms: dict[int, float], bound: float) -> None:
        row = np.zeros(size)
        for index, coefficient in terms.items():
            row[index] += coefficient
        rows.append(-row)
        bounds.append(-bound)

    for a in range(size):
        outside = [1 << i for i in range(n) if not a >> i & 1]
        for i in outside:
            at_least({a | i: 1.0, a: -1.0}, 0.0)
        for i, j in combinations(outside, 2):
            square = {a | i | j: 1.0, a | i: -1.0, a | j: -1.0, a: 1.0}
            at_least(square, 0.0)
            at_least(square, sum(c * values[index] for index, c in square.items()))
    return rows, bounds


def least_supermodular_sum_on_grid(grid: np.ndarray, weights: np.ndarray) -> float:
    """The same for a loss of two counts: unknowns g(n, q), weighted by how many sets have them."""
    index = np.arange(grid.size).reshape(grid.shape)
    rows, bounds = [], []

    def at_least(corners: tuple[tuple[int, int, float], ...], bound: float) -> None:
        row = np.zeros(grid.size)
        for n, q, coefficient in corners:
            row[index[n, q]] += coefficient
        rows.append(-row)
        bounds.append(-bound)

    height, width = grid.shape
    for n in range(height):
        for q in range(width):
            more = [(n + a, q + b) for a, b in ((1, 0), (0, 1)) if n + a < height and q + b < width]
            for place in more:
                at_least(((*place, 1.0), (n, q, -1.0)), 0.0)
            squares = []
            if n + 2 < height:
                squares.append(((n + 2, q, 1.0), (n + 1, q, -2.0), (n, q, 1.0)))
            if q + 2 < width:
                squares.append(((n, q + 2, 1.0), (n, q + 1, -2.0), (n, q, 1.0)))
            if n + 1 < height and q + 1 < width:
                mixed = ((n + 1, q, -1.0), (n, q + 1, -1.0))
                squares.append(((n + 1, q + 1, 1.0), *mixed, (n, q, 1.0)))
            for square in squares:
                at_least(square, 0.0)
                at_least(square, sum(c * grid[a, b] for a, b, c in square))
    return _least_sum(weights.ravel(), rows, bounds)


def _least_sum(cost: np.ndarray, rows: list[np.ndarray], bounds: list[float]) -> float:
    """The linear program over g with g(empty) = 0 and rows @ g <= bounds."""
    free = [(0, 0)] + [(None, None)] * (len(cost) - 1)
    if not rows:
        return 0.0
    answer = linprog(cost, A_ub=np.array(rows), b_ub=np.array(bounds), bounds=free)
    assert answer.status == 0, answer.message
    return float(answer.fun)


def range_of_optimal_entries(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest that each g(A) can be among the optima of the operator D."""
    rows, bounds = _requirements(values)
    best = _least_sum(np.ones(len(values)), rows, bounds)
    # Among the optima: the sum may not exceed the least one, but for the solver's tolerance.
    rows = [*rows, np.ones(len(values))]
    bounds = [*bounds, best + 1e-9]
    unit = np.eye(len(values))
    least = np.array([_least_sum(direction, rows, bounds) for direction in unit])
    most = np.array([-_least_sum(-direction, rows, bounds) for direction in unit])
    return least, most


def least_by_size(values: np.ndarray) -> np.ndarray:
    """A feasible g by recursion over the sizes of the sets: an upper bound on the operator D."""
    n = size_of(values)
    g = np.zeros(len(values))
    for a in sorted(range(len(values)), key=int.bit_count):
        inside = [1 << i for i in range(n) if a >> i & 1]
        for i, j in combinations(inside, 2):
            bend = values[a] - values[a ^ i] - values[a ^ j] + values[a ^ i ^ j]
            g[a] = max(g[a], g[a ^ i] + g[a ^ j] - g[a ^ i ^ j] + max(bend, 0.0))
    return g


# ----------------------------------------------------------------------------------------- learning

Planes = tuple[np.ndarray, np.ndarray]


def hinge_planes(values: np.ndarray, case: int) -> Planes:
    """The Lovász hinge as a maximum of planes in the margins, offsets + slopes @ margins.

    Case 1 of an increasing loss: a base vertex and any set of violators. Case 2: a base vertex, and
    the plane 0.
    """
    vertices = base_vertices(values)
    if case == 1:
        subsets = all_masks(size_of(values))
        vertices = (vertices[:, None, :] * subsets).reshape(-1, size_of(values))
    weights = np.unique(np.vstack([vertices, np.zeros_like(vertices[:1])]), axis=0)
    return -weights, weights.sum(axis=1)


def rescaling_planes(values: np.ndarray, *, slack: bool) -> Planes:
    """Margin or slack rescaling as a maximum of planes in the margins, one for each set."""
    subsets = all_masks(size_of(values)).astype(float)
    return -2.0 * subsets * (values[:, None] if slack else 1.0), values


def least_objective(
    risks: Sequence[Planes], C: float, nonnegative: Sequence[int] | np.ndarray = ()
) -> float:
    """min 1/2 |w|^2 + C sum_i max_k (b_ik + <a_ik, w>) over w, some coordinates not negative.

    The quadratic program in w and the slacks by SLSQP. Then multipliers of its active planes, by
    non-negative least squares, bound every objective from below, and so prove the answer.
    """
    if not risks or risks[0][0].shape[1] == 0:
        return C * float(sum(offsets.max() for _, offsets in risks))
    nonnegative = list(nonnegative)
    slopes = np.concatenate([slopes for slopes, _ in risks])
    offsets = np.concatenate([offsets for _, offsets in risks])
    example = np.repeat(np.eye(len(risks)), [len(offsets) for _, offsets in risks], axis=0)
    d, n = slopes.shape[1], len(risks)

    def heights(w: np.ndarray) -> np.ndarray:
        """Of the highest plane of each example."""
        return np.array([(b + a @ w).max() for a, b in risks])

    answer = minimize(
        lambda x: 0.5 * x[:d] @ x[:d] + C * x[d:].sum(),
        np.append(np.zeros(d), heights(np.zeros(d))),
        jac=lambda x: np.append(x[:d], np.full(n, C)),
        method="SLSQP",
        bounds=[(0.0 if j in nonnegative else None, None) for j in range(d + n)],
        constraints={
            "type": "ineq",
            "fun": lambda x: example @ x[d:] - offsets - slopes @ x[:d],
            "jac": lambda x: np.hstack([-slopes, example]),
        },
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    w = answer.x[:d]
    w[nonnegative] = np.maximum(w[nonnegative], 0.0)
    value = 0.5 * w @ w + C * heights(w).sum()
    bound = max(_structural_bound(w, slopes, offsets, example, C, nonnegative))
    assert abs(value - bound) <= 1e-6 * max(1.0, value), (value, bound)
    return float(bound)


def _structural_bound(
    w: np.ndarray,
    slopes: np.ndarray,
    offsets: np.ndarray,
    example: np.ndarray,
    C: float,
    nonnegative: list[int],
) -> Iterator[float]:
    """Dual values near w = beta - C sum alpha a: what is active is a matter of rounding."""
    heights = offsets + slopes @ w
    highest = np.array([heights[of == 1].max() for of in example.T])
    for slack in (1e-4, 1e-6, 1e-8):
        active = heights >= example @ highest - slack
        stopped = [j for j in nonnegative if w[j] < slack]
        # alpha on a simplex for each example, beta not negative, and only at the bounds of w.
        push = np.hstack([-C * slopes[active].T, np.eye(len(w))[:, stopped]])
        total = np.hstack([example[active].T, np.zeros((len(highest), len(stopped)))])
        target = np.append(w, np.ones(len(highest)))
        fit = lsq_linear(np.vstack([push, total]), target, (0, np.inf), method="bvls", tol=1e-15)
        alpha = fit.x[: active.sum()]
        sums = alpha @ example[active]
        if sums.min() <= 0:  # an example without a plane in use: these multipliers bound nothing
            yield -np.inf
            continue
        alpha /= example[active] @ sums
        v = -C * alpha @ slopes[active]
        v[nonnegative] = np.maximum(v[nonnegative], 0.0)
        yield float(C * alpha @ offsets[active] - 0.5 * v @ v)


# ------------------------------------------------------------------------------- learning of fields


def field_planes(graph, truth, n_labels, node_weights) -> Planes:
    """The risk of one graph as planes in the weights w of a field, one for each labelling z.

    The slope of z is that of E(truth) - E(z), its offset the loss.

    ``graph`` is (node features, edges, edge features). D counts the weights of a field: d for the
    second of two labels, d for each of more, then k for the edges.
    """
    nodes, edges, pairs = (np.asarray(part) for part in graph)
    kinds = 1 if n_labels == 2 else n_labels

    def features(z):
        of_nodes = np.zeros((kinds, nodes.shape[1]))
        for x, label in zip(nodes, z, strict=True):
            if n_labels == 2:
                of_nodes[0] -= x * label
            else:
                of_nodes[label] -= x
        of_edges = np.zeros(pairs.shape[1])
        for (p, q), phi in zip(edges, pairs, strict=True):
            of_edges += phi * (z[p] != z[q])
        return np.concatenate([of_nodes.ravel(), of_edges])

    labellings = all_labellings(len(nodes), n_labels)
    loss = np.array([sum(np.asarray(node_weights)[z != np.asarray(truth)]) for z in labellings])
    return np.array([features(truth) - features(z) for z in labellings]), loss


# ------------------------------------------------------------------------------------------- fields


def all_labellings(n: int, n_labels: int) -> np.ndarray:
    """Every labelling of n variables as a row, (n_labels^n, n)."""
    return np.array(list(product(range(n_labels), repeat=n)), int).reshape(n_labels**n, n)


def field_energy(field: fields.Field, labels: Sequence[int]) -> float:
    """The definition: unaries plus potentials, one variable after the other."""
    total = sum(float(field.unary[i, label]) for i, label in enumerate(labels))
    return total + sum(
        potential_energy(potential, labels, field.n_labels) for potential in field.potentials
    )


def potential_energy(potential: fields.Potential, labels: Sequence[int], n_labels: int) -> float:
    """Each potential as its docstring defines it, from its public attributes."""
    x = [int(label) for label in labels]
    match potential:
        case fields.Potts():
            weighted = zip(potential.edges.tolist(), potential.weights.tolist(), strict=True)
            return sum(weight for (i, j), weight in weighted if x[i] != x[j])
        case fields.Pairwise():
            tables = np.broadcast_to(potential.tables, (len(potential.edges), n_labels, n_labels))
            edges = enumerate(potential.edges.tolist())
            return sum(float(tables[e, x[i], x[j]]) for e, (i, j) in edges)
        case fields.RegionConsistency():
            total = 0.0
            for weight, inside in _by_region(potential.weight, potential.regions, x):
                size, alpha = len(inside), potential.alpha
                power = sum(float(size - inside.count(j)) ** alpha for j in range(n_labels))
                total += weight * (power - (n_labels - 1) * size**alpha)
            return total
        case fields.RobustPn():
            return _robust(potential.regions, potential.weight, potential.truncation, x)
        case fields.LabelCost():
            if potential.labels is None:
                return sum(float(potential.costs[j]) for j in set(x))
            return float(potential.costs[0]) if set(x) & set(potential.labels.tolist()) else 0.0
        case fields.LabelTransition():
            return _transitions(potential.edges, potential.costs, potential.concave, x)
        case fields.CardinalityPotential():
            differ = sum(a != b for a, b in zip(x, potential.center.tolist(), strict=True))
            return float(potential.table[differ])
    raise TypeError(f"no definition of {type(potential).__name__}")


def term_energy(term: object, labels: Sequence[int]) -> float:
    """Each term as its docstring defines it."""
    x = [int(label) for label in labels]
    match term:
        case _terms.ConstantTerm():
            return term.value
        case _terms.UnaryTerm():
            return sum(float(term.unary[i, label]) for i, label in enumerate(x))
        case _terms.PottsTerm():
            weighted = zip(term.edges.tolist(), term.weights.tolist(), strict=True)
            return sum(weight for (i, j), weight in weighted if x[i] != x[j])
        case _terms.TableTerm():
            edges = enumerate(term.edges.tolist())
            return sum(float(term.tables[e, x[i], x[j]]) for e, (i, j) in edges)
        case _terms.CountTerm():
            total = 0.0
            for r in range(len(term.starts) - 1):
                heights = term.table[term.starts[r] : term.starts[r + 1]]
                inside = [label for label, of in zip(x, term.regions, strict=True) if of == r]
                assert len(heights) == len(inside) + 1
                # A label that no variable takes adds h(0): the number of labels must not matter.
                assert heights[0] == 0.0
                total += sum(float(heights[inside.count(j)]) for j in set(inside))
            return total
        case _terms.RobustTerm():
            return _robust(term.regions, term.weights, term.truncation, x)
        case _terms.LabelTerm():
            return term.cost if any(term.labels[label] for label in x) else 0.0
        case _terms.TransitionTerm():
            return _transitions(term.edges, term.costs, term.concave, x)
        case _terms.CardinalityTerm():
            differ = sum(a != b for a, b in zip(x, term.center.tolist(), strict=True))
            return float(term.table[differ])
    raise TypeError(f"no definition of {type(term).__name__}")


def lifted(term: object, n: int, n_labels: int) -> np.ndarray:
    """A submodular term as a function of all sets of pairs (variable, label), in bit order.

    Pair (i, j) is element i L + j. On the sets that hold one pair of each variable this must be the
    term's energy of that labelling.
    """
    sets = [mask.reshape(n, n_labels) for mask in all_masks(n * n_labels)]
    return np.array([_lifted_value(term, chosen) for chosen in sets])


def _lifted_value(term: object, chosen: np.ndarray) -> float:
    match term:
        case _terms.ConstantTerm():
            return term.value
        case _terms.UnaryTerm():
            return float(term.unary[chosen].sum())
        case _terms.PottsTerm():  # half a cut for each label
            first, second = chosen[term.edges[:, 0]], chosen[term.edges[:, 1]]
            return float(((first != second).sum(axis=1) * term.weights).sum() / 2)
        case _terms.CountTerm():
            total = 0.0
            for r in range(len(term.starts) - 1):
                heights = term.table[term.starts[r] : term.starts[r + 1]]
                total += float(heights[chosen[term.regions == r].sum(axis=0)].sum())
            return total
        case _terms.LabelTerm():
            return term.cost * float(chosen[:, term.labels].any())
        case _terms.CardinalityTerm():
            differ = chosen.sum() - chosen[np.arange(len(chosen)), term.center].sum()
            last = len(term.table) - 1
            beyond = max(int(differ) - last, 0)  # more than one pair of a variable: straight on
            slope = term.table[-1] - term.table[-2] if last else 0.0
            return float(term.table[min(int(differ), last)] + beyond * slope)
    raise TypeError(f"{type(term).__name__} claims nothing")


def _by_region(
    weights: np.ndarray, regions: np.ndarray, x: list[int]
) -> Iterator[tuple[float, list[int]]]:
    for r, weight in enumerate(weights.tolist()):
        yield weight, [label for label, of in zip(x, regions, strict=True) if of == r]


def _robust(
    regions: np.ndarray, weights: np.ndarray, truncation: np.ndarray, x: list[int]
) -> float:
    total = 0.0
    for (weight, inside), limit in zip(_by_region(weights, regions, x), truncation, strict=True):
        outside = min(len(inside) - inside.count(j) for j in set(inside))
        total += weight * min(1.0, outside / float(limit))
    return total


def _transitions(
    edges: np.ndarray,
    costs: np.ndarray,
    concave: Callable[[np.ndarray], np.ndarray] | None,
    x: list[int],
) -> float:
    total = 0.0
    for a, b in combinations(range(len(costs)), 2):
        met = sum({x[i], x[j]} == {a, b} for i, j in edges.tolist())
        height = min(1, met) if concave is None else float(concave(np.array([float(met)]))[0])
        total += float(costs[a, b]) * height
    return total


# ----------------------------------------------------------------------------------------- messages


def least_energy(field: fields.Field) -> float:
    """The minimum over all labellings."""
    labellings = all_labellings(field.n_variables, field.n_labels)
    return min(field_energy(field, labels) for labels in labellings)


def count_min_marginals(table: np.ndarray, costs: np.ndarray) -> tuple[float, np.ndarray]:
    """min over b of table[|b|] + <costs, b>, and min with b_i = 1 minus min with b_i = 0: O(n^2).

    With one element in or out, the best of every size takes the cheapest others.
    """
    rises = []
    for i, cost in enumerate(costs):
        others = np.append(0.0, np.cumsum(np.sort(np.delete(costs, i))))
        rises.append((table[1:] + others).min() + cost - (table[:-1] + others).min())
    best = (table + np.append(0.0, np.cumsum(np.sort(costs)))).min()
    return float(best), np.array(rises)


def enumerated_min_marginals(table: np.ndarray, costs: np.ndarray) -> tuple[float, np.ndarray]:
    """The same by trying all b."""
    masks = all_masks(len(costs))
    energies = table[masks.sum(axis=1)] + masks @ costs
    rises = [energies[mask].min() - energies[~mask].min() for mask in masks.T]
    return float(energies.min()), np.array(rises)


def pairwise_relaxation(field: fields.Field) -> float:
    """The linear programming bound of unaries and pairwise terms (the local polytope)."""
    n, n_labels = field.n_variables, field.n_labels
    tables = []
    constant, cost = 0.0, list(field.unary.ravel())
    for _, term in field._terms():
        if isinstance(term, _terms.ConstantTerm):
            constant += term.value
        elif isinstance(term, _terms.UnaryTerm):
            cost = list(np.array(cost) + term.unary.ravel())
        elif isinstance(term, _terms.PottsTerm):
            tables += [
                (i, j, weight * (1.0 - np.eye(n_labels)))
                for (i, j), weight in zip(term.edges, term.weights, strict=True)
            ]
        else:
            assert isinstance(term, _terms.TableTerm)
            tables += [(i, j, t) for (i, j), t in zip(term.edges, term.tables, strict=True)]
    square = n_labels**2
    width = n * n_labels + len(tables) * square
    rows, sides = [], []
    for i in range(n):
        row = np.zeros(width)
        row[i * n_labels : (i + 1) * n_labels] = 1.0
        rows.append(row)
        sides.append(1.0)
    for e, (i, j, table) in enumerate(tables):
        cost += list(table.ravel())
        pair = n * n_labels + e * square + np.arange(square).reshape(n_labels, n_labels)
        for end, across in ((i, pair), (j, pair.T)):
            for x in range(n_labels):
                row = np.zeros(width)
                row[across[x]] = 1.0
                row[end * n_labels + x] = -1.0
                rows.append(row)
                sides.append(0.0)
    answer = linprog(cost, A_eq=np.array(rows), b_eq=sides, bounds=(0, None), method="highs")
    assert answer.status == 0
    return float(answer.fun) + constant


# ------------------------------------------------------------------------------------------- flows


def smallest_cut(n, edges, capacities, reverse, source, sink):
    """The least cost over all 2^n sets on the source side: what a largest flow must equal."""
    best = np.inf
    for bits in range(1 << n):
        a = np.array([bool(bits >> v & 1) for v in range(n)], bool)
        cost = source[~a].sum() + sink[a].sum()
        for (i, j), there, back in zip(edges, capacities, reverse, strict=True):
            cost += there * (a[i] and not a[j]) + back * (a[j] and not a[i])
        best = min(best, cost)
    return best


# ---------------------------------------------------------------------------------------- marginals


def log_weights(field: fields.Field, temperature: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Every labelling, and -E / t of each."""
    labellings = all_labellings(field.n_variables, field.n_labels)
    energies = np.array([field_energy(field, x) for x in labellings])
    return labellings, -energies / temperature


def log_partition(field: fields.Field, temperature: float = 1.0) -> float:
    """log sum_x exp(-E(x) / t)."""
    return float(np.logaddexp.reduce(log_weights(field, temperature)[1]))


def exact_marginals(field: fields.Field, temperature: float = 1.0) -> np.ndarray:
    """(N, L), by the definition."""
    labellings, logs = log_weights(field, temperature)
    probabilities = np.exp(logs - np.logaddexp.reduce(logs))
    one_hot = labellings[:, :, None] == np.arange(field.n_labels)
    return np.einsum("m,mij->ij", probabilities, one_hot.astype(float))


def log_factorised(q: np.ndarray, labellings: np.ndarray) -> np.ndarray:
    """log Q(x) of each labelling."""
    with np.errstate(divide="ignore"):
        logs = np.log(q)
    return np.array([sum(logs[i, x] for i, x in enumerate(row)) for row in labellings], float)


def factorised_bound(field: fields.Field, q: np.ndarray, temperature: float = 1.0) -> float:
    """H(Q) - E_Q[E] / t, a sum over all labellings."""
    labellings, logs = log_weights(field, temperature)
    own = log_factorised(q, labellings)
    met = np.isfinite(own)
    return float((np.exp(own[met]) * (logs[met] - own[met])).sum())


# ------------------------------------------------------------------------------------ weak learners


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


# ----------------------------------------------------------------------------------------- boosting


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


# ------------------------------------------------------------------------------------- diverse sets


def best_step(field: fields.Field, diversity: object, earlier: np.ndarray) -> float:
    """The least E(y) - d(y | S) over all labellings y."""
    every = all_labellings(*field.unary.shape)
    energies = field.energy(every)
    gains = np.array([diversity._gain(y, earlier, field.n_labels) for y in every])
    return float((energies - gains).min())


def best_list(field: fields.Field, diversity: object, m: int, shift: float) -> float:
    """The largest sum of (shift - E) plus d over all lists of at most m items, repeats allowed."""
    every = all_labellings(*field.unary.shape)
    every = every[np.isfinite(field.energy(every))]
    energies = field.energy(every)
    best = 0.0
    for size in range(1, m + 1):
        for items in combinations_with_replacement(range(len(every)), size):
            chosen = list(items)
            value = diversity._value(every[chosen], field.n_labels)
            best = max(best, size * shift - float(energies[chosen].sum()) + value)
    return best
