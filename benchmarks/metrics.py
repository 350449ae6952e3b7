"""Weighted Potts, truncated linear and truncated quadratic fields of stereo pairs, against gco.

The unaries are absolute differences of colours, truncated; the weights of edges depend on the
contrast. All energies are whole numbers, which gco needs. Potts and truncated linear terms are
minimised by expansions, truncated quadratic ones by swaps, each until no move helps (tol=inf). gco
starts from the labels of least unary energy, and in a second run from the labels that setwise's
moves start from, those of four passes of messages; the time of these passes is not counted for it.
gco takes its initial labels one by one from Python; that time is not counted either. All times are
processor times of one thread, interleaved in one process. The memory is the peak beyond the field,
measured in a process of its own.

The settings were chosen on tsukuba; cones and bowling were not used for that. Targets: at an energy
that is not higher, at most gco's time; for Potts terms with five labels at most 0.8 of it; a memory
of at most 2 L numbers per pixel.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, nothing_to_measure, report

DISPARITIES = {"tsukuba": 16, "cones": 60, "bowling": 30}
LABELS = (5, 16, 32)
KINDS = {"Potts": "expansion", "truncated linear": "expansion", "truncated quadratic": "swap"}
PASSES = 4  # _PASSES of inference/_map/_moves/_search.py


def stereo_field(name: str, labels: int, kind: str) -> tuple[sw.fields.Field, np.ndarray]:
    """Return the field of a stereo pair, and the table of its metric."""
    from PIL import Image

    folder = Path(os.environ["SETWISE_DATA"]) / "stereo"
    left, right = (
        np.asarray(Image.open(folder / f"{name}_{side}.png").convert("RGB"), np.float64)
        for side in ("left", "right")
    )
    unary = np.empty((*left.shape[:2], labels))
    for k in range(labels):
        shift = round(k * DISPARITIES[name] / labels)
        moved = np.roll(right, shift, axis=1)
        moved[:, :shift] = right[:, :1]
        unary[:, :, k] = np.minimum(np.abs(left - moved).mean(axis=2), 20.0)
    edges = sw.fields.grid_edges(left.shape[:2])
    colors = left.reshape(-1, 3)
    contrast = np.abs(colors[edges[:, 0]] - colors[edges[:, 1]]).mean(axis=1)
    weights = np.where(contrast < 8.0, 20.0, 10.0)
    field = sw.fields.Field(np.round(10.0 * unary).reshape(-1, labels))
    apart = np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))
    limit = max(2, labels // 8)
    if kind == "Potts":
        return field + sw.fields.Potts(edges, 2.0 * weights), (apart > 0).astype(np.int64)
    if kind == "truncated linear":
        linear = sw.fields.TruncatedLinear(edges, weights, float(limit))
        return field + linear, np.minimum(apart, limit)
    quadratic = sw.fields.TruncatedQuadratic(edges, weights, float(limit**2))
    return field + quadratic, np.minimum(apart**2, limit**2)


def cases(quick: bool) -> Iterator[tuple[str, str, int]]:
    for name in list(DISPARITIES)[: 1 if quick else None]:
        for kind in KINDS:
            for labels in LABELS[: 1 if quick else None]:
                yield name, kind, labels


def fresh(field: sw.fields.Field) -> sw.fields.Field:
    """Return an equal field without anything cached."""
    potential = field.potentials[0]
    parts = (potential.edges, potential.weights, getattr(potential, "truncation", None))
    return sw.fields.Field(field.unary) + type(potential)(*(p for p in parts if p is not None))


def timed(call: Callable[[], float]) -> tuple[float, float]:
    gc.collect()
    start = time.process_time()
    answer = call()
    return time.process_time() - start, answer


def of_setwise(field: sw.fields.Field, method: str) -> tuple[float, float]:
    again = fresh(field)
    return timed(lambda: sw.solve_map(again, method, tol=np.inf, n_jobs=1).value)


def of_gco(
    field: sw.fields.Field, table: np.ndarray, method: str, start: np.ndarray
) -> tuple[float, float]:
    """Return seconds and energy of the peer's moves from a labelling."""
    from gco.pygco import GCO

    graph, (potential,) = GCO(), field.potentials
    tails, heads = map(np.ascontiguousarray, potential.edges.T)

    def build() -> float:
        graph.create_general_graph(*field.unary.shape)
        graph.set_data_cost(field.unary)
        graph.set_all_neighbors(tails, heads, potential.weights)
        graph.set_smooth_cost(table)
        return 0.0

    seconds, _ = timed(build)
    for i, label in enumerate(start.tolist()):
        graph.init_label_at_site(i, label)
    more, energy = timed(graph.expansion if method == "expansion" else graph.swap)
    graph.destroy_graph()
    return seconds + more, float(energy)


