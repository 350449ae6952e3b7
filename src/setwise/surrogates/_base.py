"""The base class of surrogates: a value, a gradient, and their properties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import FloatArray
from setwise._foundation._base_classes import Immutable, Versioned
from setwise.losses import Loss, get
from setwise.losses._families import Polymatroids
from setwise.losses._labels import Labels, read_labels
from setwise.surrogates._rows import ScoredRows, Scores, read_rows


@dataclass(frozen=True)
class Properties(Versioned):
    """The properties of a surrogate for one ground truth: True, False, or None if unknown.

    Examples
    --------
    >>> import setwise as sw
    >>> facts = sw.surrogates.DecomposedHinge("dice").properties([1, 1, 1, 0, 0, 0])
    >>> facts.is_convex, facts.is_extension, facts.is_upper_bound
    (True, True, None)
    """

    is_convex: bool | None
    """Whether it is convex in the scores."""
    is_extension: bool | None
    """Whether it equals the loss at the corners of the unit cube of s = 1 - g y."""
    is_upper_bound: bool | None
    """Whether it is at least the loss of the signs of the scores, for all scores."""
    is_exact: bool | None
    """Whether the value is exact, and not an approximation by a greedy search."""


@dataclass(frozen=True)
class SurrogateTraits:
    """The properties of a surrogate by which learners choose their algorithms."""

    is_separable: bool = False
    """Whether the value of a set is the sum of the values of its elements."""
    takes_multiplicity: bool = False
    """Whether fractional elements are supported, by ``_with_multiplicity``."""
    ignores_safe_negatives: bool = False
    """Whether a negative with a score far below 0 can be left out."""


class Surrogate(Immutable, ABC):
    r"""A function of scores g that replaces the loss of their signs.

    ``value_and_gradient(y, scores)`` gives the value of each set and a subgradient with respect to
    the scores. ``is_convex``, ``is_extension``, ``is_upper_bound`` and ``is_exact`` are True only
    if that holds for every y and every size, and None otherwise; ``properties(y)`` answers for
    one y.

    Parameters
    ----------
    loss : Loss or str
        A loss, or the name of one (``sw.losses.names()``).

    Examples
    --------
    >>> import setwise as sw
    >>> surrogates = [sw.surrogates.LovaszHinge, sw.surrogates.SlackRescaling]
    >>> [surrogate("jaccard")([1, 0], [-0.5, 0.5]) for surrogate in surrogates]
    [1.5, 3.0]
    """

    loss: Loss

    def __init__(self, loss: Loss | str) -> None:
        self._set(loss=get(loss))

    @abstractmethod
    def evaluate(self, rows: ScoredRows) -> tuple[FloatArray, Scores]:
        """Compute the value of each set and the gradient for each score, of checked rows.

        ``rows.margins(i)`` are the products g y of set i, ``rows.labels.row(i)`` says which
        elements are positive, and ``rows.labels.offsets[i]`` is the place of the first one in the
        gradient.
        """

    @abstractmethod
    def properties_of(self, positive: NDArray[np.bool_]) -> Properties:
        """Return the properties for one checked ground truth, of which True means positive."""

    @abstractmethod
    def general_properties(self) -> Properties:
        """Return the properties that hold for every ground truth; all others are None."""

    def value_and_gradient(
        self, y: ArrayLike, scores: ArrayLike, *, offsets: ArrayLike | None = None
    ) -> tuple[float | FloatArray, NDArray[np.floating[Any]]]:
        """Compute the surrogate of each set and its subgradient with respect to the scores.

        Parameters
        ----------
        y : array of shape (p,) or (n, p), or flat with offsets
            Labels in {-1, +1}, {0, 1} or bool.
        scores : array of the shape of y
            float32 scores give a float32 gradient, all others a float64 gradient. Sums are computed
            in float64.
        offsets : array of shape (n + 1,), optional
            Set i is [offsets[i], offsets[i + 1]) of the flat y and scores.

        Returns
        -------
        values : float, or array of shape (n,)
        gradient : array of the shape of scores
        """
        return self._of_labels(read_labels(y, offsets), scores)

    def _of_labels(
        self, labels: Labels, scores: ArrayLike
    ) -> tuple[float | FloatArray, NDArray[np.floating[Any]]]:
        """Compute values and gradient for ``Labels``, which cache what depends on them only."""
        rows = read_rows(labels, scores)
        with np.errstate(over="ignore", invalid="ignore"):
            values, gradient = self.evaluate(rows)
        if not np.isfinite(values).all():
            raise ValueError(
                "scores must be so small that the surrogate is finite, got one of "
                f"{np.abs(rows.scores).max():g} in size"
            )
        return rows.labels.of_shape(values), gradient.reshape(rows.labels.shape)

    def __call__(
        self, y: ArrayLike, scores: ArrayLike, *, offsets: ArrayLike | None = None
    ) -> float | FloatArray:
        """Return the value without the gradient."""
        return self.value_and_gradient(y, scores, offsets=offsets)[0]

    def properties(self, y: ArrayLike) -> Properties:
        """Return the properties for the ground truth y of shape (p,)."""
        labels = read_labels(y)
        if labels.layout != "single":
            raise ValueError(f"y must have shape (p,), got {labels.shape}")
        return self.properties_of(labels.row(0))

    _traits: SurrogateTraits = SurrogateTraits()
    """The properties that learners use instead of the type of the surrogate."""

    def _with_multiplicity(self, weights: FloatArray) -> Surrogate:
        """Return the surrogate of one set whose element i counts weights[i] times."""
        raise NotImplementedError(f"{self!r} counts whole elements only")

    def _polymatroids(self, labels: Labels) -> tuple[Polymatroids, float] | None:
        """Return polymatroids and a factor such that set i has value factor max <b, 1 - g y>.

        The factor is common to all sets. None if the surrogate has no such form.
        """
        return None

    def _warn_if_negative(self, labels: Labels) -> None:
        """Warn once if a part of the loss is negative. The default does nothing."""

    @property
    def is_convex(self) -> bool | None:
        """True if convex for every y and size, else None."""
        return self.general_properties().is_convex or None

    @property
    def is_extension(self) -> bool | None:
        """True if equal to the loss at the corners of the unit cube for every y and size."""
        return self.general_properties().is_extension or None

    @property
    def is_upper_bound(self) -> bool | None:
        """True if at least the loss of the signs for every y, size and scores, else None."""
        return self.general_properties().is_upper_bound or None

    @property
    def is_exact(self) -> bool | None:
        """True if the value is never an approximation, else None."""
        return self.general_properties().is_exact or None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.loss!r})"


def times(factor: float, values: FloatArray, gradient: Scores) -> tuple[FloatArray, Scores]:
    """Return values and gradient times a factor; the gradient keeps its dtype."""
    if factor == 1:
        return values, gradient
    return factor * values, gradient * gradient.dtype.type(factor)
