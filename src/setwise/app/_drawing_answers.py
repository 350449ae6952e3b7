"""What a drawing's watchers are told: masks, certificates in words, alternatives, doubts."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import FloatArray
from setwise.app._drawing_levels import Tilt
from setwise.plots._uncertain import uncertain_pieces

Picture = NDArray[np.uint8]

# The most doubtful pixels that regions to draw in next are made of, and how many are shown.
_DOUBTFUL, _REGIONS = 0.94, 3
_LEAST_DOUBT = 0.25  # of the most that there can be


@dataclass(frozen=True, eq=False)
class Answer:
    """A labelling for one version of a drawing."""

    version: int
    labels: Picture
    """(h, w), each ``factor`` pixels a side"""
    factor: int
    value: float
    bound: float
    relative_gap: float
    exact: bool
    final: bool
    """whether nothing more is on its way for this version"""
    seconds: float
    chosen: bool = False
    """whether an alternative was taken"""

    @property
    def words(self) -> str:
        """The certificate in words."""
        if self.factor > 1:
            return "a first look, at a reduced size"
        given = ", given your choice" if self.chosen else ""
        if self.exact:
            return f"no labelling is better{given}"
        if not isfinite(self.relative_gap):
            return "how good it is is not known yet"
        if not self.final and self.relative_gap > 0.01:
            return "good; how good is being proved"
        return f"at most {as_percent(self.relative_gap)} from the best{given}"


@dataclass(frozen=True, eq=False)
class Alternative:
    """One of several good labellings."""

    labels: Picture
    value: float
    above: float
    """its energy less that of the best one"""
    differs: float
    """the share of the pixels that differ from the best one"""
    words: str
    tilt: Tilt
    """under which it is the best one"""


@dataclass(frozen=True, eq=False)
class AlternativeList:
    """Alternatives for one version, the best labelling first."""

    version: int
    factor: int
    items: tuple[Alternative, ...]
    done: bool


@dataclass(frozen=True, eq=False)
class Region:
    """Where a stroke would help most."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    mask: NDArray[np.bool_]
    doubt: float
    """the mean of its pixels, 1 the most there can be"""
    words: str


@dataclass(frozen=True, eq=False)
class Doubt:
    """How unsure the labels of one version are, pixel by pixel."""

    version: int
    factor: int
    heat: Picture
    """(h, w): entropy, 255 where all labels are as likely"""
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class Working:
    """How far a piece of work is."""

    version: int
    what: str
    share: float


@dataclass(frozen=True)
class Failed:
    """What went wrong, in a sentence."""

    version: int
    words: str


Event = Answer | AlternativeList | Doubt | Working | Failed


def as_percent(share: float) -> str:
    """A share in words, rounded upwards to a digit or two: 0.3 %."""
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
    """In which part of a picture most of a mask lies."""
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return "nowhere"
    y, x = np.median(rows) / mask.shape[0], np.median(columns) / mask.shape[1]
    tall = "top" if y < 1 / 3 else "bottom" if y > 2 / 3 else ""
    wide = "left" if x < 1 / 3 else "right" if x > 2 / 3 else ""
    return f"at the {tall} {wide}".replace("  ", " ").rstrip() if tall or wide else "in the middle"


def difference_in_words(labels: Picture, best: Picture) -> str:
    """Which label has more, how much and where."""
    changed = labels != best
    share = float(changed.mean())
    if not share:
        return "the best one"
    gains = np.bincount(labels[changed], minlength=9) - np.bincount(best[changed], minlength=9)
    label = int(gains.argmax())
    if not gains[label]:
        return f"{as_percent(share)} differ, {where(changed)}"
    return f"more of {label + 1}, {where(changed & (labels == label))}"


def doubtful_regions(entropy: FloatArray) -> tuple[Region, ...]:
    """The most doubtful pieces of a picture; entropy (h, w) from 0 to 1."""
    pieces = uncertain_pieces(entropy, _DOUBTFUL)
    count = int(pieces.max()) + 1
    if not count:
        return ()
    inside = pieces >= 0
    total = np.bincount(pieces[inside], entropy[inside], count)
    mean = total / np.bincount(pieces[inside], minlength=count)
    found: list[Region] = []
    for piece in np.argsort(-total, kind="stable"):
        if mean[piece] < _LEAST_DOUBT or len(found) == _REGIONS:
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