def decoded(field: sw.fields.Field) -> np.ndarray:
    """Return the labels that moves start from."""
    from setwise.inference._map._messages._tree_sweeps import TreeSweeps

    sweeps = TreeSweeps(field, np.inf)
    for _ in range(PASSES):
        sweeps.advance()
    return sweeps.decode()


MEMORY = """
import sys; sys.path.insert(0, {here!r})
import gc, numpy as np, setwise as sw
from benchmarks.metrics import stereo_field
def kib(name):
    return int(next(l for l in open("/proc/self/status") if l.startswith(name)).split()[1])
field, _ = stereo_field({name!r}, {labels}, {kind!r})
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = kib("VmRSS")
sw.solve_map(field, {method!r}, tol=np.inf, n_jobs=1)
print((kib("VmHWM") - before) * 1024 / (8 * field.unary.size))
"""


def memory(name: str, kind: str, labels: int) -> float:
    """Return the peak memory beyond the field, in numbers of 8 bytes per pixel and label."""
    here = str(Path(__file__).resolve().parents[1])
    program = MEMORY.format(here=here, name=name, kind=kind, labels=labels, method=KINDS[kind])
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    if "SETWISE_DATA" not in os.environ:
        nothing_to_measure("the stereo pairs are in $SETWISE_DATA, which is not set")
    vars(np).update(int=int, float=float)  # gco-wrapper needs these old names
    repeats = 1 if args.quick else 3
    head = ["pair", "term", "labels", "setwise, s", "gco, s", "setwise / gco", "energy / gco - 1"]
    head += ["gco from our start, s", "energy / that - 1", "numbers per pixel and label"]
    table, data = [head], []
    for name, kind, labels in cases(args.quick):
        field, metric = stereo_field(name, labels, kind)
        method, least = KINDS[kind], field.unary.argmin(axis=1)
        start = decoded(field)
        runs: dict[str, list[float]] = {"setwise": [], "gco": [], "gco from our start": []}
        energies = {}
        for _ in range(repeats):
            found = {
                "setwise": of_setwise(field, method),
                "gco": of_gco(field, metric, method, least),
                "gco from our start": of_gco(field, metric, method, start),
            }
            for key, (seconds, energies[key]) in found.items():
                runs[key].append(seconds)
        share = float(np.median(np.array(runs["setwise"]) / np.array(runs["gco"])))
        medians = {key: float(np.median(values)) for key, values in runs.items()}
        above = energies["setwise"] / energies["gco"] - 1.0
        beside = energies["setwise"] / energies["gco from our start"] - 1.0
        numbers = memory(name, kind, labels) if sys.platform == "linux" else float("nan")
        row = [f"{medians['setwise']:.2f}", f"{medians['gco']:.2f}", f"{share:.2f}"]
        row += [f"{above:+.1e}", f"{medians['gco from our start']:.2f}", f"{beside:+.1e}"]
        table.append([name, kind, str(labels), *row, f"{numbers:.1f}"])
        print(" ".join(table[-1]), file=sys.stderr, flush=True)
        data.append(
            {
                "pair": name,
                "term": kind,
                "labels": labels,
                "seconds": runs,
                "energies": energies,
                "share": share,
                "above": above,
                "beside": beside,
                "numbers per pixel and label": numbers,
            }
        )
    report("metrics", table, data, notes=notes_of(data), quick=args.quick)


def notes_of(data: list[dict]) -> list[str]:
    """Return the goals with their verdicts."""

    def most(what: str, chosen: list[dict], goal: float, key: str) -> str:
        value = max(row[key] for row in chosen)
        return f"{what}: {value:.2g}, target {goal:g}: {'met' if value <= goal else 'NOT met'}"

    metrics = [row for row in data if row["term"] != "Potts"]
    five = [row for row in data if row["term"] == "Potts" and row["labels"] == 5]
    notes = [most("largest share of gco's time, Potts, five labels", five, 0.8, "share")]
    for labels in LABELS:
        chosen = [row for row in metrics if row["labels"] == labels]
        if chosen:
            what = f"largest share of gco's time, truncated metrics, {labels} labels"
            notes.append(most(what, chosen, 1.0, "share"))
    notes.append(most("largest energy over gco's, minus 1", data, 0.0, "above"))
    notes.append(most("numbers per pixel and label", data, 2.0, "numbers per pixel and label"))
    lower = sum(row["beside"] < 0 for row in data)
    notes.append(
        f"against gco from the same start: energy lower in {lower} of {len(data)}, relative "
        f"difference {min(row['beside'] for row in data):.1e} to "
        f"{max(row['beside'] for row in data):.1e}"
    )
    return notes


if __name__ == "__main__":
    main()
