r"""Why samples of chains should not be trusted, as far as that can be told.

Chains that stand still look alike to every comparison of halves. But what they stand on is known:
if they came back to the same labellings x over and over, these should have most of the probability,
and they have :math:`\sum_x \exp(-E(x) / t) / Z` of it, with a bound on log Z from below at most
:math:`\sum_x \exp(-E(x) / t - \text{lower})`.
"""

from __future__ import annotations

from math import inf, isnan
from typing import Any

import numpy as np
from scipy.special import logsumexp

from setwise._foundation._arguments import IntArray
from setwise._foundation._interrupts import whole
from setwise.fields._field import Field
from setwise.inference._map._ground import ground
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import marginals

DISAGREE = 1.05  # of R-hat
STILL = 0.5  # of the steps from one sample to the next that change nothing
MOST = 0.5  # of the probability, which labellings that are come back to should have
SWEEPS = 20  # of the lower bound on log Z


def share_moved(chains: IntArray) -> float:
    """The share of variables that differ from one sample of (C, n, N) to the next; NaN of one."""
    if chains.shape[1] < 2 or not chains.size:
        return float("nan")
    return float(np.mean([(c[1:] != c[:-1]).mean() for c in chains]))


def doubt_about(field: Field, chains: IntArray, temperature: float, agreement: float) -> str:
    """A sentence for each finding; none where nothing was found, which proves nothing.

    ``chains`` are labellings (C, n, N), ``agreement`` their R-hat.
    """
    found = []
    if isnan(agreement):
        return "fewer than 4 samples a chain: nothing can be said about them"
    if agreement > DISAGREE:
        found.append(
            f"chains that start apart disagree (R-hat {agreement:.3g}): more sweeps are needed, or "
            "no chain crosses between the modes"
        )
    steps = [(chain[1:] != chain[:-1]).any(axis=1) for chain in chains]
    standing = 1.0 - float(np.mean(steps))
    if standing > STILL and chains.shape[2]:
        told = f"{standing:.0%} of the steps of the chains change nothing"
        lower = _log_mass(field, chains, temperature)
        if lower <= np.log(MOST):
            found.append(
                f"{told}, but where they stand has at most about {np.exp(lower):.2g} of "
                "the probability"
            )
    return "; ".join(found)


def _log_mass(field: Field, chains: IntArray, temperature: float) -> float:
    """An upper bound on the logarithm of the probability of all labellings that were met.

    Mean field may end in the mode that the chains stand in, and where they were told to start need
    not be near the best labelling: this one bounds log Z as well.
    """
    problem = ground(field).field  # a constant would take the digits
    options: dict[str, Any] = {
        "temperature": temperature,
        "tol": 1e-2,
        "max_iter": SWEEPS,
        "n_jobs": 1,
    }
    lower = whole(marginals(problem, "mean_field", **options)).log_partition_lower
    best = whole(solve_map(problem, tol=inf, n_jobs=1)).labels
    lower = max(lower, -float(problem._energies(best[None])[0]) / temperature)
    met = np.unique(chains.reshape(-1, chains.shape[2]), axis=0)
    mass = float(logsumexp(-problem._energies(met) / temperature))
    return min(mass - lower, 0.0)
