"""What every method for marginals returns: probabilities, and what they say about log Z."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._certificate import Certificate
from setwise._foundation._html import Row, as_html
from setwise._foundation._pictures import heat_picture, label_picture
from setwise._foundation._progress import Progress
from setwise._foundation._timings import Timings
from setwise.fields._pixels._in_image import in_image


@dataclass(frozen=True, eq=False)
class MarginalsProgress(Progress):
    """Where a method stands, for a callback: a true answer of it ends the search.

    Attributes
    ----------
    n_iter : int
        Passes so far.
    value : float
        The upper bound on log Z so far; of mean field the lower one.
    bound : float
        What the upper bound can still come down to; ``-inf`` where a method does not know.
    relative_gap : float
        As last measured; ``inf`` where a method has none.
    seconds : float
        Since the start of the search.

    Examples
    --------
    >>> import setwise as sw
    >>> seen = []
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]) + sw.fields.Potts([[0, 1]], 1.0)
    >>> post = sw.marginals(field, tol=1e-9, callback=lambda state: seen.append(state.n_iter))
    >>> seen == list(range(1, post.n_iter + 1))
    True
    """


@dataclass(frozen=True, eq=False)
class MarginalsResult(Certificate):
    r"""Approximate marginals of :math:`P(x) \propto \exp(-E(x) / t)`, with bounds on its log Z.

    Attributes
    ----------
    probabilities : array of shape (N, L)
        Of each label at each variable, rows summing to 1; 0 where a unary is infinite.
    log_partition_upper : float
        log Z is at most this; ``inf`` for methods that know no such bound.
    log_partition_lower : float
        log Z is at least this: :math:`H(Q) - E_Q[E] / t` of a factorised Q (of ``trees`` perhaps a
        product of trees), which coordinate ascent found from ``probabilities``; neither end need be
        close to log Z.
    excess : float
        The duality gap of the upper bound, which is ``gap``: the least upper bound that the method
        could reach is at most this far below. It goes to 0; ``width`` need not.
    relative_gap : float
        gap / max(1, abs(upper bound of the problem with min_j u_ij = 0 and F(empty) = 0)).
    n_iter : int
        Passes.
    converged : bool
        Whether ``relative_gap`` is at most ``tol``; for mean field and belief propagation, which
        have none, whether nothing moved by more than ``tol`` in the last pass. It is about the
        search, not about log Z: that is known to ``width``, or ``width_per_variable``.
    certified : bool
        Whether ``gap`` is a proof. False for mean field, belief propagation and for perturb, whose
        upper bound holds up to chance.
    method : str
        The method that ran.
    reason : str
        Why it was chosen, in one sentence; and that ``time_limit`` ended the search, if it did.
    temperature : float
        t.
    history : list of float
        The upper bound after each pass that was kept (of mean field the lower one, of perturb the
        samples).
    interrupted : bool
        Whether a callback or Ctrl-C ended it; all the rest holds all the same.
    state : array or None
        What ``init`` goes on from, beside the probabilities.
    timings : mapping of str to float
        Where the time went, in seconds: "set-up", "search", "bound" (the lower one) and "answer".
        No part of the answer.
    shape : tuple of int, or None
        The field's: the sides of the image, where they are known.
    of : str
        Whose ``probabilities`` are, and why: those of the upper bound (which are minus its
        gradient in the unaries, and rather too flat than too sure), of the lower one, of the field
        itself, or of no bound.
    lower_probabilities : array of shape (N, L) or None
        The marginals of the Q that has the lower bound. No event has probabilities under P and
        under Q that differ by more than ``total_variation``.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]) + sw.fields.Potts([[0, 1]], 1.0)
    >>> post = sw.marginals(field, tol=1e-9)
    >>> post.probabilities.round(3).tolist()
    [[0.566, 0.434], [0.173, 0.827]]
    >>> post.log_partition_lower <= post.log_partition_upper, post.converged, post.method
    (True, True, 'elimination')
    """

    probabilities: FloatArray
    log_partition_upper: float
    log_partition_lower: float
    excess: float
    relative_gap: float
    n_iter: int
    converged: bool
    certified: bool
    method: str
    reason: str
    temperature: float
    history: list[float] = field(default_factory=list, repr=False)
    interrupted: bool = False
    state: FloatArray | None = field(default=None, repr=False)
    timings: Timings = field(default_factory=Timings)
    shape: tuple[int, ...] | None = None
    of: str = "the upper bound"
    lower_probabilities: FloatArray | None = field(default=None, repr=False)

    @property
    def value(self) -> float:
        """The value of the problem that was minimised: ``log_partition_upper``."""
        return self.log_partition_upper

    @property
    def bound(self) -> float:
        """value - gap: no point of the base polytope gives a smaller upper bound on log Z."""
        return self.value - self.excess if np.isfinite(self.excess) else -np.inf

    def _apart(self) -> float:
        """The duality gap as it was measured, with digits that value - bound would round away."""
        return self.excess

    @property
    def width(self) -> float:
        """log_partition_upper - log_partition_lower, never negative; log Z lies within."""
        return max(0.0, self.log_partition_upper - self.log_partition_lower)

    @property
    def width_per_variable(self) -> float:
        """``width`` over the number of variables, in nats: how well log Z is known in the end."""
        return self.width / max(1, len(self.probabilities))

    @property
    def total_variation(self) -> float:
        r"""What no event's probability under P and under the lower bound's Q differ by more than.

        KL(Q, P) is log Z minus the lower bound, at most ``width``, so by Pinsker's inequality the
        distance is at most :math:`\sqrt{\text{width} / 2}`; and it is at most 1.
        """
        return min(1.0, float(np.sqrt(self.width / 2.0)))

    @property
    def entropy(self) -> FloatArray:
        """(N,): the entropy of each variable's probabilities, in nats."""
        p = self.probabilities.astype(np.float64, copy=False)
        logs = np.log(p, out=np.zeros_like(p), where=p > 0)
        entropy: FloatArray = np.maximum(-(p * logs).sum(axis=1), 0.0)
        return entropy

    @property
    def labels(self) -> IntArray:
        """(N,): the most probable label of each variable."""
        labels: IntArray = self.probabilities.argmax(axis=1)
        return labels

    @property
    def label_image(self) -> IntArray:
        """``labels`` in the shape of the image."""
        return in_image(self.labels, self.shape)

    @property
    def probability_image(self) -> FloatArray:
        """``probabilities`` in the shape of the image, the labels last: (H, W, L)."""
        return in_image(self.probabilities, self.shape)

    @property
    def entropy_image(self) -> FloatArray:
        """``entropy`` in the shape of the image."""
        return in_image(self.entropy, self.shape)

    def _repr_html_(self) -> str:
        rows: list[Row] = [
            ("log Z at most", self.log_partition_upper),
            ("log Z at least", self.log_partition_lower),
            ("nats a variable between", self.width_per_variable),
            ("relative gap of the search", self.relative_gap),
            ("method", self.method),
            ("reason", self.reason),
            ("probabilities are those of", self.of),
        ]
        pictures = []
        if self.shape is not None and self.probabilities.size:
            most = float(np.log(max(self.probabilities.shape[1], 2)))
            pictures = [
                ("labels", label_picture(self.label_image)),
                ("entropy", heat_picture(self.entropy_image, most)),
            ]
        return as_html("MarginalsResult", rows, pictures)
