"""A cut of a grid that is edited by strokes; each update touches a window and has a proof."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    IntArray,
    as_array,
    as_count,
    as_flag,
    as_numbers,
    check_callback,
)
from setwise._foundation._base_classes import Versioned
from setwise._foundation._progress import stops
from setwise._foundation._threads import as_threads
from setwise.inference._editing._certificate import certify
from setwise.inference._editing._edits import NO_SEED, Chunk, Edits
from setwise.inference._editing._grid_energy import GridEnergy, make_energy
from setwise.inference._editing._local_update import pieces, update
from setwise.inference._editing._result import EditCertificate, EditProgress, EditResult
from setwise.inference._editing._sliceable import (
    Sliceable,
    Window,
    as_sliceable,
    located,
    shape_of,
    whole,
)
from setwise.inference._editing._stored_labels import Change, FormerLabels, LabelStore
from setwise.inference._editing._whole_grid import solve_whole

Callback = Callable[[EditProgress], object]

# The width in voxels of the first window around a change, by the number of axes. With a larger
# halo, more strokes are proved at once and each takes longer (benchmarks/edits.py measures both).
_HALO = {1: 1024, 2: 128, 3: 16}

_WHOLE = "the whole was solved again"
_CLOSED = "no change of a label reaches the border of its window"
_STOPPED = "a callback ended the update: call repair()"
_EARLIER = "an earlier update has no proof: call repair()"


class _Reporter:
    """A counter of cuts that reports each of them to a callback."""

    def __init__(self, callback: Callback | None) -> None:
        self._callback, self._begin, self.count = callback, perf_counter(), 0

    def __call__(self, window: Window, done: float) -> bool:
        self.count += 1
        seconds = perf_counter() - self._begin
        return stops(self._callback, EditProgress(self.count, window, done, seconds))


class EditableCut(Versioned):
    r"""The least minimiser of an energy of two labels on a grid, updated after each stroke.

    The energy of labels :math:`x_p \in \{0, 1\}` with neighbours :math:`p + k` is

    .. math:: \sum_p u_p x_p + \sum_{k, p} w_{kp} \, x_p (1 - x_{p + k})
       + r_{kp} \, (1 - x_p) \, x_{p + k}.

    Of all best labellings ``labels`` is the one with the fewest ones. A change of some costs is
    followed by a cut of a window around them. If the change favours label 1, the voxels outside the
    window are fixed to label 1. If then no chain of neighbours whose labels change leads from the
    changed voxels out of the window, the labels inside are proved to be those of the new least
    minimiser, and all others stay. Otherwise the window grows, in the end to the whole grid. A
    change that favours label 0 is treated symmetrically, and a change that favours both labels in
    two steps. So the time of a stroke depends on the size of the change, not on the size of the
    grid.

    Costs and weights are rounded to multiples of a power of two, ``certificate().unit``, and all
    computations are in integers. The labels are identical to those of a solution of the whole grid.
    Integers and other multiples of the unit are not changed by rounding; otherwise
    ``certificate()`` bounds the error.

    Parameters
    ----------
    unary : array-like of shape (\*sides)
        :math:`u_p`, the cost of label 1 minus that of label 0. ``inf`` forbids label 1 and
        ``-inf`` label 0.
    weights : a number, or array-like that broadcasts to (K, \*sides), or of shape (E,)
        :math:`w_{kp}` for the directions k in the order of ``fields.grid_edges``; a flat array has
        a weight for each of its edges. Finite and not negative.
    reverse : the same, optional
        :math:`r_{kp}`; by default ``weights``, for undirected edges.
    connectivity : int or array-like of int of shape (K, d), optional
        The neighbourhood, as in ``fields.grid_edges``: by default 4 neighbours in an image, 6 in a
        volume.
    labels : array of shape (\*sides), optional
        The array into which labels are written; by default a new array of uint8. It can be a memory
        map or an array of zarr.
    solved : bool
        Whether ``labels`` are already known to be the least minimiser. Then nothing is solved at
        first.
    n_jobs : int, optional
        The number of threads of large cuts; None for all cores. The answer does not depend on it.
    callback : callable, optional
        Is called with an ``EditProgress`` after each cut of the first solution. A true return value
        ends the solution. The labels are then without a proof until :meth:`repair`.

    Notes
    -----
    ``unary``, ``weights`` and ``reverse`` may be anything with a shape, a dtype and slices, such as
    memory maps and arrays of zarr or dask. They are read in windows and not copied, and other code
    must not change them. Changes are stored separately, in 9 bytes per voxel of the affected
    chunks, and for :meth:`undo` in about 30 bytes per changed voxel. Grids of more than 8 million
    voxels are solved in blocks.

    After Ctrl-C, costs and labels are the same as before the call. Several threads may read a cut,
    but only one at a time may change it.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> cut = sw.inference.EditableCut(np.full((5, 5), 1.0), 0.5)
    >>> cut.labels.sum(), cut.proved
    (np.uint64(0), True)
    >>> update = cut.add_seeds([[1, 1], [1, 2], [2, 2]], 1)
    >>> update.n_changed, update.proved
    (3, True)
    >>> update = cut.change_unary(np.s_[:, 3:], -4.0)
    >>> cut.labels
    array([[0, 0, 0, 1, 1],
           [0, 1, 1, 1, 1],
           [0, 0, 1, 1, 1],
           [0, 0, 0, 1, 1],
           [0, 0, 0, 1, 1]], dtype=uint8)
    >>> cut.undo().n_changed
    10
    """

    def __init__(
        self,
        unary: ArrayLike | Sliceable,
        weights: ArrayLike | Sliceable,
        reverse: ArrayLike | Sliceable | None = None,
        *,
        connectivity: int | ArrayLike | None = None,
        labels: Any = None,
        solved: bool = False,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        check_callback(callback)
        energy = make_energy(unary, weights, reverse, connectivity)
        self._begin(energy, connectivity, labels, as_flag(solved, "solved"), n_jobs)
        if self._begins_proved:
            if labels is None:
                raise ValueError("labels must be given if solved is True, got None")
        else:
            self._solve_again(callback)

    def _begin(
        self,
        energy: GridEnergy,
        connectivity: int | ArrayLike | None,
        labels: Any,
        solved: bool,
        n_jobs: int | None,
    ) -> None:
        self._energy = energy
        self._connectivity = connectivity
        self._n_threads = as_threads(n_jobs)
        self._store = LabelStore(_as_labels(labels, self.shape))
        self._edits = Edits(self.shape)
        self._changes: list[Change] = []
        self._halo = _HALO[min(len(self.shape), 3)]
        self._begins_proved = solved

    @classmethod
    def _of(cls, energy: GridEnergy, labels: Any, n_jobs: int | None) -> Self:
        """Return a cut of an energy whose labels are proved."""
        cut = cls.__new__(cls)
        cut._begin(energy, np.array(energy.steps), labels, True, n_jobs)
        return cut

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the grid."""
        return self._energy.sides

    @property
    def labels(self) -> Any:
        r"""The labels 0 and 1 (\*sides), in the given array or else in a read-only one."""
        array = self._store.array
        if isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
            array = array.view()
            array.flags.writeable = False
        return array

    @property
    def proved(self) -> bool:
        """Whether the labels are proved to be the least minimiser of the rounded energy."""
        return self._changes[-1].proved if self._changes else self._begins_proved

    def add_seeds(
        self, where: ArrayLike, label: int | None, *, callback: Callback | None = None
    ) -> EditResult:
        r"""Fix the labels of some voxels.

        Parameters
        ----------
        where : array-like of bool of shape (\*sides), or of int of shape (m, d)
            A mask, or the coordinates of voxels. A later seed replaces an earlier one.
        label : 0, 1 or None
            None removes the seeds of these voxels.
        callback : callable, optional
            Is called with an ``EditProgress`` after each cut. A true return value ends the update.
            The change then stays, and the labels are without a proof until :meth:`repair`.

        Examples
        --------
        >>> import setwise as sw
        >>> cut = sw.inference.EditableCut([[1, 1, 1]], 2)
        >>> update = cut.add_seeds([[0, 1]], 1)
        >>> cut.labels.tolist()
        [[1, 1, 1]]
        >>> update = cut.add_seeds([[0, 1]], None)
        >>> cut.labels.tolist()
        [[0, 0, 0]]
        """
        check_callback(callback)
        if label is not None:
            label = as_count(label, "label", most=1)
        voxels = _as_voxels(where, self.shape)
        delta, _ = self._edits.read_at(voxels)
        seed = np.full(len(voxels), NO_SEED if label is None else label, np.int8)
        return self._apply(voxels, (delta, seed), callback)

    def change_unary(
        self,
        window: slice | tuple[slice, ...],
        delta: ArrayLike,
        *,
        callback: Callback | None = None,
    ) -> EditResult:
        """Add numbers to the unaries of a window.

        Parameters
        ----------
        window : slice or tuple of slice
            The voxels, as in ``np.s_[10:20, 5:9]``; axes at the end may be left out.
        delta : a number, or array-like that broadcasts to the shape of the window
            Finite. Negative numbers favour label 1. At a seed they take effect when it is removed.
        callback : callable, optional
            As in :meth:`add_seeds`.

        Examples
        --------
        >>> import numpy as np
        >>> import setwise as sw
        >>> cut = sw.inference.EditableCut([[1, 1, 1]], 0.25)
        >>> update = cut.change_unary(np.s_[:, :2], [-3, -2])
        >>> cut.labels.tolist()
        [[1, 1, 0]]
        """
        check_callback(callback)
        box = _as_window(window, self.shape)
        more = as_numbers(delta, "delta", shape=None)
        try:
            more = np.broadcast_to(more, shape_of(box))
        except ValueError:
            raise ValueError(
                f"delta must broadcast to shape {shape_of(box)}, got {more.shape}"
            ) from None
        places = np.nonzero(more)
        corner = [part.start for part in box]
        voxels = np.ravel_multi_index(
            tuple(own + start for own, start in zip(places, corner, strict=True)), self.shape
        ).astype(np.int64)
        before, seed = self._edits.read_at(voxels)
        return self._apply(voxels, (before + more[places], seed), callback)

    def undo(self) -> EditResult:
        """Undo the last change: restore costs, labels and proof from before it.

        Nothing is computed. A ``ValueError`` is raised if there is no change, or none since
        :meth:`replace`.

        Examples
        --------
        >>> import setwise as sw
        >>> cut = sw.inference.EditableCut([[1, 1, 1]], 2)
        >>> cut.add_seeds([[0, 1]], 1).n_changed, cut.undo().n_changed
        (3, 3)
        >>> cut.labels.tolist()
        [[0, 0, 0]]
        """
        begin = perf_counter()
        if not self._changes:
            raise ValueError("there is no change to undo")
        changed = self._take_back()
        reason = "the labels from before the change were kept" if self.proved else _EARLIER
        seconds = perf_counter() - begin
        return EditResult(self.proved, changed, 0, 0, False, False, reason, seconds)

    def replace(
        self,
        unary: ArrayLike | Sliceable | None = None,
        weights: ArrayLike | Sliceable | None = None,
        reverse: ArrayLike | Sliceable | None = None,
        *,
        callback: Callback | None = None,
    ) -> EditResult:
        """Replace all unaries or weights, for instance after new colours were learned.

        Seeds and changes stay. New unaries or weights affect all voxels, so the whole grid is
        solved again, and earlier changes can no longer be undone. The arguments are those of the
        constructor; None keeps the present values. New ``weights`` without ``reverse`` are the
        weights of undirected edges.

        Examples
        --------
        >>> import setwise as sw
        >>> cut = sw.inference.EditableCut([[1, 1, 1]], 2)
        >>> cut.replace(unary=[[-3, -1, 3]]).reason
        'the whole was solved again'
        >>> cut.labels.tolist()
        [[1, 1, 0]]
        """
        check_callback(callback)
        before = self._energy
        if weights is None and reverse is None:
            weights = before.weights
            reverse = None if before.reverse is before.weights else before.reverse
        energy = make_energy(
            before.unary if unary is None else unary,
            before.weights if weights is None else weights,
            reverse,
            self._connectivity,
        )
        if energy.sides != self.shape:
            raise ValueError(f"unary must have shape {self.shape}, got {energy.sides}")
        self._energy = energy
        changes, self._changes = self._changes, []
        try:
            return self._solve_again(callback)
        except BaseException:
            self._energy, self._changes = before, changes
            raise

    def repair(self, *, callback: Callback | None = None) -> EditResult:
        """Prove the labels after an update that was ended before its proof.

        The last proved labels are restored, and the changes since then are made again.

        Examples
        --------
        >>> import setwise as sw
        >>> cut = sw.inference.EditableCut([[-1, 1, -1]], 2)
        >>> cut.repair().reason
        'the labels were proved already'
        """
        check_callback(callback)
        begin = perf_counter()
        later: list[Change] = []
        while not self.proved and self._changes:
            later.append(self._changes[-1])
            self._take_back()
        results: list[EditResult] = []
        try:
            if not self.proved:
                results.append(self._solve_again(callback))
            while later:
                results.append(self._apply(later[-1].voxels, later[-1].after, callback))
                later.pop()
        finally:
            for change in reversed(later):  # after Ctrl-C the changed costs stay, without a proof
                self._changes.append(self._set(change.voxels, change.after))
        reason = _STOPPED if not self.proved else "the labels were proved already"
        return EditResult(
            self.proved,
            sum(result.n_changed for result in results),
            sum(result.n_steps for result in results),
            sum(result.n_windows for result in results),
            any(result.whole for result in results),
            any(result.interrupted for result in results),
            results[-1].reason if results else reason,
            perf_counter() - begin,
        )

    def certificate(self) -> EditCertificate:
        """Return the energy of the labels, with a bound. This reads the whole grid, block by block.

        Examples
        --------
        >>> import setwise as sw
        >>> cut = sw.inference.EditableCut([[-1.0, 0.1]], 0.3)
        >>> proof = cut.certificate()
        >>> proof.value, proof.proved, proof.gap < 1e-13
        (-0.9, True, True)
        """
        return certify(self._energy, self._edits, self._store, self.proved)

    def _solve_again(self, callback: Callback | None) -> EditResult:
        """Solve the whole grid. The answer begins a history without changes."""
        begin, report = perf_counter(), _Reporter(callback)
        journal: list[FormerLabels] = []
        labels, proved = solve_whole(self._energy, self._edits, self._n_threads, report)
        try:
            changed = self._store.write(whole(self.shape), labels, journal)
        except BaseException:
            self._store.restore(journal)
            raise
        self._begins_proved = proved
        return EditResult(
            proved,
            changed,
            1,
            report.count,
            True,
            not proved,
            _WHOLE if proved else _STOPPED,
            perf_counter() - begin,
        )

    def _apply(self, voxels: IntArray, after: Chunk, callback: Callback | None) -> EditResult:
        """Change costs and then labels, in steps that each favour one label in one window."""
        begin, report = perf_counter(), _Reporter(callback)
        n_windows = n_steps = changed = 0
        is_whole = stopped = False
        proved = self.proved
        change = Change(voxels, self._edits.read_at(voxels), after, [], False)
        try:
            for piece in pieces(voxels, self._halo, self.shape) if len(voxels) else ():
                rows = np.searchsorted(voxels, piece)
                old, new = self._energy.costs_at(
                    piece, *((part[0][rows], part[1][rows]) for part in (change.before, after))
                )
                for label, moved in ((1, rows[new < old]), (0, rows[new > old])):
                    if not len(moved):
                        continue
                    self._edits.write_at(voxels[moved], (after[0][moved], after[1][moved]))
                    n_steps += 1
                    found = update(
                        self._energy,
                        self._edits,
                        self._store,
                        voxels[moved],
                        label,
                        self._halo,
                        stopped or not proved,
                        self._n_threads,
                        report,
                    )
                    n_windows += found.n_windows
                    changed += self._store.write(found.window, found.labels, change.journal)
                    is_whole, stopped = is_whole or found.whole, stopped or found.stopped
                    proved = found.proved and (proved or found.whole)
            self._edits.write_at(voxels, after)
        except BaseException:
            change.revert(self._edits, self._store)
            raise
        self._changes.append(change._replace(proved=proved))
        reason = _WHOLE if is_whole else _CLOSED
        if not proved:
            reason = _STOPPED if stopped else _EARLIER
        seconds, ended = perf_counter() - begin, stopped and not proved
        return EditResult(proved, changed, n_steps, n_windows, is_whole, ended, reason, seconds)

    def _set(self, voxels: IntArray, after: Chunk) -> Change:
        """Change costs without solving; only the labels of seeds are set."""
        change = Change(voxels, self._edits.read_at(voxels), after, [], False)
        self._edits.write_at(voxels, after)
        for label in (0, 1):
            seeds = voxels[after[1] == label]
            if len(seeds):
                window, places = located(seeds, self.shape)
                labels = self._store.read(window)
                labels[tuple(places.T)] = label
                self._store.write(window, labels, change.journal)
        return change

    def _take_back(self) -> int:
        """Undo the last change and return the number of labels that change."""
        change = self._changes[-1]
        try:
            return change.revert(self._edits, self._store)
        except BaseException:  # after Ctrl-C, complete what has begun
            change.revert(self._edits, self._store)
            raise
        finally:
            self._changes.pop()

    def __repr__(self) -> str:
        sides = " x ".join(map(str, self.shape))
        return (
            f"EditableCut({sides}, connectivity={2 * len(self._energy.steps)}, "
            f"n_changes={len(self._changes)}, proved={self.proved})"
        )


