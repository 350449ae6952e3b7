"""Lists of labellings by chance: what a diverse list is compared with."""

from __future__ import annotations

import numpy as np

from setwise._foundation._arguments import FloatArray, IntArray, as_count, as_number
from setwise._foundation._interrupts import whole
from setwise._foundation._randomness import as_generator
from setwise.fields._field import Field
from setwise.inference._map._enumerate import count_labellings, most_items
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import marginals
from setwise.inference._marginals._perturb import maximiser


def perturbed_list(
    field: Field,
    m: int,
    *,
    temperature: float = 1.0,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    random_state: object = None,
) -> IntArray:
    r"""M-best by perturbation: the best labellings under Gumbel noise on the unaries.

    .. math:: x^{(k)} = \arg\min_x E(x) - t \sum_i \gamma^{(k)}_{i x_i}

    Parameters
    ----------
    field : Field
        E.
    m : int
        How many labellings, the best one of the field itself among them; as many as there are
        without a forbidden label, if that is fewer.
    temperature : float
        t, the scale of the noise.
    n_draws : int, optional
        How many labellings are drawn beside the best one; m - 1 unless more are asked for. Of more
        the distinct ones of least energy are kept, as long as there are such. It ends earlier when
        all labellings have been drawn.
    n_jobs : int, optional
        Threads; None for all cores. The answer does not depend on it.
    random_state : optional
        As in scikit-learn.

    Returns
    -------
    array of shape (m, N)
        By increasing energy; fewer rows where there are fewer labellings.

    Raises
    ------
    KeyboardInterrupt
        By Ctrl-C: an array cannot say that it is a part of a list.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> field = field + sw.fields.Potts([[0, 1]], 0.5)
    >>> sw.inference.perturbed_list(field, 3, n_draws=20, random_state=0).tolist()
    [[0, 1], [1, 1], [0, 0]]
    """
    t = as_number(temperature, "temperature", positive=True)
    best, m, draws = _begin(field, m, n_draws, n_jobs)
    random = as_generator(random_state)
    search = maximiser(field, 1e-3, n_jobs)
    drawn = _Drawn(field, best)
    for _ in range(draws):
        noise = random.gumbel(-np.euler_gamma, 1.0, field.unary.shape)
        drawn.add(search.best(field.unary - t * noise)[0])
        if drawn.has_all:
            break
    return _lowest(field, drawn.items, m)


def sampled_list(
    field: Field,
    m: int,
    *,
    temperature: float = 1.0,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    random_state: object = None,
) -> IntArray:
    """M-best by sampling: every variable on its own, from its marginals.

    Parameters
    ----------
    field : Field
        E.
    m : int
        How many labellings, the best one of the field itself among them; as many as there are
        without a forbidden label, if that is fewer.
    temperature : float
        That of the marginals.
    n_draws : int, optional
        How many labellings are drawn beside the best one; m - 1 unless more are asked for. Of more
        the distinct ones of least energy are kept, as long as there are such. It ends earlier when
        all labellings have been drawn.
    n_jobs : int, optional
        Threads; None for all cores. The answer does not depend on it.
    random_state : optional
        As in scikit-learn.

    Returns
    -------
    array of shape (m, N)
        By increasing energy; fewer rows where there are fewer labellings.

    Raises
    ------
    KeyboardInterrupt
        By Ctrl-C: an array cannot say that it is a part of a list.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])
    >>> sw.inference.sampled_list(field, 3, n_draws=50, random_state=0).tolist()
    [[0, 1], [1, 1], [0, 0]]
    """
    best, m, draws = _begin(field, m, n_draws, n_jobs)
    random = as_generator(random_state)
    post = whole(marginals(field, temperature=temperature, n_jobs=n_jobs, random_state=random))
    levels: FloatArray = np.cumsum(post.probabilities, axis=1)
    allowed = np.isfinite(field.unary)
    drawn = _Drawn(field, best)
    for _ in range(draws):
        level = random.uniform(size=(len(levels), 1)) * levels[:, -1:]
        labels = (levels <= level).sum(axis=1).clip(max=field.n_labels - 1)
        # Rounding may leave a forbidden label with a trace of probability.
        wrong = ~allowed[np.arange(len(labels)), labels]
        labels[wrong] = best[wrong]
        drawn.add(labels)
        if drawn.has_all:
            break
    return _lowest(field, drawn.items, m)


class _Drawn:
    """Labellings as they are drawn, the best one first, until all that there are have been."""

    def __init__(self, field: Field, best: IntArray) -> None:
        self.items = [best]
        self._seen = {best.tobytes()}
        self._most = count_labellings(field)

    def add(self, labels: IntArray) -> None:
        self.items.append(labels)
        self._seen.add(labels.tobytes())

    @property
    def has_all(self) -> bool:
        """Whether nothing that is drawn from now on can be new."""
        return len(self._seen) == self._most


def _begin(
    field: Field, m: int, n_draws: int | None, n_jobs: int | None
) -> tuple[IntArray, int, int]:
    """The best labelling, and how many labellings to return and to draw."""
    if not isinstance(field, Field):
        raise TypeError(f"field must be a Field, got {type(field).__name__}")
    m = as_count(m, "m", least=1)
    draws = m - 1 if n_draws is None else as_count(n_draws, "n_draws", least=m - 1)
    if m > (most := most_items(field, m)):
        m, draws = most, most - 1 if n_draws is None else draws
    return whole(solve_map(field, n_jobs=n_jobs)).labels, m, draws


def _lowest(field: Field, drawn: list[IntArray], m: int) -> IntArray:
    """The first labelling and the m - 1 lowest of the others, distinct ones first."""
    items = np.array(drawn, np.int64)
    energies = field._energies(items)
    energies[0] = -np.inf  # it stays the first, also where moves did not find the least energy
    order = np.argsort(energies, kind="stable")
    seen: set[bytes] = set()
    distinct: list[int] = []
    copies: list[int] = []
    for k in order:
        key = items[k].tobytes()
        (copies if key in seen else distinct).append(k)
        seen.add(key)
    kept = sorted((distinct + copies)[:m], key=lambda k: energies[k])
    return items[kept]
