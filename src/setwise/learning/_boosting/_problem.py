"""What a boosting problem is made of: a risk of scores, and a search for weak learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise._foundation._arguments import FloatArray

# The segment, while it is learned, of a column that adds to all of them, with a weight for each.
EVERY = -1


@dataclass(frozen=True)
class Column:
    """A weak learner on one segment of the scores: a column of the linear program.

    Parameters
    ----------
    learner : object
        What predicts later; the linear program never looks at it. Those of this library have
        ``predict(X)``, which gives the response on new rows.
    segment : int
        Which segment of the scores it adds to: a class, a node of a taxonomy, the pairs of a field.
    response : (length of the segment,) floats
        What one unit of its weight adds to the scores of that segment.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import Column, Stump
    >>> X = np.array([[0.0], [1.0]])
    >>> stump = Stump(feature=0, threshold=0.5, sign=1)
    >>> Column(stump, segment=0, response=stump.predict(X)).response.tolist()
    [-1.0, 1.0]
    """

    learner: Any
    segment: int
    response: FloatArray


class Risk(Protocol):
    r"""A convex, piecewise linear risk of the scores f: the separation oracle.

    The scores are one flat vector, cut into segments by ``offsets``: a multi-class problem with k
    classes and m examples has k segments of length m. Of the form

    .. math:: R(f) = \frac1m \sum_i \max_y \Delta(y_i, y) - \langle f, \delta\Psi_i(y) \rangle ,

    it is never negative, because y = y_i is among the outputs.

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
        """(n_segments + 1,): segment k of the scores is ``scores[offsets[k]:offsets[k + 1]]``."""

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """R(f) and a subgradient, that of the most violated outputs: the plane of one cut."""


class ExamplewiseRisk(Risk, Protocol):
    """A risk that can also name its parts, which a slack for each example needs.

    Examples
    --------
    The hinge losses of labels +1 and -1, whose subgradients have an entry each:

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
        """The examples' risks R_i(f), (n,), with R their mean, and a subgradient a row, (n, S)."""


class SoftRisk(Protocol):
    """A risk whose maxima are softened at a temperature tau, with its own scores of the examples.

    Weak learners respond on m examples, in s segments of the scores, and the risk has slopes in
    k classes, of which ``code`` (k, s) says how they are made of segments.
    """

    @property
    def classes(self) -> int:
        """k."""

    def start(self, scores: FloatArray) -> None:
        """Take scores, (s, m)."""

    def probabilities(self, tau: float, out: FloatArray) -> tuple[float, float, float, float]:
        """The soft risk, the hard one, the height of the plane of ``out``, and its mean entropy.

        ``out`` (k, m) receives the weights of the outputs: the plane lies below the hard risk.
        """

    def sums(self, response: NDArray[np.float32], out: FloatArray) -> None:
        """What a response (m,) adds to the scores of the true outputs, by class, (k,)."""

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
        """Lower sum(abs(w)) + C times the soft risk, one learner of ``order`` after the other.

        ``grouped``: the norms of the learners' weights in place of sum(abs(w)).
        """


class SofteningRisk(Risk, Protocol):
    """A risk that can be softened."""

    @property
    def temperature(self) -> float | None:
        """That of the risk itself, if its maxima are soft; None where they are hard."""

    def softened(self) -> SoftRisk | None:
        """A new one at scores of zero; None where this one cannot be."""

    def soft_slope(self, weights: FloatArray) -> FloatArray:
        """The plane's slope in the scores, (S,), for weights of the outputs, (k, m)."""


class WeakLearnerSearch(Protocol):
    """Finds weak learners: the pricing step of column generation.

    Examples
    --------
    Features, or their negations, as weak learners:

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
        """Whether no weak learner of the family does better than the first of the answer."""

    def __call__(self, weights: FloatArray) -> list[Column]:
        r"""The columns with the largest ``weights[segment] @ response``, best first.

        ``weights`` is flat like the scores: minus the mean subgradient of the planes, weighted by
        their multipliers. Never empty.
        """
