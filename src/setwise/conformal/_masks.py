"""Inner and outer masks with guarantees, along bias paths or thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from setwise._foundation._arguments import (
    BoolArray,
    FloatArray,
    IntArray,
    as_choice,
    as_count,
    as_flag,
    as_number,
)
from setwise._foundation._base_classes import Record
from setwise._foundation._display import Bytes
from setwise._foundation._keywords import hints_at_names
from setwise.conformal._calibrated import Calibrate, Conformal, as_examples
from setwise.conformal._families import NestedMasks, Profile, all_nested
from setwise.decisions._risk_control import (
    RiskControl,
    as_alpha,
    as_delta,
    control_of,
    highest_threshold,
    passes,
    require_examples,
)
from setwise.estimators._sets._folds import CANDIDATES
from setwise.estimators._threads import threads
from setwise.images._pixels import as_pixels
from setwise.images._segment import as_bytes, overlaid

OUTER = ("false_negative_rate", "miss")
INNER = ("false_positive_rate", "excess")
MASK = ("precision", "jaccard", "dice")
# The colours of the inner mask and of the band, of the palette for labels.
_COLORS: Bytes = np.array([[0, 114, 178], [230, 159, 0]], np.uint8)


@dataclass(frozen=True, eq=False, repr=False)
class MaskSet(Record):
    r"""The masks of one image to which the guarantees apply.

    If ``alpha`` is so large that the outer mask would lie within the inner one, the two are
    exchanged. Both guarantees still hold, because the outer mask becomes larger and the inner one
    smaller.

    Attributes
    ----------
    mask : boolean array
        The plain prediction, or the one with a certified precision, Jaccard or Dice; None if a
        measure was requested and no level is certified.
    inner, outer : boolean array or None
        The inner and the outer mask, in the shape of the image; None if it was not requested.
    words : str
        What is guaranteed, in one sentence for each mask.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> maps = np.linspace(0.0, 1.0, 60).reshape(20, 3)  # 20 examples of three pixels
    >>> model = sw.conformal.ConformalMasks(alpha=0.2).conformalize(maps, maps > 0.5)
    >>> found = model.predict_set([[0.9, 0.51, 0.1]])[0]
    >>> found.outer.tolist(), found.inner.tolist(), found.band.tolist()
    ([True, True, False], [True, False, False], [False, True, False])
    >>> print(found.words.replace(". ", ".\n"))
    On average at most 0.2 of the object lies outside the outer mask.
    On average at most 0.2 of the background lies inside the inner mask.
    """

    _printed = "mask inner outer words"

    mask: BoolArray | None
    inner: BoolArray | None
    outer: BoolArray | None
    words: str

    @property
    def band(self) -> BoolArray | None:
        """The elements of the outer mask that are not in the inner one; None unless both exist."""
        if self.inner is None or self.outer is None:
            return None
        return self.outer & ~self.inner

    def overlay(self, image: ArrayLike, *, opacity: float = 0.5) -> NDArray[np.uint8]:
        """Return an image (H, W) or (H, W, 3) with the inner mask in blue and the band in orange.

        If only one of the masks exists, it has its own colour.
        """
        share = as_number(opacity, "opacity", nonnegative=True)
        if share > 1:
            raise ValueError(f"opacity must be at most 1, got {share:g}")
        labels = self._labels()
        picture = as_bytes(as_pixels(image, sides=labels.shape))
        if picture.shape[:-1] != labels.shape:
            raise ValueError(
                f"image must have the sides {labels.shape} of the masks, got {picture.shape[:-1]}"
            )
        return overlaid(picture, labels, _COLORS, share)

    def _labels(self) -> IntArray:
        """Return 0 on the inner mask, 1 on the rest of the outer one, -1 elsewhere."""
        known = self.outer if self.outer is not None else self.inner
        known = known if known is not None else self.mask
        if known is None:
            raise ValueError("overlay needs a mask, and nothing was certified")
        labels = np.full(known.shape, -1, np.int64)
        if self.outer is not None:
            labels[self.outer] = 1
        inside = self.inner if self.inner is not None else self.mask if self.outer is None else None
        if inside is not None:
            labels[inside] = 0
        return labels


class ConformalMasks(Conformal):
    r"""Inner and outer masks with guaranteed risks, along the bias path of a field or thresholds.

    The masks of an image form a nested family with a level t: the best masks of a field under a
    bias t against the object (``sw.inference.bias_path``, between the full and the empty mask), the
    pixels whose probability is at least t, or any stack of nested masks. Calibration on labelled
    images chooses the levels, with a guarantee that needs no assumption about the field or the
    probabilities (``sw.conformal.control_risk``):

    =========  =======================  ==========================================================
    mask       risk                     guarantee (``delta=None``)
    =========  =======================  ==========================================================
    ``outer``  ``false_negative_rate``  on average at most alpha of the object lies outside
    ``outer``  ``miss``                 it contains the object with probability 1 - alpha
    ``inner``  ``false_positive_rate``  on average at most alpha of the background lies inside
    ``inner``  ``excess``               it lies within the object with probability 1 - alpha
    ``mask``   ``precision``            precision, Jaccard or Dice are at least 1 - alpha on
    ..         ``jaccard``, ``dice``    average over images, with probability 1 - delta
    =========  =======================  ==========================================================

    The averages are over images and calibration sets. Nothing is guaranteed for a single pixel, a
    kind of image, or for images from another source than the calibration images. Precision, Jaccard
    and Dice are not monotone along the family: they need ``delta``, and ``fit`` on other images,
    which fixes the order in which levels are tested. If no level passes, nothing is certified.

    Parameters
    ----------
    estimator : function or classifier with ``predict_proba``, default=None
        Makes a family of an entry of X: a function returns a ``Field`` of two labels, a
        ``BiasPath``, a map of probabilities, or a boolean stack (K, ...) of nested masks. A
        classifier is applied to arrays (..., F) of features of pixels. None: the entries of X are
        families themselves.
    alpha : float or dict, default=0.1
        The risk to guarantee, or one for each of "outer", "inner" and "mask".
    outer : {"false_negative_rate", "miss", None}, default="false_negative_rate"
        The risk of the outer mask; None for no outer mask.
    inner : {"false_positive_rate", "excess", None}, default="false_positive_rate"
        The risk of the inner mask; None for no inner mask.
    mask : {None, "precision", "jaccard", "dice"}, default=None
        The measure of the mask between them, at least 1 - alpha. None: ``mask`` is the plain
        prediction, without a guarantee.
    delta : float, default=None
        The probability that a guarantee may fail, each by itself. With it, guarantees hold in
        probability, and the calibration images must be independent. None: they hold on average.
    nonempty : bool, default=False
        An image without object has a false-negative rate of 0, and one without background a
        false-positive rate of 0. True leaves such images out, so that the guarantees hold on
        average over images that have an object (outer, mask) or a background (inner).
    ignore : int, default=None
        The label of pixels in y that do not count.
    max_bias, resolution : float, default=None and 0.05
        As in ``bias_path``. With a resolution of 0.05, neighbours in a family differ in at most 5 %
        of the pixels; the guarantees hold for any resolution.
    n_jobs : int, default=None
        Threads over the images, in which the function is called; None is one.

    Attributes
    ----------
    controls_ : dict
        The ``RiskControl`` of "outer", "inner" and "mask"; with groups, one for each group.
    kind_ : str
        The calibrated kind of families: "bias path", "probabilities" or "stack of masks".
    estimator_ : object
        The estimator that ``fit`` fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> rng = np.random.default_rng(0)
    >>> truths = np.arange(16) >= rng.integers(4, 12, size=(60, 1))
    >>> chain = sw.fields.Potts([[k, k + 1] for k in range(15)], 1.0)
    >>> costs = rng.normal(2.0 - 4.0 * truths, 2.0)
    >>> fields = [sw.fields.Field(np.stack([0 * c, c], axis=1)) + chain for c in costs]
    >>> model = sw.conformal.ConformalMasks(alpha=0.1).conformalize(fields[:59], truths[:59])
    >>> found = model.predict_set(fields[59:])[0]
    >>> bool((found.inner <= found.outer).all()), model.controls_["outer"].bound <= 0.1
    (True, True)
    """

    _stored = (
        *("alpha", "outer", "inner", "mask", "delta", "nonempty", "ignore"),
        *("max_bias", "resolution"),
    )

    @hints_at_names
    def __init__(
        self,
        estimator: Any = None,
        *,
        alpha: float | Mapping[str, float] = 0.1,
        outer: str | None = "false_negative_rate",
        inner: str | None = "false_positive_rate",
        mask: str | None = None,
        delta: float | None = None,
        nonempty: bool = False,
        ignore: int | None = None,
        max_bias: float | None = None,
        resolution: float = 0.05,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.outer = outer
        self.inner = inner
        self.mask = mask
        self.delta = delta
        self.nonempty = nonempty
        self.ignore = ignore
        self.max_bias = max_bias
        self.resolution = resolution
        self.n_jobs = n_jobs

    @hints_at_names
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier, if any, and fix the order in which levels of ``mask`` are tested.

        It need not be called for inner and outer masks of fields, probabilities or a fitted
        classifier. The images must not be those of ``conformalize``.

        Parameters
        ----------
        X : sequence of n images, fields, paths, maps or stacks
        y : sequence of n boolean masks, of the shapes of their images

        Returns
        -------
        self
        """
        alphas, _ = self._checked()
        examples, truths = as_examples(X, y, given=True)
        learns = hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict_proba")
        if learns:
            self.estimator_ = _fitted(self.estimator, examples, truths, self.ignore)
        if "mask" not in alphas:
            return self
        if learns:
            if len(examples) < 2:
                raise ValueError(f"X must hold at least 2 images to fit, got {len(examples)}")
            profiles: list[Profile] = []
            for train, test in KFold(min(KFold().get_n_splits(), len(examples))).split(examples):
                model = _fitted(
                    self.estimator,
                    [examples[i] for i in train],
                    [truths[i] for i in train],
                    self.ignore,
                )
                profiles += self._profiles(
                    [examples[i] for i in test], [truths[i] for i in test], model
                )[1]
        else:
            _, profiles = self._profiles(examples, truths, self._model())
        kept = [p for p in profiles if not (self.nonempty and p.empty)]
        if not kept:
            raise ValueError("y must hold an object for nonempty=True, got empty masks only")
        scores = np.concatenate([p.scores for p in kept])
        counts = np.concatenate([(p.objects + p.others) / max(p.scores.size, 1) for p in kept])
        levels = _quantiles(scores, counts)
        losses = np.array([_losses(p, levels, str(self.mask)) for p in kept])
        self._levels_of_mask = levels.tolist()
        self._order = np.argsort(losses.mean(axis=0), kind="stable").tolist()
        return self

    @hints_at_names
    def conformalize(self, X: Any, y: Any, *, groups: ArrayLike | None = None) -> Self:
        """Choose the levels on labelled images that neither the estimator nor ``fit`` has seen.

        Parameters
        ----------
        X : sequence of n images, fields, paths, maps or stacks
        y : sequence of n boolean masks, of the shapes of their images
        groups : array-like of int or str of shape (n,), optional
            The group of each image, known from the input, such as its source or the size of the
            plain mask. Each group has its own levels, for which the guarantees hold, and needs
            examples of its own: at least 1 / alpha - 1.

        Returns
        -------
        self
        """
        alphas, delta = self._checked()
        examples, truths = as_examples(X, y, given=True)
        if "mask" in alphas and not hasattr(self, "_order"):
            raise ValueError(
                f"mask={self.mask!r} needs fit on other images first, which fixes the order in "
                "which levels are tested"
            )
        kinds, profiles = self._profiles(examples, truths, self._model())
        if len(kinds) > 1:
            raise ValueError(f"X must hold families of one kind, got {' and '.join(sorted(kinds))}")
        parts: dict[str, Calibrate] = {}
        for part, alpha in alphas.items():
            if part == "mask":
                parts[part] = _MaskLevels(
                    profiles, self._levels_of_mask, self._order, str(self.mask), self, alpha, delta
                )
            else:
                given = profiles if part == "outer" else [p.complement for p in profiles]
                whole = getattr(self, part) in ("miss", "excess")
                parts[part] = _Threshold(given, whole, bool(self.nonempty), alpha, delta)
        self._calibrate(parts, groups, len(examples))
        self.kind_ = next(iter(kinds))
        return self

    @hints_at_names
    def predict(self, X: Any) -> list[BoolArray]:
        """Return the plain masks: the best ones of fields, or where probabilities exceed 1/2."""
        self._checked()
        return [masks.plain for masks in self._families(as_examples(X)[0], self._model(), True)]

    @hints_at_names
    def predict_set(self, X: Any, *, groups: ArrayLike | None = None) -> list[MaskSet]:
        """Return the inner and outer masks of images, and what is guaranteed.

        Parameters
        ----------
        X : sequence of n images, fields, paths, maps or stacks
            The entries, of the same kind as in ``conformalize``.
        groups : array-like of int or str of shape (n,), optional
            The group of each image, if there were groups in ``conformalize``.

        Returns
        -------
        list of MaskSet
        """
        parts = self._calibrated()
        self._checked()
        examples, _ = as_examples(X)
        n = len(examples)
        levels = {part: self._levels(part, groups, n) for part in parts}
        found = []
        for i, masks in enumerate(self._families(examples, self._model(), False)):
            if masks.kind != self.kind_:
                raise ValueError(
                    f"X must hold families of the calibrated kind, {self.kind_}, got {masks.kind}"
                )
            own = {part: levels[part][i] for part in parts}
            found.append(self._masks(masks, own))
        return found

    def _masks(self, masks: NestedMasks, levels: dict[str, float | None]) -> MaskSet:
        outer, inner = levels.get("outer"), levels.get("inner")
        mask = None
        if "mask" not in levels:
            mask = None if masks.kind == "stack of masks" else masks.plain
        elif levels["mask"] is not None:
            mask = masks.outer(levels["mask"])
        # The inner level was chosen for the complement, whose scores are negated.
        small = None if inner is None else masks.inner(-inner)
        large = None if outer is None else masks.outer(outer)
        if small is not None and large is not None:
            small, large = small & large, small | large
        return MaskSet(
            mask=mask,
            inner=small,
            outer=large,
            words=" ".join(self._sentence(part, levels[part]) for part in levels),
        )

    def _sentence(self, part: str, level: float | None) -> str:
        alpha = next(iter(self._calibrated()[part].values())).alpha
        if level is None:
            what = self.mask if part == "mask" else f"{part} mask"
            return f"Nothing is certified for the {what}."
        where = {
            "false_negative_rate": f"of the object lies outside the {part} mask",
            "false_positive_rate": f"of the background lies inside the {part} mask",
            "miss": "The outer mask contains the object",
            "excess": "The inner mask lies within the object",
        }
        risk = str(getattr(self, part))
        if risk in ("miss", "excess"):
            words = f"{where[risk]} with probability {1 - float(alpha):g}"  # type: ignore[arg-type]
        elif part == "mask":
            name = risk.capitalize() if risk != "precision" else "precision"
            words = f"the {name} of the mask is at least {1 - float(alpha):g} on average"  # type: ignore[arg-type]
        else:
            words = f"on average at most {alpha:g} {where[risk]}"
        if self.delta is not None:
            given = f"with probability {1 - self.delta:g} over calibrations, "
            words = given + words[0].lower() + words[1:]
        return words[0].upper() + words[1:] + "."

    def _checked(self) -> tuple[dict[str, float], float | None]:
        """Return alpha for each requested part, and delta."""
        asked: dict[str, float] = {}
        for part, risks in (("outer", OUTER), ("inner", INNER), ("mask", MASK)):
            risk = getattr(self, part)
            if risk is not None:
                as_choice(risk, part, risks)
                asked[part] = 0.0
        if not asked:
            raise ValueError("outer must be a risk if inner and mask are None, got None")
        if isinstance(self.alpha, Mapping):
            if set(self.alpha) != set(asked):
                raise ValueError(
                    f"alpha must have a risk for each of {', '.join(asked)}, got "
                    f"{', '.join(map(str, self.alpha))}"
                )
            alphas = {part: as_alpha(self.alpha[part]) for part in asked}
        else:
            alphas = dict.fromkeys(asked, as_alpha(self.alpha))
        delta = as_delta(self.delta)
        if "mask" in asked and delta is None:
            raise ValueError(
                f"delta must be given for mask={self.mask!r}, which is not monotone along the "
                "family, got None"
            )
        as_flag(self.nonempty, "nonempty")
        if self.ignore is not None:
            as_count(self.ignore, "ignore", least=-(2**31), most=2**31 - 1)
        if self.max_bias is not None:
            as_number(self.max_bias, "max_bias", nonnegative=True)
        if as_number(self.resolution, "resolution", nonnegative=True) > 1:
            raise ValueError(f"resolution must be at most 1, got {self.resolution:g}")
        threads(self.n_jobs)
        return alphas, delta

    def _model(self) -> Any:
        return getattr(self, "estimator_", self.estimator)

    def _families(self, examples: list[Any], model: Any, plain: bool) -> list[NestedMasks]:
        make: Callable[[Any], Any]
        if model is None:
            make = _itself
        elif hasattr(model, "predict_proba"):
            make = _Classified(model)
        elif callable(model):
            make = model
        else:
            raise TypeError(
                "estimator must be a function or a classifier with predict_proba, got "
                f"{type(model).__name__}"
            )
        # A path with max_bias 0 consists of the best mask alone and takes one cut.
        max_bias = 0.0 if plain else self.max_bias
        name = "X" if model is None else "what estimator returns"
        return all_nested(examples, make, name, max_bias, self.resolution, threads(self.n_jobs))

    def _profiles(
        self, examples: list[Any], truths: list[Any], model: Any
    ) -> tuple[set[str], list[Profile]]:
        families = self._families(examples, model, False)
        pairs = zip(families, truths, strict=True)
        profiles = [Profile.of(masks, truth, self.ignore) for masks, truth in pairs]
        return {masks.kind for masks in families}, profiles

    def _state(self) -> dict[str, Any]:
        return {"kind_": getattr(self, "kind_", None)}


