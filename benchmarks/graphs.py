"""Best labels of 60 superpixel graphs, as a learner of fields needs them in each round.

One call of compiled code for all graphs is compared with ``solve_map`` on each, by processor time:
labels alone, from those of the previous round, and labels with a proof. Then one thread is compared
with two, by wall time and by the processor time of the busier thread, which other programs on the
machine do not change. Target: two threads at least 1.6 times as fast.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

import setwise as sw
from setwise.estimators._fields._graphs import Graphs, read_graphs
from setwise.estimators._fields._potts_maps import BatchMaps

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.fields import superpixels
from benchmarks.shared.measure import (
    alternate,
    arguments,
    as_ratio,
    as_seconds,
    ratio,
    report,
    require_close,
    verdict,
)

GRAPHS, ROUNDS = 60, 8
TARGET = 1.6
Round = tuple[np.ndarray, np.ndarray]


def problem(n_labels: int, count: int) -> tuple[Graphs, list[Round]]:
    """Return graphs of 200 to 400 nodes, and the unaries and weights of a few rounds."""
    rng = np.random.default_rng(0)
    sizes = rng.choice(np.arange(200, 401), count, replace=False)
    fields = [superpixels(int(n), n_labels, 1.0) for n in sizes]
    potts = [field.potentials[0] for field in fields]
    graphs = read_graphs(
        [
            (np.zeros((field.n_variables, 1)), part.edges, part.weights[:, None])
            for field, part in zip(fields, potts, strict=True)
        ]
    )
    unary = np.concatenate([field.unary for field in fields])
    weights = np.concatenate([part.weights for part in potts])
    rounds = []
    for _ in range(ROUNDS):
        noise = 0.2 * rng.normal(size=unary.shape)
        rounds.append((unary + noise, weights * rng.uniform(0.8, 1.2)))
    return graphs, rounds


def one_by_one(graphs: Graphs, rounds: list[Round], *, prove: bool) -> np.ndarray:
    """Return the energies of the last round, with a field and a call for each graph and round."""
    labels, values = None, np.empty(len(graphs))
    for unary, weights in rounds:
        found = []
        for i, ((first, last), (begin, end)) in enumerate(
            zip(pairwise(graphs.node_starts), pairwise(graphs.edge_starts), strict=True)
        ):
            potts = sw.fields.Potts(graphs.edges[begin:end] - first, weights[begin:end])
            field = sw.fields.Field(unary[first:last]) + potts
            start = None if labels is None else labels[first:last]
            method = "cut" if unary.shape[1] == 2 else "expansion"
            tol = 1e-9 if prove else np.inf
            best = sw.solve_map(
                field, method, tol=tol, init=None if method == "cut" else start, n_jobs=1
            )
            found.append(best.labels)
            values[i] = best.value
        labels = np.concatenate(found)
    return values


def at_once(graphs: Graphs, rounds: list[Round], n_jobs: int, *, prove: bool) -> np.ndarray:
    """Return the same energies with one call per round."""
    n_labels = rounds[0][0].shape[1]
    maps = BatchMaps(graphs, n_labels, n_jobs)
    for unary, weights in rounds:
        labels = maps.prove(unary, weights).labels if prove else maps(unary, weights)
    unary, weights = rounds[-1]
    first, second = graphs.edges.T
    cut = (labels[first] != labels[second]) * weights
    return graphs.sums(unary[np.arange(len(unary)), labels], cut)


def longest_thread(call: Callable[[], object], repeats: int) -> np.ndarray:
    """Return the processor seconds of the busier of two threads, one of which is this one."""
    seconds = []
    for _ in range(repeats):
        whole, own = time.process_time(), time.thread_time()
        call()
        whole, own = time.process_time() - whole, time.thread_time() - own
        seconds.append(max(own, whole - own))
    return np.array(seconds)


def main() -> None:
    args = arguments(__doc__)
    count, repeats = (10, 2) if args.quick else (GRAPHS, 5)
    table = [
        [
            "labels",
            "asked for",
            "one call a round",
            "graph by graph / one call",
            "one thread / two, by the clock",
            "one thread / the busier of two",
        ]
    ]
    data, notes = [], []
    for n_labels, prove in ((2, False), (7, False), (7, True)):
        graphs, rounds = problem(n_labels, count)

        def batch(n_jobs: int, graphs=graphs, rounds=rounds, prove=prove) -> np.ndarray:
            return at_once(graphs, rounds, n_jobs, prove=prove)

        def loop(graphs=graphs, rounds=rounds, prove=prove) -> np.ndarray:
            return one_by_one(graphs, rounds, prove=prove)

        what = "labels and a proof" if prove else "labels"
        # The two methods of proof may return different labels where the optimum is not proved.
        require_close(f"{what} of {n_labels}", batch(1), loop(), 1e-3 if prove else 1e-12)
        if (batch(1) != batch(2)).any():
            sys.exit("the answers depend on the threads")
        contenders = {"batch": lambda b=batch: b(1), "loop": loop}
        work = alternate(contenders, repeats=repeats, clock=time.process_time)
        clock = alternate(
            {"one": lambda b=batch: b(1), "two": lambda b=batch: b(2)}, repeats=2 * repeats
        )
        busier = longest_thread(lambda b=batch: b(2), repeats)
        seconds = float(np.median(work["batch"])) / ROUNDS
        against = ratio(work["loop"], work["batch"])
        by_clock = ratio(clock["one"], clock["two"])
        threads = ratio(work["batch"], busier)
        row = [as_seconds(seconds), as_ratio(against), as_ratio(by_clock), as_ratio(threads)]
        table.append([str(n_labels), what, *row])
        data.append(
            {
                "labels": n_labels,
                "proof": prove,
                "seconds": seconds,
                "loop": against,
                "clock": by_clock,
                "threads": threads,
            }
        )
        notes.append(f"{n_labels} labels, {what}: {verdict(threads['median'], TARGET)}")
    notes.append("Processor time, but for the column by the clock, which other programs change.")
    if args.quick:
        notes.append(f"{count} graphs only: a quick look.")
    report("graphs", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
