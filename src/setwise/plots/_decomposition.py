"""The display of a decomposition into a submodular and a supermodular function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import FloatArray, as_count, as_flag, as_numbers, as_order
from setwise.functions import Cardinality, Modular, SetFunction, decompose
from setwise.functions._base import empty_value
from setwise.losses import Loss, get
from setwise.plots._style import BLUE, FAINT, GREEN, VERMILLION, as_axes, import_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


class DecompositionDisplay:
    """A display of l = f + g against the number of mistakes (B_D paper, Figure 3).

    As in the paper, l is red, f is blue and g is green. The shades are those of Okabe and Ito's
    palette, which can be distinguished with all common colour vision deficiencies. Each line has
    its own marker and style, so that the picture can be read in grey.

    Create it with ``from_loss`` or ``from_function``, which compute and draw, as in scikit-learn;
    ``plot`` draws again.

    Parameters
    ----------
    loss, f, g : arrays of shape (n + 1,)
        The values at k = 0, ..., n elements.
    exact : bool
        Whether g is the least one, as the operator D requires; otherwise the legend mentions it.

    Attributes
    ----------
    ax_ : matplotlib axes
        The axes of the last drawing.
    figure_ : matplotlib figure
        The figure of ``ax_``.
    lines_ : list of matplotlib lines
        The lines of l, f and g.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import setwise as sw
    >>> display = sw.plots.DecompositionDisplay.from_loss("face_track_1", 6)
    >>> display.f.round(3).tolist(), display.g.round(3).tolist()
    ([0.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0])
    >>> plt.close(display.figure_)
    """

    ax_: Axes
    figure_: Any  # a Figure or a SubFigure
    lines_: list[Line2D]

    def __init__(self, loss: ArrayLike, f: ArrayLike, g: ArrayLike, *, exact: bool = True) -> None:
        self.loss: FloatArray = as_numbers(loss, "loss")
        self.f: FloatArray = as_numbers(f, "f", shape=self.loss.shape)
        self.g: FloatArray = as_numbers(g, "g", shape=self.loss.shape)
        self.exact = as_flag(exact, "exact")

    @classmethod
    def from_loss(cls, loss: Loss | str, p: int, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Decompose a loss of the number of mistakes among p and draw it.

        Parameters
        ----------
        loss : Loss or str
            A loss of the number of mistakes only. For other losses use ``from_function`` with
            ``loss.set_function(y)`` and an order of the mistakes.
        p : int
            The number of elements.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        DecompositionDisplay
        """
        size = as_count(p, "p", least=1)
        function = get(loss).set_function(np.ones(size, np.bool_))
        return cls.from_function(function, ax=ax, **kwargs)

    @classmethod
    def from_function(
        cls,
        function: SetFunction,
        order: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Decompose a set function and draw it along a chain of sets.

        Parameters
        ----------
        function : SetFunction
            A function of the number of elements only, unless an order is given.
        order : array of int, optional
            Distinct elements; the sets are its prefixes.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        DecompositionDisplay
        """
        parts = decompose(function)
        if order is None:
            if not all(_is_of_size(part) for part in parts):
                raise ValueError(
                    "function must be one of the number of elements when no order is given, "
                    f"got {function!r}"
                )
            chain = np.arange(function.n)
        else:
            chain = as_order(order, function.n)
        curves = (empty_value(part) + _sums(part.gains(chain)) for part in (function, *parts))
        return cls(*curves, exact=parts.exact).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the lines of l, f and g.

        Parameters
        ----------
        ax : matplotlib axes, optional
            By default those of a new figure.
        **kwargs
            Arguments of ``ax.plot`` for all three lines.

        Returns
        -------
        DecompositionDisplay
            The display itself.
        """
        if ax is None:
            _, ax = import_pyplot().subplots()
        else:
            ax = as_axes(ax, 1).item()
        assert ax is not None
        from matplotlib.ticker import MaxNLocator

        k = np.arange(len(self.loss))
        ax.axhline(0.0, color=FAINT, linewidth=0.8, zorder=0)
        self.lines_ = []
        # While g is 0, l equals f. It is drawn first and wide, so that both are visible.
        looks: list[tuple[FloatArray, str, dict[str, Any]]] = [
            (self.loss, "$l = f + g$", {"color": VERMILLION, "marker": "o", "linewidth": 4.0}),
            (self.f, "$f$, submodular", {"color": BLUE, "marker": "s", "linestyle": "--"}),
            (self.g, "$g$, supermodular", {"color": GREEN, "marker": "^", "linestyle": "-."}),
        ]
        for values, label, look in looks:
            style = {"markersize": 4.5, "label": label, **look, **kwargs}
            self.lines_ += ax.plot(k, values, **style)
        if not self.exact:
            self.lines_[2].set_label("$g$, supermodular, perhaps not the least")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="number of mistakes", ylabel="loss")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _sums(gains: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(gains)])


def _is_of_size(function: SetFunction) -> bool:
    """Return whether a part from ``decompose`` is a function of the number of elements."""
    if isinstance(function, Modular):
        return bool(np.all(function.weights == function.weights[:1]))
    return isinstance(function, Cardinality)
