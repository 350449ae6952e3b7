"""The parts of a boosting problem: a risk of scores, and a search for weak learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray
from setwise._foundation._base_classes import Record

# The segment of a shared column during the fit. Such a column contributes to all segments, with a
# weight for each.
EVERY = -1


@dataclass(frozen=True, repr=False)
class Column(Record):
    """A weak learner on one segment of the scores: a column of the linear program.

    Parameters
    ----------
    learner : object
        The object for prediction, which the linear program never uses. Learners of this library
        have ``predict(X)``, which returns the response on new rows.
    segment : int
        The segment of the scores that it contributes to: a class, a node of a taxonomy, or the
        pairs of a field.
    response : (length of the segment,) floats
        The contribution to the scores of the segment per unit of weight.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import Column
    >>> x = np.array([0.5, -2.0])
    >>> Column("the first feature", segment=0, response=x)
    Column(learner='the first feature', segment=0, response=array([ 0.5, -2. ]))
    """

    learner: Any
    segment: int
    response: FloatArray


class Risk(Protocol):
    r"""A convex, piecewise linear risk of the scores f: the separation oracle.

    The scores are one flat vector, cut into segments by ``offsets``: a multi-class problem with k
    classes and m examples has k segments of length m. A risk of the form

    .. math:: R(f) = \frac1m \sum_i \max_y \Delta(y_i, y) - \langle f, \delta\Psi_i(y) \rangle ,

    is never negative, because y = y_i is among the outputs.

    Examples
    --------
    The mean hinge loss of labels +1 and -1:

    >>> import numpy as np
    >>> class Hinge:
    ...     def __init__(self, y):
    ...         self.y, self.offsets = y, np.array([0, len(y)])
    ...
    ...     def __call__(self, scores):
    ...         slack = 1 - self.y * scores
    ...         return np.maximum(slack, 0).mean(), np.where(slack > 0, -self.y, 0) / len(slack)
    >>> value, slope = Hinge(np.array([1.0, -1.0]))(np.array([0.5, -2.0]))
    >>> float(value), slope.tolist()
    (0.25, [-0.5, 0.0])
    """

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Offsets (n_segments + 1,): segment k is ``scores[offsets[k]:offsets[k + 1]]``."""

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return R(f) and the subgradient of the most violated outputs."""


class ExamplewiseRisk(Risk, Protocol):
    """A risk that also returns its value for each example, as ``slack="example"`` needs.

    Examples
    --------
    The hinge losses of labels +1 and -1, whose subgradients have one entry each:

    >>> import numpy as np
    >>> from scipy.sparse import diags_array
    >>> class Hinge:
    ...     def __init__(self, y):
    ...         self.y, self.offsets = y, np.array([0, len(y)])
    ...
    ...     def each(self, scores):
    ...         slack = 1 - self.y * scores
    ...         return np.maximum(slack, 0), diags_array(np.where(slack > 0, -self.y, 0.0)).tocsr()
    ...
    ...     def __call__(self, scores):
    ...         values, slopes = self.each(scores)
    ...         return values.mean(), slopes.sum(axis=0) / len(values)
    >>> values, slopes = Hinge(np.array([1.0, -1.0])).each(np.array([0.5, -2.0]))
    >>> values.tolist(), slopes.toarray().tolist()
    ([0.5, 0.0], [[-1.0, 0.0], [0.0, 0.0]])
    """

    def each(self, scores: FloatArray) -> tuple[FloatArray, csr_array]:
        """Return the risks R_i(f), (n,), whose mean is R, and a subgradient per row, (n, S)."""


class SoftRisk(Protocol):
    """A risk whose maxima are replaced by soft maxima of temperature tau, with its own scores.

    Weak learners respond on m examples, in s segments of the scores. The risk has slopes in k
    classes, which ``code`` (k, s) combines from segments.
    """

    @property
    def classes(self) -> int:
        """The number of classes, k."""

    def start(self, scores: FloatArray) -> None:
        """Set the scores, (s, m)."""

    def probabilities(self, tau: float, out: FloatArray) -> tuple[float, float, float, float]:
        """Return the soft risk, the hard risk, and the height and entropy of the plane of ``out``.

        ``out`` (k, m) receives the weights of the outputs. Their plane lies below the hard risk.
        The entropy is a mean over the examples.
        """

    def sums(self, response: NDArray[np.float32], out: FloatArray) -> None:
        """Write the sums (k,) of a response (m,) over the examples of each true class."""

    def descend(
        self,
        responses: NDArray[np.float32],
        sums: FloatArray,
        segment: NDArray[np.int32],
        order: NDArray[np.int32],
        C: float,
        tau: float,
        grouped: bool,
        w: FloatArray,
        radius: FloatArray,
    ) -> None:
        """Decrease sum(abs(w)) + C times the soft risk by steps of the learners in ``order``.

        If ``grouped``, the norms of the learners' weights replace sum(abs(w)).
        """


class SofteningRisk(Risk, Protocol):
    """A risk with a soft version."""

    @property
    def temperature(self) -> float | None:
        """The temperature of the risk itself if its maxima are soft, else None."""

    def softened(self) -> SoftRisk | None:
        """Return a soft version at scores of zero, or None if there is none."""

    def soft_slope(self, weights: FloatArray) -> FloatArray:
        """Return the slope of a plane in the scores, (S,), for weights of the outputs, (k, m)."""


class WeakLearnerSearch(Protocol):
    """A search for weak learners: the pricing step of column generation.

    Examples
    --------
    Features and their negations as weak learners:

    >>> import numpy as np
    >>> from setwise.learning import Column
    >>> class Features:
    ...     exact = True
    ...
    ...     def __init__(self, X):
    ...         self.X = X
    ...
    ...     def __call__(self, weights):
    ...         edges = weights @ self.X
    ...         best = int(np.abs(edges).argmax())
    ...         sign = np.sign(edges[best])
    ...         return [Column((best, sign), 0, sign * self.X[:, best])]
    >>> X = np.array([[1.0, 3.0], [2.0, -1.0]])
    >>> Features(X)(np.array([-1.0, 0.5]))[0].response.tolist()
    [-3.0, 1.0]
    """

    @property
    def exact(self) -> bool:
        """Whether the first column is the best of all weak learners of the family."""

    def __call__(self, weights: FloatArray) -> list[Column]:
        r"""Return the columns with the largest ``weights[segment] @ response``, best first.

        ``weights`` is flat like the scores: minus the sum of the subgradients of the planes,
        weighted by their multipliers. The list must not be empty.
        """
