"""The display of a surrogate's surface over two elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    SQUARABLE,
    FloatArray,
    as_array,
    as_count,
    as_flag,
    as_numbers,
    did_you_mean,
)
from setwise.losses._labels import read_labels
from setwise.plots._style import VERMILLION, as_style, import_pyplot
from setwise.surrogates import Surrogate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["surface", "contour"]

# In the order of a Table's sets: neither, the first, the second, both.
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


class SurrogateDisplay:
    r"""A display of a surrogate for two elements (Lovász hinge paper, Figures 3 and 4).

    The axes are :math:`s_i = 1 - g_i y_i`: at most 0 if element i is right by a margin of 1, equal
    to 1 on the decision boundary, larger if it is wrong. The dots show the loss: its value at a
    corner s of the unit cube is the loss of the mistakes :math:`\{i : s_i = 1\}`. A surrogate whose
    surface passes through all four dots is an extension of the loss.

    Create it with ``from_surrogate``, which computes and draws, as in scikit-learn; ``plot`` draws
    again.

    Parameters
    ----------
    s : array of shape (n,)
        The increasing grid on both axes, which contains 0 and 1.
    values : array of shape (n, n)
        ``values[i, j]`` is the surrogate at s_1 = s[i], s_2 = s[j].
    corners : array of shape (4, 2)
        The corners of the unit cube.
    losses : array of shape (4,)
        The loss at each corner.

    Attributes
    ----------
    ax_ : matplotlib axes
        The axes of the last drawing.
    figure_ : matplotlib figure
        The figure of ``ax_``.
    surface_ : matplotlib artist
        The surface or the filled contours.
    dots_ : matplotlib artist
        The dots.

    Examples
    --------
    The Lovász hinge of the paper's increasing submodular loss touches the loss at every corner:

    >>> import matplotlib.pyplot as plt
    >>> import setwise as sw
    >>> loss = sw.losses.SetLoss(sw.functions.Table([0.0, 1.0, 1.0, 1.2]))
    >>> hinge = sw.surrogates.LovaszHinge(loss)
    >>> display = sw.plots.SurrogateDisplay.from_surrogate(hinge)
    >>> display.losses.tolist()
    [0.0, 1.0, 1.0, 1.2]
    >>> flat = display.plot(kind="contour")
    >>> flat.ax_.get_xlabel()
    '$s_1$'
    >>> plt.close("all")
    """

    ax_: Any  # an Axes3D for a surface, without type annotations in matplotlib
    figure_: Any  # a Figure or a SubFigure
    surface_: Any
    dots_: Any

    def __init__(
        self, s: ArrayLike, values: ArrayLike, corners: ArrayLike, losses: ArrayLike
    ) -> None:
        self.s: FloatArray = as_numbers(s, "s")
        if np.any(np.diff(self.s) <= 0) or not np.isin([0.0, 1.0], self.s).all():
            raise ValueError("s must increase and hold 0 and 1, got a grid that does not")
        self.values: FloatArray = as_numbers(values, "values", shape=(len(self.s), len(self.s)))
        self.corners: FloatArray = as_numbers(corners, "corners", shape=(None, 2))
        self.losses: FloatArray = as_numbers(losses, "losses", shape=(len(self.corners),))

    @classmethod
    def from_surrogate(
        cls,
        surrogate: Surrogate,
        y: ArrayLike | None = None,
        *,
        limits: tuple[float, float] = (-1.0, 2.0),
        n_points: int = 61,
        ax: Axes | None = None,
        kind: Kind = "surface",
        **kwargs: Any,
    ) -> Self:
        """Evaluate a surrogate on a grid of s and draw it.

        Parameters
        ----------
        surrogate : Surrogate
            A surrogate of a loss for two elements.
        y : array of shape (2,), optional
            The ground truth, by default both positive. The surface depends on it if the loss does,
            as for Jaccard.
        limits : pair of float
            The range of s on both axes, which must contain 0 and 1.
        n_points : int
            The number of points per axis; 0 and 1 are added, so that the surface is exact at the
            corners.
        ax, kind, **kwargs
            As in ``plot``.

        Returns
        -------
        SurrogateDisplay
        """
        if not isinstance(surrogate, Surrogate):
            raise TypeError(f"surrogate must be a Surrogate, got {type(surrogate).__name__}")
        truth = np.array([1, 1]) if y is None else as_array(y, "y")
        if truth.shape != (2,):
            raise ValueError(f"y must have shape (2,), got {truth.shape}")
        low, high = as_numbers(limits, "limits", shape=(2,), largest=SQUARABLE)
        if low > 0 or high < 1:
            raise ValueError(f"limits must enclose 0 and 1, got {low:g} and {high:g}")
        s = np.linspace(low, high, as_count(n_points, "n_points", least=2, most=4096))
        s = np.union1d(s[np.abs(s * (s - 1.0)) > 1e-9], [0.0, 1.0])

        read_labels(truth)
        # g = (1 - s) y, where each point of the grid is one set of a batch.
        signs = np.where(truth > 0, 1.0, -1.0)
        points = np.stack(np.meshgrid(s, s, indexing="ij"), axis=-1).reshape(-1, 2)
        values = surrogate(np.broadcast_to(truth, points.shape), (1.0 - points) * signs)
        predictions = np.where(_CORNERS > 0, -signs, signs)
        losses = surrogate.loss(np.broadcast_to(truth, (4, 2)), predictions)
        display = cls(s, np.reshape(values, (len(s), len(s))), _CORNERS, losses)
        return display.plot(ax, kind=kind, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Kind = "surface",
        colorbar: bool = True,
        dots_kw: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the surface, the edges of the unit square on it, and the dots.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Three-dimensional axes for a surface, two-dimensional for contours; by default in a new
            figure.
        kind : {"surface", "contour"}
            A three-dimensional surface, or filled contours.
        colorbar : bool
            Whether contours have a colour bar.
        dots_kw : mapping, optional
            Arguments of ``scatter``.
        **kwargs
            Arguments of ``plot_surface`` or ``contourf``.

        Returns
        -------
        SurrogateDisplay
            The display itself.
        """
        if not isinstance(kind, str):
            raise TypeError(f"kind must be a string, got {type(kind).__name__}")
        if kind not in ("surface", "contour"):
            near = did_you_mean(kind, ("surface", "contour"))
            raise ValueError(f"kind must be 'surface' or 'contour', got {kind!r}{near}")
        as_flag(colorbar, "colorbar")
        projection = "3d" if kind == "surface" else "rectilinear"
        if ax is None:
            _, ax = import_pyplot().subplots(subplot_kw={"projection": projection})
        elif getattr(ax, "name", None) != projection:
            raise ValueError(
                f"ax must have projection {projection!r} for kind {kind!r}, got "
                f"{getattr(ax, 'name', type(ax).__name__)!r}"
            )
        assert ax is not None
        self.ax_, self.figure_ = ax, ax.figure
        look = {"color": VERMILLION, "edgecolors": "white", "linewidths": 1.0, "s": 60, "zorder": 3}
        dots = {"label": "loss", **look, **as_style(dots_kw, "dots_kw")}
        if kind == "surface":
            self._draw_surface(kwargs, dots)
        else:
            self._draw_contours(kwargs, dots, colorbar)
        self.ax_.set(xlabel="$s_1$", ylabel="$s_2$")
        return self

    def _draw_surface(self, style: dict[str, Any], dots: dict[str, Any]) -> None:
        from matplotlib.ticker import MaxNLocator

        ax = self.ax_
        # Matplotlib sorts artists by depth, which would hide dots on the surface, so the drawing
        # order is used.
        ax.computed_zorder = False
        # Facets are opaque and not antialiased, because otherwise their seams are visible.
        facets = {"rstride": 1, "cstride": 1, "linewidth": 0, "antialiased": False}
        style = {"cmap": "viridis", **facets, **style}
        first, second = np.meshgrid(self.s, self.s, indexing="ij")
        self.surface_ = ax.plot_surface(first, second, self.values, zorder=1, **style)
        for edge in self._edges():
            ax.plot(*edge, color="white", linewidth=1.2, zorder=2)
        self.dots_ = ax.scatter(*self.corners.T, self.losses, **{"depthshade": False, **dots})
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 4, 5, 10]))
            axis.set_rotate_label(False)  # otherwise some labels are upside down
        # The axes are slightly smaller than their frame, because layouts ignore three-dimensional
        # labels.
        ax.set_zlabel("surrogate", labelpad=-1, rotation=90)
        ax.set_box_aspect(None, zoom=0.9)
        ax.view_init(elev=24, azim=-125)

    def _draw_contours(self, style: dict[str, Any], dots: dict[str, Any], colorbar: bool) -> None:
        ax = self.ax_
        style = {"cmap": "viridis", "levels": 14, **style}
        self.surface_ = ax.contourf(self.s, self.s, self.values.T, **style)
        if colorbar:
            self.figure_.colorbar(self.surface_, ax=ax, label="surrogate")
        for first, second, _ in self._edges():
            ax.plot(first, second, color="white", linewidth=1.2)
        self.dots_ = ax.scatter(*self.corners.T, **dots)
        for corner, loss in zip(self.corners, self.losses, strict=True):
            ax.annotate(
                f"{loss:.3g}", corner, xytext=(6, 6), textcoords="offset points", color="white"
            )
        ax.set_aspect("equal")

    def _edges(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield the four edges of the unit square, on the surface."""
        zero, one = np.searchsorted(self.s, [0.0, 1.0])
        span = slice(zero, one + 1)
        side = self.s[span]
        for k, edge in ((zero, np.zeros_like(side)), (one, np.ones_like(side))):
            yield edge, side, self.values[k, span]
            yield side, edge, self.values[span, k]
