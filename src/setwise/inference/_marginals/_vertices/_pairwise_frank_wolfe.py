"""Pairwise Frank-Wolfe: weight moves from the worst of the vertices met to the best of all."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray
from setwise.fields._field import Field
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._marginals._vertices._frank_wolfe import Vertices
from setwise.inference._marginals._vertices._line_search import least_along


class ActiveSet:
    """s as a convex combination of vertices of the base polytope."""

    def __init__(self, vertex: FloatArray) -> None:
        self.points: list[FloatArray] = [vertex.copy()]
        self.weights: list[float] = [1.0]

    def worst(self, p: FloatArray) -> int:
        """The vertex in the set with the least <p, v>."""
        return int(np.argmin([np.vdot(p, point) for point in self.points]))

    def move(self, worst: int, vertex: FloatArray, step: float) -> None:
        """Shift weight from a vertex of the set to another, which may be new."""
        for k, point in enumerate(self.points):
            if np.array_equal(point, vertex):
                self.weights[k] += step
                break
        else:
            self.points.append(vertex.copy())
            self.weights.append(step)
        self.weights[worst] -= step
        if self.weights[worst] <= 0.0:
            del self.points[worst], self.weights[worst]


def pairwise_frank_wolfe(field: Field, options: Options) -> Solution:
    """Move along x - v: x the greedy vertex, v the worst vertex of those that make up s.

    The step is the best one that v's weight allows. It converges linearly, to any precision on
    small fields, and needs nothing but greedy vertices; but it keeps the vertices, N L numbers
    each, some hundreds of them: for large fields ``projection`` is the method.
    """
    vertices = Vertices(field, options)
    vertices.look()
    active = ActiveSet(vertices.vertex)
    vertices.kernel.set_scores(vertices.vertex)
    vertices.history.clear()
    vertices.look()

    def move(_: int) -> bool:
        worst = active.worst(vertices.p)
        direction = vertices.vertex - active.points[worst]
        step = least_along(vertices, direction, active.weights[worst])
        if step == 0.0:  # the direction descends by less than rounding
            return False
        vertices.shift(direction, step)
        active.move(worst, vertices.vertex, step)
        return True

    return vertices.descend(move, 20_000, options)
