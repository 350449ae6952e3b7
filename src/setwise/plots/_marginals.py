"""The display of a labelling of an image and of its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_count,
    as_flag,
    as_integers,
    as_list,
    as_number,
    as_numbers,
)
from setwise.inference import MarginalsResult
from setwise.plots._pixels import as_image, as_sides, folded
from setwise.plots._style import as_axes, as_style, import_pyplot, label_colors
from setwise.plots._uncertain_regions import (
    as_layer,
    draw_outlines,
    draw_ranks,
    mean_entropies,
    uncertain_pieces,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.patches import PathPatch

PANELS = ("image", "labels", "entropy")


class MarginalsDisplay:
    r"""A display of a labelling, the entropy of its marginals, and the most uncertain regions.

    There are up to three panels: the image, the labelling, and the entropy :math:`-\sum_j p_{ij}
    \log p_{ij}` of each pixel. The entropy is 0 if the model is certain and log L if all L labels
    are equally probable; the colours span this range, so that pictures of the same labels can be
    compared. The regions with the highest mean entropy are outlined on all panels, and numbered on
    the last.

    Create it with ``from_result``, which computes and draws, as in scikit-learn; ``plot`` draws
    again.

    Parameters
    ----------
    labels : array of int of shape (H, W)
        The labelling.
    entropy : array of shape (H, W)
        The entropy in nats.
    n_labels : int
        The number L of labels.
    image : array of shape (H, W), (H, W, 3) or (H, W, 4), optional
        Grey or colours, in the form of matplotlib's ``imshow``.
    regions : array of int of shape (H, W), optional
        A layer of regions, -1 for none, such as superpixels. By default the connected components of
        the pixels whose entropy is at or above a quantile, without components of fewer than 10
        pixels or a thousandth of the image.
    quantile : float
        This quantile, between 0 and 1.
    colors : sequence of L colours, optional
        The colours of the labels: an array of shape (L, 3) or (L, 4) with numbers between 0 and 1,
        or other colours of matplotlib.

    Attributes
    ----------
    regions : array of int of shape (H, W)
        The layer, given or computed, numbered 0..R-1 in the order of the given numbers.
    region_entropy : array of shape (R,)
        The mean entropy of each region.
    region_order : array of int of shape (R,)
        The regions from the most to the least uncertain.
    axes_ : array of matplotlib axes
        The axes of the last drawing, one per panel.
    figure_ : matplotlib figure
        The figure of ``axes_``.
    images_ : dict of matplotlib images
        The images by the name of their panel.
    outlines_ : dict of matplotlib patches
        The outlines by the name of their panel.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import setwise as sw
    >>> unary = np.zeros((6, 8, 2))
    >>> unary[:, :3, 1], unary[:, 3:5, 1], unary[:, 5:, 0] = 2.0, 0.1, 2.0  # unsure between
    >>> field = sw.fields.Field(unary.reshape(-1, 2))
    >>> post = sw.marginals(field + sw.fields.Potts(sw.fields.grid_edges((6, 8)), 0.1))
    >>> display = sw.plots.MarginalsDisplay.from_result(post, (6, 8), quantile=0.75)
    >>> display.labels[0].tolist(), display.regions[0].tolist()
    ([0, 0, 0, 0, 0, 1, 1, 1], [-1, -1, -1, 0, 0, -1, -1, -1])
    >>> display.region_entropy.round(2).tolist()  # log 2, as sure as a coin
    [0.69]
    >>> plt.close(display.figure_)
    """

    axes_: Any  # an array of Axes
    figure_: Any  # a Figure or a SubFigure
    images_: dict[str, AxesImage]
    outlines_: dict[str, PathPatch]

    def __init__(
        self,
        labels: ArrayLike,
        entropy: ArrayLike,
        n_labels: int,
        *,
        image: ArrayLike | None = None,
        regions: ArrayLike | None = None,
        quantile: float = 0.9,
        colors: Any = None,
    ) -> None:
        self.n_labels = as_count(n_labels, "n_labels", least=1)
        self.entropy: FloatArray = as_numbers(
            entropy, "entropy", shape=(None, None), nonnegative=True
        )
        shape = self.entropy.shape
        if 0 in shape:
            raise ValueError(f"entropy must have at least one pixel, got shape {shape}")
        self.labels: IntArray = as_integers(labels, "labels", below=self.n_labels)
        if self.labels.shape != shape:
            raise ValueError(f"labels must have shape {shape}, got {self.labels.shape}")
        self.image = None if image is None else as_image(image, shape)
        share = as_number(quantile, "quantile", nonnegative=True)
        if share > 1:
            raise ValueError(f"quantile must be at most 1, got {share:g}")
        self.regions: IntArray = (
            uncertain_pieces(self.entropy, share) if regions is None else as_layer(regions, shape)
        )
        self.region_entropy: FloatArray = mean_entropies(self.entropy, self.regions)
        self.region_order: IntArray = np.argsort(-self.region_entropy, kind="stable")
        self.colors = colors

    @classmethod
    def from_result(
        cls,
        result: MarginalsResult,
        shape: Sequence[int] | None = None,
        image: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        regions: ArrayLike | None = None,
        colors: Any = None,
        *,
        quantile: float = 0.9,
        ax: Axes | Sequence[Axes] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the marginals of an image's field.

        Parameters
        ----------
        result : MarginalsResult
            A result of ``sw.marginals`` for a field with a variable per pixel, in C order.
        shape : pair of int, optional
            Height H and width W of the image; by default the result's.
        image, quantile, colors
            As in the class.
        labels : array of int of shape (H, W) or (N,), optional
            The labelling to show, for instance that of ``sw.solve_map``. By default the most
            probable label of each pixel.
        regions : array of int of shape (H, W) or (N,), optional
            As in the class.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        MarginalsDisplay
        """
        if not isinstance(result, MarginalsResult):
            raise TypeError(f"result must be a MarginalsResult, got {type(result).__name__}")
        n_variables, n_labels = result.probabilities.shape
        sides = as_sides(shape, n_variables, result.shape)
        chosen = result.labels if labels is None else labels
        display = cls(
            folded(chosen, sides, "labels"),
            result.entropy.reshape(sides),
            n_labels,
            image=image,
            regions=None if regions is None else folded(regions, sides, "regions"),
            quantile=quantile,
            colors=colors,
        )
        return display.plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        *,
        panels: str | Sequence[str] | None = None,
        n_regions: int = 5,
        colorbar: bool = True,
        outline_kw: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the panels side by side.

        Parameters
        ----------
        ax : matplotlib axes or a sequence of them, optional
            The axes of the panels; by default those of a new figure.
        panels : {"image", "labels", "entropy"} or a sequence of these, optional
            The panels to draw; by default all, with "image" if there is one.
        n_regions : int
            The number of most uncertain regions that are outlined.
        colorbar : bool
            Whether the entropy has a colour bar.
        outline_kw : mapping, optional
            Arguments of the ``PathPatch`` of the outlines.
        **kwargs
            Arguments of ``imshow`` for the entropy, such as ``cmap`` and ``vmax``.

        Returns
        -------
        MarginalsDisplay
            The display itself.
        """
        names = self._panel_names(panels)
        as_flag(colorbar, "colorbar")
        outlines = as_style(outline_kw, "outline_kw")
        chosen = self.region_order[: as_count(n_regions, "n_regions")]
        pyplot = import_pyplot()
        palette = label_colors(self.colors, self.n_labels)
        if ax is None:
            height, width = self.entropy.shape
            size = (3.6 * len(names) + 0.6, min(max(3.6 * height / width, 1.5), 9.0) + 0.4)
            _, axes = pyplot.subplots(
                1, len(names), figsize=size, squeeze=False, layout="constrained"
            )
        else:
            axes = as_axes(ax)
        if axes.size != len(names):
            raise ValueError(
                f"ax must hold {len(names)} axes, one for each of {', '.join(names)}, "
                f"got {axes.size}"
            )
        self.axes_ = axes.ravel()
        self.figure_, self.images_, self.outlines_ = self.axes_[0].figure, {}, {}
        for axis, name in zip(self.axes_, names, strict=True):
            self.images_[name] = self._draw(axis, name, palette, kwargs)
            self.outlines_[name] = draw_outlines(axis, self.regions, chosen, outlines)
            axis.set_axis_off()
        if "entropy" in names:
            axis = self.axes_[names.index("entropy")]
            draw_ranks(axis, self.regions, chosen)
            if colorbar:
                self.figure_.colorbar(
                    self.images_["entropy"], ax=axis, label="entropy (nats)", shrink=0.85
                )
        return self

    def _panel_names(self, panels: str | Sequence[str] | None) -> list[str]:
        if panels is None:
            return [name for name in PANELS if name != "image" or self.image is not None]
        names = [panels] if isinstance(panels, str) else as_list(panels, "panels", "names")
        for name in names:
            if not isinstance(name, str) or name not in PANELS:
                raise ValueError(f"panels must be among {', '.join(PANELS)}, got {name!r}")
        if not names or len(set(names)) < len(names):
            raise ValueError(f"panels must name each panel once, got {names}")
        if "image" in names and self.image is None:
            raise ValueError("panels must not hold 'image' where no image was given")
        return names

    def _draw(
        self, ax: Axes, name: str, palette: FloatArray, style: Mapping[str, Any]
    ) -> AxesImage:
        if name == "image":
            assert self.image is not None
            ax.set_title("image")
            return ax.imshow(self.image, cmap="gray" if self.image.ndim == 2 else None)
        if name == "labels":
            ax.set_title("labels")
            return ax.imshow(palette[self.labels], interpolation="nearest")
        ax.set_title("entropy of the marginals")
        top = float(np.log(max(self.n_labels, 2)))
        look = {"cmap": "inferno", "vmin": 0.0, "vmax": top, "interpolation": "nearest"}
        return ax.imshow(self.entropy, **{**look, **style})
