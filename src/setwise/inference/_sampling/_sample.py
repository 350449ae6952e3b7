"""Sampling from the distribution of a field: exact on forests, by Markov chains otherwise."""

from __future__ import annotations

from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    MOST_RESULTS,
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_generator,
    as_integers,
    as_number,
)
from setwise._foundation._clock import Stopwatch
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._search import Control, Search, completed, drive
from setwise._foundation._threads import as_threads
from setwise.fields._field import Field, as_field
from setwise.fields._terms import CliqueTerm
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import check_magnitude
from setwise.inference._map._solve_map import solve_map
from setwise.inference._sampling._chains import Chains
from setwise.inference._sampling._convergence import convergence_warning, share_moved
from setwise.inference._sampling._diagnostics import effective_size, r_hat, r_hat_of_labels
from setwise.inference._sampling._result import Samples

# The number of exact draws per call of the kernel. Ctrl-C loses at most this number of samples. The
# samples do not depend on it. Not tuned.
AT_ONCE = 64


@hints_at_names
def sample(
    field: Field,
    n: int,
    *,
    temperature: float = 1.0,
    init: ArrayLike | None = None,
    n_chains: int = 4,
    burn_in: int = 100,
    thin: int = 2,
    n_jobs: int | None = None,
    rng: object = None,
) -> Samples:
    r"""Draw labellings from :math:`P(x) = \exp(-E(x) / t) / Z`.

    If the energy consists of unaries and pairs along a forest, the samples are exact and
    independent: messages from the leaves sum over all labellings, and labels are drawn from the
    root down. Otherwise Markov chains make blocked Gibbs sweeps: the field is divided into trees,
    for instance rows and columns of a grid, and each is drawn from its exact distribution given the
    other variables. With regions, label costs and other terms of many variables this draw is a
    proposal, which a Metropolis step accepts or rejects. P is the stationary distribution in all
    cases. The result says whether samples are exact, and how well chains agree.

    Parameters
    ----------
    field : Field
        Any field; labels with an infinite unary are never drawn.
    n : int
        The number of samples.
    temperature : float
        t > 0.
    init : array-like of int, shape (N,) or (m, N), optional
        The labellings where chains start; several are used in turn. By default the starts are far
        apart, so that chains that agree have probably converged: the first chain starts at a good
        labelling that is found quickly, the second at labels drawn from the unaries alone, the
        third at uniform labels, the fourth at the labels of largest unaries, all others at uniform
        labels. Exact samples do not depend on it.
    n_chains : int
        The number of chains, at most n. Each yields every ``n_chains``-th sample.
    burn_in : int
        The number of sweeps of each chain before its first sample.
    thin : int
        The number of sweeps between two samples of a chain.
    n_jobs : int, optional
        The number of threads, one per chain; None for all cores. The answer does not depend on it.
    rng : optional
        None, a seed or a ``numpy.random.Generator``.

    Returns
    -------
    Samples
        ``labelings`` (n, N), ``energies``, ``exact``, ``effective_sample_size``, ``r_hat``,
        ``acceptance``, ``moved``, ``warning``, ``reason``, ``probabilities``. Ctrl-C ends sampling
        with the samples so far; before the first one it raises ``KeyboardInterrupt``.

    Notes
    -----
    A sweep takes O((N + E) L) time, or O(E L²) for tables of pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> edges = sw.fields.grid_edges((4, 4))
    >>> field = sw.fields.Field(np.zeros((16, 2))) + sw.fields.Potts(edges, 0.4)
    >>> drawn = sw.sample(field, 400, rng=0)
    >>> drawn.exact, drawn.r_hat < 1.05, drawn.effective_sample_size > 100
    (False, True, True)
    >>> chain = sw.fields.Field(np.zeros((3, 2))) + sw.fields.Potts([[0, 1], [1, 2]], 2.0)
    >>> sw.sample(chain, 4, rng=0).labelings.shape, sw.sample(chain, 4, rng=0).exact
    ((4, 3), True)
    """
    watch = Stopwatch()
    field = as_field(field)
    n = as_count(n, "n", least=1, most=MOST_RESULTS // max(field.n_variables, 1))
    t = as_number(temperature, "temperature", positive=True, smallest=0.0)
    n_chains = min(as_count(n_chains, "n_chains", least=1), n)
    burn_in = as_count(burn_in, "burn_in")
    thin = as_count(thin, "thin", least=1)
    starts = None if init is None else _as_starts(init, field)
    random = as_generator(rng)
    check_magnitude(field, t, "float64")
    problem = _within_tables(Conditioned.of(field).field)
    chains = Chains(problem, t, int(random.integers(2**63)), as_threads(n_jobs))
    watch.lap("set-up")
    if chains.exact:
        n_chains, burn_in, thin = n, 0, 1
    else:
        if starts is None:
            starts = _apart(problem, t, n_chains, random, as_threads(n_jobs))
        chains.begin(starts[np.arange(n_chains) % len(starts)])
    search = _Draws(chains, n, burn_in, thin)
    ending = drive(search, Control())
    drawn = np.concatenate(search.drawn)
    watch.lap("search")
    energies = field._energies(drawn)
    size, agreement, moved, warning = float(len(drawn)), 1.0, 1.0, ""
    if not chains.exact:
        # The number of samples per chain; remaining samples are ignored.
        each = len(drawn) // n_chains
        by_chain = drawn[: each * n_chains].reshape(each, n_chains, -1).swapaxes(0, 1)
        heights = energies[: each * n_chains].reshape(each, n_chains).T
        size, agreement = _diagnosed(by_chain, heights, field.n_labels)
        moved = share_moved(by_chain)
        warning = convergence_warning(field, by_chain, t, agreement)
        if warning and moved == 0.0 and agreement == 1.0:  # unchanged chains always agree
            size = agreement = nan
    return Samples(
        labelings=drawn,
        energies=energies,
        exact=chains.exact,
        effective_sample_size=size,
        r_hat=agreement,
        acceptance=chains.taken,
        moved=moved,
        warning=warning,
        reason=_reason(chains),
        n_labels=field.n_labels,
        n_chains=n_chains,
        burn_in=burn_in,
        thin=thin,
        temperature=t,
        interrupted=ending.interrupted,
        timings=watch.timings("answer"),
        shape=field.shape,
    )


def _within_tables(field: Field) -> Field:
    """Return the field with infinite unaries for labels outside the tables of a model file."""
    unary = field.unary.copy()
    for _, term in field._terms():
        if isinstance(term, CliqueTerm):
            for axis, side in enumerate(term.sides.tolist()):
                unary[term.cliques[:, axis], side:] = inf
    if unary.size and np.isinf(unary).all(axis=1).any():
        raise ValueError("field must have a labelling of finite energy, got none")
    return field if np.array_equal(unary, field.unary) else field._over(unary)


class _Draws(Search[None]):
    """The search for samples of all chains in turn, or for batches of independent ones."""

    def __init__(self, chains: Chains, n: int, burn_in: int, thin: int) -> None:
        self._chains, self._left, self.drawn = chains, n, list[IntArray]()
        self._burn_in, self._thin = burn_in, thin

    def step(self) -> bool:
        chains = self._chains
        if chains.exact:  # one sweep makes an independent draw, from any state
            chains.begin(np.zeros((min(AT_ONCE, self._left), chains.labels.shape[1]), np.int64))
        elif not self.drawn:
            chains.settle(self._burn_in)
        chains.sweep(self._thin)
        self.drawn.append(chains.labels[: self._left])
        self._left -= len(self.drawn[-1])
        return self._left == 0


def _apart(
    field: Field, t: float, count: int, random: np.random.Generator, n_threads: int
) -> IntArray:
    """Return ``count`` labellings (count, N) that are far apart: good, likely and unlikely ones."""
    unary = field.unary
    allowed = np.where(np.isinf(unary), inf, 0.0)
    starts = _by_unaries(allowed, count, random)
    starts[0] = completed(solve_map(field, tol=inf, n_jobs=n_threads)).labels
    if count > 1:
        starts[1:2] = _by_unaries(unary / t, 1, random)
    if count > 3:
        starts[3] = np.where(np.isinf(unary), -inf, unary).argmax(axis=1)
    return starts


def _by_unaries(unary: FloatArray, count: int, random: np.random.Generator) -> IntArray:
    """Draw (count, N) labels, each variable independently."""
    p = np.exp(-(unary - unary.min(axis=1, keepdims=True, initial=inf)))
    levels = np.cumsum(p, axis=1)
    drawn = np.empty((count, len(unary)), np.int64)
    for row in drawn:
        level = random.uniform(size=(len(unary), 1)) * levels[:, -1:]
        row[:] = (levels <= level).sum(axis=1).clip(max=unary.shape[1] - 1)
    forbidden = np.isinf(np.take_along_axis(unary, drawn.T, 1).T)
    return np.where(forbidden, unary.argmin(axis=1), drawn)


def _as_starts(init: ArrayLike, field: Field) -> IntArray:
    labels = as_array(init, "init")
    n = field.n_variables
    if labels.ndim not in (1, 2) or labels.shape[-1] != n or len(np.atleast_2d(labels)) == 0:
        raise ValueError(f"init must have shape ({n},) or (m, {n}), got {labels.shape}")
    return np.atleast_2d(as_integers(labels, "init", below=field.n_labels))


def _diagnosed(chains: IntArray, energies: FloatArray, n_labels: int) -> tuple[float, float]:
    """Return the least effective size and the largest R-hat of the energy and the label shares.

    R-hat is also computed of the labels of all variables.
    """
    scale = np.abs(energies).max(initial=1.0)
    series = [energies / scale]
    series += [np.count_nonzero(chains == j, axis=2).astype(np.float64) for j in range(n_labels)]
    sizes = [effective_size(one) for one in series]
    agreements = [r_hat(one) for one in series] + [r_hat_of_labels(chains, n_labels)]
    return float(np.min(sizes)), float(np.max(agreements))


def _reason(chains: Chains) -> str:
    if chains.exact:
        return "the pairs form a forest, and there are no other terms: exact and independent"
    method = f"blocked Gibbs over {chains.n_forests} forests"
    if not chains.proposes:
        return (
            f"{method}, each tree from its exact distribution given the rest: the pairs have cycles"
        )
    size = chains.component_size
    about = "single variables" if size == 1.0 else f"pieces of about {size:g} variables"
    return f"{method}, {about} at a time, with Metropolis steps: some terms join more than pairs"
