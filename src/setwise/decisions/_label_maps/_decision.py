"""The record of a label map, its expected loss, and a bound for all label maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise._foundation._arguments import BoolArray, FloatArray, IntArray
from setwise._foundation._base_classes import Versioned


@dataclass(frozen=True, eq=False)
class LabelDecision(Versioned):
    r"""The label map of least expected loss that was found, with a bound for all other maps.

    If the images are decided together, the attributes are numbers, and ``of_classes`` has shape
    (C,); if each image is decided by itself, they have one entry per image.

    Attributes
    ----------
    labels : int array
        The class of each element, -1 where it is ignored.
    expected : float or array
        The weighted mean over the classes of the expected loss.
    of_classes : array
        The expected loss of each class.
    bound : float or array
        No label map has an expected loss below this.
    error : float or array
        The error of ``expected`` by rounding and quadrature.
    exact : bool or array
        Whether the label map is proved to be optimal, up to ``error``.
    method : str
        "ascent".
    law : str
        The assumed distribution of the truth.

    Examples
    --------
    >>> import setwise as sw
    >>> p = 3 * [[0.6, 0.4]] + 2 * [[0.9, 0.1]]  # five elements, two classes
    >>> decision = sw.decide(p, "jaccard", classes="exclusive")
    >>> decision.labels.tolist()
    [1, 1, 0, 0, 0]
    """

    labels: IntArray
    expected: float | FloatArray
    of_classes: FloatArray
    bound: float | FloatArray
    error: float | FloatArray
    exact: bool | BoolArray
    method: str
    law: str

    @property
    def value(self) -> float | FloatArray:
        """``expected``, under the name that all results share."""
        return self.expected

    @property
    def gap(self) -> float | FloatArray:
        """``regret_bound``, under the name that all results share."""
        return self.regret_bound

    @property
    def regret_bound(self) -> float | FloatArray:
        """The difference expected - bound: no map's expected loss is lower by more than this."""
        gap = np.maximum(np.asarray(self.expected) - np.asarray(self.bound), 0.0)
        return float(gap) if gap.ndim == 0 else gap

    def __repr__(self) -> str:
        n_classes = self.of_classes.shape[-1]
        what = "x".join(map(str, self.labels.shape)) + f" labels of {n_classes} classes"
        mean = float(np.mean(self.expected)) if np.size(self.expected) else 0.0
        gap = float(np.max(self.regret_bound)) if np.size(self.expected) else 0.0
        proved = "exact" if np.all(self.exact) else f"at most {gap:.2g} above the best"
        return f"LabelDecision({what}, expected {mean:.4g}, {proved}, for {self.law:.100})"
