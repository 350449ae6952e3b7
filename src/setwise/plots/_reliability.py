"""The display of the calibration of probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_array, as_flag, as_number, as_numbers
from setwise.inference import reliability
from setwise.inference._calibration._reliability import Reliability
from setwise.plots._style import BLUE, FAINT, INK, as_axes, as_style, import_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


class ReliabilityDisplay:
    r"""A reliability diagram: the share of correct labels against the confidence.

    There is a point per bin of confidences, at its mean confidence and its share of correct labels.
    On the diagonal probabilities are calibrated; below it they are overconfident, above it
    underconfident. The area of a point is the share of elements in the bin. Bars from the diagonal
    show the errors whose mean is the expected calibration error.

    Create it with ``from_probabilities`` or ``from_reliability``, which compute and draw, as in
    scikit-learn; ``plot`` draws again, for instance into the axes of another display.

    Parameters
    ----------
    prob_true, prob_pred, bin_weights : arrays of shape (n_bins,)
        As in the result of :func:`setwise.inference.reliability`; NaN in empty bins.
    ece : float, optional
        The expected calibration error, for the legend.
    name : str, optional
        The name of the model, for the legend.

    Attributes
    ----------
    ax_ : matplotlib axes
        The axes of the last drawing.
    figure_ : matplotlib figure
        The figure of ``ax_``.
    line_ : matplotlib line
        The line through the points.
    points_ : matplotlib collection
        The points, whose areas are the shares of the bins.
    bars_ : matplotlib collection
        The bars from the diagonal to the points.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> y = (rng.uniform(size=2000) < p).astype(int)  # p is calibrated
    >>> sure = p**3 / (p**3 + (1 - p) ** 3)
    >>> display = sw.plots.ReliabilityDisplay.from_probabilities(y, sure, name="too sure")
    >>> display.line_.get_label()
    'too sure (ECE 0.145)'
    >>> plt.close(display.figure_)
    """

    ax_: Any
    figure_: Any
    line_: Line2D
    points_: Any
    bars_: Any

    def __init__(
        self,
        prob_true: ArrayLike,
        prob_pred: ArrayLike,
        bin_weights: ArrayLike,
        *,
        ece: float | None = None,
        name: str | None = None,
    ) -> None:
        self.bin_weights: FloatArray = as_numbers(bin_weights, "bin_weights", nonnegative=True)
        self.prob_true = _as_shares(prob_true, "prob_true", len(self.bin_weights))
        self.prob_pred = _as_shares(prob_pred, "prob_pred", len(self.bin_weights))
        self.ece = None if ece is None else as_number(ece, "ece", nonnegative=True)
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string or None, got {type(name).__name__}")
        self.name = name

    @classmethod
    def from_probabilities(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        n_bins: int = 15,
        strategy: str = "uniform",
        sample_weight: ArrayLike | None = None,
        ignore: int = -1,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Measure probabilities and draw them.

        Parameters
        ----------
        y_true, y_prob, n_bins, strategy, sample_weight, ignore
            As in :func:`setwise.inference.reliability`.
        name : str, optional
            The name of the model, for the legend.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        measured = reliability(
            y_true,
            y_prob,
            n_bins=n_bins,
            strategy=strategy,
            sample_weight=sample_weight,
            ignore=ignore,
        )
        return cls.from_reliability(measured, name=name, ax=ax, **kwargs)

    @classmethod
    def from_reliability(
        cls,
        reliability: Reliability,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a measured reliability.

        Parameters
        ----------
        reliability : Reliability
            A result of :func:`setwise.inference.reliability`.
        name : str, optional
            The name of the model, for the legend.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        if not isinstance(reliability, Reliability):
            raise TypeError(f"reliability must be a Reliability, got {type(reliability).__name__}")
        display = cls(
            reliability.prob_true,
            reliability.prob_pred,
            reliability.bin_weights,
            ece=reliability.ece,
            name=name,
        )
        return display.plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        ref_line: bool = True,
        bars_kw: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the points, the line through them, and the diagonal.

        Parameters
        ----------
        ax : matplotlib axes, optional
            By default those of a new figure.
        ref_line : bool
            Whether the diagonal is drawn.
        bars_kw : mapping, optional
            Arguments of ``vlines`` from the diagonal to the points.
        **kwargs
            Arguments of ``plot`` for the line, such as ``color``.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        as_flag(ref_line, "ref_line")
        bars = as_style(bars_kw, "bars_kw")
        pyplot = import_pyplot()
        if ax is None:
            _, ax = pyplot.subplots(layout="constrained")
        else:
            ax = as_axes(ax, 1).ravel()[0]
        assert ax is not None
        self.ax_, self.figure_ = ax, ax.figure
        some = self.bin_weights > 0
        x, y, share = self.prob_pred[some], self.prob_true[some], self.bin_weights[some]
        if ref_line:
            ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, linewidth=1.0, linestyle="--", zorder=1)
        color = BLUE if ax.get_legend() is None else INK
        (self.line_,) = ax.plot(x, y, **{"color": color, "linewidth": 1.2, "zorder": 3, **kwargs})
        self.line_.set_label(self._label())
        look = {"color": self.line_.get_color(), "linewidth": 3.0, "alpha": 0.25, "zorder": 2}
        self.bars_ = ax.vlines(x, x, y, **{**look, **bars})
        area = 20.0 + 400.0 * share / max(float(share.max(initial=0.0)), 1e-300)
        drawn = self.line_.get_color()
        self.points_ = ax.scatter(x, y, s=area, color=drawn, alpha=0.6, zorder=4, clip_on=False)
        ax.set(
            xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel="confidence", ylabel="share of right labels"
        )
        ax.set_aspect("equal")
        if self._label():
            ax.legend(loc="upper left")
        return self

    def _label(self) -> str:
        measured = "" if self.ece is None else f"ECE {self.ece:.3f}"
        if self.name is None:
            return measured
        return f"{self.name} ({measured})" if measured else self.name


def _as_shares(values: ArrayLike, name: str, n: int) -> FloatArray:
    """Read numbers (n,) in [0, 1], or NaN."""
    shares = as_array(values, name)
    if shares.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got dtype {shares.dtype}")
    known = as_numbers(np.where(np.isnan(shares), 0.0, shares), name, shape=(n,), nonnegative=True)
    if known.max(initial=0.0) > 1.0 + 1e-9:
        raise ValueError(f"{name} must be at most 1, got {known.max():g}")
    return np.where(np.isnan(shares), np.nan, known)
