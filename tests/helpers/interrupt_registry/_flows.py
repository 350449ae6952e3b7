"""Long calls on graphs with capacities."""

from __future__ import annotations

import numpy as np

from interrupt_registry._calls import Call, long
from setwise import fields, inference


def flow_graph(size: int) -> inference.FlowGraph:
    rng, shape = np.random.default_rng(0), (100 * size, 100 * size)
    graph = inference.FlowGraph.grid(shape, 4.0 * rng.random(shape))
    set_pull(graph, rng.normal(0.0, 2.0, shape).ravel())
    return graph


def set_pull(graph: inference.FlowGraph, pull: np.ndarray) -> None:
    graph.set_terminals(np.maximum(pull, 0.0), np.maximum(-pull, 0.0))


@long("inference.FlowGraph.solve")
def solve_flow(size: int) -> Call:
    graph = flow_graph(size)
    pull = np.random.default_rng(0).normal(0.0, 2.0, graph.n)

    def call() -> object:
        set_pull(graph, pull)
        graph.solve()
        return graph.value, graph.mask

    return call


@long("inference.FlowGraph.solve", "again")
def solve_flow_again(size: int) -> Call:
    graph = flow_graph(size)
    rng = np.random.default_rng(1)
    pulls = rng.normal(0.0, 2.0, (2, graph.n))

    def call() -> object:
        for pull in pulls:
            set_pull(graph, pull)
            graph.solve()
        return graph.value, graph.mask

    return call


@long("inference.FlowGraph.solve", "in blocks")
def solve_flow_in_blocks(size: int) -> Call:
    graph = flow_graph(size)

    def call() -> object:
        fresh = graph.copy()
        fresh._graph.solve(threads=2, small_blocks=True)
        return fresh.value, fresh.mask

    return call


def editable_cut(size: int) -> inference.EditableCut:
    rng, side = np.random.default_rng(0), 100 * size
    return inference.EditableCut(rng.normal(0.0, 2.0, (side, side)), 1.5)


@long("inference.EditableCut.replace")
def solve_editable_cut(size: int) -> Call:
    cut = editable_cut(size)

    def call() -> object:
        cut.replace()
        return cut.labels.copy()

    return call


@long("inference.EditableCut.add_seeds")
def stroke(size: int) -> Call:
    cut = editable_cut(size)
    mask = np.zeros(cut.shape, np.bool_)
    mask[20:80, 40:60] = True

    def call() -> object:
        for label in (0, 1):
            cut.add_seeds(mask, label)
        return cut.labels.copy()

    return call


@long("inference.EditableCut.change_unary")
def change_unary(size: int) -> Call:
    cut = editable_cut(size)
    delta = np.random.default_rng(1).normal(0.0, 4.0, (60, 60))

    def call() -> object:
        cut.change_unary(np.s_[20:80, 20:80], delta)
        cut.undo()
        return cut.change_unary(np.s_[20:80, 20:80], -delta).proved

    return call


@long("inference.EditableCut.repair")
def repair(size: int) -> Call:
    cut = editable_cut(size)

    def call() -> object:
        cut._begins_proved = False
        cut.repair()
        return cut.labels.copy()

    return call


@long("inference.maxflow")
def maxflow(size: int) -> Call:
    rng, side = np.random.default_rng(0), 60 * size
    edges = fields.grid_edges((side, side))
    capacities = rng.integers(1, 99, (2, len(edges)))
    return lambda: inference.maxflow(edges, *capacities, source=0, sink=side * side - 1)


@long("inference.maxflow_batch")
def maxflow_batch(size: int) -> Call:
    graphs = [flow_graph(size) for _ in range(3)]
    return lambda: inference.maxflow_batch([graph.copy() for graph in graphs], n_jobs=2)
