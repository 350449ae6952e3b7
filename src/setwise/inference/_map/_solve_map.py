"""The best labelling of a field, by the method that fits it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

from numpy.typing import ArrayLike

from setwise._foundation._deadline import Deadline, TimeUp
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import is_heard
from setwise._foundation._timings import Stopwatch
from setwise.fields._field import Field, as_field
from setwise.inference._map._convex import certify
from setwise.inference._map._energy_scale import EnergyScale
from setwise.inference._map._ground import difference_below, ground, without_hopeless
from setwise.inference._map._junction_tree import is_cheap
from setwise.inference._map._messages._bound_ascent import is_within_tightening
from setwise.inference._map._messages._messages import messages
from setwise.inference._map._messages._tree_bound import certify_by_trees, has_pairs_only
from setwise.inference._map._methods import METHODS
from setwise.inference._map._moves._cut import cut_at_once
from setwise.inference._map._options import MapOptions
from setwise.inference._map._reach import (
    Doubt,
    out_of_reach,
    remeasured,
    within_reach,
    without_lost_digits,
)
from setwise.inference._map._result import MapProgress, MapResult

# The most searches with prices cut down: each finds at least the labelling of the one before.
_AGAIN = 4


@METHODS.describe
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
    r"""The labelling of least energy, as far as it can be found, with a bound on every other.

    [methods]

    Parameters
    ----------
    field : Field
        Unaries plus potentials; ``+inf`` unaries are never chosen.
    method : str
        "auto" takes the first of the table that fits (enumerate only where labellings are few,
        elimination where it costs less than a search), and elimination again where that has left a
        gap and the graph is narrow; the result says which and why.
    tol : float
        Stop when ``relative_gap`` is at most this: the gap's share of what there was to gain, which
        no constant and no unit changes. With ``tol=inf`` any labelling of a local optimum will do,
        and moves skip the search for a bound beyond the trivial one.
    max_iter : int, optional
        The most rounds: sweeps over the labels for moves, passes for relaxations and messages, also
        where these give the bound of moves. By default such passes end when the bound's rise,
        extrapolated, cannot reach ``tol`` and closes next to nothing of the gap; with
        ``max_iter`` they do not.
    time_limit : float, optional
        The most seconds: then the search ends with the best so far, a bound that holds, and
        ``reason`` says so. The answer then depends on the machine and on what else it does; without
        a limit, or within it, it does not. Kernels and searches look at the clock many times a
        second; one step of setting a method up is not cut short. 0 gives the start's answer.
    init : array of shape (N,), optional
        Where moves start; elsewhere a labelling to beat. "enumerate", which meets all labellings,
        checks it and makes no use of it.
    n_jobs : int, optional
        Threads; None for all cores. The answer does not depend on it.
    rng : optional
        Order of the moves, and the forests that messages relabel; None for the order of the
        labels and a fixed seed, so that a call gives the same answer every time.
    verbose : bool
        Show value, bound, gap and seconds on stderr: a bar in a terminal or a notebook (with rich),
        else lines.
    callback : callable, optional
        Called with a ``MapProgress`` each round; the search stops when it returns a true value.

    Returns
    -------
    MapResult
        ``labels``, ``value``, ``bound``, ``gap``, ``exact``, ``method``, ``reason``,
        ``timings``. Ctrl-C ends the search too, with the best so far and ``interrupted`` True;
        while a method is set up, or its answer is written down, it raises ``KeyboardInterrupt`` as
        usual.

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
    check_display(verbose, callback)
    deadline, watch = Deadline.of(time_limit), Stopwatch()
    if verbose:
        with progress_callback(True, tol, callback, what="solve_map") as shown:
            return solve_map(
                field,
                method,
                tol=tol,
                max_iter=max_iter,
                time_limit=deadline.inherited,
                init=init,
                n_jobs=n_jobs,
                rng=rng,
                callback=shown,
            )
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
            told = _told(best, reason, deadline)
            return replace(best, timings=watch.timings("answer"), shape=field.shape, **told)
    parts = ground(field)
    grounded = parts.field
    problem = without_hopeless(grounded)
    options = read(problem, offset=parts.constant if is_heard(callback) else 0.0)
    chosen = method == "auto"
    if chosen:
        method, reason = METHODS.choose(problem)
    else:
        METHODS[method].check(problem)
        reason = "asked for"
    record = METHODS[method]
    if is_heard(callback):
        options = replace(options, doubt=Doubt.of(problem, by_cut=record.by_cut))
    result = _search(problem, method, options)
    if not record.adds_paid_only and out_of_reach(problem, result.value, by_cut=record.by_cut):
        result = _search_again(problem, method, options, result)
    elif not result.exact and out_of_reach(problem, result.bound, by_cut=record.by_cut):
        result = without_lost_digits(problem, result)
    if chosen and method != "elimination" and _is_worth_eliminating(problem, result, options):
        found = _search(problem, "elimination", options)
        if found.exact and not out_of_reach(problem, found.value, by_cut=False):
            result = found
            reason = (
                f"{method} left a gap, and the graph is narrow: elimination is exact, and cheap"
            )
        else:
            result = replace(result, interrupted=found.interrupted)
    if result.reason and result.relative_gap > options.tol:
        reason = f"{reason}; {result.reason}"
    if problem is not grounded:
        # Only a start that nothing better was found than may pay a price that was cut down.
        value = float(grounded._energies(result.labels[None])[0])
        if value != result.value:
            result = replace(result, value=value, exact=False)
            result = options.improved(result, result.bound, False)
    told = _told(result, reason, deadline)
    if grounded is not field:
        value = float(field._energies(result.labels[None])[0])
        bound = difference_below(value, result.gap)
        if value == inf:  # cut short before a labelling that nothing forbids was met
            bound = difference_below(result.bound, -parts.constant)
        told |= {"value": value, "bound": bound}
    return replace(result, timings=watch.timings("answer"), shape=field.shape, **told)


