"""What every search for the best labelling returns: the labels, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass, field

from setwise._foundation._arguments import IntArray
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Certificate
from setwise._foundation._html import as_html, certificate_rows
from setwise._foundation._pictures import label_picture
from setwise._foundation._progress import Progress
from setwise._foundation._timings import Timings
from setwise.fields._pixels._in_image import in_image


@dataclass(frozen=True, eq=False, repr=False)
class MapProgress(Progress):
    """The state of a search, for a callback. A true return value ends the search.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> seen = []
    >>> best = sw.solve_map(field, callback=seen.append)
    >>> seen[-1].n_iter, seen[-1].value, seen[-1].bound, seen[-1].relative_gap
    (1, 0.0, 0.0, 0.0)
    """


@dataclass(frozen=True, eq=False, repr=False)
class MapResult(Record, Certificate):
    """A labelling of low energy, with its certificate.

    Attributes
    ----------
    labels : array of shape (N,)
        The best labelling met.
    value : float
        Its energy.
    bound : float
        No labelling has a lower energy, by no digit: it is rounded down, or up to the next
        multiple where all numbers of the field are multiples of a power of two and sums of them
        are exact. ``-inf`` where the method knows none.
    method : str
        The method that ran.
    reason : str
        Why it was chosen, in one sentence; and, if so, that the search for a bound ended above
        ``tol`` as the bound is at the limit of its relaxation, or that ``time_limit`` ended it.
    n_iter : int
        Rounds of the method: cuts, sweeps over the labels, passes.
    converged : bool
        Whether the method came to its own end (a local optimum for moves), not to ``max_iter`` or
        ``time_limit``.
    interrupted : bool
        Whether a callback or Ctrl-C ended it; ``labels`` and ``bound`` hold all the same.
    relative_gap : float
        The gap's share of what there was to gain, value minus the sum of the least values of all
        terms: 0 to 1, or ``inf`` without a bound. A constant or another unit does not change it.
    exact : bool
        Whether the gap is within the rounding error of the two sums, of the energies that the
        labelling pays and of those that the bound adds up: no labelling is better. Each row's
        least unary is taken out first, so neither a constant nor a large price that nobody pays
        excuses a gap; whole-numbered energies with a gap of 1 are never exact.
    timings : mapping of str to float
        Where the time went, in seconds: "set-up", "search", "bound" where the method has none of
        its own, and "answer", what it took to write it down. No part of the answer.
    shape : tuple of int, or None
        The field's: the sides of the image, where they are known.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.solve_map(sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]))
    >>> best.labels.tolist(), best.value, best.gap, best.exact
    ([0, 1], 0.0, 0.0, True)
    """

    labels: IntArray
    value: float
    bound: float
    method: str
    reason: str
    n_iter: int
    converged: bool
    interrupted: bool
    relative_gap: float
    exact: bool
    timings: Timings = field(default_factory=Timings)
    shape: tuple[int, ...] | None = None

    @property
    def certified(self) -> bool:
        """Whether the bound is a proof: True, as that of every method is."""
        return True

    @property
    def label_image(self) -> IntArray:
        """``labels`` in the shape of the image."""
        return in_image(self.labels, self.shape)

    def _repr_html_(self) -> str:
        rows = certificate_rows(self.value, self.bound, self.relative_gap, self.exact)
        rows += [("method", self.method), ("reason", self.reason)]
        pictures = []
        if self.shape is not None and self.labels.size:
            pictures = [("labels", label_picture(self.label_image))]
        return as_html("MapResult", rows, pictures)


@dataclass(frozen=True, eq=False)
class Found(MapResult):
    """The record of a search: its bound is as it was computed, in floats."""

    lost: float = 0.0
    """what rounding may have added to the bound"""
