"""Perturb-and-MAP: the best labellings of randomly perturbed unaries."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from scipy.special import stdtrit

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._interrupts import whole
from setwise.fields._field import Field
from setwise.inference._flows._two_label_cut import TwoLabelCut
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._options import Options, Solution

SAMPLES = 100
FEWEST = 10
COVERED = 0.99  # by the interval of the mean


def perturb(field: Field, options: Options) -> Solution:
    r"""Sample :math:`\max_x \sum_i \gamma_{i x_i} - E(x) / t` with Gumbel noise of mean 0.

    Its expectation is at least log Z for any energy, with equality for unaries alone (Hazan and
    Jaakkola, *On the Partition Function and Random Maximum A-Posteriori Perturbations*, 2012);
    ``probabilities`` are how often each label was the best one. The mean over samples is known up
    to chance: ``upper`` is the upper end of its interval of 99 % (Student's, as if samples were
    normal), ``gap`` half of that interval, and sampling ends when that is within ``tol`` relative
    to the mean, after 10 samples at least and ``max_iter`` (100) at most. ``history`` holds the
    samples.

    With two labels and a cut each sample is exact, and the flow of the last one is where the next
    starts. Otherwise a sample is minus the *bound* of ``solve_map``, never what it found, which
    would bound nothing.
    """
    t = options.temperature
    search = maximizer(field, options.tol, options.n_threads)
    samples: list[float] = []
    votes = np.zeros(field.unary.shape)
    everyone = np.arange(field.n_variables)
    limit = SAMPLES if options.max_iter is None else max(options.max_iter, 2)
    half, relative, interrupted = inf, inf, False
    try:
        while len(samples) < limit and not interrupted:
            noise = options.random.gumbel(-np.euler_gamma, 1.0, field.unary.shape)
            labels, energy = search.best(field.unary - t * noise)
            samples.append(-energy / t)
            votes[everyone, labels] += 1.0
            mean = float(np.mean(samples))
            if len(samples) > 1:
                scale = max(1.0, abs(mean))  # squares of samples might overflow
                spread = float(np.std(np.array(samples) / scale, ddof=1))
                within = float(stdtrit(len(samples) - 1, (1.0 + COVERED) / 2.0))
                relative = within * spread / sqrt(len(samples))
                half = relative * scale
            interrupted = options.report(len(samples), mean + half, relative, half)
            if len(samples) >= FEWEST and relative <= options.tol:
                break
    except KeyboardInterrupt:
        if not samples:
            raise
        interrupted = True
    return Solution(
        probabilities=votes / len(samples),
        upper=float(np.mean(samples)) + half,
        gap=half,
        relative_gap=relative,
        n_iter=len(samples),
        converged=len(samples) >= FEWEST and relative <= options.tol,
        interrupted=interrupted,
        history=samples,
    )


class _Cut:
    """Exact minima of two labels."""

    def __init__(self, field: Field) -> None:
        self._field, self._cut = field, TwoLabelCut(field)

    def best(self, unary: FloatArray) -> tuple[IntArray, float]:
        labels: IntArray = self._cut.ones(unary[:, 1] - unary[:, 0]).astype(np.int64)
        return labels, float(self._field.with_unary(unary).energy(labels))


class _Search:
    """Any field: the labels that ``solve_map`` finds, and its bound."""

    def __init__(self, field: Field, tol: float, n_jobs: int | None) -> None:
        self._field, self._tol, self._n_jobs = field, tol, n_jobs

    def best(self, unary: FloatArray) -> tuple[IntArray, float]:
        changed = self._field.with_unary(unary)
        found = whole(solve_map(changed, tol=self._tol, n_jobs=self._n_jobs))
        return found.labels, found.bound


def maximizer(field: Field, tol: float, n_jobs: int | None) -> _Cut | _Search:
    """Finds the best labellings of a field's potentials under one unary after another."""
    if field.n_labels == 2:
        try:
            return _Cut(field)
        except ValueError:  # not a cut, or one with too many arcs
            pass
    return _Search(field, tol, n_jobs)
