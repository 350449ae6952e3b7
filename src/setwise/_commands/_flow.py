"""`setwise flow`: largest flows of files of the DIMACS challenge."""

from __future__ import annotations

import gzip
from typing import NamedTuple

import click
import numpy as np

import setwise as sw
from setwise._commands._output import (
    example,
    json_option,
    print_json,
    quiet_option,
    read_bytes,
    say,
    write_text,
)
from setwise._foundation._arguments import FloatArray, IntArray


class Problem(NamedTuple):
    """A graph with a source and a sink, nodes numbered from 0."""

    n: int
    edges: IntArray
    capacities: IntArray | FloatArray
    source: int
    sink: int


@click.command(epilog=example("setwise flow bunny.max -o bunny.flow"))
@click.argument("file", metavar="FILE.max")
@click.option("-o", "--output", metavar="FILE", help="Where to; stdout by default.")
@json_option
@quiet_option
def flow(file: str, output: str | None, as_json: bool, quiet: bool) -> None:
    """A largest flow of a graph, and a smallest cut.

    FILE.max is a problem of the DIMACS challenge, packed by gzip or not, or - for stdin. The answer
    is theirs too: a line "s VALUE", and a line "f FROM TO FLOW" for each arc that carries some.
    """
    problem = read_dimacs(read_bytes(file), file)
    found = sw.inference.maxflow(
        problem.edges, problem.capacities, n=problem.n, source=problem.source, sink=problem.sink
    )
    carried = np.flatnonzero(found.flows)
    if as_json:
        print_json(
            {
                "value": found.value,
                "bound": found.bound,
                "exact": found.exact,
                "source_side": 1 + np.flatnonzero(found.mask),
                "nodes": problem.n,
                "arcs": len(problem.edges),
            }
        )
    if output is not None or not as_json:
        lines = [f"s {found.value}"]
        ends = (problem.edges[carried] + 1).tolist()
        lines += [
            f"f {tail} {head} {amount}"
            for (tail, head), amount in zip(ends, found.flows[carried].tolist(), strict=True)
        ]
        write_text("\n".join(lines) + "\n", output)
    proved = "no flow is larger" if found.exact else f"none is above {found.bound:.10g}"
    say(f"flow {found.value}: {proved}", quiet)


def read_dimacs(data: bytes, name: str) -> Problem:
    """The problem in a file: lines "p max NODES ARCS", "n ID s", "n ID t", "a FROM TO CAPACITY"."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    size: tuple[int, int] | None = None
    ends: dict[str, int] = {}
    rows: list[bytes] = []
    for number, line in enumerate(data.splitlines(), start=1):
        kind, _, rest = line.strip().partition(b" ")
        words = rest.split()
        try:
            if kind == b"a":
                rows.append(rest)
            elif kind == b"p":
                if words[0] != b"max":
                    raise ValueError("it must be 'p max NODES ARCS'")
                size = int(words[1]), int(words[2])
            elif kind == b"n":
                ends[words[1].decode()] = int(words[0]) - 1
            elif kind not in (b"c", b""):
                raise ValueError("it must begin with c, p, n or a")
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"{name}: line {number} is not one of a flow problem: {error}"
            ) from None
    if size is None or set(ends) != {"s", "t"}:
        raise ValueError(f"{name} must have a line 'p max NODES ARCS' and lines 'n ID s', 'n ID t'")
    if len(rows) != size[1]:
        raise ValueError(f"{name} must have the {size[1]} arcs that it promises, got {len(rows)}")
    edges, capacities = _arcs(rows, name)
    outside = edges.size and (edges.min() < 0 or edges.max() >= size[0])
    if outside or not all(0 <= node < size[0] for node in ends.values()):
        raise ValueError(f"{name} must name nodes from 1 to {size[0]} only")
    # A loop carries nothing, and the solver takes none.
    kept = edges[:, 0] != edges[:, 1]
    return Problem(size[0], edges[kept], capacities[kept], ends["s"], ends["t"])


def _arcs(rows: list[bytes], name: str) -> tuple[IntArray, IntArray | FloatArray]:
    try:
        numbers = np.array(b" ".join(rows).split(), np.bytes_).astype(np.float64).reshape(-1, 3)
    except ValueError:
        raise ValueError(
            f"{name} must have arcs 'a FROM TO CAPACITY', three numbers each"
        ) from None
    edges = numbers[:, :2].astype(np.int64) - 1
    whole = numbers[:, 2].astype(np.int64)
    exact = np.array_equal(whole, numbers[:, 2]) and numbers[:, 2].max(initial=0) < 2**53
    return edges, whole if exact else numbers[:, 2]
