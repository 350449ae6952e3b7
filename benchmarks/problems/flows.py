"""Maximum flows: pictures, superpixels, graphs, changes, batches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems import Problem
from benchmarks.shared.flows import Graph, Picture, noisy_picture, superpixels
from setwise import inference
from setwise.inference import FlowGraph, maxflow, maxflow_batch


def of_picture(p: Picture) -> FlowGraph:
    graph = FlowGraph.grid(p.source.shape, p.weights)
    graph.set_terminals(p.source, p.sink)
    return graph


def of_graph(p: Graph) -> FlowGraph:
    graph = FlowGraph(len(p.source), p.edges, p.capacities, p.reverse)
    graph.set_terminals(p.source, p.sink)
    return graph


def solved(graph: FlowGraph) -> Any:
    return [graph.solve(), graph.value, graph.bound, graph.mask, graph.flows, graph.residuals]


def random_graph(n: int, seed: int, whole: bool) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, 5 * n)
    edges = np.stack([first, (first + rng.integers(1, n, 5 * n)) % n], axis=1)
    there, back = rng.uniform(0.0, 10.0, (2, 5 * n))
    source, sink = rng.uniform(0.0, 10.0, (2, n)) * (rng.random((2, n)) < 0.2)
    numbers = [x.astype(np.int64) if whole else x for x in (there, back, source, sink)]
    return dict(zip(("capacities", "reverse", "source", "sink"), numbers, strict=True)) | {
        "edges": edges,
        "n": n,
    }


def changes(graph: FlowGraph, picture: Picture, times: int) -> Any:
    """Return solutions after changes of 1 % of the unaries, and of some capacities."""
    rng = np.random.default_rng(1)
    graph = graph.copy()
    source, sink = picture.source.ravel(), picture.sink.ravel()
    found = [graph.solve()]
    for _ in range(times):
        nodes = rng.choice(source.size, max(1, source.size // 100), replace=False)
        graph.set_terminals(source[rng.permutation(nodes)], sink[nodes], nodes=nodes)
        found.append(graph.solve())
        edges = rng.choice(len(graph.edges), 10, replace=False)
        graph.set_capacities(edges, rng.uniform(0.0, 1.0, 10), rng.uniform(0.0, 1.0, 10))
        found.append(graph.solve())
    return [np.array(found), graph.mask]


def wide() -> Iterator[Problem]:
    for seed in range(3):
        picture = noisy_picture((20, 30), seed=seed)
        for kind, p in (("float", picture), ("int", picture.as_integers())):
            yield f"picture {kind} {seed}", lambda p=p: solved(of_picture(p))
        yield f"changes {seed}", partial(changes, of_picture(picture), picture, 5)
        for whole in (False, True):
            for n in (2, 30, 400):
                arguments = random_graph(n, seed, whole)
                yield f"graph {n} {whole} {seed}", partial(maxflow, **arguments)
    volume = np.random.default_rng(0).uniform(0.0, 1.0, (3, 5, 6, 7))
    yield "volume", lambda: solved(terminals(FlowGraph.grid((5, 6, 7), volume), 210))
    offsets = [[0, 1], [1, 0], [1, 1], [-1, 1]]
    plane = np.random.default_rng(0).uniform(0.0, 1.0, (4, 8, 9))
    yield (
        "eight neighbours",
        lambda: solved(terminals(FlowGraph.grid((8, 9), plane, plane[::-1], offsets=offsets), 72)),
    )
    yield "edits", edits
    small = superpixels((20, 30), (5, 9))
    yield "superpixels", lambda: solved(of_graph(small))
    pictures = [noisy_picture((20, 20), seed=seed) for seed in range(4)]
    yield "batch", lambda: maxflow_batch([of_picture(p) for p in pictures], n_jobs=1)


def edits() -> Any:
    """Return the labels after each of a few changes of a cut, and its certificate."""
    rng = np.random.default_rng(0)
    cut = inference.EditableCut(rng.normal(size=(300, 20)), 0.7, n_jobs=1)
    answers = []
    for row in range(20, 300, 40):
        cut.add_seeds([[row, 5], [row + 1, 6]], row // 20 % 2)
        cut.change_unary(np.s_[row : row + 9, 5:9], rng.normal(size=(9, 4)))
        answers.append(cut.labels.copy())
    proof = cut.certificate()
    return [*answers, proof.value, proof.bound]


def terminals(graph: FlowGraph, n: int) -> FlowGraph:
    source, sink = np.random.default_rng(1).uniform(0.0, 1.0, (2, n))
    graph.set_terminals(source, sink)
    return graph


def timed() -> Iterator[Problem]:
    for name, setting in (("noisy", {}), ("smooth", {"smoothing": 4.0, "noise": 2.0})):
        picture = noisy_picture((700, 700), **setting)
        yield f"max_flow {name} float", lambda p=picture: of_picture(p).solve()
        whole = picture.as_integers()
        yield f"max_flow {name} int", lambda p=whole: of_picture(p).solve()
        graph = of_picture(picture)
        graph.solve()
        yield f"max_flow {name} changes", partial(changes, graph, picture, 10)
    regions = superpixels()
    yield "max_flow superpixels", lambda: of_graph(regions).solve()
    arguments = random_graph(60_000, 0, False)
    yield "maxflow of a graph", lambda: maxflow(**arguments).value
    pictures = [noisy_picture((100, 100), seed=seed) for seed in range(30)]
    yield "maxflow_batch", lambda: maxflow_batch([of_picture(p) for p in pictures], n_jobs=1)
