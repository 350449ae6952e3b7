"""The result of all methods for marginals: probabilities and bounds on log Z."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._base_classes import Record
from setwise._foundation._certificate import Certificate
from setwise._foundation._clock import Timings
from setwise._foundation._display import Row, as_html, heat_picture, label_picture
from setwise._foundation._progress import Progress
from setwise.fields._pixels._in_image import in_image


@dataclass(frozen=True, eq=False, repr=False)
class MarginalsProgress(Progress):
    """The state of a method for a callback, which may end the search by a true return value.

    Attributes
    ----------
    n_iter : int
        The number of passes so far.
    value : float
        The upper bound on log Z so far; for mean field the lower bound.
    bound : float
        A lower bound on the upper bounds of this method; ``-inf`` if it is not known.
    relative_gap : float
        The relative gap as last measured; ``inf`` if a method has none.
    seconds : float
        The time since the start of the search.

    Examples
    --------
    >>> import setwise as sw
    >>> seen = []
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]]) + sw.fields.Potts([[0, 1]], 1.0)
    >>> post = sw.marginals(field, tol=1e-9, callback=lambda state: seen.append(state.n_iter))
    >>> seen == list(range(1, post.n_iter + 1))
    True
    """


@dataclass(frozen=True, eq=False, repr=False)
class MarginalsResult(Record, Certificate):
    r"""Approximate marginals of :math:`P(x) \propto \exp(-E(x) / t)`, with bounds on its log Z.

    Attributes
    ----------
    probabilities : array of shape (N, L)
        The probabilities of each variable's labels, in rows that sum to 1; 0 for infinite unaries.
    log_partition_upper : float
        The upper bound on log Z; ``inf`` for methods without an upper bound. For perturb it is the
        upper end of an interval of 99 %, and ``inf`` if that is below ``log_partition_lower``,
        which shows that the interval has failed.
    log_partition_lower : float
        A lower bound on log Z: :math:`H(Q) - E_Q[E] / t` of a factorised Q (for ``trees`` possibly
        a product of trees), found by coordinate ascent from ``probabilities``. Neither bound need
        be close to log Z.
    excess : float
        The duality gap of the upper bound, which is ``gap``: the least upper bound of the method is
        lower by at most this. It converges to 0; ``width`` need not.
    relative_gap : float
        gap / max(1, abs(upper bound of the problem with min_j u_ij = 0 and F(empty) = 0)).
    n_iter : int
        The number of passes.
    converged : bool
        Whether ``relative_gap`` is at most ``tol``; for mean field and belief propagation, which
        have none, whether no value changed by more than ``tol`` in the last pass. It describes the
        search, not the accuracy of log Z, which ``width`` and ``width_per_variable`` give.
    certified : bool
        Whether ``gap`` is a proof. False for mean field and belief propagation, and for perturb,
        whose upper bound is statistical.
    method : str
        The method that ran.
    reason : str
        Why the method was chosen, in one sentence, and whether ``time_limit`` ended the search.
    temperature : float
        t.
    history : list of float
        The upper bound after each pass that was kept (for mean field the lower bound, for perturb
        the samples).
    interrupted : bool
        Whether a callback or Ctrl-C ended the search. All other attributes are valid nevertheless.
    state : array or None
        The state for a warm start by ``init``, besides the probabilities.
    timings : mapping of str to float
        The times in seconds of "set-up", "search", "bound" (the lower one) and "answer". They are
        not part of the answer.
    shape : tuple of int, or None
        The sides of the image, if the field has them.
    of : str
        The origin of ``probabilities``: the upper bound, the lower bound, the field itself, or no
        bound. Those of the upper bound are minus its gradient with respect to the unaries, and are
        more often too uncertain than overconfident.
    lower_probabilities : array of shape (N, L) or None
        The marginals of the Q of the lower bound. The probabilities of any event under P and under
        Q differ by at most ``total_variation``.
    exact : bool
        Whether log Z is known up to the rounding of its sums, and so are the probabilities.

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

    _printed = (
        "width log_partition_lower log_partition_upper probabilities exact certified converged "
        "method n_iter"
    )

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
    exact: bool = False

    @property
    def value(self) -> float:
        """The value of the minimised problem, ``log_partition_upper``."""
        return self.log_partition_upper

    @property
    def bound(self) -> float:
        """The limit value - gap: no point of the base polytope gives a smaller bound on log Z."""
        return self.value - self.excess if np.isfinite(self.excess) else -np.inf

    def _apart(self) -> float:
        """Return the measured duality gap, which is more accurate than value - bound."""
        return self.excess

    @property
    def width(self) -> float:
        """The width of the interval of log Z: log_partition_upper - log_partition_lower."""
        return max(0.0, self.log_partition_upper - self.log_partition_lower)

    @property
    def width_per_variable(self) -> float:
        """The ``width`` divided by the number of variables, in nats."""
        return self.width / max(1, len(self.probabilities))

    @property
    def total_variation(self) -> float:
        r"""An upper bound on the total variation distance between P and the lower bound's Q.

        KL(Q, P) is log Z minus the lower bound, which is at most ``width``. By Pinsker's inequality
        the distance is at most :math:`\sqrt{\text{width} / 2}`. It is never above 1. For perturb it
        is statistical, like its width.
        """
        return min(1.0, float(np.sqrt(self.width / 2.0)))

    @property
    def entropy(self) -> FloatArray:
        """The entropy of each variable's probabilities (N,), in nats."""
        p = self.probabilities.astype(np.float64, copy=False)
        logs = np.log(p, out=np.zeros_like(p), where=p > 0)
        entropy: FloatArray = np.maximum(-(p * logs).sum(axis=1), 0.0)
        return entropy

    @property
    def labels(self) -> IntArray:
        """The most probable label of each variable, (N,)."""
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
            ("width, in nats", self.width),
            ("width per variable", self.width_per_variable),
            ("log Z at most", self.log_partition_upper),
            ("log Z at least", self.log_partition_lower),
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
