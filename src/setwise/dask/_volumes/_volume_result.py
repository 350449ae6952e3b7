"""Records of a volume: options, progress, and the result with its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import IntArray, as_count, as_number
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Certificate, relative_gap
from setwise.fields._pixels._grid import Offset, directions
from setwise.inference._editing._editable_cut import EditableCut

# The sides of blocks by the number of axes: about 2^24 voxels, whose faces are few beside them and
# whose arrays take a few hundred megabytes (benchmarks/volumes.py).
_BLOCK = {1: 1 << 24, 2: 4096, 3: 256}
# The numbers of directions for which kernels are compiled.
_NEIGHBOURS = {1: (2,), 2: (4, 8), 3: (6, 26)}


@dataclass(frozen=True, eq=False, repr=False)
class VolumeOptions(Record):
    """Settings of a large volume that few volumes need.

    Parameters
    ----------
    connectivity : int, optional
        4 or 8 in an image, 6 or 26 in a volume; by default 4 and 6.
    beta : float, optional
        The decrease of the weights with the contrast. By default one over twice the mean square of
        the changes along edges, which takes a pass over the image.
    block : int or sequence of int, optional
        The sides of a block, rounded up to even numbers; by default 256 voxels in a volume and
        4096 pixels in an image. A thread needs the memory of one block, and of up to four where
        voxels stay open.
    sweeps : int
        The most sweeps over blocks whose labels depend on each other over long distances.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> options = sw.dask.VolumeOptions(block=4, connectivity=8)
    >>> sw.dask.solve_map(np.full((9, 9), -1.0), options=options).exact
    True
    """

    connectivity: int | None = None
    beta: float | None = None
    block: int | ArrayLike | None = None
    sweeps: int = 20

    def steps(self, axes: int) -> tuple[Offset, ...]:
        """Return the directions of the edges."""
        known = _NEIGHBOURS[axes]
        count = (
            known[0] if self.connectivity is None else as_count(self.connectivity, "connectivity")
        )
        if count not in known:
            words = " or ".join(map(str, known))
            raise ValueError(f"connectivity must be {words} in {axes} dimensions, got {count}")
        return tuple(directions(count, axes))

    def contrast(self) -> float | None:
        """Return ``beta``."""
        return None if self.beta is None else as_number(self.beta, "beta", nonnegative=True)

    def blocks(self, sides: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sides of a block."""
        axes = len(sides)
        given: Any = _BLOCK[axes] if self.block is None else self.block
        if np.ndim(given) == 0:
            given = [given] * axes
        own = tuple(as_count(side, "block", least=1) for side in list(given))
        if len(own) != axes:
            raise ValueError(f"block must have {axes} sides, got {len(own)}")
        return tuple(
            min(2 * -(-side // 2), 2 * -(-most // 2)) for side, most in zip(own, sides, strict=True)
        )

    def most_sweeps(self) -> int:
        """Return ``sweeps``."""
        return as_count(self.sweeps, "sweeps")


@dataclass(frozen=True, eq=False, repr=False)
class VolumeProgress(Record):
    """The state of a volume after a block. A true return value of the callback ends the call.

    Attributes
    ----------
    round : str
        "image" (the first pass over an image), "blocks", "shifted", "halo", "doubled halo", "rest",
        "sweeps" or "energy".
    done, total : int
        The number of blocks of the round that are done, and of all.
    n_open : int or None
        The number of voxels that the last complete round left open.
    seconds : float
        The seconds since the start of the call.
    seconds_left : float
        An estimate of the time until the end of the round.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> seen = []
    >>> result = sw.dask.solve_map(np.full((5, 5), -1.0), callback=seen.append)
    >>> seen[0].round, seen[0].done, seen[0].total
    ('blocks', 1, 1)
    """

    round: str
    done: int
    total: int
    n_open: int | None
    seconds: float
    seconds_left: float

    def __str__(self) -> str:
        """Return a line for a log."""
        left = "" if self.n_open is None else f", {self.n_open} voxels open before"
        return (
            f"{self.round}: {self.done} of {self.total} blocks{left}, {self.seconds:.0f} s, "
            f"about {self.seconds_left:.0f} s left in this round"
        )


@dataclass(frozen=True, eq=False, repr=False)
class VolumeResult(Record, Certificate):
    """The labels of a large volume, with their certificate.

    Attributes
    ----------
    labels : zarr array of uint8
        0 and 1; 2 where a voxel is still open, after an interruption.
    value : float
        The energy of the labels; infinite if voxels are open. Seeds and forbidden labels count 0.
    bound : float
        No labelling that respects them has a lower energy.
    relative_gap : float
        The gap divided by the possible gain.
    exact : bool
        Whether the labels are proved and no number was rounded.
    proved : bool
        Whether the labels are the least minimiser of the energy in whole units.
    unit : float
        Costs and weights are whole multiples of this power of two; digits below are dropped.
    bits : int
        32 or 64: of the numbers in which blocks are cut.
    n_open : dict of str to int
        The number of open voxels after each round.
    blocks : structured array
        The table: for each block of the first round its corner, the number of voxels that it left
        open, of ones at that time, and the processor time.
    seconds : float
        The time of this call.
    processor_seconds : float
        The processor time of this call in all processes that worked.
    peak_memory : int
        The largest resident memory of one of these processes, in bytes; 0 where it is unknown.
    interrupted : bool
    reason : str
        Why the labels are proved, or are not, in one sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> result = sw.dask.solve_map(np.array([[-1.0, 0.25], [-1.0, 0.5]]), smoothness=0.5)
    >>> result.labels[:].tolist(), result.value, result.exact
    ([[1, 1], [1, 1]], -1.25, True)
    """

    _printed = "value bound relative_gap exact proved n_open interrupted reason seconds"

    labels: Any
    value: float
    bound: float
    _gain: float
    proved: bool
    unit: float
    bits: int
    n_open: dict[str, int]
    blocks: NDArray[np.void]
    seconds: float
    processor_seconds: float
    peak_memory: int
    interrupted: bool
    reason: str
    _energy: Any
    _store: Any

    @property
    def relative_gap(self) -> float:
        """The gap divided by the possible gain."""
        return relative_gap(self.gap, self._gain)

    @property
    def exact(self) -> bool:
        """Whether the labels are proved and no number was rounded."""
        return self.proved and self.gap == 0

    def edit(self, n_jobs: int | None = None) -> EditableCut:
        """Return the labels as an ``EditableCut``, which changes them after strokes.

        The labels must be proved. Costs and weights are those of ``unit``, read in windows.
        Strokes are written to ``labels``, so ``solve_map`` refuses this store from then on.

        Examples
        --------
        >>> import numpy as np
        >>> import setwise as sw
        >>> result = sw.dask.solve_map(np.full((5, 5), 1.0), smoothness=0.5)
        >>> cut = result.edit()
        >>> cut.add_seeds([[1, 1], [1, 2], [2, 2]], 1).n_changed, result.labels[1, 1]
        (3, array(1, dtype=uint8))
        """
        from setwise.dask._volumes._edit import editable

        if not self.proved:
            raise ValueError(f"labels must be proved before they are edited, got: {self.reason}")
        self._store.find(edited=True)
        return editable(self._energy, self.labels, n_jobs)


def table_of(corners: IntArray, rows: NDArray[np.float64]) -> NDArray[np.void]:
    """Return the table of the first round: corners, open voxels, ones, seconds."""
    kind = [("corner", np.int64, (corners.shape[1],)), ("open", np.int64), ("ones", np.int64)]
    table = np.zeros(len(rows), [*kind, ("seconds", np.float64)])
    table["corner"] = corners
    done = ~np.isnan(rows[:, 0])
    table["open"] = np.where(done, rows[:, 0], -1)
    table["ones"] = np.where(done, rows[:, 1], -1)
    table["seconds"] = rows[:, 2]
    return table
