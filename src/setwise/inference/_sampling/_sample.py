"""Labellings drawn from the distribution of a field: exactly on forests, else by chains."""

from __future__ import annotations

from math import ceil, inf

import numpy as np
from numpy.typing import ArrayLike

from setwise._foundation._arguments import (
    FloatArray,
    IntArray,
    as_array,
    as_count,
    as_integers,
    as_number,
)
from setwise._foundation._interrupts import whole
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._randomness import as_generator
from setwise._foundation._threads import as_threads
from setwise._foundation._timings import Stopwatch
from setwise.fields._field import Field, as_field
from setwise.fields._terms import CliqueTerm
from setwise.inference._map._ground import ground
from setwise.inference._map._largest_energy import check_magnitude
from setwise.inference._map._solve_map import solve_map
from setwise.inference._sampling._chains import Chains
from setwise.inference._sampling._diagnostics import effective_size, r_hat, r_hat_of_labels
from setwise.inference._sampling._doubts import doubt_about, share_moved
from setwise.inference._sampling._result import Samples

MOST_ENTRIES = 1 << 36  # of all labellings together: 512 GiB
AT_ONCE = 64  # exact draws a call of the kernel, so that Ctrl-C leaves what there is


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

    Where the energy is unaries and pairs along a forest, the samples are exact and independent:
    messages from the leaves sum over all labellings, labels are drawn from the top down. Otherwise
    chains are moved on by blocked Gibbs sweeps: the field is cut into trees, rows and columns of a
    grid for instance, and each is drawn from its exact distribution given the rest. Regions, label
    costs and other terms of many variables make that a proposal, which a Metropolis step takes or
    leaves. P is the stationary distribution in any case; the result says whether samples are exact,
    and how far chains agree.

    Parameters
    ----------
    field : Field
        Any; labels whose unary is infinite are never drawn.
    n : int
        How many samples.
    temperature : float
        t > 0.
    init : array-like of int, shape (N,) or (m, N), optional
        Where chains start; several labellings are taken in turn. By default chains start apart: the
        first at the best labelling that is quickly found, the second at labels drawn by the unaries
        alone, the third at labels drawn evenly, the fourth at the labels of largest unaries, all
        others evenly. Who agrees after that has probably seen the same. Nothing changes for exact
        samples.
    n_chains : int
        Chains, at most n; each gives every ``n_chains``-th sample.
    burn_in : int
        Sweeps of each chain before its first sample.
    thin : int
        Sweeps between two samples of a chain.
    n_jobs : int, optional
        Threads, a chain each; None for all cores. The answer does not depend on it.
    rng : optional
        None, a seed or a ``numpy.random.Generator``.

    Returns
    -------
    Samples
        ``labelings`` (n, N), ``energies``, ``exact``, ``effective_sample_size``, ``r_hat``,
        ``acceptance``, ``moved``, ``doubt``, ``reason``, ``probabilities``. Ctrl-C ends it with the
        samples that there are; before the first it raises ``KeyboardInterrupt``.

    Notes
    -----
    A sweep takes time in O((N + E) L), for tables of pairs in O(E L²).

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
    n = as_count(n, "n", least=1, most=MOST_ENTRIES // max(field.n_variables, 1))
    t = as_number(temperature, "temperature", positive=True, smallest=0.0)
    n_chains = min(as_count(n_chains, "n_chains", least=1), n)
    burn_in = as_count(burn_in, "burn_in")
    thin = as_count(thin, "thin", least=1)
    starts = None if init is None else _as_starts(init, field)
    random = as_generator(rng)
    check_magnitude(field, t, "float64")
    problem = _within_tables(ground(field).field)
    chains = Chains(problem, t, int(random.integers(2**63)), as_threads(n_jobs))
    watch.lap("set-up")
    if chains.exact:
        n_chains, burn_in, thin = n, 0, 1
        drawn, interrupted = _independent(chains, n, field.n_variables)
    else:
        if starts is None:
            starts = _apart(problem, t, n_chains, random, as_threads(n_jobs))
        chains.begin(starts[np.arange(n_chains) % len(starts)])
        drawn, interrupted = _along(chains, n, n_chains, burn_in, thin)
    watch.lap("search")
    energies = field._energies(drawn)
    size, agreement, moved, doubt = float(len(drawn)), 1.0, 1.0, ""
    if not chains.exact:
        each = len(drawn) // n_chains  # of a chain; what is left over is not looked at
        by_chain = drawn[: each * n_chains].reshape(each, n_chains, -1).swapaxes(0, 1)
        heights = energies[: each * n_chains].reshape(each, n_chains).T
        size, agreement = _diagnosed(by_chain, heights, field.n_labels)
        moved = share_moved(by_chain)
        doubt = doubt_about(field, by_chain, t, agreement)
    return Samples(
        labelings=drawn,
        energies=energies,
        exact=chains.exact,
        effective_sample_size=size,
        r_hat=agreement,
        acceptance=chains.taken,
        moved=moved,
        doubt=doubt,
        reason=_reason(chains),
        n_labels=field.n_labels,
        n_chains=n_chains,
        burn_in=burn_in,
        thin=thin,
        temperature=t,
        interrupted=interrupted,
        timings=watch.timings("answer"),
        shape=field.shape,
    )


def _within_tables(field: Field) -> Field:
    """The field that forbids by unaries the labels that lie beyond a table of a model file."""
    unary = field.unary.copy()
    for _, term in field._terms():
        if isinstance(term, CliqueTerm):
            for axis, side in enumerate(term.sides.tolist()):
                unary[term.cliques[:, axis], side:] = inf
    if unary.size and np.isinf(unary).all(axis=1).any():
        raise ValueError("field must have a labelling of finite energy, got none")
    return field if np.array_equal(unary, field.unary) else field._over(unary)


def _independent(chains: Chains, n: int, n_variables: int) -> tuple[IntArray, bool]:
    """Draws of a forest that has all there is: one sweep each, from anywhere."""
    found: list[IntArray] = []
    try:
        for start in range(0, n, AT_ONCE):
            chains.begin(np.zeros((min(AT_ONCE, n - start), n_variables), np.int64))
            chains.sweep(1)
            found.append(chains.labels)
    except KeyboardInterrupt:
        if not found:
            raise
        return np.concatenate(found), True
    return np.concatenate(found), False


def _along(chains: Chains, n: int, n_chains: int, burn_in: int, thin: int) -> tuple[IntArray, bool]:
    """Samples of chains in turn, after their way in."""
    found: list[IntArray] = []
    try:
        chains.settle(burn_in)
        for k in range(ceil(n / n_chains)):
            chains.sweep(thin)
            found.append(chains.labels[: n - k * n_chains])
    except KeyboardInterrupt:
        if not found:
            raise
        return np.concatenate(found), True
    return np.concatenate(found), False


def _apart(
    field: Field, t: float, count: int, random: np.random.Generator, n_threads: int
) -> IntArray:
    """(count, N): good, likely and unlikely labellings, so that chains that agree have met."""
    unary = field.unary
    allowed = np.where(np.isinf(unary), inf, 0.0)
    starts = _by_unaries(allowed, count, random)
    starts[0] = whole(solve_map(field, tol=inf, n_jobs=n_threads)).labels
    if count > 1:
        starts[1:2] = _by_unaries(unary / t, 1, random)
    if count > 3:
        starts[3] = np.where(np.isinf(unary), -inf, unary).argmax(axis=1)
    return starts


def _by_unaries(unary: FloatArray, count: int, random: np.random.Generator) -> IntArray:
    """(count, N): every variable on its own."""
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
    """The least effective size and the largest R-hat of the energy and of each label's share.

    R-hat is also that of the labels of all variables.
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
    told = f"blocked Gibbs over {chains.n_forests} forests"
    if not chains.proposes:
        return (
            f"{told}, each tree from its exact distribution given the rest: the pairs have cycles"
        )
    size = chains.component_size
    about = "single variables" if size == 1.0 else f"pieces of about {size:g} variables"
    return f"{told}, {about} at a time, with Metropolis steps: some terms join more than pairs"
