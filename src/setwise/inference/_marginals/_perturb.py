"""Perturb-and-MAP: the best labellings of randomly perturbed unaries."""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from setwise._foundation._arguments import FloatArray, IntArray
from setwise._foundation._search import completed
from setwise.fields._field import Field
from setwise.inference._flows._two_label_cut import TwoLabelCut
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._search import (
    MarginalsOptions,
    MarginalsSearch,
    MarginalsSolution,
    Standing,
)

# The default limit on the number of samples, and the least number for an interval of their mean.
# Not tuned.
SAMPLES = 100
FEWEST = 10
# The probability that the interval of the mean contains the expectation: a usual level.
COVERED = 0.99


def perturb(field: Field, options: MarginalsOptions) -> MarginalsSolution:
    r"""Sample :math:`\max_x \sum_i \gamma_{i x_i} - E(x) / t` with Gumbel noise of mean 0.

    Its expectation is at least log Z for any energy, with equality for unaries only (Hazan and
    Jaakkola, *On the Partition Function and Random Maximum A-Posteriori Perturbations*, 2012).
    ``probabilities`` are the frequencies of labels in the best labellings. The mean over samples
    has a statistical error: ``upper`` is the upper end of its 99 % confidence interval (by
    Student's t-distribution, which assumes normal samples), and ``gap`` is half the length of that
    interval. Sampling ends when the gap is within ``tol`` relative to the mean, after at least 10
    and at most ``max_iter`` (100) samples. ``history`` has the samples. If the interval ends below
    the proved lower bound, it has failed: ``upper`` is then ``inf``, and ``reason`` reports it.

    With two labels and a cut each sample is exact and starts from the last flow. Otherwise a sample
    is minus the *bound* of ``solve_map``, because minus its value would give no bound.
    """
    return options.run(_Samples(field, options))


class _Sampled(NamedTuple):
    """The samples so far, the frequencies of labels, and the interval of their mean."""

    samples: list[float]
    votes: FloatArray
    half: float = inf
    relative: float = inf


class _Samples(MarginalsSearch):
    most = SAMPLES
    has_answer = False

    def __init__(self, field: Field, options: MarginalsOptions) -> None:
        super().__init__(options)
        self.limit = max(self.limit, 2)
        self._field = field
        self._maximizer = maximizer(field, options.tol, options.n_threads)
        self._everyone = np.arange(field.n_variables)
        self._now = _Sampled([], np.zeros(field.unary.shape))

    def step(self) -> bool:
        unary, t = self._field.unary, self.options.temperature
        noise = self.options.random.gumbel(-np.euler_gamma, 1.0, unary.shape)
        labels, energy = self._maximizer.best(unary - t * noise)
        samples = [*self._now.samples, -energy / t]
        votes = self._now.votes.copy()
        votes[self._everyone, labels] += 1.0
        half = relative = inf
        if len(samples) > 1:
            scale = max(1.0, abs(float(np.mean(samples))))  # squares of samples might overflow
            spread = float(np.std(np.array(samples) / scale, ddof=1))
            within = float(stdtrit(len(samples) - 1, (1.0 + COVERED) / 2.0))
            relative = within * spread / sqrt(len(samples))
            half = relative * scale
        self._now = _Sampled(samples, votes, half, relative)
        return False

    def has_converged(self, tol: float) -> bool:
        return len(self._now.samples) >= FEWEST and self._now.relative <= tol

    def standing(self) -> Standing:
        now = self._now
        return Standing(float(np.mean(now.samples)) + now.half, now.half, now.relative)

    def solution(self) -> MarginalsSolution:
        now = self._now
        return MarginalsSolution(
            probabilities=now.votes / len(now.samples),
            upper=float(np.mean(now.samples)) + now.half,
            gap=now.half,
            relative_gap=now.relative,
            history=now.samples,
        )


class _CutMaximizer:
    """A maximizer for two labels, by a cut."""

    def __init__(self, field: Field) -> None:
        self._field, self._cut = field, TwoLabelCut(field)

    def best(self, unary: FloatArray) -> tuple[IntArray, float]:
        labels: IntArray = self._cut.ones(unary[:, 1] - unary[:, 0]).astype(np.int64)
        return labels, float(self._field.with_unary(unary).energy(labels))


class _MapMaximizer:
    """A maximizer for any field, by ``solve_map`` and its bound."""

    def __init__(self, field: Field, tol: float, n_jobs: int | None) -> None:
        self._field, self._tol, self._n_jobs = field, tol, n_jobs

    def best(self, unary: FloatArray) -> tuple[IntArray, float]:
        changed = self._field.with_unary(unary)
        found = completed(solve_map(changed, tol=self._tol, n_jobs=self._n_jobs))
        return found.labels, found.bound


def maximizer(field: Field, tol: float, n_jobs: int | None) -> _CutMaximizer | _MapMaximizer:
    """Return a maximizer, which finds the best labellings of a field under changing unaries."""
    if field.n_labels == 2:
        try:
            return _CutMaximizer(field)
        except ValueError:  # the energy is not a cut, or needs too many arcs
            pass
    return _MapMaximizer(field, tol, n_jobs)
