"""The rows that each tree was fitted on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import IntArray
from setwise._foundation._warnings import callers_level
from setwise.estimators._thinning._pool import TreePool
from setwise.estimators._thinning._trees import BaggedTrees, ForestTrees, Trees


def bags_of(ensemble: Any, n: int, *, needed: bool) -> NDArray[np.bool_] | None:
    """Return whether row i is in the bag of tree t, (T, n), if there are bags of n rows.

    If there are no bags, return None, or raise an error if they are ``needed``.
    """
    name = type(ensemble).__name__
    bagging = hasattr(ensemble, "estimators_samples_") and getattr(ensemble, "bootstrap", False)
    if not bagging:
        if needed:
            raise ValueError(
                f"oob=True needs a forest or bagging with bootstrap=True, got {name} without: "
                "pass rows that it was not fitted on"
            )
        return None
    size = int(getattr(ensemble, "_n_samples", n))
    if size != n:
        if needed:
            raise ValueError(
                f"oob=True needs X, y as the ensemble was fitted on, {size} rows, got {n}"
            )
        return None
    samples = ensemble.estimators_samples_
    bags = np.zeros((len(samples), n), np.bool_)
    for bag, drawn in zip(bags, samples, strict=True):
        bag[drawn] = True
    return bags


def warn_of_seen_rows(
    trees: Trees, pool: TreePool, y: IntArray, bags: NDArray[np.bool_] | None
) -> None:
    """Warn if the trees were fitted to the labels of these rows."""
    if not isinstance(trees, ForestTrees | BaggedTrees) or len(y) == 0:
        return
    T = len(trees.members)
    of_trees = pool.ids[0] < T
    ids = pool.ids[0][of_trees]
    if len(ids) == 0:  # no tree has a nonzero output
        return
    votes = pool.responses[0][of_trees].reshape(len(ids), trees.n_scores, len(y))
    chosen = (votes[:, 0] > 0).astype(np.int64) if votes.shape[1] == 1 else votes.argmax(axis=1)
    wrong = chosen != y
    advice = "give rows that it was not fitted on"
    if bags is None:
        if len(trees.members) > 1 and not wrong.any():
            warnings.warn(
                "X, y: no tree makes a mistake on any row, so that nothing tells them apart; if "
                f"the ensemble was fitted on these rows, {advice}",
                UserWarning,
                stacklevel=callers_level(),
            )
        return
    inside = bags[ids]
    known, fresh = wrong[inside], wrong[~inside]
    if len(known) and len(fresh) and fresh.mean() > 2 * known.mean() + 0.01:
        warnings.warn(
            f"X, y: the trees miss {100 * known.mean():.1f} % of the rows in their bags and "
            f"{100 * fresh.mean():.1f} % of the others, so that the ensemble was fitted on these "
            f"rows: pass oob=True, or {advice}",
            UserWarning,
            stacklevel=callers_level(),
        )
