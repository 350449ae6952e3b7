"""The display of a list of labellings of an image and of their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import label as connected_parts

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_integers,
    as_number,
    as_numbers,
)
from setwise.inference import DiverseResult
from setwise.plots._pixels import as_image, as_sides
from setwise.plots._style import as_axes, as_style, import_pyplot, label_colors
from setwise.plots._uncertain_regions import draw_outlines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.patches import PathPatch


class DiverseDisplay:
    r"""A display of labellings of an image, with their changes and the costs of these.

    There is one panel per labelling, after one for the image if there is one. From the second
    labelling on, the pixels whose label differs from the first are outlined. The title describes
    the change, and states by how much the energy is higher than that of the first.

    Create it with ``from_result``, which computes and draws, as in scikit-learn; ``plot`` draws
    again.

    Parameters
    ----------
    labelings : array of int of shape (m, H, W)
        The list, at least one labelling.
    values : array of shape (m,)
        Their energies.
    image : array of shape (H, W), (H, W, 3) or (H, W, 4), optional
        Grey or colours, in the form of matplotlib's ``imshow``.
    n_labels : int, optional
        The number L of labels; by default one more than the largest label in the list.
    colors : sequence of L colours, optional
        The colours of the labels: an array of shape (L, 3) or (L, 4) with numbers between 0 and 1,
        or other colours of matplotlib.

    Attributes
    ----------
    differs : array of bool of shape (m, H, W)
        Masks of the pixels where each labelling differs from the first one.
    share : array of shape (m,)
        The share of these pixels.
    changes : list of m str
        The change of each labelling in words: "without the left part, 4.0 % of the pixels".
    axes_ : array of matplotlib axes
        The axes of the last drawing, one per panel.
    figure_ : matplotlib figure
        The figure of ``axes_``.
    images_ : list of m matplotlib images
        The labellings.
    outlines_ : list of m matplotlib patches
        The outlines of the pixels that differ; the first has none.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import setwise as sw
    >>> unary = np.zeros((2, 4, 2))
    >>> unary[:, :2, 1], unary[:, 2:, 0] = 1.0, 0.3  # the left half is surer than the right one
    >>> field = sw.fields.Field(unary.reshape(-1, 2))
    >>> field = field + sw.fields.Potts(sw.fields.grid_edges((2, 4)), 0.2)
    >>> two = sw.diverse(field, 2, sw.diversities.DivMBest(0.5))
    >>> display = sw.plots.DiverseDisplay.from_result(two, (2, 4))
    >>> display.labelings[:, 0].tolist(), display.share.tolist()
    ([[0, 0, 1, 1], [0, 0, 0, 0]], [0.0, 0.5])
    >>> plt.close(display.figure_)
    """

    axes_: Any  # an array of Axes
    figure_: Any  # a Figure or a SubFigure
    images_: list[AxesImage]
    outlines_: list[PathPatch]

    def __init__(
        self,
        labelings: ArrayLike,
        values: ArrayLike,
        *,
        image: ArrayLike | None = None,
        n_labels: int | None = None,
        colors: Any = None,
    ) -> None:
        array = as_array(labelings, "labelings")
        if array.ndim != 3 or 0 in array.shape:
            raise ValueError(
                "labelings must have shape (m, H, W) with at least one labelling and one pixel, "
                f"got {array.shape}"
            )
        most = (
            np.iinfo(np.int64).max if n_labels is None else as_count(n_labels, "n_labels", least=1)
        )
        self.labelings: IntArray = as_integers(array, "labelings", below=most)
        self.n_labels = int(self.labelings.max()) + 1 if n_labels is None else most
        self.values: FloatArray = as_numbers(values, "values", shape=(len(array),))
        self.image = None if image is None else as_image(image, array.shape[1:])
        self.colors = colors
        self.differs = self.labelings != self.labelings[0]
        self.share: FloatArray = self.differs.mean(axis=(1, 2))
        self.changes = [change_in_words(self.labelings[0], labels) for labels in self.labelings]

    @classmethod
    def from_result(
        cls,
        result: DiverseResult,
        shape: Sequence[int] | None = None,
        image: ArrayLike | None = None,
        superpixels: ArrayLike | None = None,
        n_labels: int | None = None,
        colors: Any = None,
        *,
        ax: Axes | Sequence[Axes] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the list of an image's field.

        Parameters
        ----------
        result : DiverseResult
            A result of ``sw.diverse`` for a field with a variable per pixel, in C order, or per
            superpixel.
        shape : pair of int, optional
            Height H and width W of the image if pixels are variables; by default the result's.
        image, n_labels, colors
            As in the class.
        superpixels : array of int of shape (H, W), optional
            The variable of each pixel if superpixels are variables.
        ax, **kwargs
            As in ``plot``.

        Returns
        -------
        DiverseDisplay
        """
        if not isinstance(result, DiverseResult):
            raise TypeError(f"result must be a DiverseResult, got {type(result).__name__}")
        if shape is not None and superpixels is not None:
            raise ValueError("shape must be left out where superpixels are given")
        n_items, n_variables = result.labelings.shape
        if superpixels is None:
            sides = as_sides(shape, n_variables, result.shape)
            maps = result.labelings.reshape(n_items, *sides)
        else:
            variables = as_integers(superpixels, "superpixels", below=n_variables)
            if variables.ndim != 2:
                raise ValueError(f"superpixels must have shape (H, W), got {variables.shape}")
            maps = result.labelings[:, variables]
        display = cls(maps, result.values, image=image, n_labels=n_labels, colors=colors)
        return display.plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        *,
        n_columns: int | None = None,
        alpha: float | None = None,
        outline_kw: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the panels side by side.

        Parameters
        ----------
        ax : matplotlib axes or a sequence of them, optional
            The axes of the panels; by default those of a new figure.
        n_columns : int, optional
            The number of panels per row of a new figure; by default at most four.
        alpha : float, optional
            The opacity of the labels over the image, from 0 to 1; by default 0.6, or 1 without an
            image.
        outline_kw : mapping, optional
            Arguments of the ``PathPatch`` of the outlines.
        **kwargs
            Arguments of ``imshow`` for the labellings.

        Returns
        -------
        DiverseDisplay
            The display itself.
        """
        first = 0 if self.image is None else 1
        number = first + len(self.labelings)
        columns = min(number, 4 if n_columns is None else as_count(n_columns, "n_columns", least=1))
        cover = (0.6 if first else 1.0) if alpha is None else _as_share(alpha)
        outlines = as_style(outline_kw, "outline_kw")
        pyplot = import_pyplot()
        palette = label_colors(self.colors, self.n_labels)
        axes = _new_axes(pyplot, number, columns, self.labelings.shape[1:]) if ax is None else ax
        self.axes_ = as_axes(axes).ravel()
        if len(self.axes_) != number:
            raise ValueError(
                f"ax must hold {number} axes, one for each labelling"
                f"{' and one for the image' if first else ''}, got {len(self.axes_)}"
            )
        self.figure_, self.images_, self.outlines_ = self.axes_[0].figure, [], []
        for axis in self.axes_:
            if self.image is not None:
                axis.imshow(self.image, cmap="gray" if self.image.ndim == 2 else None)
            axis.set_axis_off()
        if first:
            self.axes_[0].set_title("image")
        look = {"interpolation": "nearest", "alpha": cover, **kwargs}
        for k, axis in enumerate(self.axes_[first:]):
            self.images_.append(axis.imshow(palette[self.labelings[k]], **look))
            inside = self.differs[k].astype(np.int64) - 1
            self.outlines_.append(draw_outlines(axis, inside, np.zeros(1, np.int64), outlines))
            axis.set_title(self._title(k), fontsize="small")
        return self

    def _title(self, k: int) -> str:
        if k == 0:
            return f"1: energy {self.values[0]:,.5g}"
        first, more = float(self.values[0]), float(self.values[k] - self.values[0])
        percent = 100 * more / abs(first) if first else 0.0
        rise = f"{percent:+,.{0 if percent >= 10 else 2}{'f' if percent >= 10 else 'g'}} %"
        rise = rise if first else f"{more:+.3g}"
        what, share = self.changes[k].rsplit(", ", 1) if self.share[k] else (self.changes[k], "")
        return f"{k + 1}: {what}\n{share}{', ' if share else ''}energy {rise}"


def _as_share(alpha: float) -> float:
    share = as_number(alpha, "alpha", nonnegative=True)
    if share > 1:
        raise ValueError(f"alpha must be at most 1, got {share:g}")
    return share


def _new_axes(pyplot: Any, number: int, columns: int, shape: tuple[int, ...]) -> Any:
    """Make axes in a new figure; the rest of the last row stays empty."""
    rows = -(-number // columns)
    height, width = shape
    size = (3.0 * columns, rows * (min(max(3.0 * height / width, 1.2), 6.0) + 0.35))
    _, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[number:]:
        axis.remove()
    return axes.ravel()[:number]


def change_in_words(first: IntArray, other: IntArray) -> str:
    """Describe in words the difference of a labelling (H, W) from the first.

    An example is "without the left part, 4 % of the pixels". With two labels, 1 is the object,
    which becomes larger or smaller. With more labels, the old and the new label of the largest part
    are named.
    """
    differs = first != other
    share = differs.mean()
    if share == 0:
        return "nothing else"
    parts, _ = connected_parts(differs, structure=np.ones((3, 3)))
    sizes = np.bincount(parts.ravel())[1:]
    largest = parts == 1 + int(sizes.argmax())
    where = _place(largest)
    what = f"the {where} part" if sizes.max() > 0.5 * sizes.sum() else f"parts, mostly {where}"
    percent = f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"
    return f"{_kind(first[largest], other[largest])} {what}, {percent} of the pixels"


def _kind(before: IntArray, after: IntArray) -> str:
    had, takes = (int(np.bincount(labels).argmax()) for labels in (before, after))
    if max(had, takes) > 1:
        return f"{takes} for {had} in"
    return "with" if takes > had else "without"


def _place(part: BoolArray) -> str:
    """Return a name for the position of a part, by thirds of the image's height and width."""
    y, x = (np.mean(places) / side for places, side in zip(part.nonzero(), part.shape, strict=True))
    words = [
        "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else "",
        "left" if x < 1 / 3 else "right" if x > 2 / 3 else "",
    ]
    return " ".join(word for word in words if word) or "middle"
