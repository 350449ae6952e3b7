r"""Detectable reasons not to trust the samples of chains.

Comparisons of halves do not detect chains that do not move. But the probability of their labellings
is bounded. If the chains return to the same labellings x again and again, these labellings should
have most of the probability. Their probability is :math:`\sum_x \exp(-E(x) / t) / Z`, which is at
most :math:`\sum_x \exp(-E(x) / t - \text{lower})` for a lower bound on log Z.

Chains that never moved prove nothing by themselves. They are accepted only if an upper bound on log
Z shows that the same number of independent samples would probably have been equal too.
"""

from __future__ import annotations

from math import inf, isnan
from typing import Any

import numpy as np
from scipy.special import logsumexp

from setwise._foundation._arguments import IntArray
from setwise._foundation._search import completed
from setwise.fields._field import Field
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._lower_bound import SWEEPS
from setwise.inference._marginals._marginals import marginals

# If R-hat is above this value, chains are reported to disagree. R-hat of good chains of 100 samples
# each is up to 1.03.
DISAGREE = 1.05
# If the share of consecutive samples that are equal is above this value, chains are reported not to
# move. Values from 0.125 to 0.95 lead to the same reports on grids.
STILL = 0.5


def share_moved(chains: IntArray) -> float:
    """Return the share of variables that differ between successive samples; NaN for one sample."""
    if chains.shape[1] < 2 or not chains.size:
        return float("nan")
    return float(np.mean([(c[1:] != c[:-1]).mean() for c in chains]))


def convergence_warning(
    field: Field, chains: IntArray, temperature: float, agreement: float
) -> str:
    """Return a sentence for each finding. An empty answer proves nothing.

    ``chains`` are labellings (C, n, N), ``agreement`` is their R-hat.
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
        stuck = f"{standing:.0%} of the steps of the chains change nothing"
        least, most = _log_shares(field, chains, temperature, both=standing == 1.0 and not found)
        drawn = chains.shape[0] * chains.shape[1]
        if most <= np.log(STILL):
            found.append(
                f"{stuck}, but where they stand has at most about {np.exp(most):.2g} of "
                "the probability"
            )
        elif standing == 1.0 and not found and drawn * least < np.log(STILL):
            found.append(
                f"the chains never moved: all of {drawn} independent samples would be where they "
                f"stand with a probability from {np.exp(drawn * least):.2g} to "
                f"{np.exp(drawn * most):.2g}, as far as the bounds on log Z tell"
            )
    return "; ".join(found)


def _log_shares(
    field: Field, chains: IntArray, temperature: float, both: bool
) -> tuple[float, float]:
    """Return bounds on the logarithm of the probability of all labellings in the chains.

    Mean field may end in the mode of the chains, and their starts need not be near the best
    labelling; so the best labelling also serves to bound log Z. The lower bound costs more. It is
    ``-inf`` unless ``both`` is True.
    """
    problem = Conditioned.of(field).field  # a constant would increase rounding errors
    options: dict[str, Any] = {
        "temperature": temperature,
        "tol": 1e-2,
        "max_iter": SWEEPS,
        "n_jobs": 1,
    }
    lower = completed(marginals(problem, "mean_field", **options)).log_partition_lower
    best = completed(solve_map(problem, tol=inf, n_jobs=1)).labels
    lower, upper = max(lower, -float(problem._energies(best[None])[0]) / temperature), inf
    if both:
        post = completed(marginals(problem, **options))
        lower = max(lower, post.log_partition_lower)
        upper = post.log_partition_upper if post.certified else inf
    met = np.unique(chains.reshape(-1, chains.shape[2]), axis=0)
    mass = float(logsumexp(-problem._energies(met) / temperature))
    return min(mass - upper, 0.0), min(mass - lower, 0.0)
