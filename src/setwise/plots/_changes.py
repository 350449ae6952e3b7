"""What a labelling changes in another, in words."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import label as connected_parts

from setwise._foundation._arguments import BoolArray, IntArray


def change_in_words(first: IntArray, other: IntArray) -> str:
    """What the labelling (H, W) of an image changes in the first: which part, and how much of all.

    "without the left part, 4 % of the pixels": of two labels 1 is the object, which gets larger or
    smaller; of more the label that the largest part takes is named, and the one that it had.
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
    """Where a part lies, by thirds of the image's height and width."""
    y, x = (np.mean(places) / side for places, side in zip(part.nonzero(), part.shape, strict=True))
    words = [
        "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else "",
        "left" if x < 1 / 3 else "right" if x > 2 / 3 else "",
    ]
    return " ".join(word for word in words if word) or "middle"
