"""`setwise flow`: maximum flows of files in the DIMACS format."""

from __future__ import annotations

import click
import numpy as np

import setwise as sw
from setwise._commands._output import (
    check_stdout,
    example,
    json_option,
    print_json,
    print_note,
    quiet_option,
    read_bytes,
    write_text,
)


@click.command(epilog=example("setwise flow bunny.max -o bunny.flow"))
@click.argument("file", metavar="FILE.max")
@click.option("-o", "--output", metavar="FILE", help="Where to; stdout by default.")
@json_option
@quiet_option
def flow(file: str, output: str | None, as_json: bool, quiet: bool) -> None:
    """Find a maximum flow of a graph, and a minimum cut.

    FILE.max is a problem in the DIMACS format, possibly compressed by gzip, or - for stdin. The
    answer has the same format: a line "s VALUE", and a line "f FROM TO FLOW" for each arc with a
    flow.
    """
    check_stdout(as_json, output)
    # imported here, so that other commands start faster
    from setwise.inference._flows._dimacs import read_dimacs

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
    print_note(f"flow {found.value}: {proved}", quiet)
