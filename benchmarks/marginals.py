"""The seconds that marginals of an image take, compared with Frank-Wolfe on the same field.

The field has the size of a photograph (320 x 213 pixels, 21 labels), Potts terms and three layers
of regions, as in the paper on log-supermodular marginals; another has two labels, where cuts find
the same bound exactly. Trees lower another bound, which keeps the pairs; the growth is measured for
projection. Times are CPU seconds of one thread until the relative duality gap is reached, without
the lower bound on log Z. Targets: 1e-3 within 2 seconds and 1e-4 within 5 on two threads, by trees
1e-3 within 3; Frank-Wolfe takes 20 times as long to the same upper bound; two labels exactly within
half a second; time linear in pixels, labels and layers; memory at most 1.5 times the state. The
script also measures the width of the interval around log Z after the whole call, and the width that
trees reach in projection's time. ``--part`` measures one part, and takes the others from the
existing results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.fields import image
from benchmarks.shared.measure import RESULTS, report

GAPS = (1e-2, 1e-3, 1e-4)


def seconds_to_gaps(field, method, limit, enough=-np.inf):
    """Return (seconds, passes) at each gap, or None, and seconds and upper bound after each pass.

    The search ends at a bound that is ``enough``.
    """
    start = process_time()
    reached, path = {}, []

    def look(now):
        path.append((process_time() - start, now.value))
        for gap in GAPS:
            if now.relative_gap <= gap:
                reached.setdefault(gap, (process_time() - start, now.n_iter))
        is_late = process_time() - start > limit
        return is_late or now.relative_gap <= GAPS[-1] or now.value <= enough

    sw.marginals(field, method, tol=0.0, n_jobs=1, callback=look)
    return [reached.get(gap) for gap in GAPS], path


def seconds_of_trees(field):
    """Return (seconds, passes) to each gap, with one search for each.

    A search computes its gap only when a check is due.
    """
    reached = []
    for gap in GAPS:
        start = process_time()
        ends = []
        post = sw.marginals(
            field,
            "trees",
            tol=gap,
            n_jobs=1,
            callback=lambda now, ends=ends: ends.append(process_time()),
        )
        reached.append((ends[-1] - start, post.n_iter))
    return reached


def first_below(path, value):
    return next((seconds for seconds, bound in path if bound <= value), None)


def two_threads(field, gap, method):
    """Return the wall seconds of the whole call on two threads, the best of three."""
    times = []
    for _ in range(3):
        start = perf_counter()
        sw.marginals(field, method, tol=gap, n_jobs=2)
        times.append(perf_counter() - start)
    return min(times)


def widths(field):
    """Return (seconds, nats per variable) of both calls, and of trees in projection's time."""

    def call(method, passes=None):
        start = process_time()
        post = sw.marginals(field, method, tol=1e-3, n_jobs=1, max_iter=passes)
        return process_time() - start, post.width / field.n_variables

    call("projection", 1)  # what the first call on a field caches is not counted
    flat, trees = call("projection"), call("trees")
    short = call("trees", 1)
    for passes in (2, 3, 4, 6, 8, 12, 16):
        more = call("trees", passes)
        if more[0] > flat[0]:
            break
        short = more
    return flat, trees, short


def pass_seconds(field, passes=6):
    start = process_time()
    sw.marginals(field, "projection", tol=0.0, max_iter=passes, n_jobs=1)
    return (process_time() - start) / passes


def growth(quick):
    rng = np.random.default_rng(0)
    sides = (50, 100) if quick else (100, 178, 316, 562, 1000)
    labels = (2, 5) if quick else (2, 5, 10, 20, 50, 100)
    return {
        "pixels": [(s * s, pass_seconds(image(s, s, 5, (300,), rng))) for s in sides],
        "labels": [(k, pass_seconds(image(100, 100, k, (300,), rng))) for k in labels],
        "layers": [(k, pass_seconds(image(150, 150, 10, (300,) * k, rng))) for k in range(5)],
    }


def plot(grown):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axis, (name, rows) in zip(axes, grown.items(), strict=True):
        size, seconds = np.array(rows).T
        draw = axis.plot if name == "layers" else axis.loglog
        draw(size, seconds, "o-", label="a pass")
        if name != "layers":
            axis.loglog(size, seconds[-1] * size / size[-1], ":", color="0.4", label="linear")
        else:
            axis.set_ylim(0)
        axis.set(xlabel=name, ylabel="seconds, one thread")
        axis.legend()
    figure.savefig(RESULTS / "marginals_growth.png", dpi=150, metadata={"Software": None})


MEMORY = """
import sys; sys.path.insert(0, {here!r})
import numpy as np, gc
import benchmarks.shared.measure
from benchmarks.shared.fields import image
import setwise as sw
def kib(name):
    return int(next(l for l in open("/proc/self/status") if l.startswith(name)).split()[1])
field = image({side}, {side}, {labels}, (500, 300, 100), np.random.default_rng(0))
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = kib("VmRSS")
post = sw.marginals(field, {method!r}, max_iter=2, tol=0.0, n_jobs=2, dtype={dtype!r})
print((kib("VmHWM") - before) * 1024 / (8 * field.unary.size))
"""


def arrays_at_peak(side, labels, method, dtype):
    """Return the peak memory beyond the field, in arrays of N L float64."""
    here = str(RESULTS.parents[1])
    program = MEMORY.format(here=here, side=side, labels=labels, method=method, dtype=dtype)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def many_labels(quick):
    shape = (40, 60) if quick else (213, 320)
    return image(*shape, 5 if quick else 21, (500, 300, 100), np.random.default_rng(0))


