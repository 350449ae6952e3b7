"""Energies of pairs under the marginals that trees have for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray
from setwise.fields._terms import PottsTerm, TableTerm

NEVER = -750.0  # the logarithm of a probability that is 0


def expected_energies(
    kernel: Any, edges: IntArray, term: PottsTerm | TableTerm, p: FloatArray
) -> FloatArray:
    """(E,): of each edge of a term, under the marginals of the kernel's pairs (edges) beside p."""
    logs = logs_of(p)
    n, n_labels = p.shape
    keys = keys_of(edges, n)
    order = np.argsort(keys, kind="stable")
    wanted = keys_of(term.edges, n)
    energies: FloatArray = np.zeros(len(wanted))
    paid = np.flatnonzero(np.isin(wanted, keys))  # those without weight have no pair
    places = order[np.searchsorted(keys, wanted[paid], sorter=order)]
    chunk = max(1, 1_000_000 // n_labels**2)
    for start in range(0, len(paid), chunk):
        at, pairs = paid[start : start + chunk], places[start : start + chunk]
        marginals = np.empty((len(at), n_labels, n_labels))
        kernel.pair_marginals(logs, np.ascontiguousarray(pairs), marginals)
        if isinstance(term, PottsTerm):
            same = np.trace(marginals, axis1=1, axis2=2)
            energies[at] = term.weights[at] * np.maximum(1.0 - same, 0.0)
            continue
        turned = (term.edges[at, 0] != edges[pairs, 0])[:, None, None]
        marginals = np.where(turned, marginals.transpose(0, 2, 1), marginals)
        energies[at] = (term.tables[at] * marginals).sum(axis=(1, 2))
    return energies


def keys_of(edges: IntArray, n: int) -> IntArray:
    """(E,): a number for the ends of each edge, whichever comes first."""
    return np.asarray(edges.min(axis=1, initial=n) * n + edges.max(axis=1, initial=-1))


def logs_of(p: FloatArray) -> FloatArray:
    """Logarithms, and those of 0 far below all others."""
    logs = np.full(p.shape, NEVER)
    np.log(p, out=logs, where=p > 0)
    return logs
