"""The oracle accuracy of lists, which is that of the best item of each list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_array,
    as_choice,
    as_count,
    as_list,
)
from setwise.diversities._base import MOST_LABELS

SCORINGS = ("accuracy", "iou")


def oracle_accuracy(
    labelings: ArrayLike | Sequence[ArrayLike],
    truth: ArrayLike | Sequence[ArrayLike],
    scoring: str = "accuracy",
    *,
    ignore: int = -1,
) -> float:
    r"""Compute the accuracy of the best item of a list, for one image or a corpus of images.

    "accuracy" is the share of the pixels with the correct label; for a corpus, the mean over images
    of that of the best item. "iou" is intersection over union. For each image it selects the item
    with the largest mean over the classes in the item or in the truth. Then it pools the pixels of
    the corpus,

    .. math:: \frac{1}{|C|} \sum_{c \in C}
              \frac{\sum_k |P_{kc} \cap T_{kc}|}{\sum_k |P_{kc} \cup T_{kc}|},

    where C are the classes in the truth of the corpus.

    Parameters
    ----------
    labelings : array-like of int, shape (m, N), or a sequence of such arrays
        A list of labellings; with a sequence of truths, one list per image.
    truth : array-like of int, shape (N,), or a sequence of such arrays
        The true labels; ``ignore`` for unknown labels.
    scoring : {"accuracy", "iou"}
        The measure.
    ignore : int
        The label of pixels that do not count.

    Returns
    -------
    float
        The accuracy between 0 and 1; 1 if no pixel counts.

    Examples
    --------
    >>> import setwise as sw
    >>> pair = [[0, 0, 1, 1], [0, 1, 1, 1]]
    >>> sw.inference.oracle_accuracy(pair, [0, 1, 1, 0])
    0.75
    >>> sw.inference.oracle_accuracy([pair, [[1, 1]]], [[0, 1, 1, 0], [1, -1]])
    0.875
    """
    lists, truths = _as_corpus(labelings, truth, ignore)
    best = _best_items(lists, truths, as_choice(scoring, "scoring", SCORINGS), ignore)
    chosen = [items[k] for items, k in zip(lists, best, strict=True)]
    if scoring == "accuracy":
        scores = [_accuracies(y[None], t, ignore)[0] for y, t in zip(chosen, truths, strict=True)]
        return float(np.mean(scores))
    n_classes = 1 + max(
        max(int(array.max(initial=0)) for array in chosen),
        max(int(array.max(initial=0)) for array in truths),
    )
    pooled = sum(_overlaps(y, t, ignore, n_classes) for y, t in zip(chosen, truths, strict=True))
    both, either, present = np.asarray(pooled)
    held = present > 0
    return float((both[held] / either[held]).mean()) if held.any() else 1.0


def oracle_items(
    labelings: ArrayLike | Sequence[ArrayLike],
    truth: ArrayLike | Sequence[ArrayLike],
    scoring: str = "accuracy",
    *,
    ignore: int = -1,
) -> IntArray:
    """Return the index of the best item in each image's list; of equal ones, the first.

    The parameters are those of :func:`oracle_accuracy`.

    Examples
    --------
    >>> from setwise.inference._diverse._oracle_accuracy import oracle_items
    >>> oracle_items([[0, 0, 1, 1], [0, 1, 1, 1]], [0, 1, 1, 0]).tolist()
    [1]
    """
    lists, truths = _as_corpus(labelings, truth, ignore)
    return _best_items(lists, truths, as_choice(scoring, "scoring", SCORINGS), ignore)


def _best_items(
    lists: list[IntArray], truths: list[IntArray], scoring: str, ignore: int
) -> IntArray:
    score = _accuracies if scoring == "accuracy" else _mean_overlaps
    best = [int(score(items, t, ignore).argmax()) for items, t in zip(lists, truths, strict=True)]
    return np.array(best, np.int64)


def _accuracies(items: IntArray, truth: IntArray, ignore: int) -> FloatArray:
    counts = truth != ignore
    if not counts.any():
        return np.ones(len(items))
    return np.asarray((items[:, counts] == truth[counts]).mean(axis=1))


def _mean_overlaps(items: IntArray, truth: IntArray, ignore: int) -> FloatArray:
    n_classes = 1 + max(int(items.max(initial=0)), int(truth.max(initial=0)))
    scores = np.ones(len(items))
    for k, labels in enumerate(items):
        both, either, _ = _overlaps(labels, truth, ignore, n_classes)
        if (either > 0).any():
            scores[k] = (both[either > 0] / either[either > 0]).mean()
    return scores


def _overlaps(labels: IntArray, truth: IntArray, ignore: int, n_classes: int) -> FloatArray:
    """Return the numbers of pixels in both, in either, and in the truth, (3, classes)."""
    counts = truth != ignore
    y, t = labels[counts], truth[counts]
    both = np.bincount(t[y == t], minlength=n_classes)
    present = np.bincount(t, minlength=n_classes)
    either = np.bincount(y, minlength=n_classes) + present - both
    return np.array([both, either, present], np.float64)


def _as_corpus(
    labelings: ArrayLike | Sequence[ArrayLike], truth: ArrayLike | Sequence[ArrayLike], ignore: int
) -> tuple[list[IntArray], list[IntArray]]:
    """Return lists (m, N) and truths (N,) of the same number of images."""
    check_ignore(ignore)
    if isinstance(truth, Sequence) and len(truth) and as_array(truth[0], "truth").ndim > 0:
        truths: list[Any] = list(truth)
        lists: list[Any] = as_list(labelings, "labelings", "lists of labellings")
        if len(lists) != len(truths):
            raise ValueError(
                f"labelings must hold a list for each of the {len(truths)} truths, got {len(lists)}"
            )
    else:
        truths, lists = [truth], [labelings]
    checked = [as_labels(array, "truth", 1) for array in truths]
    items = [as_labels(array, "labelings", 2) for array in lists]
    for y, t in zip(items, checked, strict=True):
        if y.shape[1] != len(t) or len(y) == 0:
            raise ValueError(
                f"labelings must have shape (m, {len(t)}) with m at least 1, got {y.shape}"
            )
        if y.size and y.min() < 0:
            raise ValueError(f"labelings must not be negative, got {y.min()}")
        wrong = (t < 0) & (t != ignore)
        if wrong.any():
            raise ValueError(f"truth must not be negative but for ignore, got {t[wrong][0]}")
    return items, checked


def check_ignore(ignore: object) -> None:
    """Raise an error unless ``ignore`` is a valid label of pixels that do not count."""
    as_count(ignore, "ignore", least=-(2**62), most=2**62)


def as_labels(values: ArrayLike, name: str, ndim: int) -> IntArray:
    """Return labels with ``ndim`` dimensions, small enough to count; negative labels are void."""
    array = as_array(values, name)
    if array.ndim != ndim:
        shape = "(N,)" if ndim == 1 else "(m, N)"
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    if array.size and array.max() >= MOST_LABELS:
        raise ValueError(f"{name} must hold labels below {MOST_LABELS}, got {array.max()}")
    return array.astype(np.int64)
