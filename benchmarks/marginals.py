"""How many seconds do marginals of an image take, beside Frank-Wolfe on the same field?

A photograph's size (320 x 213 pixels, 21 labels) with Potts terms and three layers of regions, as
in the paper on log-supermodular marginals; then two labels, where cuts find the same bound exactly.
CPU seconds of one thread until the relative duality gap is reached, lower bound on log Z left out.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from _measure import arguments, report

import setwise as sw

GAPS = (1e-2, 1e-3, 1e-4)


def image(height, width, n_labels, layers, rng):
    """Cells of one label each under noise; a layer of smaller cells for each size of a region."""
    y, x = np.mgrid[:height, :width].reshape(2, -1)

    def cells(count):
        centers = rng.random((count, 2)) * [height, width]
        distance = (y[:, None] - centers[:, 0]) ** 2 + (x[:, None] - centers[:, 1]) ** 2
        return distance.argmin(axis=1)

    unary = rng.normal(size=(height * width, n_labels))
    unary[np.arange(len(unary)), rng.integers(0, n_labels, 40)[cells(40)]] -= 1.5
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((height, width)), 1.0)
    for size in layers:
        regions = cells(max(height * width // size, 1))
        field += sw.fields.RegionConsistency(regions, weight=1.0, alpha=0.8)
    return field


def seconds_to_gaps(field, method, limit):
    """(seconds, passes) at each gap, or None; and the last gap."""
    start = process_time()
    reached = {}

    def look(now):
        for gap in GAPS:
            if now.relative_gap <= gap:
                reached.setdefault(gap, (process_time() - start, now.n_iter))
        return process_time() - start > limit or now.relative_gap <= GAPS[-1]

    post = sw.marginals(field, method, tol=0.0, n_jobs=1, callback=look)
    return [reached.get(gap) for gap in GAPS], post.relative_gap


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    shape = (40, 60) if args.quick else (213, 320)
    limit = 2.0 if args.quick else 150.0
    many = image(*shape, 5 if args.quick else 21, (500, 300, 100), np.random.default_rng(0))
    two = image(*shape, 2, (), np.random.default_rng(0))
    table = [["field", "method", *(f"gap {gap:g}" for gap in GAPS), "last gap"]]
    data = []
    for name, field, most in (
        (f"{many.n_labels} labels, grid and three layers", many, limit),
        ("2 labels, grid", two, limit / 5),
    ):
        for method in ("projection", "frank_wolfe"):
            reached, last = seconds_to_gaps(field, method, most)
            cells = [f"{at[0]:.1f} s, {at[1]} passes" if at else "" for at in reached]
            table.append([name, method, *cells, f"{last:.1e}"])
            data.append({"field": name, "method": method, "reached": reached, "last": last})
    start = process_time()
    exact = sw.marginals(two, "exact_binary", n_jobs=1)
    seconds = process_time() - start
    cells = [f"{seconds:.1f} s, {exact.n_iter} levels"] * len(GAPS)
    table.append(["2 labels, grid", "exact_binary", *cells, f"{exact.relative_gap:.1e}"])
    data.append({"field": "2 labels, grid", "method": "exact_binary", "seconds": seconds})
    report("marginals", table, data, quick=args.quick)


if __name__ == "__main__":
    main()
