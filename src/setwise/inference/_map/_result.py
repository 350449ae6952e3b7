"""The result of searches for the best labelling: labels with a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field

from setwise._foundation._arguments import IntArray
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Certificate
from setwise._foundation._clock import Timings
from setwise._foundation._display import as_html, certificate_rows, label_picture
from setwise._foundation._progress import Progress
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
        The best labelling found.
    value : float
        Its energy.
    bound : float
        No labelling has a lower energy in exact arithmetic. The bound is rounded down, or up to the
        next multiple if all numbers of the field are multiples of a power of two whose sums are
        exact. It is ``-inf`` if the method has none.
    method : str
        The method that ran.
    reason : str
        Why the method was chosen, in one sentence. It also states if the bound reached the limit of
        its relaxation above ``tol``, or if ``time_limit`` ended the search.
    n_iter : int
        The number of rounds of the method: cuts, sweeps over the labels, passes.
    converged : bool
        Whether the method ended by itself (at a local optimum for moves), and not by ``max_iter``
        or ``time_limit``.
    interrupted : bool
        Whether a callback or Ctrl-C ended it; ``labels`` and ``bound`` are valid nevertheless.
    relative_gap : float
        The gap divided by the possible gain, which is value minus the sum of the least values of
        all terms: between 0 and 1, or ``inf`` without a bound. It does not depend on constants and
        units.
    exact : bool
        Whether the gap is within the rounding errors of two sums, the energy of the labelling and
        the bound, so that no labelling is better. Each row's least unary is subtracted first, so
        neither a constant nor a large cost that the labelling does not incur increases these
        errors. Integer energies with a gap of 1 are never exact.
    timings : mapping of str to float
        The times in seconds of "set-up", "search", "bound" (if the method has none of its own) and
        "answer". They are not part of the answer.
    shape : tuple of int, or None
        The sides of the image, if the field has them.

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
        """Whether the bound is a proof; always True."""
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
    """The record of a search, with the bound as computed in floating point."""

    lost: float = 0.0
    """the possible rounding error of the bound"""
