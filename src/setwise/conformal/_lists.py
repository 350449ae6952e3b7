"""The number of alternatives that a list needs to contain a good one with high probability."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import BoolArray, FloatArray, as_array, as_count, as_number
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._search import completed
from setwise._foundation._threads import Pool
from setwise.conformal._calibrated import Conformal, as_examples
from setwise.conformal._families import as_truth
from setwise.decisions._risk_control import (
    RiskControl,
    as_alpha,
    as_delta,
    bound_of,
    control_of,
    passes,
    require_examples,
)
from setwise.estimators._threads import threads
from setwise.fields import Field
from setwise.inference import DiverseResult
from setwise.inference._diverse._diverse import diverse


class ConformalLists(Conformal):
    r"""Lists of alternatives just long enough to contain a good one with high probability.

    An item is good if its intersection over union with the truth is at least tau. The lists of
    ``sw.diverse`` are cut to the least length k for which conformal risk control certifies

    .. math:: P(\text{a list is issued and none of its first } k \text{ items is good}) \le \alpha .

    All lists are prefixes of one list of ``length`` items, because ``diverse`` chooses the items of
    a shorter list differently. If no length reaches alpha on the calibration images,
    ``conformalize`` raises an error with the least alpha that is possible, and no list is issued.
    In this probability, a calibration without a length does not count as a failure. The probability
    of failure given that a list is issued may therefore be larger.

    Parameters
    ----------
    estimator : function, default=None
        Makes a ``Field`` of an entry of X. None: the entries of X are fields, or the lists of
        ``diverse`` for them.
    alpha : float, default=0.1
        The probability of a list without a good item.
    tau : float, default=0.5
        The least intersection over union of a good item, in (0, 1].
    length : int, default=6
        The number of items of the lists that are cut.
    delta : float, default=None
        The probability that the guarantee may fail. With it, the guarantee holds in probability and
        the images must be independent. None: on average over calibration sets and new images.
    n_jobs : int, default=None
        Threads over the images, in which the function is called; None is one.

    Attributes
    ----------
    controls_ : dict
        The ``RiskControl`` under "length", whose level is the length; with groups, one for each.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> truths = np.arange(16) >= rng.integers(4, 12, size=(60, 1))
    >>> chain = sw.fields.Potts([[k, k + 1] for k in range(15)], 1.0)
    >>> costs = rng.normal(1.0 - 2.0 * truths, 2.0)
    >>> fields = [sw.fields.Field(np.stack([0 * c, c], axis=1)) + chain for c in costs]
    >>> model = sw.conformal.ConformalLists(alpha=0.3, tau=0.7).conformalize(fields, truths)
    >>> [len(masks) for masks in model.predict_set(fields[:2])]
    [3, 3]
    """

    _stored = ("alpha", "tau", "length", "delta")

    @hints_at_names
    def __init__(
        self,
        estimator: Any = None,
        *,
        alpha: float = 0.1,
        tau: float = 0.5,
        length: int = 6,
        delta: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.tau = tau
        self.length = length
        self.delta = delta
        self.n_jobs = n_jobs

    @hints_at_names
    def conformalize(self, X: Any, y: Any, *, groups: ArrayLike | None = None) -> Self:
        """Choose the length on labelled images that the function has not seen.

        Parameters
        ----------
        X : sequence of n images, fields of two labels, or lists of ``diverse``
        y : sequence of n boolean masks, of the shapes of their images
        groups : array-like of int or str of shape (n,), optional
            The group of each image, known from the input. Each group has its own length and needs
            examples of its own: at least 1 / alpha - 1.

        Returns
        -------
        self
        """
        alpha, delta = self._checked()
        examples, truths = as_examples(X, y, given=True)
        pairs = zip(self._masks(examples), truths, strict=True)
        overlaps = np.array([_overlaps(masks, truth, self.length) for masks, truth in pairs])
        found = np.maximum.accumulate(overlaps, axis=1)
        losses = (found < self.tau).astype(np.float64)
        calibrate = partial(self._calibrated_length, losses, alpha, delta)
        self._calibrate({"length": calibrate}, groups, len(examples))
        return self

    @hints_at_names
    def predict(self, X: Any) -> list[BoolArray]:
        """Return the first item of each list, without a guarantee."""
        self._checked()
        return [masks[0] for masks in self._masks(as_examples(X)[0])]

    @hints_at_names
    def predict_set(self, X: Any, *, groups: ArrayLike | None = None) -> list[BoolArray]:
        """Return the lists with the guarantee.

        Parameters
        ----------
        X : sequence of n images, fields of two labels, or lists of ``diverse``
        groups : array-like of int or str of shape (n,), optional
            The group of each image, if there were groups in ``conformalize``.

        Returns
        -------
        list of boolean arrays of shape (k, ...)
            Lists that ``diverse`` ends early are shorter.
        """
        self._calibrated()
        self._checked()
        examples, _ = as_examples(X)
        lengths = self._levels("length", groups, len(examples))
        pairs = zip(self._masks(examples), lengths, strict=True)
        return [masks[: int(k)] for masks, k in pairs if k is not None]

    def _calibrated_length(
        self, losses: FloatArray, alpha: float, delta: float | None, chosen: BoolArray, which: str
    ) -> RiskControl:
        own = losses[chosen]
        n = len(own)
        require_examples(n, alpha, delta, "X", which)
        sums = own.sum(axis=0)
        certified = np.flatnonzero(passes(sums, n, alpha, delta))
        if not certified.size:
            least = bound_of(float(sums[-1]), n, delta)
            raise ValueError(
                f"alpha must be at least {least:.3g} for lists of {self.length} items and "
                f"tau={self.tau:g} on these examples{which}, got {alpha:g}: no list is issued"
            )
        lengths = np.arange(1.0, losses.shape[1] + 1)
        return control_of(sums[None], n, (alpha,), delta, lengths, certified, True)

    def _masks(self, examples: list[Any]) -> list[BoolArray]:
        """Return the list of masks (m, ...) of each example."""
        make = self.estimator
        if make is not None and not callable(make):
            raise TypeError(f"estimator must be a function or None, got {type(make).__name__}")

        name = "X" if make is None else "what estimator returns"

        def one(item: Any) -> BoolArray:
            found = item if make is None else make(item)
            if isinstance(found, Field):
                if found.n_labels != 2:
                    raise ValueError(f"{name} must hold fields of two labels, got {found.n_labels}")
                found = completed(diverse(found, self.length, n_jobs=1))
            if not isinstance(found, DiverseResult):
                raise TypeError(
                    f"{name} must hold fields or lists of diverse, got {type(found).__name__}"
                )
            labels = found.labelings if found.shape is None else found.label_images
            return np.asarray(labels == 1)[: self.length]

        n_threads = threads(self.n_jobs)
        if n_threads == 1 or len(examples) < 2:
            return [one(item) for item in examples]
        with Pool(min(n_threads, len(examples))) as pool:
            return pool.map(one, examples)

    def _checked(self) -> tuple[float, float | None]:
        alpha, delta = as_alpha(self.alpha), as_delta(self.delta)
        if as_number(self.tau, "tau", positive=True) > 1:
            raise ValueError(f"tau must be at most 1, got {self.tau:g}")
        as_count(self.length, "length", least=1, most=1000)
        threads(self.n_jobs)
        return alpha, delta


def _overlaps(masks: BoolArray, truth: NDArray[Any], length: int) -> FloatArray:
    """Return the intersections over unions with the truth, (length,); 0 beyond the list's end."""
    array = as_array(truth, "y")
    if array.shape != masks.shape[1:] and array.size != masks[0].size:
        raise ValueError(f"y must hold a mask of shape {masks.shape[1:]}, got {array.shape}")
    inside = as_truth(array.ravel())
    rows = masks.reshape(len(masks), -1)
    both = np.count_nonzero(rows & inside, axis=1)
    either = np.count_nonzero(rows | inside, axis=1)
    found = np.zeros(length)
    found[: len(rows)] = np.where(either > 0, both / np.maximum(either, 1), 1.0)
    return found
