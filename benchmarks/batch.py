"""A batch of 10,000 rows of 20 labels in one call, against Python loops over the rows.

There are two loops: setwise's own calls for single rows, and plain NumPy on each row. Target: at
least 50 times faster than a loop.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import setwise as sw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared import definitions
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

ROWS, LABELS = 10_000, 20
TARGET = 50.0
Row = Callable[[np.ndarray, np.ndarray], definitions.Answer]
SURROGATES: dict[str, tuple[sw.surrogates.Surrogate, Row]] = {
    "Lovász hinge, Jaccard": (
        sw.surrogates.LovaszHinge("jaccard"),
        definitions.lovasz_hinge_jaccard,
    ),
    "B_D, Dice": (sw.surrogates.DecomposedHinge("dice"), definitions.decomposed_hinge_dice),
    "B_D, face track 1": (
        sw.surrogates.DecomposedHinge(sw.losses.FaceTrack(1)),
        definitions.decomposed_hinge_face_track,
    ),
    "margin rescaling, Jaccard": (
        sw.surrogates.MarginRescaling("jaccard"),
        partial(definitions.rescaling_jaccard, slack=False),
    ),
    "slack rescaling, Jaccard": (
        sw.surrogates.SlackRescaling("jaccard"),
        partial(definitions.rescaling_jaccard, slack=True),
    ),
}


def loop(row: Row, y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Call the surrogate row by row, as one does without a batch call."""
    values, gradient = np.empty(len(y)), np.empty_like(scores)
    for i in range(len(y)):
        values[i], gradient[i] = row(y[i], scores[i])
    return values, gradient


def main() -> None:
    args = arguments(__doc__)
    rows = ROWS // 10 if args.quick else ROWS
    rng = np.random.default_rng(0)
    y, scores = rng.random((rows, LABELS)) < 0.3, rng.standard_normal((rows, LABELS))
    table = [["surrogate", "one call", "loop of setwise / one call", "loop of NumPy / one call"]]
    data, notes = [], []
    for name, (surrogate, definition) in SURROGATES.items():
        contenders = {
            "batch": lambda s=surrogate: s.value_and_gradient(y, scores),
            "loop of setwise": lambda s=surrogate: loop(s.value_and_gradient, y, scores),
            "loop of numpy": lambda d=definition: loop(d, y, scores),
        }
        answers = {contender: call() for contender, call in contenders.items()}
        for other in ("loop of setwise", "loop of numpy"):
            for what, ours, theirs in zip(
                ("values", "gradients"), answers["batch"], answers[other], strict=True
            ):
                require_close(f"{what} of {name}, {other}", ours, theirs, 1e-9)
        seconds = alternate(contenders, repeats=3 if args.quick else 15, clock=time.process_time)
        ratios = {
            other: ratio(seconds[other], seconds["batch"])
            for other in ("loop of setwise", "loop of numpy")
        }
        one_call = float(np.median(seconds["batch"]))
        table.append([name, as_seconds(one_call), *map(as_ratio, ratios.values())])
        data.append({"surrogate": name, "seconds": one_call, "ratios": ratios})
        notes += [f"{name}, {o}: {verdict(r['median'], TARGET)}" for o, r in ratios.items()]
    notes.append("Processor time of one thread.")
    if args.quick:
        notes.append(f"{rows:,} rows only: a quick look.")
    report("batch", table, data, notes=notes, quick=args.quick)


if __name__ == "__main__":
    main()
