"""What a boosting problem is made of: a risk of scores, and a search for weak learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from setwise.functions._arguments import FloatArray


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
    >>> stump = Stump(feature=0, threshold=0.5, sign=1)
    >>> Column(stump, 0, stump.predict([[0.0], [1.0]])).response.tolist()
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
    The hinge of two classes is a risk with one segment:

    >>> import numpy as np
    >>> from setwise.learning import Risk
    >>> class Hinge:
    ...     def __init__(self, y):
    ...         self.y, self.offsets = y, np.array([0, len(y)])
    ...
    ...     def __call__(self, f):
    ...         slack = np.maximum(1 - self.y * f, 0)
    ...         return slack.mean(), -self.y * (slack > 0) / len(f)
    >>> risk: Risk = Hinge(np.array([1.0, -1.0]))
    >>> risk(np.array([2.0, 0.0]))[0]
    0.5
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
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from setwise.learning import ExamplewiseRisk
    >>> class Hinge:  # of examples whose labels are all +1
    ...     offsets = np.array([0, 2])
    ...
    ...     def __call__(self, f):
    ...         values, rows = self.each(f)
    ...         return values.mean(), rows.toarray().mean(axis=0)
    ...
    ...     def each(self, f):
    ...         return np.maximum(1 - f, 0), csr_array(np.diag(-1.0 * (f < 1)))
    >>> risk: ExamplewiseRisk = Hinge()
    >>> risk.each(np.array([2.0, 0.0]))[0].tolist()
    [0.0, 1.0]
    """

    def each(self, scores: FloatArray) -> tuple[FloatArray, csr_array]:
        """The examples' risks R_i(f), (n,), with R their mean, and a subgradient a row, (n, S)."""


class Search(Protocol):
    """Finds weak learners: the pricing step of column generation.

    Examples
    --------
    >>> import numpy as np
    >>> from setwise.learning import Search, Stumps
    >>> search: Search = Stumps(np.array([[0.0], [1.0]]))
    >>> search.exact, search(np.array([-1.0, 2.0]))[0].learner
    (True, Stump(feature=0, threshold=0.5, sign=1))
    """

    @property
    def exact(self) -> bool:
        """Whether no weak learner of the family does better than the first of the answer."""

    def __call__(self, weights: FloatArray) -> list[Column]:
        r"""The columns with the largest ``weights[segment] @ response``, best first.

        ``weights`` is flat like the scores: minus the mean subgradient of the planes, weighted by
        their multipliers. Never empty.
        """
