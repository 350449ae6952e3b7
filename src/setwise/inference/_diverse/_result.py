"""The result of a search for a diverse list: items, their gaps, and a guarantee."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._base_classes import Record
from setwise._foundation._clock import Timings
from setwise._foundation._display import Row, as_html, label_picture
from setwise._foundation._progress import Progress
from setwise.fields._pixels._in_image import in_image

_SHOWN = 6  # the most items that a notebook shows, as many as fit into a row


@dataclass(frozen=True, eq=False, repr=False)
class DiverseProgress(Progress):
    """The state of a search for a callback, which may end the list by a true return value.

    Attributes
    ----------
    n_iter : int
        The number of items so far, which is ``n_items``.
    labels : array of shape (N,)
        The latest item.
    value : float
        The energy E of the latest item.
    gain : float
        The gain d(y | S) in diversity, for the set S of the earlier items.
    bound : float
        No labelling has E(y) - d(y | S) below this, where S are the earlier items.
    relative_gap : float
        The gap divided by the possible gain of the step.
    seconds : float
        The seconds since the start of the search.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> seen = []
    >>> two = sw.diverse(field, 2, sw.diversities.DivMBest(1.5), callback=seen.append)
    >>> [(step.n_items, step.value, step.gain, step.gap) for step in seen]
    [(1, 0.0, 0.0, 0.0), (2, 1.0, 1.5, 0.0)]
    """

    labels: IntArray
    gain: float

    @property
    def n_items(self) -> int:
        """The number of items so far."""
        return self.n_iter

    def _apart(self) -> float:
        """Return E(y) - d(y | S) - bound, since a step does not minimise the energy alone."""
        return self.value - self.gain - self.bound


@dataclass(frozen=True, eq=False, repr=False)
class Guarantee(Record):
    r"""The guarantee of a greedy list, relative to the best list of m items (Lemma 2 of the paper).

    For the score :math:`F_c(S) = \sum_{y \in S} (c - E(y)) + d(S)` of lists of m items, repeats
    allowed,

    .. math:: F_c(S) \ge \rho \, F_c(S^*) - \varepsilon, \qquad \rho = 1 - (1 - 1/m)^m \ge 1 - 1/e.

    The relative form of Section 5 for F without the shift is, with :math:`F_{\min} = -m c`,
    :math:`(F(S) - F_{\min}) / (F(S^*) - F_{\min}) \ge \rho - \varepsilon / (F(S^*) - F_{\min})`.

    Attributes
    ----------
    factor : float
        :math:`\rho`.
    alpha : float
        :math:`\alpha`, the least ratio of the gain in :math:`F_c` of a step to the largest one that
        its bound allows. The multiplicative form of Lemma 2 is :math:`F_c(S) \ge (1 - (1 - \alpha /
        m)^m) \, F_c(S^*)`, without a slack.
    slack : float
        :math:`\varepsilon`, the sum of the gaps of the steps.
    shift : float
        c, so large that no item of the list has a negative gain when it is added to any list of m
        items with the earlier items.
    score : float
        :math:`F_c(S)`, nonnegative.
    bound : float
        No list of m items has a larger :math:`F_c`: the least of :math:`F_c` of the first t items
        plus m times a bound on the next gain, over t.
    n_items : int
        m.
    assumes : str
        The assumptions, in a sentence.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> pair = sw.diverse(field, 2, sw.diversities.HammingBall(weight=4.0, gamma=1.0))
    >>> g = pair.guarantee
    >>> g.factor, g.slack < 1e-9, g.score >= g.factor * g.bound - g.slack
    (0.75, True, True)
    """

    factor: float
    alpha: float
    slack: float
    shift: float
    score: float
    bound: float
    n_items: int
    assumes: str

    @property
    def ratio(self) -> float:
        """The ratio score / bound, a lower bound on the shifted score relative to the best list."""
        return self.score / self.bound if self.bound > 0 else 1.0

    @property
    def f_min(self) -> float:
        """The value F_min = -m c of the relative form; ``bound`` and ``score`` are F - F_min."""
        return -self.n_items * self.shift


@dataclass(frozen=True, eq=False, repr=False)
class DiverseResult(Record):
    r"""A list of labellings, with the certificate of every step and of the whole.

    Attributes
    ----------
    labelings : array of shape (m, N)
        The items in the order of the search. Those of a joint list are sorted by increasing energy.
        The first is the best labelling of the field that was found, except in a joint list, which
        may not contain it.
    values : array of shape (m,)
        The energies E of the items.
    gains : array of shape (m,)
        The gain d(y | S) in diversity of each item, for the set S of the earlier items.
    bounds : array of shape (m,)
        No labelling has E(y) - d(y | S) below this, where S are the earlier items.
    methods : tuple of str
        The method of each step.
    repeated : array of shape (m,), bool
        Whether each item equals an earlier one. If the weight is small compared with the energies,
        the best next item may be one of these.
    guarantee : Guarantee or None
        The guarantee relative to the best list; None if there is none.
    reason : str
        The assumptions of the guarantee, or why there is none; and why the list is shorter than
        requested, for instance because the field has no more labellings or ``time_limit`` ended it.
        For alternatives, how they were found, and which requirements are not met.
    interrupted : bool
        Whether a callback or Ctrl-C ended the list before m items.
    relative_gaps : array of shape (m,)
        Each gap divided by the possible gain of its step, as in ``relative_gap`` of a
        ``MapResult``. The possible gain is E(y) - d(y | S) minus the sum of the least values of all
        terms.
    exact : bool
        Whether every step is optimal up to rounding, as in ``exact`` of a ``MapResult``.
    biases : array of shape (m,), or None
        For joint lists or alternatives of two labels, which use biases: item i has the least
        :math:`E(y) + b_i |y|` of all labellings, :math:`|y|` its number of ones. ``gains`` are then
        :math:`-b_i |y|`, plus a share of the constant part for a joint list, and ``bounds`` and
        ``gaps`` are those of each item's own problem. A joint list of more labels has one gap, and
        each item an equal part of it: the sum of ``bounds`` is below :math:`\sum_y E(y) - d(S)` of
        every list of m items.
    shares : array of shape (m,), or None
        For alternatives on a path, the share of the biases for which each item is the nearest.
    probabilities : array of shape (N,), or None
        For alternatives on a path, the share of the biases for which each variable has label 1, up
        to ``probability_gaps``. ``decide(probabilities, loss)`` combines them to a single answer.
    probability_gaps : array of shape (N,), or None
        The largest errors of ``probabilities`` if the path was not followed to its end; 0 up to
        rounding if it was.
    timings : mapping of str to float
        The times in seconds of "set-up", "first item", "next items" and "answer". They are not part
        of the answer.
    shape : tuple of int, or None
        The sides of the image, if the field has them.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> three = sw.diverse(field, 3, sw.diversities.HammingBall(weight=4.0, gamma=1.0))
    >>> three.labelings.tolist(), three.values.tolist()
    ([[0, 1], [1, 1], [0, 0]], [0.0, 1.0, 2.0])
    >>> bool(three.gaps.max() < 1e-9), three.exact, three.repeated.tolist()
    (True, True, [False, False, False])
    """

    _printed = "labelings values gaps exact methods repeated guarantee interrupted reason timings"

    labelings: IntArray
    values: FloatArray
    gains: FloatArray
    bounds: FloatArray
    methods: tuple[str, ...]
    repeated: BoolArray
    guarantee: Guarantee | None
    reason: str
    interrupted: bool
    relative_gaps: FloatArray
    exact: bool
    biases: FloatArray | None = None
    shares: FloatArray | None = None
    probabilities: FloatArray | None = None
    probability_gaps: FloatArray | None = None
    timings: Timings = field(default_factory=Timings)
    shape: tuple[int, ...] | None = None

    @property
    def label_images(self) -> IntArray:
        """``labelings`` in the shape of the image, the items first: (m, H, W)."""
        return in_image(self.labelings, self.shape, axis=1)

    @property
    def probability_image(self) -> FloatArray | None:
        """``probabilities`` in the shape of the image, or None."""
        given = self.probabilities
        return None if given is None else in_image(given, self.shape)

    @property
    def gaps(self) -> FloatArray:
        """The gap E(y) - d(y | S) - bound of each step, (m,), never negative."""
        gaps: FloatArray = (self.values - self.gains - self.bounds).clip(min=0.0)
        return gaps

    def _repr_html_(self) -> str:
        rows: list[Row] = [("items", len(self.values)), ("exact", self.exact)]
        rows += [("reason", self.reason)]
        pictures = []
        if self.shape is not None and self.labelings.size:
            pictures = [
                (f"{k}: energy {value:.6g}", label_picture(labels))
                for k, (labels, value) in enumerate(
                    zip(self.label_images[:_SHOWN], self.values[:_SHOWN], strict=True), start=1
                )
            ]
        return as_html("DiverseResult", rows, pictures)


def repeats(labelings: IntArray) -> BoolArray:
    """Return which labellings equal an earlier one, (m,)."""
    seen: set[bytes] = set()
    again = np.zeros(len(labelings), np.bool_)
    for k, labels in enumerate(labelings):
        key = labels.tobytes()
        again[k] = key in seen
        seen.add(key)
    return again
