"""Time and memory of marginals on grids, against densecrf and a mean field in NumPy.

Fields of 512 x 512 pixels with Potts weights by contrast. Times are processor times of one thread,
interleaved in one process, of the whole default call to a relative gap of 1e-2, of mean field and
belief propagation to changes of 1e-3, of twenty samples, and of the peers. densecrf has a Gaussian
kernel over positions instead of the edges, and ten passes; the mean field in NumPy updates all
pixels at once, ten passes. Neither has a bound. The memory is the peak beside the field, measured
in a process of its own, in bytes per pixel and label.

Targets: at most 2, 2.5 and 5 times densecrf's time with 2, 5 and 21 labels, at most 80 bytes, and
less memory with float32 than with float64.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.fields import image
from benchmarks.shared.measure import arguments, report

GOALS = {2: 2.0, 5: 2.5, 21: 5.0}
GAP, CHANGE, PASSES, BYTES = 1e-2, 1e-3, 10, 80.0
KINDS = (
    ("auto", "float64"),
    ("auto", "float32"),
    ("projection", "float64"),
    ("projection", "float32"),
)


def grid_field(side: int, labels: int) -> sw.fields.Field:
    whole = image(side, side, labels, (), np.random.default_rng(0))
    return sw.fields.Field(whole.unary) + whole.potentials[0]


def fresh(field: sw.fields.Field) -> sw.fields.Field:
    """Return an equal field without anything cached."""
    potts = field.potentials[0]
    return sw.fields.Field(field.unary) + sw.fields.Potts(potts.edges, potts.weights)


def densecrf(field: sw.fields.Field, side: int) -> Callable[[], object] | None:
    try:
        import pydensecrf.densecrf as dense
    except ImportError:
        return None
    unary = np.ascontiguousarray(field.unary.T.astype(np.float32))

    def run() -> object:
        crf = dense.DenseCRF2D(side, side, field.n_labels)
        crf.setUnaryEnergy(unary)
        crf.addPairwiseGaussian(sxy=1, compat=1.0)
        return np.asarray(crf.inference(PASSES))

    return run


def mean_field(field: sw.fields.Field, side: int) -> Callable[[], object]:
    """Return the simplest mean field: all pixels at once, by shifted arrays."""
    weights, split = field.potentials[0].weights, side * (side - 1)
    edges = field.potentials[0].edges
    first_is_down = edges[0, 1] - edges[0, 0] > 1
    parts = weights[:split], weights[split:]
    down, right = parts if first_is_down else parts[::-1]
    down, right = down.reshape(side - 1, side, 1), right.reshape(side, side - 1, 1)
    scores = -field.unary.reshape(side, side, -1)

    def normalized(logits: np.ndarray) -> np.ndarray:
        p = np.exp(logits - logits.max(axis=2, keepdims=True))
        return p / p.sum(axis=2, keepdims=True)

    def run() -> object:
        p = normalized(scores)
        for _ in range(PASSES):
            logits = scores.copy()
            logits[1:] += down * p[:-1]
            logits[:-1] += down * p[1:]
            logits[:, 1:] += right * p[:, :-1]
            logits[:, :-1] += right * p[:, 1:]
            p = normalized(logits)
        return p

    return run


def calls(field: sw.fields.Field, side: int) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {
        "marginals": lambda: sw.marginals(fresh(field), tol=GAP, n_jobs=1),
        "mean_field": lambda: sw.marginals(fresh(field), "mean_field", tol=CHANGE, n_jobs=1),
        "belief propagation": lambda: sw.marginals(
            fresh(field), "belief_propagation", tol=CHANGE, n_jobs=1
        ),
        "20 samples": lambda: sw.sample(fresh(field), 20, rng=0, n_jobs=1),
        "NumPy": mean_field(field, side),
    }
    peer = densecrf(field, side)
    return found | ({"densecrf": peer} if peer else {})


MEMORY = """
import sys; sys.path.insert(0, {here!r})
import gc, setwise as sw
from benchmarks.marginal_cost import grid_field
def kib(name):
    return int(next(l for l in open("/proc/self/status") if l.startswith(name)).split()[1])
field = grid_field({side}, {labels})
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = kib("VmRSS")
sw.marginals(field, {method!r}, tol=1e-2, n_jobs=1, dtype={dtype!r})
print((kib("VmHWM") - before) * 1024 / field.unary.size)
"""


def memory(side: int, labels: int, method: str, dtype: str) -> float:
    """Return the peak memory beside the field, in bytes per pixel and label."""
    here = str(Path(__file__).resolve().parents[1])
    program = MEMORY.format(here=here, side=side, labels=labels, method=method, dtype=dtype)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    side, repeats = (64, 1) if args.quick else (512, 2)
    head = ["labels", "marginals, s", "mean field, s", "belief propagation, s", "20 samples, s"]
    head += ["NumPy, s", "densecrf, s", *(f"{name}, {dtype}, bytes" for name, dtype in KINDS)]
    table, data, notes = [head], [], []
    for labels, goal in GOALS.items():
        field = grid_field(side, labels)
        contenders = calls(field, side)
        runs: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(repeats):
            for name, call in contenders.items():
                start = time.process_time()
                call()
                runs[name].append(time.process_time() - start)
        medians = {name: float(np.median(seconds)) for name, seconds in runs.items()}
        linux = sys.platform == "linux"
        peaks = [memory(side, labels, *kind) if linux else float("nan") for kind in KINDS]
        cells = [f"{medians[name]:.2f}" for name in list(contenders)[:5]]
        cells.append(f"{medians['densecrf']:.2f}" if "densecrf" in medians else "")
        table.append([str(labels), *cells, *(f"{peak:.0f}" for peak in peaks)])
        data.append({"labels": labels, "seconds": runs, "bytes per pixel and label": peaks})
        if "densecrf" in medians:
            times = medians["marginals"] / medians["densecrf"]
            notes.append(
                f"{labels} labels, times densecrf's time: {times:.2g}, target {goal:g}: "
                f"{'met' if times <= goal else 'NOT met'}"
            )
        notes.append(
            f"{labels} labels, bytes per pixel and label: {max(peaks):.0f}, target {BYTES:g}: "
            f"{'met' if max(peaks) <= BYTES else 'NOT met'}"
        )
        share = peaks[3] / peaks[2]
        notes.append(
            f"{labels} labels, projection, memory of float32 over float64: {share:.2f}, target 1: "
            f"{'met' if share < 1 else 'NOT met'}"
        )
    report("marginal_cost", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
