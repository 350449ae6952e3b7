"""How many passes, and seconds, does the Lovász relaxation of an image take?

A photograph's size (320 x 213 pixels, 21 labels) with Potts terms and a layer of regions. Passes
and CPU seconds of one thread to a relative duality gap, with and without momentum, beside
Frank-Wolfe with steps 2 / (k + 2) and the same gap: the method of the paper on log-supermodular
marginals.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from _measure import arguments, report

from setwise import fields
from setwise.fields._terms import CountTerm, PottsTerm
from setwise.inference._relaxation import Relaxation

GAPS = (1e-2, 1e-3, 1e-4)


def image(height, width, n_labels, potts, region, rng):
    """Cells of one label each under noise, and smaller cells as regions."""
    y, x = np.mgrid[:height, :width].reshape(2, -1)

    def cells(count):
        centers = rng.random((count, 2)) * [height, width]
        distance = (y[:, None] - centers[:, 0]) ** 2 + (x[:, None] - centers[:, 1]) ** 2
        return distance.argmin(axis=1)

    unary = rng.normal(size=(height * width, n_labels))
    unary[np.arange(len(unary)), rng.integers(0, n_labels, 40)[cells(40)]] -= 1.0
    field = fields.Field(unary) + fields.Potts(fields.grid_edges((height, width)), potts)
    if region:
        field += fields.RegionConsistency(cells(150), region, 0.8)
    return field


def vertex(field, p):
    """The vertex of the base polytope that Frank-Wolfe moves to: greedy by decreasing p."""
    s = field.unary.copy()
    for _, term in field._terms():
        if isinstance(term, PottsTerm):
            i, j = term.edges.T
            flow = term.weights[:, None] / 2 * np.sign(p[i] - p[j])
            np.add.at(s, i, flow)
            np.subtract.at(s, j, flow)
        elif isinstance(term, CountTerm):
            for r, start in enumerate(term.starts[:-1]):
                inside = np.flatnonzero(term.regions == r)
                gains = np.diff(term.table[start : start + len(inside) + 1])
                order = np.argsort(-p[inside], axis=0, kind="stable")
                for label in range(p.shape[1]):
                    s[inside[order[:, label]], label] += gains
    return s


def frank_wolfe(field, steps):
    """The relative gap after so many steps, and their seconds."""
    start = process_time()
    s = vertex(field, np.zeros(field.unary.shape))
    for k in range(steps + 1):
        lowest = s.min(axis=1, keepdims=True)
        mass = np.exp(lowest - s)
        p = mass / mass.sum(axis=1, keepdims=True)
        best = vertex(field, p)
        gap = ((best - s) * p).sum()
        value = (np.log(mass.sum(axis=1)) - lowest[:, 0] + field.unary.min(axis=1)).sum()
        if k < steps:
            s += 2 / (k + 2) * (best - s)
    return gap / max(1.0, abs(value)), process_time() - start


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    shape = (40, 60, 5) if args.quick else (213, 320, 21)
    steps = 20 if args.quick else 100
    table = [["Potts", "regions", "method", *(f"gap {gap:g}" for gap in GAPS)]]
    data = []
    for potts, region in ((1.0, 0.0), (1.0, 1.0), (2.0, 0.5)):
        field = image(*shape, potts, region, np.random.default_rng(0))
        relaxation = Relaxation(field)
        for method in ("momentum", "plain"):
            row = [f"{potts:g}", f"{region:g}", method]
            for gap in GAPS:
                start = process_time()
                answer = relaxation.minimise(
                    1.0, tol=gap, max_iter=200, momentum=method == "momentum", n_jobs=1
                )
                seconds = process_time() - start
                shown = f"{answer.n_iter} passes, {seconds:.1f} s"
                row.append(shown if answer.converged else f"{answer.relative_gap:.0e} after 200")
                data.append(
                    {
                        "potts": potts,
                        "region": region,
                        "method": method,
                        "gap": gap,
                        "reached": answer.relative_gap,
                        "passes": answer.n_iter,
                        "seconds": seconds,
                    }
                )
            table.append(row)
        reached, seconds = frank_wolfe(field, steps)
        shown = f"{reached:.1e} after {steps} steps"
        table.append([f"{potts:g}", f"{region:g}", "Frank-Wolfe", shown, "", ""])
        data.append(
            {
                "potts": potts,
                "region": region,
                "method": "Frank-Wolfe",
                "reached": reached,
                "passes": steps,
                "seconds": seconds,
            }
        )
    report("relaxation", table, data, quick=args.quick)


if __name__ == "__main__":
    main()
