"""The multi-class risk of boosting with a sum in place of the maximum: logistic regression."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.estimators._boosting._class_risk import ClassRisk


class LogisticClassRisk(ClassRisk):
    r"""The weighted mean of the logarithms of the sums that mistakes make,

    .. math:: R(f) = \sum_i v_i \log \Bigl( 1 + \sum_{y \ne y_i} \Delta(y_i, y)
        e^{f_y(x_i) - f_{y_i}(x_i)} \Bigr) .

    With Delta = 1 off the diagonal that is minus the mean log-likelihood of the classes under a
    softmax of the scores; with two classes log(1 + exp(-margin)). It is the risk of soft maxima at
    a temperature of 1 and the margins log Delta, so that for probabilities p of the classes

    .. math:: R(f) \ge \sum_i v_i \Bigl( \sum_y p_{iy} (\log \Delta(y_i, y) + f_y - f_{y_i})
        + H(p_i) \Bigr)

    with equality at the softmax: the plane that proves a bound is that of the hinge, raised by the
    entropy. Costs off the diagonal must be positive.
    """

    temperature = 1.0

    def __init__(
        self,
        y: IntArray,
        cost: FloatArray,
        code: FloatArray | None = None,
        sample_weight: FloatArray | None = None,
        *,
        one_segment: bool = False,
    ) -> None:
        margins = np.log(cost + np.eye(len(cost)))
        super().__init__(y, margins, code, sample_weight, one_segment=one_segment)

    def _most_violated(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The logarithms of the sums, (m,), and their slopes in the classes, (k, m)."""
        heights = self._heights(scores)
        top = heights.max(axis=0)
        slope = np.exp(heights - top)
        total = slope.sum(axis=0)
        slope /= total
        slope[self._y, self._rows] -= 1.0
        worst: FloatArray = top + np.log(total)
        return worst, slope
