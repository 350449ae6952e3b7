"""Maximisation of submodular functions, with a guarantee and a bound."""

from __future__ import annotations

from math import inf, nextafter

import numpy as np

from setwise._foundation._arguments import as_choice, as_count, as_generator
from setwise._foundation._certificate import HIDDEN
from setwise._foundation._clock import Deadline, Stopwatch
from setwise._foundation._search import Control, Ending, drive
from setwise.functions._base import SetFunction, as_set_function, empty_value
from setwise.functions._maximization._greedy import Chosen, DoubleGreedy, Greedy
from setwise.functions._maximization._maximum import Maximum
from setwise.functions._numbers import numbers_of

_METHODS = ("auto", "greedy", "double", "double_random")


def maximize(
    function: SetFunction,
    k: int | None = None,
    *,
    method: str = "auto",
    time_limit: float | None = None,
    rng: object = None,
) -> Maximum:
    r"""Find a set of large value of a submodular function, with a guarantee and a bound.

    Submodular maximisation is NP-hard, so the answer is approximate, with a bound on its distance
    from the best. With at most k elements the **greedy** method adds the element of the largest
    gain until there are k elements or no gain is positive. If F is increasing and F(empty) >= 0,
    its value is at least :math:`1 - (1 - 1/k)^k \ge 1 - 1/e` times the best value (Nemhauser,
    Wolsey and Fisher, 1978). If F is known to be submodular, an earlier gain bounds the current
    gain from above. So a gain is evaluated again only if it is the largest bound. The answer is the
    same, with far fewer evaluations.

    Without k, the **double** greedy method goes through the elements once. A set X grows from the
    empty set, and a set Y shrinks from the whole one. Each element is put into X or taken from Y,
    whichever increases the value more. **double_random** chooses between the two with probabilities
    in proportion to their positive gains. If F(empty) + F(V) >= 0, "double" attains at least 1/3 of
    the best value, and "double_random" 1/2 in expectation (Buchbinder, Feldman, Naor and Schwartz,
    2012). An increasing F is largest on the whole set.

    For every S and every submodular F, with :math:`d_i = \max(0, F(V - i) - F(V))`,

    .. math:: F(A) \le F(S) + \sum_{i \in A - S} \max(0, F(S + i) - F(S)) + \sum_{i \in S - A} d_i,

    which gives ``bound``: the best over the sets that the method passed, and for the double greedy
    also 3 F(X) - F(empty) - F(V), which its own analysis proves.

    All roundings raise the bound. After the gains of the single elements, Ctrl-C or a time limit
    ends the search with the elements chosen so far.

    The greedy method evaluates F n times, and then a few times for each element that it chooses (n
    times if F is not known to be submodular). The double greedy method takes 2 n evaluations, and
    the bound takes up to 3 n.

    Parameters
    ----------
    function : SetFunction
        Submodular. When ``is_submodular`` is None the methods run, and the result has
        ``certified`` False and no guarantee.
    k : int, optional
        The most elements; None: any number.
    method : {"auto", "greedy", "double", "double_random"}
        "auto": "greedy" with k; without, the whole set when F is increasing, else "double".
    time_limit : float, optional
        The limit in seconds. When it is reached, the search ends with the elements chosen so far, a
        valid bound and no guarantee, and ``reason`` reports it. The gains of the single elements
        are evaluated in any case. An answer that the limit cut short depends on the speed and the
        load of the machine.
    rng : None, int or numpy.random.Generator
        The source of randomness of "double_random".

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
    as_choice(method, "method", _METHODS)
    if limit is not None and method.startswith("double"):
        raise ValueError(f"method must be 'greedy' or 'auto' when k is given, got {method!r}")
    random = as_generator(rng)
    deadline = Deadline.of(time_limit, armed=False)
    if limit is None and method == "auto" and function.is_increasing is True:
        return _whole(function)
    if function.is_submodular is False:
        raise ValueError(f"function must be submodular to be maximised, got {function!r}")
    if limit is not None or method == "greedy":
        most = function.n if limit is None else min(limit, function.n)
        return _by_greedy(function, most, deadline)
    return _by_double_greedy(function, random if method == "double_random" else None, deadline)


def _whole(function: SetFunction) -> Maximum:
    mask = np.ones(function.n, np.bool_)
    value = float(function._values(mask[None])[0])
    order = np.arange(function.n)
    # A family counts as increasing within a tolerance, and the decreases within it can add up.
    excess = function.n * function._fall()
    wrong = numbers_of(function).value_error(function.n)
    return Maximum(
        mask=mask,
        value=value,
        bound=nextafter(value + excess + wrong, inf) if excess + wrong else value,
        guarantee=1.0,
        assumes="F is increasing.",
        order=order,
        method="whole",
        n_iter=0,
        certified=True,
        excess=excess,
        gap_scale=excess,
        rounding=HIDDEN * numbers_of(function).least if excess else 0.0,
    )


def _by_greedy(function: SetFunction, k: int, deadline: Deadline) -> Maximum:
    plain = _Plain(function)
    search = Greedy(plain.function, k)
    ending = deadline.run(drive, search, Control(deadline=deadline))
    found = search.chosen()
    sure = function.is_submodular is True and function.is_increasing is True
    holds = sure and empty_value(function) >= 0 and not ending.cut_short
    factor = 1.0 if k in (0, function.n) else 1.0 - (1.0 - 1.0 / k) ** k
    return plain.record(
        found,
        ending,
        guarantee=factor if holds else None,
        assumes="F is submodular, increasing and not negative on the empty set.",
        method="greedy",
        n_iter=len(found.order),
    )


def _by_double_greedy(
    function: SetFunction, rng: np.random.Generator | None, deadline: Deadline
) -> Maximum:
    plain = _Plain(function)
    ends = function._values(np.array([[False] * function.n, [True] * function.n], np.bool_))
    search = DoubleGreedy(plain.function, rng)
    ending = deadline.run(drive, search, Control(deadline=deadline))
    found = search.chosen()
    holds = function.is_submodular is True and ends.sum() >= 0 and not ending.cut_short
    share, how = (1 / 3, "") if rng is None else (1 / 2, ", in expectation over rng")
    return plain.record(
        found,
        ending,
        guarantee=share if holds else None,
        assumes=f"F is submodular and F(empty) + F(V) is not negative{how}.",
        method="double" if rng is None else "double_random",
        n_iter=function.n,
    )


class _Plain:
    """F without its constant, with bounds on its rounding errors from before the search."""

    def __init__(self, function: SetFunction) -> None:
        self._watch = Stopwatch()
        self._whole, self.function = function, function._without_constant()
        self._certified = function.is_submodular is True
        n, self._numbers = function.n, numbers_of(self.function)
        self._loose = numbers_of(function).value_error(n)
        # A bound is a sum of at most 2 n differences of two values and n^2 exchanges of two
        # elements.
        broken = self.function._bend() if self._certified else 0.0
        self._wrong = (4 * n + 4) * self._numbers.value_error(n) + n * n * broken
        # The chosen elements may lower the value of the best set.
        if function.is_increasing is True:
            self._wrong += n * self.function._fall()
        self._watch.lap("set-up")

    def record(
        self,
        found: Chosen,
        ending: Ending[None],
        *,
        guarantee: float | None,
        assumes: str,
        method: str,
        n_iter: int,
    ) -> Maximum:
        """Return the record, in which every rounding raises the bound."""
        excess = found.bound - found.value + self._wrong
        if self._numbers.exact and excess < self._numbers.unit:
            excess = 0.0  # all values are multiples of the unit
        value = float(self._whole._values(found.mask[None])[0])
        bound = value + (excess + self._loose)
        if self._wrong or self._loose:
            bound = nextafter(bound, inf)
        return Maximum(
            mask=found.mask,
            value=value,
            bound=bound,
            guarantee=guarantee,
            assumes=assumes,
            order=found.order,
            method=method,
            n_iter=n_iter,
            certified=self._certified,
            excess=excess,
            gap_scale=max(excess, found.trivial - found.value + self._wrong),
            rounding=min(2 * self._wrong, HIDDEN * self._numbers.least),
            interrupted=ending.interrupted,
            reason=ending.reason if ending.cut_short else "done",
            timings=self._watch.timings("search"),
        )