def _told(result: MapResult, reason: str, deadline: Deadline) -> dict[str, Any]:
    """What the result says of its end; that by the time limit is no interruption."""
    if not deadline.struck:
        return {"reason": reason}
    if result.exact:  # it came too late to take anything away
        return {"reason": reason, "interrupted": False, "converged": True}
    return {"reason": deadline.added_to(reason), "interrupted": False, "converged": False}


def _search(field: Field, method: str, options: MapOptions) -> MapResult:
    """The answer of a method, with the bound of another where it has none of its own."""
    record = METHODS[method]
    options.watch.lap("set-up")
    try:
        result = options.deadline.run(record.run, field, options)
    except TimeUp:  # while it was set up
        result = options.not_begun(field, method)
    options.watch.lap("search")
    proved = options.close_enough(result.value, result.bound)
    # Moves find labels and prove little: the relaxation supplies the bound.
    if not (record.gives_bound or proved or result.interrupted):
        try:
            result = options.deadline.run(_certify, field, result, options)
        except KeyboardInterrupt:  # while the dual is set up: the labelling stands
            result = replace(result, interrupted=True)
        options.watch.lap("bound")
    return result


def _is_worth_eliminating(field: Field, result: MapResult, options: MapOptions) -> bool:
    """Whether what a search has left open is closed by elimination at little cost."""
    if result.exact or result.interrupted or result.relative_gap <= options.tol:
        return False
    return not options.deadline.struck and options.max_iter is None and is_cheap(field)


def _search_again(field: Field, method: str, options: MapOptions, result: MapResult) -> MapResult:
    """The search without the prices that the labelling puts out of reach, as long as that helps."""
    within, by_cut = field, METHODS[method].by_cut
    for _ in range(_AGAIN):
        if result.interrupted:
            break
        nearer = within_reach(field, result.value)
        again = replace(options, init=result.labels, scale=EnergyScale.of(nearer))
        if is_heard(options.callback):
            again = replace(again, doubt=Doubt.of(nearer, by_cut=by_cut))
        try:
            METHODS[method].check(nearer)
            found = _search(nearer, method, again)
        except ValueError:  # a table that was cut down may not be one for the method's moves
            break
        found = replace(found, n_iter=result.n_iter + found.n_iter)
        if found.value > result.value or field._energies(found.labels[None])[0] != found.value:
            break
        result, within = found, nearer
        if not out_of_reach(within, result.value, by_cut=by_cut):
            if result.exact or not out_of_reach(within, result.bound, by_cut=by_cut):
                return remeasured(within, result)
            break
    return without_lost_digits(within, result)


def _certify(field: Field, result: MapResult, options: MapOptions) -> MapResult:
    """The result of moves with a bound that is better than theirs.

    For pairs that of tree-reweighted messages. Where the field is small enough for triangles and
    squares of tables to be factors, these may close what is left of the gap. For terms of more
    variables the relaxation sees a table that is not Potts through a minorant; the dual of messages
    sees the table itself. No labelling of theirs is worse than the one they start from.
    """
    if has_pairs_only(field):
        result = certify_by_trees(field, result, options, METHODS[result.method].run)
        done = result.interrupted or options.close_enough(result.value, result.bound)
        if done or field.is_submodular or not is_within_tightening(field):
            return result
    elif field.is_submodular or METHODS["messages"].obstacle(field) is not None:
        return certify(field, result, options)
    limit = options.max_iter if has_pairs_only(field) else None
    dual = messages(field, replace(options, init=result.labels, max_iter=limit))
    better = replace(
        result, labels=dual.labels, value=dual.value, bound=dual.bound, exact=dual.exact
    )
    return options.improved(better, result.bound, dual.interrupted)
