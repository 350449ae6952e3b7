"""Maximisation of submodular functions, with a guarantee and a bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setwise.functions._arguments import BoolArray, IntArray, as_count
from setwise.functions._base import SetFunction, as_set_function, empty_value
from setwise.functions._greedy import double_greedy, greedy
from setwise.functions._randomness import as_generator

METHODS = ("auto", "greedy", "double", "double-random")


@dataclass(frozen=True, eq=False)
class Maximum:
    """What ``maximize`` found, and what is known of how good it is.

    Attributes
    ----------
    mask : boolean array of shape (n,)
        The set.
    value : float
        F(mask).
    bound : float
        No set in question has a higher value, if ``certified``.
    guarantee : float or None
        The share of the best value that the method reaches on every function that fulfils
        ``assumes``; None when F is not known to.
    assumes : str
        What the guarantee rests on, in a sentence.
    order : integer array
        The elements of the set, in the order in which they were chosen.
    method : str
        "greedy", "double", "double-random", or "whole" when F is increasing and nothing limits it.
    n_iter : int
        Steps: elements chosen by the greedy method, elements decided by the double one.
    certified : bool
        Whether F is known to be what the bound rests on. If not, ``bound`` is a number without a
        meaning.

    Examples
    --------
    >>> import setwise as sw
    >>> best = sw.functions.maximize(sw.functions.Coverage([[0, 1], [1], [2]]), 2)
    >>> best.order.tolist(), best.value, best.gap
    ([0, 2], 3.0, 0.0)
    """

    mask: BoolArray
    value: float
    bound: float
    guarantee: float | None
    assumes: str
    order: IntArray
    method: str
    n_iter: int
    certified: bool

    def __post_init__(self) -> None:
        self.mask.flags.writeable = self.order.flags.writeable = False

    @property
    def gap(self) -> float:
        """Bound - value, never negative."""
        return self.bound - self.value

    @property
    def relative_gap(self) -> float:
        """Gap / max(1, abs(value))."""
        return self.gap / max(1.0, abs(self.value))

    @property
    def exact(self) -> bool:
        """Whether the set is proved to be a maximiser: certified and a relative gap <= 1e-9."""
        return self.certified and self.relative_gap <= 1e-9


def maximize(
    function: SetFunction,
    k: int | None = None,
    *,
    method: str = "auto",
    random_state: object = None,
) -> Maximum:
    r"""A set at which a submodular function is large, with a guarantee and a bound.

    Submodular maximisation is NP-hard, so the answer is close rather than best, and says how
    close. With at most k elements the **greedy** method adds the element of the largest gain until
    there are k of them or no gain is positive. When F is increasing and F(empty) >= 0 it reaches
    :math:`1 - (1 - 1/k)^k \ge 1 - 1/e` of the best (Nemhauser, Wolsey and Fisher, 1978). When F is
    known to be submodular a gain seen earlier bounds the gain now, so it is evaluated again only
    when it is in the lead: the answer is the same, in far fewer evaluations.

    Without k, the **double** greedy method goes through the elements once with a set X that grows
    from the empty set and a set Y that shrinks from the whole one, and puts each element into X or
    takes it from Y, whichever gains more; or, **double-random**, with the probabilities that the
    two gains give. It reaches 1/3 of the best, or 1/2 in expectation, when F(empty) + F(V) >= 0
    (Buchbinder, Feldman, Naor and Schwartz, 2012). An increasing F is largest on the whole set.

    For every S and every submodular F, with :math:`d_i = \max(0, F(V - i) - F(V))`,

    .. math:: F(A) \le F(S) + \sum_{i \in A - S} \max(0, F(S + i) - F(S)) + \sum_{i \in S - A} d_i,

    which gives ``bound``: the best over the sets that the method passed, and for the double greedy
    also 3 F(X) - F(empty) - F(V), which its own analysis proves.

    The greedy method costs n evaluations of F and a few for each element chosen (n for each when F
    is not known to be submodular); the double one 2 n; the bound up to 3 n.

    Parameters
    ----------
    function : SetFunction
        Submodular. When ``is_submodular`` is None the methods run, and the result has
        ``certified`` False and no guarantee.
    k : int, optional
        The most elements; None: any number.
    method : {"auto", "greedy", "double", "double-random"}
        "auto": "greedy" with k; without, the whole set when F is increasing, else "double".
    random_state : None, int or numpy.random.Generator
        For "double-random".

    Returns
    -------
    Maximum

    Examples
    --------
    >>> import setwise as sw
    >>> F = sw.functions.Coverage([[0, 1, 2], [2, 3], [3, 4], [0, 4]])
    >>> best = sw.functions.maximize(F, 2)
    >>> best.order.tolist(), best.value, best.bound, best.exact
    ([0, 2], 5.0, 5.0, True)
    """
    limit = None if k is None else as_count(k, "k")
    as_set_function(function)
    if not isinstance(method, str):
        raise TypeError(f"method must be a string, got {type(method).__name__}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if limit is not None and method.startswith("double"):
        raise ValueError(f"method must be 'greedy' or 'auto' when k is given, got {method!r}")
    rng = as_generator(random_state)
    if limit is None and method == "auto" and function.is_increasing is True:
        return _whole(function)
    if function.is_submodular is False:
        raise ValueError(f"function must be submodular to be maximised, got {function!r}")
    if limit is not None or method == "greedy":
        return _by_greedy(function, function.n if limit is None else min(limit, function.n))
    return _by_double_greedy(function, rng if method == "double-random" else None)


def _whole(function: SetFunction) -> Maximum:
    mask = np.ones(function.n, np.bool_)
    value = float(function._values(mask[None])[0])
    order = np.arange(function.n)
    return Maximum(mask, value, value, 1.0, "F is increasing.", order, "whole", 0, certified=True)


def _by_greedy(function: SetFunction, k: int) -> Maximum:
    certified = function.is_submodular is True
    mask, value, bound, order = greedy(function, k)
    holds = certified and function.is_increasing is True and empty_value(function) >= 0
    factor = 1.0 if k in (0, function.n) else 1.0 - (1.0 - 1.0 / k) ** k
    return Maximum(
        mask=mask,
        value=value,
        bound=bound,
        guarantee=factor if holds else None,
        assumes="F is submodular, increasing and not negative on the empty set.",
        order=order,
        method="greedy",
        n_iter=len(order),
        certified=certified,
    )


def _by_double_greedy(function: SetFunction, rng: np.random.Generator | None) -> Maximum:
    certified = function.is_submodular is True
    mask, value, bound = double_greedy(function, rng)
    ends = function._values(np.array([np.zeros_like(mask), np.ones_like(mask)]))
    holds = certified and ends.sum() >= 0
    share, how = (1 / 3, "") if rng is None else (1 / 2, ", in expectation over random_state")
    return Maximum(
        mask=mask,
        value=value,
        bound=bound,
        guarantee=share if holds else None,
        assumes=f"F is submodular and F(empty) + F(V) is not negative{how}.",
        order=np.flatnonzero(mask),
        method="double" if rng is None else "double-random",
        n_iter=function.n,
        certified=certified,
    )
