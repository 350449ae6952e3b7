"""Events for the watchers of a drawing: masks, certificates, alternatives, uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray
from setwise.app._drawing._levels import Tilt
from setwise.plots._uncertain_regions import uncertain_pieces

Picture = NDArray[np.uint8]

# At most _MOST_REGIONS regions are suggested. They consist of the pixels whose entropy is above
# this quantile, and their mean entropy is at least _LEAST_ENTROPY of the maximum. Chosen by hand;
# no measurement is on record.
_ENTROPY_QUANTILE, _LEAST_ENTROPY, _MOST_REGIONS = 0.94, 0.25, 3


@dataclass(frozen=True, eq=False)
class MaskAnswer:
    """A labelling for one version of a drawing."""

    version: int
    labels: Picture
    """(h, w), where each entry covers a square of side ``factor``"""
    factor: int
    value: float
    bound: float
    relative_gap: float
    exact: bool
    final: bool
    """whether this is the last mask for this version"""
    seconds: float
    chosen: bool = False
    """whether an alternative was chosen"""
    coarse: int = 1
    """the reduction factor at which the labels were found, above 1 if memory was short"""

    @property
    def words(self) -> str:
        """The certificate in a few words."""
        if self.factor > 1:
            return "a first look, at a reduced size"
        if self.coarse > 1:
            return f"found at 1/{self.coarse} of its size: all of it takes too much memory"
        if self.exact:
            return f"best for {self._given}"
        if not isfinite(self.relative_gap):
            return "how good it is is not known yet"
        if not self.final and self.relative_gap > 0.01:
            return "good; how good is being proved"
        return f"at most {as_percent(self.relative_gap)} from the best for {self._given}"

    @property
    def statement(self) -> str:
        """A precise statement of what is proved; "" if nothing is."""
        if max(self.factor, self.coarse) > 1 or not isfinite(self.relative_gap):
            return ""
        lower = "" if self.exact else f" by more than {as_percent(self.relative_gap)}"
        given = "these strokes, their colours"
        more = ", your choice and the smoothness" if self.chosen else " and the smoothness"
        return f"proved: no mask has a lower energy{lower}, given {given}{more}"

    @property
    def _given(self) -> str:
        return "these strokes and your choice" if self.chosen else "these strokes"


@dataclass(frozen=True, eq=False)
class Alternative:
    """One of several good labellings."""

    labels: Picture
    value: float
    above: float
    """its energy minus that of the best labelling"""
    differs: float
    """the share of the pixels that differ from the best labelling"""
    words: str
    tilt: Tilt
    """the change of costs under which it is the best labelling"""


@dataclass(frozen=True, eq=False)
class AlternativeList:
    """Alternatives for one version, the best labelling first."""

    version: int
    factor: int
    items: tuple[Alternative, ...]
    done: bool


@dataclass(frozen=True, eq=False)
class Region:
    """A region where a stroke would help most."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    mask: NDArray[np.bool_]
    entropy: float
    """the mean entropy of its pixels, at most 1"""
    words: str


@dataclass(frozen=True, eq=False)
class UncertaintyMap:
    """The uncertainty of each pixel's label, for one version."""

    version: int
    factor: int
    heat: Picture
    """(h, w): entropy, scaled so that 255 means that all labels are equally likely"""
    regions: tuple[Region, ...]


@dataclass(frozen=True, eq=False)
class GuaranteedMasks:
    """The inner and the outer mask of a calibrated predictor, for one version of two labels."""

    version: int
    zones: Picture
    """(h, w): 2 on the inner mask, 1 on the rest of the outer one, 0 elsewhere"""
    words: str


@dataclass(frozen=True)
class Working:
    """The progress of a job."""

    version: int
    what: str
    share: float


@dataclass(frozen=True)
class Failed:
    """A failure, described in a sentence."""

    version: int
    words: str


Event = MaskAnswer | AlternativeList | UncertaintyMap | GuaranteedMasks | Working | Failed


def as_percent(share: float) -> str:
    """Return a share as a percentage, rounded up to one or two digits: 0.3 %."""
    percent = 100.0 * share
    if percent >= 10.0:
        return f"{np.ceil(percent):.0f} %"
    for digits in range(1, 7):
        if percent * 10**digits >= 3.0:
            return (
                f"{np.ceil(percent * 10**digits) / 10**digits:.{digits}f}".rstrip("0").rstrip(".")
                + " %"
            )
    return "0.000003 %"


def where(mask: NDArray[np.bool_]) -> str:
    """Describe the part of a picture in which most of a mask lies."""
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return "nowhere"
    y, x = np.median(rows) / mask.shape[0], np.median(columns) / mask.shape[1]
    tall = "top" if y < 1 / 3 else "bottom" if y > 2 / 3 else ""
    wide = "left" if x < 1 / 3 else "right" if x > 2 / 3 else ""
    return f"at the {tall} {wide}".replace("  ", " ").rstrip() if tall or wide else "in the middle"


def difference_in_words(labels: Picture, best: Picture) -> str:
    """Describe which label gains pixels compared with ``best``, and where."""
    changed = labels != best
    share = float(changed.mean())
    if not share:
        return "the best one"
    gains = np.bincount(labels[changed], minlength=9) - np.bincount(best[changed], minlength=9)
    label = int(gains.argmax())
    if not gains[label]:
        return f"{as_percent(share)} differ, {where(changed)}"
    return f"more of {label + 1}, {where(changed & (labels == label))}"


def uncertain_regions(entropy: FloatArray) -> tuple[Region, ...]:
    """Return the regions of largest entropy; ``entropy`` (h, w) lies between 0 and 1."""
    pieces = uncertain_pieces(entropy, _ENTROPY_QUANTILE)
    count = int(pieces.max()) + 1
    if not count:
        return ()
    inside = pieces >= 0
    total = np.bincount(pieces[inside], entropy[inside], count)
    mean = total / np.bincount(pieces[inside], minlength=count)
    found: list[Region] = []
    for piece in np.argsort(-total, kind="stable"):
        if mean[piece] < _LEAST_ENTROPY or len(found) == _MOST_REGIONS:
            continue
        mask = pieces == piece
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        top, bottom = int(rows[0]), int(rows[-1]) + 1
        left, right = int(columns[0]), int(columns[-1]) + 1
        found.append(
            Region(
                (top, bottom),
                (left, right),
                mask[top:bottom, left:right],
                float(mean[piece]),
                f"draw here next: {where(mask)}",
            )
        )
    return tuple(found)
