"""How long a stroke takes in a cut that is already solved, and how often its window is enough.

Volumes of blobs with noise are memory maps of int8. The photograph is one of BSDS from
$SETWISE_DATA, enlarged and mirrored to 24 million pixels, with costs of colours and weights by
contrast. A stroke is a ball of radius 5 with the label that its centre does not have: half of them
at random places, half at the border of the present labels. Each is followed by ``undo``, so that
all start from the same labels. Then as many strokes are made without ``undo``, and the labels must
equal those of a solution of the whole. Times are processor times on one thread.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from setwise.inference import EditableCut

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, as_seconds, report

GOAL_SECONDS, GOAL_SHARE, GOAL_FIRST = 0.1, 1 / 20, 0.9
RADIUS, STROKES = 5, 40
UNIT = 16  # units of int8 per unit of cost


@dataclass(frozen=True)
class Case:
    """A problem: its name, and a function that makes it in a folder."""

    name: str
    make: Callable[[Path], EditableCut]


def volume(side: int, noise: float, weight: float, connectivity: int = 6) -> Case:
    """Return blobs with noise, whose costs are stored as int8."""

    def make(folder: Path) -> EditableCut:
        rng = np.random.default_rng(0)
        coarse = gaussian_filter(rng.standard_normal((side // 4,) * 3), max(2.0, side / 100))
        fine = np.linspace(0, side // 4 - 1, side)
        low = np.minimum(fine.astype(int), side // 4 - 2)
        up = np.zeros((side, side // 4), np.float32)
        up[np.arange(side), low] = 1 - (fine - low)
        up[np.arange(side), low + 1] = fine - low
        planes = np.einsum("yb,abc,xc->ayx", up, coarse.astype(np.float32), up, optimize=True)
        costs = np.lib.format.open_memmap(folder / "unary.npy", "w+", np.int8, (side,) * 3)
        for z in range(side):
            hidden = np.tensordot(up[z], planes, 1)
            score = np.sign(hidden) + noise * rng.standard_normal((side, side), np.float32)
            costs[z] = np.clip(np.rint(-UNIT * score), -127, 127)
        costs.flush()
        labels = np.lib.format.open_memmap(folder / "labels.npy", "w+", np.uint8, (side,) * 3)
        mapped = np.load(folder / "unary.npy", mmap_mode="r")
        own = round(UNIT * weight)
        return EditableCut(mapped, own, connectivity=connectivity, labels=labels, n_jobs=1)

    name = f"{side}³, {connectivity} neighbours, noise {noise:g}, weight {weight:g}"
    return Case(name, make)


def photograph(number: int, megapixels: float) -> Case:
    """Return a photograph of BSDS, enlarged and mirrored, with 8 neighbours."""

    def make(folder: Path) -> EditableCut:
        from PIL import Image

        path = sorted((Path(os.environ["SETWISE_DATA"]) / "bsds500").rglob("*.jpg"))[number]
        picture = Image.open(path).convert("RGB")
        side = np.sqrt(megapixels * 1e6 / 9 / (picture.width * picture.height))
        size = round(side * picture.width), round(side * picture.height)
        tile = np.asarray(picture.resize(size, Image.Resampling.BICUBIC))
        image = np.pad(tile, (*((n,) * 2 for n in tile.shape[:2]), (0, 0)), mode="symmetric")
        # Colours of the middle of the photograph and of its rim, in 4096 bins.
        bins = (tile // 16).astype(np.int32) @ np.array([256, 16, 1], np.int32)
        inside = np.zeros(bins.shape, np.bool_)
        inside[tuple(slice(n // 3, 2 * n // 3) for n in bins.shape)] = True
        rim = ~np.pad(np.ones([n - n // 5 for n in bins.shape], np.bool_), [
            (n // 10, n // 5 - n // 10) for n in bins.shape
        ])  # fmt: skip
        counts = [
            gaussian_filter(
                np.bincount(bins[part], minlength=4096).reshape(16, 16, 16).astype(float), 0.7
            ).ravel()
            for part in (rim, inside)
        ]
        chances = [(c + 1e-2) / (c + 1e-2).sum() for c in counts]
        table = np.clip(np.rint(8 * np.log(chances[0] / chances[1])), -127, 127).astype(np.int8)
        costs = table[bins]
        unary = np.pad(costs, [(n,) * 2 for n in costs.shape], mode="symmetric")
        weights = np.zeros((4, *unary.shape), np.uint8)
        grey = image.astype(np.int16)
        steps = ((0, 1), (1, 0), (1, -1), (1, 1))
        squares = []
        for down, right in steps:
            first = slice(0, len(grey) - down), slice(max(-right, 0), grey.shape[1] - max(right, 0))
            second = slice(down, None), slice(max(right, 0), grey.shape[1] + min(right, 0))
            change = np.square(grey[first] - grey[second], dtype=np.int32).sum(axis=2)
            squares.append(change.mean())
            if len(squares) == 1:
                beta = 1 / (2 * max(change.mean(), 1e-9))
            weight = 8 * 15.0 * np.exp(-beta * change.astype(np.float32)) / np.hypot(down, right)
            weights[len(squares) - 1][first] = np.rint(weight)
        return EditableCut(unary, weights, connectivity=8, n_jobs=1)

    return Case(f"photograph, {megapixels:g} megapixels, 8 neighbours", make)


def ball(sides: tuple[int, ...], centre: np.ndarray) -> np.ndarray:
    """Return the coordinates of the voxels within the radius of a brush."""
    around = np.argwhere(
        (np.indices((2 * RADIUS + 1,) * len(sides)) - RADIUS).__pow__(2).sum(axis=0) <= RADIUS**2
    )
    places = around - RADIUS + centre
    return places[((places >= 0) & (places < sides)).all(axis=1)]


def strokes(cut: EditableCut, rng: np.random.Generator, count: int) -> Iterator[tuple]:
    """Yield strokes against the present labels: at random places and at the border, in turn."""
    sides = np.array(cut.shape)
    for number in range(count):
        while True:
            centre = rng.integers(0, sides)
            label = int(cut.labels[tuple(centre)])
            beside = np.minimum(centre + np.eye(len(sides), dtype=int), sides - 1)
            others = [int(cut.labels[tuple(place)]) for place in beside]
            if number % 2 == 0 or any(other != label for other in others):
                break
        yield ball(cut.shape, centre), 1 - label


def measure(case: Case, count: int) -> tuple[list[str], dict[str, object]]:
    """Return a row of the table and its data."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        cut = case.make(Path(folder))
        begin = time.process_time()
        cut.replace()
        whole = time.process_time() - begin
        rng = np.random.default_rng(1)
        seconds, first, changed, wall = [], 0, [], []
        for place, label in strokes(cut, rng, count):
            begin, clock = time.process_time(), time.perf_counter()
            update = cut.add_seeds(place, label)
            seconds.append(time.process_time() - begin)
            wall.append(time.perf_counter() - clock)
            first += update.n_windows == update.n_steps and not update.whole
            changed.append(update.n_changed)
            if not update.proved:
                sys.exit(f"{case.name}: an update is not proved")
            cut.undo()
        for place, label in strokes(cut, rng, count):
            cut.add_seeds(place, label)
        again = cut.replace()
        if again.n_changed:
            sys.exit(f"{case.name}: {again.n_changed} labels differ from the whole")
    middle, most = float(np.median(seconds)), float(np.max(seconds))
    nine = float(np.quantile(seconds, 0.9))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row = [
        case.name,
        as_seconds(middle),
        as_seconds(nine),
        as_seconds(most),
        f"{100 * first / count:.0f} %",
        f"{np.median(changed):.0f}",
        as_seconds(whole),
        f"1/{whole / middle:.0f}",
        f"{peak:.1f} GiB",
    ]
    data = {
        "name": case.name,
        "seconds": seconds,
        "clock": wall,
        "changed": changed,
        "first": first / count,
        "whole": whole,
        "peak": peak,
    }
    return row, data


