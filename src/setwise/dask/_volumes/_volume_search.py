"""The passes over a volume: image, blocks, open voxels, and the energy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from math import fsum, inf
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._clock import Deadline
from setwise._foundation._progress import stops
from setwise.dask._volumes._costs import CELLS, cells_of, color_costs
from setwise.dask._volumes._layout import Cell, Layout, Round
from setwise.dask._volumes._sweeps import Sweeps, settle
from setwise.dask._volumes._tasks import (
    CutCell,
    Decided,
    Energies,
    ImageSums,
    OpenVoxels,
    Task,
    Usage,
    WriteLabels,
    gather_open,
    labels_of_open,
    look_at_image,
    sum_energy,
)
from setwise.dask._volumes._volume_energy import VolumeEnergy, units_for
from setwise.dask._volumes._volume_result import VolumeProgress, VolumeResult, table_of
from setwise.dask._volumes._volume_store import OPEN, DamagedLabels, VolumeStore
from setwise.dask._volumes._workers import Call, ClusterWorkers, ThreadWorkers
from setwise.fields._pixels._grid import count_pairs
from setwise.inference._editing._sliceable import shape_of, within

# The most open voxels that one cut takes, of a block or of all that is left: about 100 MB.
BUDGET = 1 << 20
# The largest share of the possible gain that rounding to 32 bits may lose. Otherwise numbers have
# 64 bits.
_MOST_LOST = 1e-6
# The side of the box in the middle that shows at once whether 32 bits are enough.
_TRIAL = {1: 1 << 16, 2: 256, 3: 40}
# A round with halos is the last one if it leaves more than this share of the voxels open that it
# found: larger halos would not help.
_HOPELESS = 0.75


class Stopped(KeyboardInterrupt):
    """A callback ended the call."""


class VolumeSearch:
    """The state of a call: what it runs on, what it has used, and whom it reports to."""

    def __init__(
        self,
        energy: VolumeEnergy,
        store: VolumeStore,
        layout: Layout,
        workers: ThreadWorkers | ClusterWorkers,
        deadline: Deadline,
        callback: Callable[[VolumeProgress], object] | None,
        most_sweeps: int,
    ) -> None:
        self.energy, self.store, self.layout = energy, store, layout
        self._workers, self._deadline, self._callback = workers, deadline, callback
        self._most_sweeps = most_sweeps
        self._begin = perf_counter()
        self._own = process_time()
        self._usage: dict[str, tuple[float, float, int]] = {}
        self.n_open: dict[str, int] = {}
        self._unproved, self._n_sweeps = 0.0, 0
        self.first = layout.rounds()[0]

    def solve(self) -> VolumeResult:
        """Return the result; after an interruption with what is known."""
        try:
            self._prepare()
            while True:
                self._decide()
                rows = self._sum_up()
                if self.energy.units.bits == 64 or self._is_precise(rows):
                    return self._result(rows)
                self._begin_with_64_bits()
        except DamagedLabels:
            self.store.forget_rounds()
            raise
        except KeyboardInterrupt as interrupt:
            if isinstance(interrupt, Stopped):
                return self._interrupted("the callback ended the call")
            reason = self._deadline.sentence if self._deadline.expired else "interrupted"
            return self._interrupted(reason)

    # Passes

    def _run(
        self,
        name: str,
        calls: Sequence[Call],
        done: int,
        total: int,
        keep: Callable[[Cell, Any], None],
    ) -> None:
        """Pass the cells with their answers to ``keep``, and report each of them."""
        begin, first = perf_counter(), done
        outcomes = self._workers.run(self.energy, self.store, calls, self._deadline)
        with closing(outcomes):
            for cell, outcome in outcomes:
                self._count(outcome.usage)
                keep(cell, outcome.answer)
                done += 1
                now = perf_counter()
                left = (now - begin) / (done - first) * (total - done)
                n_open = next(reversed(self.n_open.values()), None)
                progress = VolumeProgress(name, done, total, n_open, now - self._begin, left)
                if stops(self._callback, progress):
                    raise Stopped

    def _count(self, usage: Usage) -> None:
        begin, _, memory = self._usage.get(usage.process, (usage.begin, 0.0, 0))
        self._usage[usage.process] = (
            min(begin, usage.begin),
            max(self._usage.get(usage.process, (0.0, 0.0, 0))[1], usage.end),
            max(memory, usage.memory),
        )

    def _pass(self, name: str, cells: list[Cell], function: Any, columns: int) -> NDArray[Any]:
        """Return a row per cell. Rows that are in the store are not computed again."""
        rows = self.store.table(name, len(cells), columns)
        calls: list[Call] = [(function, cell) for cell in cells if np.isnan(rows[cell.number, 0])]

        def keep(cell: Cell, answer: Any) -> None:
            rows[cell.number] = answer
            self.store.write_row(name, cell.number, rows[cell.number])

        self._run(name, calls, len(cells) - len(calls), len(cells), keep)
        return rows

    def _prepare(self) -> None:
        """Find what blocks need to know of the whole image, and the number of bits."""
        found = self.store.found
        energy = self.energy
        colors = energy.costs.kind == "image"
        if energy.pairs.image is not None and (colors or np.isnan(energy.pairs.beta)):
            if "image" not in found:
                calls: list[Call] = [(look_at_image, cell) for cell in self.first.cells]
                sums: dict[int, ImageSums] = {}
                keep = partial(_keep, sums)
                self._run("image", calls, 0, len(calls), keep)
                found["image"] = _summary([sums[k] for k in sorted(sums)], colors)
                self.store.find(image=found["image"])
            low, high, squares, drawn = found["image"]
            if np.isnan(energy.pairs.beta):
                edges = sum(count_pairs(energy.sides, step) for step in energy.pairs.steps)
                beta = edges / (2 * squares) if squares > 0 else 0.0
                energy = replace(energy, pairs=replace(energy.pairs, beta=beta))
            if colors:
                counts = np.array(drawn)
                for label, row in enumerate(counts):
                    if not row.any():
                        raise ValueError(
                            "seeds must mark voxels of both labels where kind is 'image', got none "
                            f"of label {label}"
                        )
                energy = replace(energy, costs=color_costs(energy.costs.source, low, high, counts))
        self.energy = energy
        if "bits" not in found:
            trial = Task(suits_32_bits)(energy, self.store, _middle(energy.sides))
            found["bits"] = 32 if trial.answer else 64
            self.store.find(bits=found["bits"])
        self._use_bits(int(found["bits"]))

    def _use_bits(self, bits: int) -> None:
        self.energy = replace(self.energy, units=units_for(self.energy.pairs.strengths, bits))

    def _begin_with_64_bits(self) -> None:
        self.store.find(bits=64)
        self.store.forget_rounds()
        self.store.forget_labels()
        self.n_open = {}
        self._use_bits(64)

    def _decide(self) -> None:
        """Write a label for each voxel, and find what is not proved of them."""
        found = self.store.found
        if found.get("rounds") is None:
            if found.get("unproved"):  # labels without a proof may have been written
                self.store.forget_rounds()
                self.store.forget_labels()
            gap, n_sweeps = self._rounds(bool(self.store.found.get("again")))
            found = {"rounds": [self.n_open, gap, n_sweeps]}
            self.store.find(unproved=gap > 0, **found)
        self.n_open, self._unproved, self._n_sweeps = found["rounds"]
        if "sweeps" in self.n_open:
            self._pass("settled", self.layout.rounds()[2].cells, settle, 1)

    def _rounds(self, again: bool) -> tuple[float, int]:
        """Return the gap that is left, and the number of sweeps."""
        for number, stage in enumerate(self.layout.rounds()):
            before = next(reversed(self.n_open.values()), None)
            cut = CutCell(stage.fresh and not again, BUDGET)
            rows = self._pass(stage.name, stage.cells, cut, len(Decided._fields))
            self.n_open[stage.name] = left = int(rows[:, 0].sum())
            if left == 0:
                return 0.0, 0
            if left <= BUDGET:
                self._solve_rest(stage, rows)
                return 0.0, 0
            if number >= 2 and before is not None and left > _HOPELESS * before:
                break
        sweeps = Sweeps(self.energy, self.store, self.layout.rounds()[2].cells, self._run)
        gap, n_open, n_sweeps = sweeps.solve(self._most_sweeps)
        self.n_open["sweeps"] = n_open if gap > 0 else 0
        return gap, n_sweeps

    def _solve_rest(self, stage: Round, rows: NDArray[Any]) -> None:
        """Label all voxels that are still open by one minimum cut, with the others fixed."""
        some = [cell for cell in stage.cells if rows[cell.number, 0] > 0]
        calls: list[Call] = [(gather_open, cell) for cell in some]
        parts: dict[int, OpenVoxels] = {}
        self._run("rest", calls, 0, 2 * len(calls), partial(_keep, parts))
        parts = {number: part for number, part in parts.items() if len(part.numbers)}
        if parts:
            labels = labels_of_open(list(parts.values()))
            ends = np.cumsum([len(part.numbers) for part in parts.values()])
            writes: list[Call] = [
                (WriteLabels(part.numbers, own), stage.cells[number])
                for (number, part), own in zip(
                    parts.items(), np.split(labels, ends[:-1]), strict=True
                )
            ]
            self._run("rest", writes, len(calls), 2 * len(calls), lambda cell, answer: None)
        self.n_open["rest"] = 0

    def _sum_up(self) -> NDArray[Any]:
        """Return the energies of all blocks, whose labels must be complete."""
        rows = self._pass("energy", self.first.cells, sum_energy, len(Energies._fields))
        damaged = [cell for cell in self.first.cells if rows[cell.number, -1] > 0]
        if (corner := self.store.missing()) is not None:
            damaged += [
                cell
                for cell in self.first.cells
                if all(
                    part.start <= at < part.stop for part, at in zip(cell.core, corner, strict=True)
                )
            ]
        if damaged:
            raise DamagedLabels(
                f"{damaged[0].name}: labels that were written are missing; what is written stays, "
                "and the next call goes on from there"
            )
        return rows

    # Results

    def _is_precise(self, rows: NDArray[Any]) -> bool:
        paid, least, cut, lost = (fsum(column) for column in rows.T[:4])
        return lost <= _MOST_LOST * (paid - least + cut)

    def _result(self, rows: NDArray[Any]) -> VolumeResult:
        paid, least, cut, lost = (fsum(column) for column in rows.T[:4])
        value, unproved = paid + cut, self._unproved
        gap = lost + unproved
        bound = float(np.nextafter(value - gap, -inf)) if gap > 0 else value
        if unproved == 0:
            reason = "every label is proved, by blocks whatever lies around them"
            if lost > 0:
                reason += f"; the gap is what {self.energy.units.bits} bits dropped"
        else:
            reason = (
                "voxels far from each other decide labels together: "
                f"{self.n_open['sweeps']} voxels are open after {self._n_sweeps} sweeps over blocks"
            )
        return self._record(value, bound, paid - least + cut, unproved == 0, False, reason)

    def _interrupted(self, reason: str) -> VolumeResult:
        sentence = f"{reason}; call again with the same store to go on"
        return self._record(inf, -inf, inf, False, True, sentence)

    def _record(
        self, value: float, bound: float, gain: float, proved: bool, interrupted: bool, reason: str
    ) -> VolumeResult:
        cells = self.first.cells
        corners = np.array([[part.start for part in cell.core] for cell in cells], np.int64)
        rows = self.store.table("blocks", len(cells), 3)
        used = sum(end - begin for begin, end, _ in self._usage.values())
        if not self._workers.shared:
            used = process_time() - self._own
        return VolumeResult(
            self.store.labels,
            value,
            bound,
            gain,
            proved,
            2.0**-self.energy.units.exponent,
            self.energy.units.bits,
            dict(self.n_open),
            table_of(corners, rows),
            perf_counter() - self._begin,
            used,
            max((memory for _, _, memory in self._usage.values()), default=0),
            interrupted,
            reason,
            self.energy,
            self.store,
        )


def _keep(answers: dict[int, Any], cell: Cell, answer: Any) -> None:
    answers[cell.number] = answer


def _summary(sums: list[ImageSums], colors: bool) -> list[Any]:
    """Return the range of an image, the sum of its squared changes, and counts under seeds."""
    low, high = min(own.low for own in sums), max(own.high for own in sums)
    drawn = np.zeros((2, CELLS))
    if colors:
        step = CELLS / (high - low) if high > low else 0.0
        for own in sums:
            if own.drawn is not None and own.values is not None:
                cells = cells_of(own.values, low, step)
                for row, counts in zip(drawn, own.drawn, strict=True):
                    np.add.at(row, cells, counts)
    return [low, high, fsum(own.squares for own in sums), drawn.tolist()]


def _middle(sides: tuple[int, ...]) -> Cell:
    """Return the box in the middle, which does not depend on the blocks."""
    most = [min(_TRIAL[len(sides)], side) for side in sides]
    begins = [(side - own) // 2 for side, own in zip(sides, most, strict=True)]
    box = tuple(slice(begin, begin + own) for begin, own in zip(begins, most, strict=True))
    return Cell(-1, box, box)


def suits_32_bits(energy: VolumeEnergy, store: VolumeStore, cell: Cell) -> bool:
    """Return whether 32 bits are enough for a box, cut by itself."""
    energy, box = replace(energy, units=units_for(energy.pairs.strengths, 32)), cell.core
    block = energy.block(box)
    inner = within(box, block.padded)
    shape = shape_of(box)
    known = np.full(shape, OPEN, np.uint8)
    _core.cut_block(
        np.ascontiguousarray(block.costs[inner]).ravel(),
        np.array(shape, np.int64),
        energy.steps,
        block.weights[(slice(None), *inner)],
        known.ravel(),
        np.array([(0, side) for side in shape], np.int64),
    )
    # Outside are the labels of the nearest voxels, so that edges to there cost nothing.
    margins = zip(inner, shape_of(block.padded), strict=True)
    around = [(part.start, side - part.stop) for part, side in margins]
    labels = np.pad(known, around, mode="edge")
    costs, cut, lost = energy.sums(box, labels)
    gain = costs.paid - costs.least + cut
    return gain == 0 or costs.lost + lost <= _MOST_LOST * gain