def gaps(quick):
    """Measure seconds of one thread to each gap."""
    limit = 2.0 if quick else 150.0
    many = many_labels(quick)
    two = image(*((40, 60) if quick else (213, 320)), 2, (), np.random.default_rng(0))
    rows, data, notes = [], [], []
    for name, field, most in (
        (f"{many.n_labels} labels, grid and three layers", many, limit),
        ("2 labels, grid", two, limit / 10),
    ):
        paths, value = {}, -np.inf
        for method in ("projection", "trees", "frank_wolfe"):
            if method == "trees":
                reached = seconds_of_trees(field)
            else:
                reached, paths[method] = seconds_to_gaps(field, method, most, value)
            cells = [f"{at[0]:.2f} s, {at[1]} passes" if at else "" for at in reached]
            rows.append([name, method, *cells])
            data.append({"field": name, "method": method, "reached": reached})
            if method == "projection":
                seconds, value = reached[1][0], paths[method][reached[1][1] - 1][1]
        slow = first_below(paths["frank_wolfe"], value)
        ratio = (slow or most) / seconds
        words = f"{ratio:.0f}" if slow else f"over {ratio:.0f}"
        notes.append(
            f"{name}: to the upper bound of projection at gap 1e-3 Frank-Wolfe takes {words} times "
            f"as long, target 20: {'met' if ratio >= 20 else 'NOT met'}"
        )
    start = process_time()
    exact = sw.marginals(two, "exact_binary", n_jobs=1)
    seconds = process_time() - start
    cells = [f"{seconds:.2f} s, {exact.n_iter} levels"] * len(GAPS)
    rows.append(["2 labels, grid", "exact_binary", *cells])
    data.append({"field": "2 labels, grid", "method": "exact_binary", "seconds": seconds})
    return rows, notes, data


def threads(quick):
    """Measure wall seconds."""
    many = many_labels(quick)
    notes, data = [], []
    goals = (("projection", 1e-3, 2.0), ("projection", 1e-4, 5.0), ("trees", 1e-3, 3.0))
    for method, gap, target in goals:
        wall = two_threads(many, gap, method)
        met = "met" if wall <= target else "NOT met"
        notes.append(
            f"two threads, {method}, gap {gap:g}: {wall:.2f} s on the clock, target {target:g}: "
            f"{met}"
        )
        data.append({"method": method, "threads": 2, "gap": gap, "wall": wall})
    return [], notes, data


def grown(quick):
    """Measure seconds per pass, by size."""
    by_size = growth(quick)
    if not quick:
        plot(by_size)
    return [], [], [{"growth": by_size}]


def memory(quick):
    """Measure the peak memory."""
    notes, data = [], []
    kinds = [("projection", "float64"), ("trees", "float64"), ("trees", "float32")]
    for method, dtype in kinds if sys.platform == "linux" else ():
        # trees on a smaller image: their messages are four arrays more
        side = 100 if quick else 1000 if method == "projection" else 500
        arrays = arrays_at_peak(side, 5 if quick else 21, method, dtype)
        notes.append(
            f"memory at peak, grid and three layers, {method}, {dtype}: {arrays:.1f} arrays of "
            "N L float64 beyond the field"
        )
        data.append({"method": method, "dtype": dtype, "arrays at peak": arrays})
    return [], notes, data


def intervals(quick):
    """Measure the nats between the bounds, and the seconds of whole calls."""
    notes, data = [], []
    for layers in ((), (500, 300, 100)):
        for n_labels in (2, 5) if quick else (2, 5, 21):
            shape = (40, 60) if quick else (213, 320)
            field = image(*shape, n_labels, layers, np.random.default_rng(0))
            flat, trees, short = widths(field)
            notes.append(
                f"{n_labels} labels, grid{' and three layers' if layers else ''}, nats a pixel "
                f"between the bounds: projection {flat[1]:.4f} in {flat[0]:.2f} s, trees "
                f"{trees[1]:.4f} in {trees[0]:.2f} s, {short[1]:.4f} with so few passes that it "
                f"takes {short[0]:.2f} s"
            )
            data.append(
                {
                    "labels": n_labels,
                    "layers": len(layers),
                    "projection": flat,
                    "trees": trees,
                    "trees, few passes": short,
                }
            )
    return [], notes, data


PARTS = {
    "gaps": gaps,
    "threads": threads,
    "growth": grown,
    "memory": memory,
    "intervals": intervals,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds, nothing written")
    parser.add_argument("--part", choices=PARTS, action="append", help="these alone")
    args = parser.parse_args()
    parts = {}
    if args.part and not args.quick:
        parts = json.loads((RESULTS / "marginals.json").read_text(encoding="utf-8"))["data"]
    for part in args.part or PARTS:
        parts[part] = PARTS[part](args.quick)
        write(parts, args.quick)


def write(parts, quick):
    """Write the results so far."""
    known = {part: parts[part] for part in PARTS if part in parts}
    table = [["field", "method", *(f"gap {gap:g}" for gap in GAPS)]]
    table += [row for rows, _, _ in known.values() for row in rows]
    notes = [note for _, notes, _ in known.values() for note in notes]
    report("marginals", table, known, notes=notes, quick=quick)


if __name__ == "__main__":
    main()
