r"""Diagnostics of chains of samples: effective sample sizes and \hat R.

The chains are cut in halves, m of n numbers each, with means :math:`\bar x_k` and variances
:math:`s_k^2`. With :math:`W = \mathrm{mean}(s_k^2)`, :math:`B = n \, \mathrm{var}(\bar x_k)` and
:math:`V = \frac{n - 1}{n} W + \frac{1}{n} B`, :math:`\hat R = \sqrt{V / W}` is near 1 where the
chains agree, and :math:`m n / (1 + 2 \sum_l \rho_l)`, :math:`\rho_l = 1 - (W - \mathrm{mean}_k
c_{kl}) / V` with autocovariances c, is the number of independent samples that estimate the mean as
accurately (Gelman and others, *Bayesian Data Analysis*, 2013, section 11.4; the sum over l ends
before the first negative sum of two neighbours, after Geyer).

Chains in different modes may have the same energy and the same share of each label. So
:math:`\hat R` is also computed of every variable's labels, with W and B summed over variables and
labels. Sums are used, because the maximum over many variables would be large by chance.
"""

from __future__ import annotations

from math import log10, nan, sqrt

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray


def halves(series: FloatArray) -> FloatArray:
    """Return the halves (2 C, n // 2) of series (C, n)."""
    half = series.shape[1] // 2
    return np.concatenate([series[:, :half], series[:, series.shape[1] - half :]])


def r_hat(series: FloatArray) -> float:
    """Return R-hat of series (C, n), NaN for fewer than 2 numbers per half."""
    parts = halves(series)
    if parts.shape[1] < 2:
        return nan
    within, all_of = _variances(parts)
    if within == 0.0:
        return 1.0 if all_of == 0.0 else float("inf")
    return sqrt(all_of / within)


def r_hat_of_labels(chains: IntArray, n_labels: int) -> float:
    """Return R-hat of labellings (C, n, N), over all variables and labels together."""
    half = chains.shape[1] // 2
    if half < 2:
        return nan
    parts = np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])
    within = between = 0.0
    for j in range(n_labels):
        shares = np.stack([np.count_nonzero(part == j, axis=0) / half for part in parts])
        within += float((shares * (1.0 - shares)).mean(axis=0).sum()) * half / (half - 1)
        between += float(shares.var(axis=0, ddof=1).sum()) * half
    if within == 0.0:
        return 1.0 if between == 0.0 else float("inf")
    return sqrt((half - 1) / half + between / (half * within))


def effective_size(series: FloatArray) -> float:
    """Return the effective size of series (C, n), at most C n; NaN below 2 numbers per half."""
    parts = halves(series)
    m, n = parts.shape
    if n < 2:
        return nan
    within, all_of = _variances(parts)
    if all_of == 0.0:
        return float(series.size)  # the series is constant, so its mean is known
    centred = parts - parts.mean(axis=1, keepdims=True)
    waves = np.fft.rfft(centred, 2 * n, axis=1)
    covariances = np.fft.irfft(waves * waves.conj(), 2 * n, axis=1)[:, :n].mean(axis=0) / n
    rho = 1.0 - (within - covariances * n / (n - 1)) / all_of
    rho[0] = 1.0
    total = 0.0
    for lag in range(0, n - 1, 2):
        pair = float(rho[lag] + rho[lag + 1])
        if pair <= 0.0:
            break
        total += pair
    time = max(2.0 * total - 1.0, 1.0 / log10(max(m * n, 11)))
    return min(float(series.size), float(m * n / time))


def _variances(parts: FloatArray) -> tuple[float, float]:
    n = parts.shape[1]
    within = float(parts.var(axis=1, ddof=1).mean())
    between = float(n * parts.mean(axis=1).var(ddof=1))
    return within, (n - 1) / n * within + between / n