def _as_labels(labels: Any, sides: tuple[int, ...]) -> Sliceable:
    if labels is None:
        return np.zeros(sides, np.uint8)
    if not hasattr(labels, "__setitem__") or not hasattr(labels, "dtype"):
        raise TypeError(f"labels must be an array that can be written, got {type(labels).__name__}")
    array = as_sliceable(labels, "labels")
    if np.dtype(array.dtype).kind not in "biu":
        raise TypeError(f"labels must hold integers, got dtype {array.dtype}")
    if tuple(array.shape) != sides:
        raise ValueError(f"labels must have shape {sides}, got {array.shape}")
    if isinstance(labels, np.ndarray) and not labels.flags.writeable:
        raise ValueError("labels must be an array that can be written, got a read-only one")
    return array


def _as_voxels(where: ArrayLike, sides: tuple[int, ...]) -> IntArray:
    """Return the sorted numbers of voxels given as a mask or by their coordinates."""
    array = as_array(where, "where")
    if array.dtype.kind == "b":
        if array.shape != sides:
            raise ValueError(f"where must be a mask of shape {sides}, got {array.shape}")
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 2 or array.shape[1] != len(sides):
        raise ValueError(
            f"where must be a mask or coordinates of shape (m, {len(sides)}), got {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise TypeError(f"where must hold integers or be a mask of bool, got dtype {array.dtype}")
    outside = ((array < 0) | (array >= np.array(sides))).any(axis=1)
    if outside.any():
        place = tuple(map(int, array[outside][0]))
        raise ValueError(f"where must lie in the grid of shape {sides}, got {place}")
    return np.unique(np.ravel_multi_index(tuple(array.astype(np.int64).T), sides))


def _as_window(window: slice | tuple[slice, ...], sides: tuple[int, ...]) -> Window:
    given = window if isinstance(window, tuple) else (window,)
    if not all(isinstance(part, slice) for part in given):
        raise TypeError(f"window must be a slice or a tuple of slices, got {window!r:.60}")
    if len(given) > len(sides):
        raise ValueError(f"window must have at most {len(sides)} slices, got {len(given)}")
    box = []
    for part, side in zip(given + (slice(None),) * (len(sides) - len(given)), sides, strict=True):
        try:
            start, stop, step = part.indices(side)
        except TypeError:
            raise TypeError(f"window must have slices of integers, got {part}") from None
        if step != 1:
            raise ValueError(f"window must have slices without a step, got {part}")
        box.append(slice(start, max(start, stop)))
    return tuple(box)
