"""The best labelling of a field, by a suitable method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from setwise._foundation._certificate import relative_gap
from setwise._foundation._clock import Deadline, Stopwatch, TimeUp
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import displayed, is_observed
from setwise._foundation._search import attempt
from setwise.fields._field import Field, as_field
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import NEGLIGIBLE
from setwise.inference._map._branching._branch_and_bound import is_hard
from setwise.inference._map._convex import certify
from setwise.inference._map._junction_tree import (
    is_affordable,
    is_cheap,
    named,
    narrow,
    numbers_of_a_pass,
)
from setwise.inference._map._messages._bound_ascent import is_within_tightening
from setwise.inference._map._messages._messages import messages
from setwise.inference._map._messages._tree_bound import certify_by_trees
from setwise.inference._map._messages._tree_sweeps import has_pairs_only
from setwise.inference._map._methods import METHODS
from setwise.inference._map._moves._cut import cut_at_once
from setwise.inference._map._options import MapOptions
from setwise.inference._map._result import MapProgress, MapResult

# If a pass over a field visits at most this number of entries, "auto" tries other searches after
# the first. Such a pass takes about ten microseconds, so hundreds of passes take a few
# milliseconds. Not tuned.
FEW_NUMBERS = 1 << 12
# The limit on the work of a search that "auto" tries after a gap: a second or two. On random grids
# of 100 x 100 and 200 x 200 variables with five labels, thirty times as much proved nothing more.
# For odd_cycles it is about ten seconds, which proves all fields of benchmarks/exact.py.
_BUDGET, _BUDGET_OF_ODD_CYCLES = 1e7, 3e8
# The largest number of searches with reduced costs, each of which starts from the last labelling
# and takes as long as the first search. Not tuned.
_AGAIN = 4


@METHODS.describe
@displayed("solve_map")
@hints_at_names
def solve_map(
    field: Field,
    method: str = "auto",
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    time_limit: float | None = None,
    init: ArrayLike | None = None,
    n_jobs: int | None = None,
    rng: object = None,
    verbose: bool = False,
    callback: Callable[[MapProgress], object] | None = None,
) -> MapResult:
    r"""Find a labelling of least energy, with a bound on the energy of every labelling.

    [methods]

    Parameters
    ----------
    field : Field
        Unaries plus potentials; labels with ``+inf`` unaries are never chosen.
    method : str
        "auto" takes the first suitable method of the table (enumerate only if labellings are few,
        elimination if it is cheaper than a search). If that leaves a gap above ``tol``, and without
        ``max_iter``, it tries further methods that are affordable for the field: odd_cycles for two
        labels and pairs, for about ten seconds; windows for pairs, conditioning for label costs and
        branch_and_bound for tables of more variables, each for a second or a few; elimination if it
        takes about a second; and messages, swap and convex, in this order, if a pass over the field
        visits at most 4096 entries (400 variables with three labels on a grid). The best labelling
        and the best bound are kept; the result names the method that found the labelling, and why
        it ran.
    tol : float
        Stop when ``relative_gap`` is at most this: the gap divided by the possible gain, which does
        not depend on constants and units. With ``tol=inf`` any local optimum is accepted, and moves
        compute no bound beyond the trivial one.
    max_iter : int, optional
        The largest number of rounds: sweeps over the labels for moves, passes for relaxations and
        messages, also if these compute the bound of moves. By default such passes end if the
        extrapolated rise of the bound cannot reach ``tol`` and closes almost nothing of the gap;
        with ``max_iter`` they continue.
    time_limit : float, optional
        The largest number of seconds. The search then ends with the best labelling so far and a
        valid bound, and ``reason`` reports it. Only if the limit is reached does the answer depend
        on the speed and the load of the machine. The clock is checked many times per second, but a
        single step of a method's set-up is not interrupted. With 0 the result is the start.
    init : array of shape (N,), optional
        The initial labelling of moves. For other methods the result is never worse than this
        labelling. "enumerate" only checks it.
    n_jobs : int, optional
        Threads; None for all cores. The answer does not depend on it.
    rng : optional
        The source of randomness for the order of the moves and the forests that messages relabel.
        None means the order of the labels and a fixed seed, so that results are reproducible.
    verbose : bool
        Show value, bound, gap and seconds on stderr: a bar in a terminal or a notebook (with rich),
        else lines.
    callback : callable, optional
        Called with a ``MapProgress`` after each round; a true return value stops the search.

    Returns
    -------
    MapResult
        ``labels``, ``value``, ``bound``, ``gap``, ``exact``, ``method``, ``reason``, ``timings``.
        Ctrl-C also ends the search, with the best labelling so far and ``interrupted`` True. During
        the set-up of a method, or while the result is assembled, it raises ``KeyboardInterrupt``.

    Examples
    --------
    Five pixels in a row, two labels:

    >>> import setwise as sw
    >>> field = sw.fields.Field([[0, 2], [1, 0], [0, 2], [2, 0], [2, 0]])
    >>> field = field + sw.fields.Potts([[0, 1], [1, 2], [2, 3], [3, 4]], 0.75)
    >>> best = sw.solve_map(field)
    >>> best.labels.tolist(), best.value, best.exact, best.method
    ([0, 0, 0, 1, 1], 1.75, True, 'cut')
    """
    deadline, watch = Deadline.of(time_limit), Stopwatch()
    field = as_field(field)
    method = METHODS.read(method)
    read = partial(
        MapOptions.read,
        tol=tol,
        max_iter=max_iter,
        init=init,
        n_jobs=n_jobs,
        rng=rng,
        callback=callback,
        deadline=deadline,
        watch=watch,
    )
    if method in ("auto", "cut"):
        try:
            best = deadline.run(cut_at_once, field, read)
        except TimeUp:
            best = None
        if best is not None:
            reason = METHODS["cut"].because if method == "auto" else "asked for"
            end = _fields_of_end(best, reason, deadline)
            return best._with(timings=watch.timings("answer"), shape=field.shape, **end)
    whole = Conditioned.of(field)
    conditioned = whole.without_huge_unaries()
    problem = conditioned.field
    options = read(problem, problem=conditioned)
    chosen = method == "auto"
    if chosen:
        method, reason = METHODS.choose(problem)
    else:
        named(METHODS[method]).check(problem)
        reason = "asked for"
    record = METHODS[method]
    by_cut = record.by_cut
    if is_observed(callback):
        options = replace(options, by_cut=by_cut)
    if chosen and max_iter is None:
        options = replace(options, rival=lambda: any(r != method for r in _exact(problem)))
    result = _search(problem, method, options)
    if not record.adds_costs_only and conditioned.costs_hide_digits(result.value, by_cut=by_cut):
        result = _search_again(method, options, result)
    elif not result.exact and conditioned.costs_hide_digits(result.bound, by_cut=by_cut):
        result = _less_rounding(conditioned, result)
    if chosen and not _is_done(result, options):
        for other in _affordable(problem, method):
            result, helped = _try_too(problem, other, options, result)
            if helped:
                reason = f"{reason}; it left a gap, and {other} is cheap here: {helped}"
            if _is_done(result, options):
                break
    if result.reason and result.relative_gap > options.tol:
        reason = f"{reason}; {result.reason}"
    if not result.exact:
        reason += _why_not_proved(result, options)
    if problem is not whole.field:
        # Only a given start that was not improved can incur a limited cost, so its energy is
        # recomputed.
        value = float(whole.field._energies(result.labels[None])[0])
        if value != result.value:
            result = replace(result, value=value, exact=False)
            result = options.improved(result, result.bound, False)
    result = options.in_given(result)
    end = _fields_of_end(result, reason, deadline)
    return result._with(timings=watch.timings("answer"), shape=field.shape, **end)


def _why_not_proved(result: MapResult, options: MapOptions) -> str:
    """Return the reason why the answer of an exact method is not proved, as part of a sentence."""
    if not METHODS[result.method].is_exact or options.deadline.expired:
        return ""
    why = "rounding leaves a gap"
    if result.interrupted:
        why = "the search was interrupted"
    elif not result.converged:
        why = "max_iter ended the search"
    elif result.relative_gap > 0.0 and result.relative_gap <= options.tol:
        why = "a gap within tol was enough"
    return f"; this answer is not proved to be: {why}"


def _fields_of_end(result: MapResult, reason: str, deadline: Deadline) -> dict[str, Any]:
    """Return the fields of a result that describe its end; a time limit is not an interruption."""
    if not deadline.expired:
        return {"reason": reason}
    if result.exact:  # the limit had no effect
        return {"reason": reason, "interrupted": False, "converged": True}
    return {"reason": deadline.added_to(reason), "interrupted": False, "converged": False}


def _search(field: Field, method: str, options: MapOptions) -> MapResult:
    """Return the answer of a method, with the bound of another method if it has none."""
    record = METHODS[method]
    options.watch.lap("set-up")
    try:
        result = options.deadline.run(record.run, field, options)
    except TimeUp:  # the limit was reached during the set-up
        result = options.not_begun(field, method)
    options.watch.lap("search")
    proved = result.relative_gap <= options.tol
    # Moves give only a trivial bound, so the relaxation computes a better one.
    if not (record.gives_bound or proved or result.interrupted):
        certified, _ = attempt(options.deadline.run, _certify, field, result, options)
        # None means that it ended during the set-up of the dual; the labelling is kept.
        result = replace(result, interrupted=True) if certified is None else certified
        options.watch.lap("bound")
    return result


def _affordable(field: Field, method: str) -> Iterator[str]:
    """Return the methods that "auto" tries next, which are affordable for the size of the field.

    Exact methods come first. If none of them ends, the other methods are tried.
    """
    exact = [name for name in _exact(field) if name != method]
    yield from exact
    if exact and METHODS[method].gives_way:
        yield method
    if numbers_of_a_pass(field) <= FEW_NUMBERS:
        for name, record in METHODS.items():
            if record.spare and name != method and record.obstacle(field) is None:
                yield name


def _exact(field: Field) -> Iterator[str]:
    """Return the exact methods that are affordable, the cheapest first."""
    if is_cheap(field):
        yield "elimination"
    if not field.is_submodular and METHODS["odd_cycles"].obstacle(field) is None:
        yield "odd_cycles"
    by_windows = METHODS["windows"].obstacle(field) is None
    if by_windows and field.n_labels > 2:
        yield "windows"
    elif not is_cheap(field) and (
        narrow(field) is None if is_hard(field) else is_affordable(field)
    ):
        yield "elimination"
    if by_windows:
        if field.n_labels == 2:
            yield "windows"
    elif METHODS["conditioning"].obstacle(field) is None:
        yield "conditioning"
    elif METHODS["branch_and_bound"].obstacle(field) is None:
        yield "branch_and_bound"


def _is_done(result: MapResult, options: MapOptions) -> bool:
    """Return whether no further search is needed or allowed."""
    if result.exact or result.interrupted or result.relative_gap <= options.tol:
        return True
    return options.deadline.expired or options.max_iter is not None


def _try_too(
    field: Field, method: str, options: MapOptions, result: MapResult
) -> tuple[MapResult, str]:
    """Return the best labelling and the best bound of a result and another search."""
    budget = _BUDGET_OF_ODD_CYCLES if method == "odd_cycles" else _BUDGET
    again = replace(options, known=result, rival=bool, budget=budget)
    found, _ = attempt(_search, field, method, again)
    if found is None:  # the search ended during its set-up; the earlier answer is kept
        return replace(result, interrupted=True), ""
    value, problem = min(found.value, result.value), options.problem
    if problem.costs_hide_digits(value, by_cut=METHODS[method].by_cut):
        found = _less_rounding(problem, found)
    best = options.better(result, found)
    if found.exact and best.exact and not result.exact:
        return best, "its answer is exact" if found.value < result.value else "it proves the answer"
    if found.value < result.value:
        return best, "its labelling is better"
    return best, "its bound is better" if best.bound > result.bound else ""


def _search_again(method: str, options: MapOptions, result: MapResult) -> MapResult:
    """Search again while this helps, each time with costs limited by the best value found."""
    near, by_cut = options.problem, METHODS[method].by_cut
    for _ in range(_AGAIN):
        if result.interrupted:
            break
        nearer = options.problem.limited_beside(result.value)
        again = replace(options, init=result.labels, problem=nearer)
        try:
            METHODS[method].check(nearer.field)
            found = _search(nearer.field, method, again)
        except ValueError:  # limiting a table can violate the condition of the method's moves
            break
        found = replace(found, n_iter=result.n_iter + found.n_iter)
        value = float(options.problem.field._energies(found.labels[None])[0])
        if found.value > result.value or value != found.value:
            break
        result, near = found, nearer
        if not near.costs_hide_digits(result.value, by_cut=by_cut):
            if result.exact or not near.costs_hide_digits(result.bound, by_cut=by_cut):
                return _remeasured(near, result)
            break
    return _less_rounding(near, result)


def _certify(field: Field, result: MapResult, options: MapOptions) -> MapResult:
    """Return the result of moves with a better bound.

    For pairs it is the bound of tree-reweighted messages. If the field is small enough for
    triangles and squares of tables to be factors, these may close the remaining gap. For terms of
    more variables, the relaxation replaces a table that is not Potts by a minorant, while the dual
    of messages uses the table itself. The labelling is never worse than the start.
    """
    if has_pairs_only(field):
        result = certify_by_trees(field, result, options, METHODS[result.method].run)
        done = result.interrupted or options.close_enough(result.value, result.bound)
        is_far = field.is_submodular or not is_within_tightening(field)
        if done or is_far or options.rival():
            return result
    elif field.is_submodular or METHODS["messages"].obstacle(field) is not None:
        return certify(field, result, options)
    limit = options.max_iter if has_pairs_only(field) else None
    dual = messages(field, replace(options, init=result.labels, max_iter=limit))
    better = options.better(result, dual)
    return replace(
        better,
        method=result.method,
        n_iter=result.n_iter,
        reason=result.reason,
        converged=result.converged,
    )


def _less_rounding(problem: Conditioned, result: MapResult) -> MapResult:
    """Return the result with a bound that is lowered by its possible rounding error."""
    bound = problem.less_rounding_of_costs(result.value, result.bound)
    share = relative_gap(result.value - bound, result.value - problem.floor)
    return replace(result, bound=bound, relative_gap=share, exact=bound == result.value)


def _remeasured(problem: Conditioned, result: MapResult) -> MapResult:
    """Return the result with its gap measured relative to the least entries of the given tables."""
    share = relative_gap(result.gap, result.value - problem.floor)
    return replace(result, relative_gap=share, exact=result.exact and share <= NEGLIGIBLE)
