"""The first large cut of a process against the next ones: processor time and page faults.

Each call cuts a volume of 128^3 voxels in a new process: solve_map (blocks), solve_map with
FlowGraph.grid's one flow over the whole, and the plain touch of as much fresh memory. User time is
the work of the kernel; system time is that of page faults, which the machine resolves by zeroing
pages. A first call that takes longer in user time has a cause of its own; one that takes longer in
system time waits for memory. Target: the user time of the first call within 1.2 of the next ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, nothing_to_measure, report

CALLS = 4
PROGRAM = """
import sys; sys.path.insert(0, {here!r})
import json, resource, time
import numpy as np, setwise as sw
import benchmarks.shared.measure
side, what = {side}, {what!r}
rng = np.random.default_rng(0)
edges = sw.fields.grid_edges((side,) * 3)
weights, unary = rng.random(len(edges)), 2.0 * rng.normal(size=(side ** 3, 2))
row = [[i, i + 1] for i in range(63)]
sw.solve_map(sw.fields.Field(np.zeros((64, 2))) + sw.fields.Potts(row, 0.5))  # imports
def used():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([r.ru_utime, r.ru_stime, r.ru_minflt])
def call():
    if what == "solve_map":
        sw.solve_map(sw.fields.Field(unary) + sw.fields.Potts(edges, weights), n_jobs=1)
    elif what == "FlowGraph":
        graph = sw.inference.FlowGraph(len(unary), edges, weights, weights, dtype=np.float64)
        graph.set_terminals(unary[:, 0] - unary.min(), unary[:, 1] - unary.min())
        graph.solve()
    else:
        np.ones(30_000_000 * side ** 3 // 128 ** 3)
rows = []
for _ in range({calls}):
    before = used()
    call()
    rows.append((used() - before).tolist())
print(json.dumps(rows))
"""


def measured(side: int, what: str) -> list[list[float]]:
    """Return user seconds, system seconds and page faults of each call in a new process."""
    here = str(Path(__file__).resolve().parents[1])
    program = PROGRAM.format(here=here, side=side, what=what, calls=CALLS)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    if sys.platform != "linux":
        nothing_to_measure("page faults are counted on Linux only")
    table = [["call", "", "user, s", "system, s", "page faults"]]
    data, notes = [], []
    for what in ("solve_map", "FlowGraph", "240 MB of fresh memory"):
        rows = measured(32 if args.quick else 128, what)
        for k, (user, system, faults) in enumerate(rows):
            number = "first" if k == 0 else f"{k + 1}."
            table.append([what, number, f"{user:.2f}", f"{system:.2f}", f"{faults:.0f}"])
        data.append({"what": what, "calls": rows})
        if what.startswith("240"):
            continue
        later = sorted(row[0] for row in rows[1:])[len(rows[1:]) // 2]
        share = rows[0][0] / max(later, 1e-9)
        notes.append(
            f"{what}, user time of the first call over the next: {share:.2g}, target 1.2: "
            f"{'met' if share <= 1.2 else 'NOT met'}"
        )
    report("first_call", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
