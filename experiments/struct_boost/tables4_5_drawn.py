"""Our tracker and those of OpenCV on synthetic sequences: overlap, and speed.

The sequences have two halves: one that the tracker was developed on, and one with other seeds and
textures that was evaluated after all choices were made. A box is given in the first frame alone.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from experiments.shared.report import Table, arguments, parallel, report
from experiments.struct_boost._synthetic_sequences import HALVES, KINDS, LENGTH, sequence
from experiments.struct_boost._trackers import OPENCV, follow, overlap_of

TRACKERS = ("StructBoost", "StructBoost, sizes", *OPENCV)


def follow_drawn(task: tuple[str, str, int], length: int) -> dict[str, tuple[float, float]]:
    """Return for each tracker frames per second, and the mean overlap in some frames.

    Those are the frames in which at least half of the patch is visible.
    """
    half, kind, seed = task
    drawn = sequence(kind, half, seed, length)
    seen = drawn.visible >= 0.5
    answers = {}
    for name in TRACKERS:
        run = follow(name, drawn.frames, {0: drawn.boxes[0]})
        answers[name] = float(overlap_of(drawn.boxes[seen], run.boxes[seen]).mean()), run.speed
    return answers


def main() -> None:
    given = arguments(__doc__.splitlines()[0], repeats=2)
    kinds = ["plain", "cover"] if given.quick else list(KINDS)
    length = 60 if given.quick else LENGTH
    tasks = [(h, kind, seed) for h in HALVES for kind in kinds for seed in range(given.repeats)]
    found = dict(parallel(partial(follow_drawn, length=length), tasks, "drawn", given.jobs))
    title = "Mean overlap in both halves, and in each kind of the half to report"
    table = Table(title, ["tracker", *HALVES, *kinds, "frames/s"])
    for name in TRACKERS:
        halves = [
            np.mean([r[name][0] for task, r in found.items() if task[0] == h]) for h in HALVES
        ]
        each = [
            np.mean([r[name][0] for task, r in found.items() if task[:2] == ("report", kind)])
            for kind in kinds
        ]
        speed = np.median([run[name][1] for run in found.values()])
        table.rows.append([name, *(f"{x:.2f}" for x in (*halves, *each)), f"{speed:.0f}"])
    report(
        __file__,
        "Following drawn patches",
        [table],
        choices={
            "sequences": f"{given.repeats} of each kind and half, {length} frames of 320 x 240; "
            "evaluated where half of the patch is visible",
            "given boxes": "that of the first frame",
            "settings": "the defaults everywhere, but for 'sizes', which tries 0.96, 1 and 1.04 "
            "times the last size",
            "how the defaults were chosen": "as tables4_5_girl says: none after a look at the half "
            "'report'",
            "frames/s": "of processor time, one thread, on a machine shared with others",
        },
        data={" ".join(map(str, task)): run for task, run in found.items()},
        quick=given.quick,
    )


if __name__ == "__main__":
    main()