def _itself(item: Any) -> Any:
    return item


class _Classified:
    """The probabilities of a classifier of pixels, for arrays (..., F) of their features."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, features: Any) -> FloatArray:
        array = _features(features)
        p = self._model.predict_proba(array.reshape(-1, array.shape[-1]))
        return np.asarray(p[:, -1], np.float64).reshape(array.shape[:-1])


def _features(features: Any) -> NDArray[Any]:
    array = np.asarray(features)
    if array.ndim < 2:
        raise ValueError(
            f"X must hold arrays (..., F) of features of pixels, got shape {array.shape}"
        )
    return array


def _fitted(estimator: Any, examples: list[Any], truths: list[Any], ignore: int | None) -> Any:
    """Return a clone of a classifier, fitted to the pixels of all images."""
    rows = [_features(x) for x in examples]
    labels = [np.asarray(y).ravel() for y in truths]
    for x, y in zip(rows, labels, strict=True):
        if x.size != y.size * x.shape[-1]:
            raise ValueError(
                f"y must hold a mask of shape {x.shape[:-1]} for this X, got {y.shape}"
            )
    pixels = np.concatenate([x.reshape(-1, x.shape[-1]) for x in rows])
    target = np.concatenate(labels)
    if ignore is not None:
        pixels, target = pixels[target != ignore], target[target != ignore]
    return clone(estimator).fit(pixels, target > 0)


def _quantiles(scores: FloatArray, counts: FloatArray) -> FloatArray:
    """Return at most ``CANDIDATES`` increasing finite levels: weighted quantiles of scores."""
    finite = np.isfinite(scores)
    own, number = np.unique(scores[finite], return_inverse=True)
    if not own.size:
        return np.zeros(1)
    total = np.cumsum(np.bincount(number, counts[finite]))
    at = np.searchsorted(total, np.linspace(0, total[-1], CANDIDATES + 1))
    return np.asarray(np.unique(own[np.minimum(at, len(own) - 1)]))


def _losses(profile: Profile, levels: FloatArray, measure: str) -> FloatArray:
    """Return 1 - precision, Jaccard or Dice of the masks at levels; 0 if both sets are empty."""
    hits, extra = profile.counts_at(levels)
    total = float(profile.objects.sum())
    if measure == "precision":
        wrong, size = extra, hits + extra
    elif measure == "jaccard":
        wrong, size = total - hits + extra, total + extra
    else:
        wrong, size = total - hits + extra, total + hits + extra
    return np.asarray(wrong / np.maximum(size, 1.0))


class _Threshold:
    """The level of an outer mask; the loss is the missed share, or whether any part is missed."""

    def __init__(
        self,
        profiles: list[Profile],
        whole: bool,
        nonempty: bool,
        alpha: float,
        delta: float | None,
    ) -> None:
        self._profiles, self._whole, self._nonempty = profiles, whole, nonempty
        self._alpha, self._delta = alpha, delta

    def __call__(self, chosen: BoolArray, which: str) -> RiskControl:
        own = [p for p, wanted in zip(self._profiles, chosen, strict=True) if wanted]
        if self._nonempty:
            own = [p for p in own if not p.empty]
            which += " whose truths are not empty"
        require_examples(len(own), self._alpha, self._delta, "X", which)
        scores, weights = [np.zeros(0)], [np.zeros(0)]
        for p in own:
            inside = np.flatnonzero(p.objects)
            if not inside.size:
                continue
            share = p.objects[inside] / p.objects.sum()
            if self._whole:
                inside, share = inside[:1], np.ones(1)
            scores.append(p.scores[inside])
            weights.append(share)
        return highest_threshold(
            np.concatenate(scores), np.concatenate(weights), len(own), self._alpha, self._delta
        )


class _MaskLevels:
    """The level of the mask, by learn-then-test in an order fixed on other images."""

    def __init__(
        self,
        profiles: list[Profile],
        levels: list[float],
        order: list[int],
        measure: str,
        model: ConformalMasks,
        alpha: float,
        delta: float | None,
    ) -> None:
        self._profiles, self._order = profiles, np.array(order)
        self._levels, self._measure = np.array(levels), measure
        self._nonempty, self._alpha, self._delta = model.nonempty, alpha, delta

    def __call__(self, chosen: BoolArray, which: str) -> RiskControl:
        own = [p for p, wanted in zip(self._profiles, chosen, strict=True) if wanted]
        if self._nonempty:
            own = [p for p in own if not p.empty]
            which += " whose truths are not empty"
        n = len(own)
        require_examples(n, self._alpha, self._delta, "X", which)
        sums = np.sum([_losses(p, self._levels, self._measure) for p in own], axis=0)
        passed = passes(sums, n, self._alpha, self._delta)[self._order]
        certified = np.sort(self._order[np.logical_and.accumulate(passed)])
        best = None
        if certified.size and self._measure != "precision":
            # The guarantee holds for all certified levels at once.
            best = int(certified[sums[certified].argmin()])
        return control_of(
            sums[None], n, (self._alpha,), self._delta, self._levels, certified, True, best
        )
