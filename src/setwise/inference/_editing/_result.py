"""Records of an editable cut: the effect of a change, its progress, and the certificate."""

from __future__ import annotations

from dataclasses import dataclass

from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Certificate


@dataclass(frozen=True, eq=False, repr=False)
class EditProgress(Record):
    """The state of an update after a cut. A true return value of the callback ends the update.

    Attributes
    ----------
    n_windows : int
        The number of cuts so far, of windows or of blocks.
    window : tuple of slice
        The voxels of the last cut.
    done : float
        The share of the blocks that are done if the whole grid is solved in blocks, otherwise 1.
    seconds : float
        The seconds since the start.

    Examples
    --------
    >>> import setwise as sw
    >>> cut = sw.inference.EditableCut([[1, 1, 1], [1, 1, 1]], 1)
    >>> seen = []
    >>> update = cut.add_seeds([[0, 0]], 1, callback=seen.append)
    >>> seen[-1].n_windows, seen[-1].window, seen[-1].done
    (1, (slice(0, 2, None), slice(0, 3, None)), 1.0)
    """

    n_windows: int
    window: tuple[slice, ...]
    done: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class EditResult(Record):
    """The record of a change of an editable cut.

    Attributes
    ----------
    proved : bool
        Whether the labels are proved to be the least minimiser after the change.
    n_changed : int
        The number of labels that were written because they changed.
    n_steps : int
        The least possible number of windows. It is two for a change that favours both labels, or a
        change with two distant parts.
    n_windows : int
        The number of windows that were cut. If it equals ``n_steps``, each step was proved by its
        first window.
    whole : bool
        Whether the whole grid was solved again.
    interrupted : bool
        Whether a callback ended the update.
    reason : str
        Why the labels are proved, or are not, in one sentence.
    seconds : float
        The time of the update.

    Examples
    --------
    >>> import setwise as sw
    >>> cut = sw.inference.EditableCut([[1, 1, 1], [1, 1, 1]], 1)
    >>> cut.add_seeds([[0, 0]], 1)  # doctest: +ELLIPSIS
    EditResult(proved=True, n_changed=1, n_steps=1, n_windows=1, whole=True, interrupted=False, ...)
    """

    proved: bool
    n_changed: int
    n_steps: int
    n_windows: int
    whole: bool
    interrupted: bool
    reason: str
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class EditCertificate(Record, Certificate):
    """The energy of the labels of an editable cut, with a bound.

    Attributes
    ----------
    value : float
        The energy of the labels. Forbidden labels and seeds contribute 0.
    bound : float
        No labelling that respects seeds and forbidden labels has a lower energy. If the labels are
        proved, the gap is the error that rounding costs and weights to multiples of ``unit`` causes
        for these labels, and 0 if nothing is rounded. Otherwise the bound is the sum of the
        negative costs.
    relative_gap : float
        The gap divided by the possible gain, which is value minus the sum of the negative costs.
    exact : bool
        Whether the labels are proved and nothing was rounded: then they are the least minimiser,
        the one with the fewest ones.
    proved : bool
        Whether the labels are the least minimiser of the rounded energy.
    unit : float
        Costs and weights are rounded to multiples of this power of two.

    Examples
    --------
    >>> import setwise as sw
    >>> cut = sw.inference.EditableCut([[-3, 1, 1], [-2, 1, 1]], 1)
    >>> cut.labels.tolist()
    [[1, 0, 0], [1, 0, 0]]
    >>> proof = cut.certificate()
    >>> proof.value, proof.bound, proof.exact
    (-3.0, -3.0, True)
    """

    value: float
    bound: float
    relative_gap: float
    exact: bool
    proved: bool
    unit: float
