"""The best labelling by trying all of them."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from setwise._foundation._arguments import IntArray
from setwise.fields._field import Field
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapResult

MOST_LABELINGS = 20_000_000
# So few labellings are enumerated before a method without a guarantee is tried.
FEW_LABELINGS = 1 << 14
_CHUNK = 1 << 20  # entries of the labellings that are held at once


def enumerate_labels(field: Field, options: MapOptions) -> MapResult:
    """The best of all labellings without forbidden labels: exact, for any potential.

    Of several best labellings the first in lexicographic order is returned. Cost: the product of
    the numbers of allowed labels, at most 2e7, times that of one energy; memory is bounded. The
    callback is called after each chunk of labellings; the bound of a search that it ends is the sum
    of the least values of all terms.
    """
    allowed = [np.flatnonzero(np.isfinite(row)) for row in field.unary]
    total = int(count_labelings(field))
    rows = max(1, _CHUNK // max(1, field.n_variables))
    # The first labelling stands for the answer until there is one.
    best = np.array([labels[0] for labels in allowed], np.int64)
    value = float(field._energies(best[None])[0])
    bound = options.scale.trivial
    n_iter, interrupted = 0, False
    try:
        for start in range(0, total, rows):
            labels = _labelings(allowed, start, min(start + rows, total))
            energies = field._energies(labels)
            k = int(np.argmin(energies))
            if energies[k] < value:
                best, value = labels[k].copy(), float(energies[k])
            n_iter += 1
            interrupted = start + rows < total and options.ends(n_iter, value, bound)
            if interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
    if value == inf and not interrupted:
        raise ValueError("field must have a labelling of finite energy, got none")
    return options.result(
        best,
        value,
        bound if interrupted else value,
        method="enumerate",
        n_iter=n_iter,
        converged=not interrupted,
        interrupted=interrupted,
    )


def count_labelings(field: Field) -> float:
    """How many labellings take no forbidden label; ``inf`` stands for over 1e15."""
    free = np.count_nonzero(np.isfinite(field.unary)) - field.n_variables
    if free > 50 * (field.n_labels - 1):  # more than 50 variables have a choice
        return np.inf
    choices = np.isfinite(field.unary).sum(axis=1)
    return prod(choices.tolist()) if np.log10(choices).sum() <= 15 else np.inf


def most_items(field: Field, m: int) -> int:
    """The length of a list for which m labellings are asked: no more than there are."""
    return int(min(m, count_labelings(field)))


def _labelings(allowed: list[IntArray], start: int, stop: int) -> IntArray:
    """Labellings start..stop-1 in lexicographic order, one a row."""
    rest = np.arange(start, stop)
    labels = np.empty((stop - start, len(allowed)), np.int64)
    for i in range(len(allowed) - 1, -1, -1):
        rest, digit = np.divmod(rest, len(allowed[i]))
        labels[:, i] = allowed[i][digit]
    return labels
