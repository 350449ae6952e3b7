"""Random lists of labellings, as baselines of diverse lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray, as_count, as_generator, as_number
from setwise._foundation._search import completed
from setwise.fields._field import Field, as_field
from setwise.inference._diverse._result import repeats
from setwise.inference._map._enumerate import count_labelings, most_items
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import marginals
from setwise.inference._marginals._perturb import maximizer


def perturbed_list(
    field: Field,
    m: int,
    *,
    temperature: float = 1.0,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    rng: object = None,
) -> IntArray:
    r"""Return a list by perturbation: the best labellings under Gumbel noise on the unaries.

    .. math:: x^{(k)} = \arg\min_x E(x) - t \sum_i \gamma^{(k)}_{i x_i}

    Parameters
    ----------
    field : Field
        The energy E.
    m : int
        The number of labellings, including the best one of the field; at most the number of
        labellings without a forbidden label.
    temperature : float
        t, the scale of the noise.
    n_draws : int, optional
        The number of draws in addition to the best labelling; by default m - 1. From more draws,
        the distinct labellings of least energy are kept first. The draws end early when all
        labellings have been drawn.
    n_jobs : int, optional
        The number of threads; None for all cores. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        The source of randomness.

    Returns
    -------
    array of shape (m, N)
        Labellings by increasing energy; fewer rows if there are fewer labellings.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C, since an array cannot mark an incomplete list.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> field = field + sw.fields.Potts([[0, 1]], 0.5)
    >>> from setwise.inference._diverse._baseline_lists import perturbed_list
    >>> perturbed_list(field, 3, n_draws=20, rng=0).tolist()
    [[0, 1], [1, 1], [0, 0]]
    """
    t = as_number(temperature, "temperature", positive=True)
    best, m, draws = _begin(field, m, n_draws, n_jobs)
    random = as_generator(rng)
    search = maximizer(field, 1e-3, n_jobs)

    def draw() -> IntArray:
        noise = random.gumbel(-np.euler_gamma, 1.0, field.unary.shape)
        return search.best(field.unary - t * noise)[0]

    return _lowest(field, _drawn(field, best, draw, draws), m)


def sampled_list(
    field: Field,
    m: int,
    *,
    temperature: float = 1.0,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    rng: object = None,
) -> IntArray:
    """Return a list by sampling each variable independently from its marginals.

    Parameters
    ----------
    field : Field
        The energy E.
    m : int
        The number of labellings, including the best one of the field; at most the number of
        labellings without a forbidden label.
    temperature : float
        The temperature of the marginals.
    n_draws : int, optional
        The number of draws in addition to the best labelling; by default m - 1. From more draws,
        the distinct labellings of least energy are kept first. The draws end early when all
        labellings have been drawn.
    n_jobs : int, optional
        The number of threads; None for all cores. The answer does not depend on it.
    rng : None, int or numpy.random.Generator
        The source of randomness.

    Returns
    -------
    array of shape (m, N)
        Labellings by increasing energy; fewer rows if there are fewer labellings.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C, since an array cannot mark an incomplete list.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> from setwise.inference._diverse._baseline_lists import sampled_list
    >>> sampled_list(field, 3, n_draws=50, rng=0).tolist()
    [[0, 1], [1, 1], [0, 0]]
    """
    best, m, draws = _begin(field, m, n_draws, n_jobs)
    random = as_generator(rng)
    post = completed(marginals(field, temperature=temperature, n_jobs=n_jobs, rng=random))
    levels: FloatArray = np.cumsum(post.probabilities, axis=1)
    allowed = np.isfinite(field.unary)

    def draw() -> IntArray:
        level = random.uniform(size=(len(levels), 1)) * levels[:, -1:]
        labels: IntArray = (levels <= level).sum(axis=1).clip(max=field.n_labels - 1)
        # By rounding, a forbidden label may have a tiny positive probability.
        wrong = ~allowed[np.arange(len(labels)), labels]
        labels[wrong] = best[wrong]
        return labels

    return _lowest(field, _drawn(field, best, draw, draws), m)


def _begin(
    field: Field, m: int, n_draws: int | None, n_jobs: int | None
) -> tuple[IntArray, int, int]:
    """Return the best labelling, and the numbers of labellings to return and to draw."""
    field = as_field(field)
    m = as_count(m, "m", least=1)
    draws = m - 1 if n_draws is None else as_count(n_draws, "n_draws", least=m - 1)
    if m > (most := most_items(field, m)):
        m, draws = most, most - 1 if n_draws is None else draws
    return completed(solve_map(field, n_jobs=n_jobs)).labels, m, draws


def _drawn(field: Field, best: IntArray, draw: Callable[[], IntArray], draws: int) -> IntArray:
    """Return the best labelling and ``draws`` random ones, or all labellings that exist."""
    items, seen, most = [best], {best.tobytes()}, count_labelings(field)
    for _ in range(draws):
        items.append(draw())
        seen.add(items[-1].tobytes())
        if len(seen) == most:
            break
    return np.array(items, np.int64)


def _lowest(field: Field, items: IntArray, m: int) -> IntArray:
    """Return the first labelling and the m - 1 lowest others, distinct ones first."""
    energies = field._energies(items)
    energies[0] = -np.inf  # the given labelling stays first, even if another has less energy
    order = np.argsort(energies, kind="stable")
    again = repeats(items[order])
    kept: IntArray = np.concatenate([order[~again], order[again]])[:m]
    lowest: IntArray = items[kept[np.argsort(energies[kept], kind="stable")]]
    return lowest
