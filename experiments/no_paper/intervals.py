"""The width of the interval around log Z by projection and by trees, on photographs and UAI models.

The first models are the four MSRC-21 photographs with TextonBoost unaries, with all 21 labels, and
with the five or two most probable labels. They have a grid, and also three layers of superpixels.
Trees are also run for the time that projection takes. The others are the binary Segmentation models
of the UAI 2014 competition, whose log Z is known by elimination.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import process_time

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared import msrc
from experiments.shared.data import require
from experiments.shared.regions import superpixels
from experiments.shared.report import Table, arguments, progress, report

METHODS = ("projection", "trees")
SHORT = "trees, in projection's time"
STRENGTH, LAYER, ALPHA = 2.0, 1.0, 0.8
SIZES = (1000, 500, 250)  # superpixels per layer


def photograph(name: str, n_labels: int, layers: bool, step: int) -> sw.fields.Field:
    """Return a field over every ``step``-th pixel of a photograph and its most probable labels."""
    picture = msrc.image(name)[::step, ::step]
    probabilities = msrc.textonboost(name)[::step, ::step]
    likely = np.argsort(-probabilities.sum(axis=(0, 1)), kind="stable")[:n_labels]
    field = sw.fields.Field(msrc.energies(probabilities[..., np.sort(likely)]))
    edges = sw.fields.grid_edges(picture.shape[:2])
    weights = STRENGTH * sw.fields.contrast_weights(picture, edges)
    field += sw.fields.Potts(edges, weights)
    for number in SIZES if layers else ():
        regions = superpixels(picture, number // step**2).ravel()
        field += sw.fields.RegionConsistency(regions, LAYER, ALPHA)
    return field


def measured(
    field: sw.fields.Field, method: str, tol: float, passes: int | None = None
) -> dict[str, float]:
    start = process_time()
    post = sw.marginals(field, method, tol=tol, n_jobs=1, max_iter=passes)
    return {
        "seconds": process_time() - start,
        "lower": post.log_partition_lower,
        "upper": post.log_partition_upper,
        "width": post.width,
        "passes": post.n_iter,
        "entropy": float(post.entropy.mean()),
    }


def within(field: sw.fields.Field, seconds: float) -> dict[str, float]:
    """Return trees with as many passes as a time allows, at least one."""
    best = measured(field, "trees", 1e-3, 1)
    for passes in (2, 3, 4, 6, 8, 12, 16):
        more = measured(field, "trees", 1e-3, passes)
        if more["seconds"] > seconds or more["passes"] < passes:
            break
        best = more
    return best


def main() -> None:
    args = arguments(__doc__, repeats=1)
    names = msrc.names("textonboost")[: 1 if args.quick else None]
    step = 4 if args.quick else 2
    widths = Table(
        "Nats a pixel between the bounds",
        [
            *("field", "labels", "projection", "trees", "ratio", "seconds: projection", "trees"),
            *("trees in projection's time", "seconds"),
        ],
    )
    data: dict[str, list[dict[str, object]]] = {"photographs": [], "models": []}
    cases = [(layers, n) for layers in (False, True) for n in (2, 5, 21)]
    for layers, n_labels in progress(cases, "fields"):
        rows = []
        for name in names:
            field = photograph(name, n_labels, layers, step)
            measured(field, "projection", 1e-3, 1)  # the first call fills caches and is not timed
            row = {m: measured(field, m, 1e-3) for m in METHODS}
            row[SHORT] = within(field, row["projection"]["seconds"])
            rows.append(row)
            data["photographs"].append(
                {"image": name, "labels": n_labels, "layers": layers, "pixels": field.n_variables}
                | row
            )
        each = (*METHODS, SHORT)
        per = [np.mean([row[m]["width"] for row in rows]) / field.n_variables for m in each]
        seconds = [np.mean([row[m]["seconds"] for row in rows]) for m in each]
        widths.rows.append(
            [
                "grid and three layers" if layers else "grid",
                str(n_labels),
                *(f"{width:.4f}" for width in per[:2]),
                f"{per[0] / per[1]:.1f}",
                *(f"{s:.2f}" for s in seconds[:2]),
                f"{per[2]:.4f}",
                f"{seconds[2]:.2f}",
            ]
        )
    exact = json.loads(require("uai2014", "exact_values.json").read_text())
    models = [
        name
        for name, known in exact.items()
        if known["file"].startswith("marginal/") and known["binary_log_supermodular"]
    ]
    intervals = Table(
        "Segmentation models: distances from ln Z",
        ["model", "ln Z", "projection above", "trees above", "trees below", "elimination: seconds"],
    )
    for name in progress(models[: 1 if args.quick else None], "models"):
        file = exact[name]["file"]
        field = sw.fields.read_uai(require("uai2014", f"{file}.gz"))
        row = {m: measured(field, m, 1e-4) for m in (*METHODS, "elimination")}
        log_z = exact[name]["exact_lnZ"]
        data["models"].append({"model": name, "ln_z": log_z} | row)
        assert abs(row["elimination"]["upper"] - log_z) < 1e-8, name
        intervals.rows.append(
            [
                name,
                f"{log_z:.3f}",
                f"{row['projection']['upper'] - log_z:.2f}",
                f"{row['trees']['upper'] - log_z:.2f}",
                f"{log_z - row['trees']['lower']:.2f}",
                f"{row['elimination']['seconds']:.2f}",
            ]
        )
    report(
        __file__,
        "Intervals around log Z",
        [widths, intervals],
        choices={
            "photographs": f"{', '.join(names)}; one pixel of {step} x {step}",
            "unaries": "minus the logarithm of TextonBoost's probabilities, the most probable "
            "labels of the image",
            "pairs": f"{STRENGTH:g} times contrast weights on the grid",
            "layers": f"SLIC superpixels, about {', '.join(map(str, SIZES))}; weight {LAYER:g}, "
            f"alpha {ALPHA:g}",
            "tol": "1e-3; models 1e-4",
            "seconds": "of one thread, both bounds included; means over the photographs",
        },
        data=data,
        notes=[
            "Widths are sums over the photographs; the ratio is theirs.",
            "elimination agrees with the known ln Z to 1e-8 on every model.",
        ],
        quick=args.quick,
    )


if __name__ == "__main__":
    main()