def main() -> None:
    args = arguments("How long does a proved update take after a stroke?")
    side = 96 if args.quick else 256
    cases = [
        volume(64 if args.quick else 128, 2.0, 0.25, 26),
        volume(side, 1.0, 0.5),
        volume(side, 2.0, 1.0),
        volume(side, 4.0, 2.0),
    ]
    if "SETWISE_DATA" in os.environ:
        cases.append(photograph(3, 1.0 if args.quick else 24.0))
    else:
        print("the photograph is left out: it is looked for in $SETWISE_DATA, which is not set")
    if not args.quick:
        cases.append(volume(512, 2.0, 1.0))
    table = [
        [
            *("problem", "median", "90 %", "slowest", "first window", "labels changed"),
            *("the whole", "share", "peak so far"),
        ]
    ]
    data, notes = [], []
    for case in cases:
        row, numbers = measure(case, 6 if args.quick else STROKES)
        print(row, flush=True)
        table.append(row)
        data.append(numbers)
        middle = float(np.median(numbers["seconds"]))
        goals = [
            ("median", f"{1e3 * middle:.0f} ms", f"{1e3 * GOAL_SECONDS:.0f} ms",
             middle <= GOAL_SECONDS),
            ("share of the whole", f"{middle / numbers['whole']:.4f}", f"{GOAL_SHARE:g}",
             middle <= GOAL_SHARE * numbers["whole"]),
            ("proved at the first window", f"{100 * numbers['first']:.0f} %",
             f"{100 * GOAL_FIRST:.0f} %", numbers["first"] >= GOAL_FIRST),
        ]  # fmt: skip
        for what, figure, goal, met in goals:
            words = f"{case.name}, {what}".replace(":", "")
            notes.append(
                f"{words}: {figure} against a goal of {goal}: {'met' if met else 'NOT met'}"
            )
    notes.append(
        f"Processor time of {STROKES} strokes of radius {RADIUS} each, against the label of their "
        "centre; as many more without undo end at the labels of the whole."
    )
    report("edits", table, data, notes=notes, measured="Single runs, one thread", quick=args.quick)


if __name__ == "__main__":
    main()
