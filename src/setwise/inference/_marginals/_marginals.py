"""Approximate marginals and bounds on the partition function, by a suitable method."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from math import inf, log
from typing import Any

import numpy as np

from setwise._foundation._arguments import FloatArray, as_count, as_generator, as_number
from setwise._foundation._certificate import EPS, gap_over_value
from setwise._foundation._clock import Deadline, Stopwatch, TimeUp
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._methods import Method
from setwise._foundation._progress import displayed
from setwise._foundation._search import attempt, completed
from setwise._foundation._threads import as_threads
from setwise._foundation._warnings import callers_level
from setwise.fields._field import Field, as_field
from setwise.inference._conditioning._conditioned import Conditioned
from setwise.inference._conditioning._magnitude import (
    NEGLIGIBLE,
    check_magnitude,
    rounding_of,
    rounding_of_bound,
    rounding_of_costs,
    rounding_of_logs,
    trivial_bound,
)
from setwise.inference._map._junction_tree import is_affordable, named
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._elimination import UNKNOWN, elimination, feasible_bound, forbids
from setwise.inference._marginals._lower_bound import Raised, raised_bound
from setwise.inference._marginals._methods import METHODS, Run
from setwise.inference._marginals._result import MarginalsProgress, MarginalsResult
from setwise.inference._marginals._search import MarginalsOptions, MarginalsSolution, allowed
from setwise.inference._marginals._trees._forest_bound import lower_bound

# An interval whose width is above this share of the possible entropy counts as wide. On 16 x 16
# grids of random tables, the marginals of ``trees`` still distinguish certain from uncertain
# variables, and the width is below 0.22 of the entropy. On spin glasses with weights of 2 and more,
# all marginals are near 1/2, and the width is above 0.4.
_WIDE = 0.25
# The number of rounding errors that an exact interval of log Z may have at each end: those of the
# sums and of a constant. Not tuned.
_ROUNDINGS = 4.0
CROSSED = "the interval of the samples ends below log Z, so that no upper bound is known"
DType = str | type[Any] | np.dtype[Any]


@METHODS.describe
@displayed("marginals")
@hints_at_names
def marginals(
    field: Field,
    method: str = "auto",
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    time_limit: float | None = None,
    temperature: float = 1.0,
    init: MarginalsResult | None = None,
    n_jobs: int | None = None,
    rng: object = None,
    dtype: DType = "float64",
    verbose: bool = False,
    callback: Callable[[MarginalsProgress], object] | None = None,
) -> MarginalsResult:
    r"""Compute approximate marginals of a field, and two bounds that log Z lies between.

    The distribution is :math:`P_t(x) = \exp(-E(x) / t) / Z_t` with :math:`Z_t = \sum_x \exp(-E(x) /
    t)`; ``temperature`` is t, and every log Z below is :math:`\log Z_t`. With shares
    :math:`\rho_e` of the edges, those of a mean of forests, an energy of pairs has the upper bound

    .. math:: \log Z_t \le \max_\mu \sum_i H(\mu_i) - \sum_e \rho_e I(\mu_e) - E(\mu) / t

    over consistent marginals of variables and pairs (``trees``; other terms enter by their Lovász
    extensions). ``projection`` has neither pairs nor shares: a submodular energy is :math:`E(x) = c
    + F(\{(i, x_i)\})` with F submodular on the pairs (variable, label); each point s of its base
    polytope B(F) gives an upper bound, and the best one a factorised distribution:

    .. math:: \log Z_t \le -c / t + \min_{s \in B(F)} \sum_i \log \sum_j \exp(-s_{ij} / t), \qquad
       p_{ij} \propto \exp(-s_{ij} / t)

    (equations (2) and (13) of Zhang, Djolonga and Krause, *Higher-Order Inference for Multi-class
    Log-supermodular Models*). Its dual is :math:`\min_p f(p) - t \sum_i H(p_i)` with the Lovász
    extension f, which is the smoothed relaxation of the MAP problem (equation (9)).

    [methods]

    Parameters
    ----------
    field : Field
        Unaries plus potentials; ``+inf`` unaries have probability 0.
    method : str
        "auto" is elimination if that is cheap (forests, small graphs of small treewidth) and no
        start is given, counts for two labels with functions of counts if no start is given, trees
        if there are pairs and all other terms are submodular, projection for other submodular
        energies, belief_propagation if tables forbid labellings, and mean_field otherwise. The
        result names the method and the reason.
    tol : float
        Stop when ``relative_gap`` is at most this; mean field and belief propagation stop when no
        probability, or message, changes by more.
    max_iter : int, optional
        The largest number of passes, or samples; by default 10,000, fewer for methods without a
        certificate.
    time_limit : float, optional
        The largest number of seconds. The search then ends with the best answer so far and valid
        bounds, and ``reason`` says so. Only if the limit ends the search does the answer depend on
        the machine and its load. The limit does not interrupt a step of the set-up of a method or
        the sums for the bounds of the answer. With 0 the result has the probabilities of the
        unaries.
    temperature : float
        t > 0.
    init : MarginalsResult, optional
        A result for a similar field (other unaries, other weights) as a warm start. Projection
        continues from the blocks of a projection, trees from messages of trees or from any
        probabilities, as mean field and Frank-Wolfe do. "auto" ignores a result without blocks if
        it chooses a method that needs them.
    n_jobs : int, optional
        The number of threads; None for all cores. The answer does not depend on it, to the last
        bit.
    rng : optional
        The source of the noise of ``perturb``; no other method is random.
    dtype : {"float64", "float32"}
        The type of the state of ``projection`` and ``trees``, and of ``probabilities``; numpy's
        types are accepted too. float32 halves the memory of the state, and reaches a relative gap
        of about 1e-6. The bounds still hold: all sums and the last pass of ``projection`` are in
        double precision, and the messages of ``trees`` are rounded up.
    verbose : bool
        Show value, bound, gap and seconds on stderr: a bar in a terminal or a notebook (with rich),
        else lines.
    callback : callable, optional
        Called with a ``MarginalsProgress`` after each pass (level of cuts, sample); a true return
        value stops the search.

    Returns
    -------
    MarginalsResult
        ``probabilities``, ``log_partition_upper``, ``log_partition_lower``, ``width``, ``gap``,
        ``relative_gap``, ``exact``, ``entropy``, ``n_iter``, ``converged``, ``method``, ``reason``,
        ``timings``. Ctrl-C also ends the search with the best answer so far; before the first pass
        (in the set-up of a method, or in the first sample of ``perturb``) it raises
        ``KeyboardInterrupt``.

    Warns
    -----
    UserWarning
        If "auto" chose a method whose search ended by itself and whose bounds are proved, but
        ``width`` is at least 2 nats (then ``total_variation`` is 1) and more than a quarter of the
        possible entropy, the sum over variables of the logarithm of the number of their allowed
        labels. The probabilities may then be uninformative. Python shows the warning once per line
        of code.

    Notes
    -----
    Memory in arrays of N L numbers is at most 3 G + 6 of ``dtype`` for ``projection``, where G is
    the number of groups of disjoint blocks (rows, columns, one per layer of regions). G + 1 of
    these remain in the result. The last pass of float32 and the lower bound then use about 8
    float64 arrays.

    Examples
    --------
    >>> import setwise as sw
    >>> field = sw.fields.Field([[0, 2], [1, 0], [0, 2], [2, 0], [2, 0]])
    >>> field = field + sw.fields.Potts([[0, 1], [1, 2], [2, 3], [3, 4]], 0.75)
    >>> post = sw.marginals(field, tol=1e-6)
    >>> post.probabilities[:, 1].round(2).tolist()  # a chain: exact
    [0.14, 0.5, 0.23, 0.88, 0.92]
    >>> round(post.log_partition_lower, 2), round(post.log_partition_upper, 2)
    (-0.66, -0.66)
    >>> flat = sw.marginals(field, "projection", tol=1e-6)
    >>> flat.probabilities[:, 1].round(2).tolist()
    [0.22, 0.38, 0.38, 0.84, 0.84]
    >>> round(flat.log_partition_lower, 2), round(flat.log_partition_upper, 2)
    (-0.76, -0.19)
    """
    deadline, watch = Deadline.of(time_limit), Stopwatch()
    field = as_field(field)
    method = METHODS.read(method)
    conditioned = Conditioned.of(field)
    problem = conditioned.field
    chosen, reason = method == "auto", "asked for"
    if chosen:
        method, reason = METHODS.choose(problem, started=init is not None)
        if method == "projection" and isinstance(init, MarginalsResult) and init.method != method:
            _as_start(init, field, METHODS[method])  # raises if the start is invalid
            init = None  # the start has no blocks that this method could continue from
            method, reason = METHODS.choose(problem)
    else:
        named(METHODS[method]).check(problem)
    record = METHODS[method]
    start, state = _as_start(init, field, record)
    options = MarginalsOptions(
        tol=as_number(tol, "tol", nonnegative=True),
        max_iter=None if max_iter is None else as_count(max_iter, "max_iter"),
        temperature=as_number(temperature, "temperature", positive=True, smallest=0.0),
        n_threads=as_threads(n_jobs),
        dtype=_as_dtype(dtype),
        callback=callback,
        start=start,
        state=state,
        random=as_generator(rng),
        deadline=deadline,
        watch=watch,
    )
    check_magnitude(field, options.temperature, options.dtype)
    offset, margin = conditioned.constant_over(options.temperature)
    options = replace(options, offset=offset, margin=margin, from_below=not record.gives_bound)
    problem, lost = with_limited_costs(conditioned, options)
    watch.lap("set-up")
    of = record.of
    try:
        solution = deadline.run(record.run, problem, options)
    except TimeUp:  # the limit was reached during the set-up
        solution = _not_begun(problem, options, gives_bound=record.gives_bound)
        of = f"the {'unaries alone' if start is None else 'start'}: there was no time for more"
    if chosen and record.falls_back and not solution.converged:
        other = _fallen_back(METHODS[record.falls_back], problem, solution, options)
        if other.upper < solution.upper:
            reason = f"{method} did not converge: {record.falls_back} have the lower bound"
            method, solution, of = record.falls_back, other, METHODS[record.falls_back].of
        else:
            solution = replace(solution, cut_short=other.cut_short)
    watch.lap("search")
    below, cut_short = Raised(solution.lower, solution.probabilities), solution.cut_short
    if below.bound == -np.inf:
        below, cut_short = lower_bound(problem, solution, options)
        watch.lap("bound")
    width = solution.upper - below.bound
    may_go_on = chosen and init is None and max_iter is None and not cut_short
    if may_go_on and _is_wide(width, problem) and is_affordable(problem):
        found, cut_short = attempt(deadline.run, elimination, problem, options)
        if found is not None:
            reason = f"{method} left an interval of {width:.3g} nats, and elimination is affordable"
            method, record, solution = "elimination", METHODS["elimination"], found
            of, below = record.of, Raised(solution.lower, solution.probabilities)
        watch.lap("search")
    excess, relative_gap = solution.gap + lost, solution.relative_gap + lost
    converged = solution.converged and not (record.certified and relative_gap > options.tol)
    if below.bound == -np.inf and forbids(problem) and not cut_short:
        found = [below, Raised(-np.inf, solution.probabilities)]
        known = feasible_bound(problem, options.temperature, found)
        if known is None:
            reason, converged = f"{reason}; {UNKNOWN}", False
        else:
            below = known
    upper, lower = options.above(solution.upper + lost), options.below(below.bound - lost)
    if lower > upper and not record.certified:  # the lower bound is proved
        reason, converged = f"{reason}; {CROSSED}", False
        upper = excess = relative_gap = inf
    t = options.temperature
    # Large numbers must not make an interval count as exact. So constants and large costs are
    # removed, and rounding errors are limited by the entropy of all labellings.
    width = (solution.upper + lost) - (below.bound - lost)
    rounding = 2.0 * lost + _ROUNDINGS * rounding_of_logs(problem, t)
    negligible = NEGLIGIBLE * max(1.0, field.n_variables * np.log(field.n_labels))
    probabilities, of_lower = (
        allowed(p.astype(np.float64), problem) if p[np.isinf(problem.unary)].any() else p
        for p in (solution.probabilities, below.probabilities)
    )  # a reduced cost may have been too small
    post = MarginalsResult(
        probabilities=probabilities.astype(options.dtype, copy=False),
        log_partition_upper=upper,
        log_partition_lower=lower,
        excess=excess,
        relative_gap=relative_gap,
        n_iter=solution.n_iter,
        converged=converged,
        certified=record.certified,
        method=method,
        reason=deadline.added_to(reason) if cut_short else reason,
        temperature=t,
        history=[options.outwards(value) for value in solution.history],
        interrupted=cut_short and not deadline.expired,
        state=solution.state,
        timings=watch.timings("answer"),
        shape=field.shape,
        of=of,
        lower_probabilities=of_lower.astype(options.dtype, copy=False),
        exact=bool(record.certified and width <= min(rounding, negligible)),
    )
    if chosen:
        _warn_if_wide(post, problem)
    return post


def _warn_if_wide(post: MarginalsResult, field: Field) -> None:
    """Warn if a search that ended by itself has a wide interval for log Z.

    The interval is then so wide that ``total_variation`` is 1, and wider than a share of the
    entropy that the labels which are not forbidden could have.
    """
    if post.certified and post.converged and _is_wide(post.width, field):
        warnings.warn(
            f"the probabilities may say little about the field: {post.method} knows log Z within "
            f"{post.width:.3g} nats only, and the entropy of all labellings is at most "
            f"{_possible_entropy(field):.3g}; compare with sample(field, n), or with "
            "method='elimination' where the graph is narrow",
            UserWarning,
            stacklevel=callers_level(),
        )


def _is_wide(width: float, field: Field) -> bool:
    """Return whether the total variation is 1 and the interval a large share of the entropy."""
    return not (width < 2.0 or width <= _WIDE * _possible_entropy(field))


def _possible_entropy(field: Field) -> float:
    """Return the entropy that the labels which are not forbidden could have."""
    return float(np.log(np.isfinite(field.unary).sum(axis=1)).sum())


def _fallen_back(
    other: Method[Run], field: Field, solution: MarginalsSolution, options: MarginalsOptions
) -> MarginalsSolution:
    """Return the answer of another method, or the current one if the other has none.

    With strong functions of counts or low temperatures, bounds are steep, and the steps of
    ``counts`` become too short.
    """
    if solution.cut_short or options.max_iter is not None or other.obstacle(field) is not None:
        return solution
    found, cut_short = attempt(options.deadline.run, other.run, field, options)
    return replace(solution, cut_short=cut_short) if found is None else found


def _not_begun(field: Field, options: MarginalsOptions, *, gives_bound: bool) -> MarginalsSolution:
    r"""Return the answer of a search that the time limit ended before it began.

    Let :math:`\ell` be the sum of the least values of all terms except unaries. Then

    .. math:: \log Z_t \le \sum_i \log \sum_j \exp(-u_{ij} / t) - \ell / t,

    and :math:`H(Q) - E_Q[E] / t` is below it, where Q is the start, or the distribution of the
    unaries alone. The least bound of a method lies between log Z and this one, so their distance is
    a gap.
    """
    t = options.temperature
    least = field._favourites().least
    scores: FloatArray = (least[:, None] - field.unary) / t
    weights = np.exp(scores)
    sums = weights.sum(axis=1, keepdims=True)
    start = weights / sums if options.start is None else options.start
    lower = raised_bound(field, start, t, options.n_threads, sweeps=0).bound
    upper = inf
    if gives_bound:
        terms = trivial_bound(field) - float(least.sum())
        magnitude = float(np.log(sums).sum()) + (float(np.abs(least).sum()) + abs(terms)) / t
        upper = float(np.log(sums).sum()) - trivial_bound(field) / t
        upper += 4.0 * EPS * (field.n_variables + 1) * magnitude  # rounding errors of the sums
        # Rounding errors of the arguments of logarithms.
        upper += (4.0 + field.n_labels) * EPS * field.n_variables
    gap = upper - lower
    return MarginalsSolution(
        probabilities=start,
        upper=upper,
        gap=gap,
        relative_gap=gap_over_value(gap, upper) if gap < inf else inf,
        n_iter=0,
        converged=False,
        cut_short=True,
        history=[upper] if gives_bound else [lower],
        lower=lower,
    )


def with_limited_costs(problem: Conditioned, options: MarginalsOptions) -> tuple[Field, float]:
    r"""Limit costs whose rounding would change log Z.

    Let E be the energy of a labelling and b the sum of the least values of all terms. All
    labellings that incur a cost of at least :math:`E - b + t (N \log L + 745)` have together a
    share of less than :math:`e^{-745}` of Z. Costs above this value are lowered to it, which raises
    Z by at most this share. Return the field, and the nats by which rounding may still change its
    log Z.
    """
    t, field = options.temperature, problem.field
    rounding = max(rounding_of_costs(field), rounding_of(field._favourites().largest))
    if rounding <= NEGLIGIBLE * t:
        return field, 0.0
    limit = options.deadline.inherited  # the energy of any labelling is sufficient
    found = solve_map(field, tol=np.inf, n_jobs=options.n_threads, time_limit=limit)
    excess = completed(found).value - problem.floor
    if rounding <= NEGLIGIBLE * excess:
        return field, 0.0
    nats = field.n_variables * log(field.n_labels) + 745.0
    near = problem.limited(excess + t * nats, keep_submodular=True).field
    return near, rounding_of_bound(near) / t


def _as_dtype(dtype: object) -> str:
    """Return the name of a dtype that is given by name, by numpy's type or by a dtype object."""
    if not isinstance(dtype, str | type | np.dtype):
        raise TypeError(f"dtype must be a string or a numpy dtype, got {type(dtype).__name__}")
    for name in ("float64", "float32"):
        if dtype in (name, np.dtype(name).type) or (
            isinstance(dtype, np.dtype) and dtype == np.dtype(name)
        ):
            return name
    raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")


def _as_start(
    init: object, field: Field, record: Method[Any]
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the probabilities and the state of a start, after checking that they fit."""
    if init is None:
        return None, None
    if not isinstance(init, MarginalsResult):
        raise TypeError(f"init must be a MarginalsResult, got {type(init).__name__}")
    if not record.takes_start:
        raise ValueError(f"init must be None for {record.name}, which starts afresh")
    shape = field.unary.shape
    if init.probabilities.shape != shape:
        raise ValueError(
            f"init must be for a field of shape {shape}, got {init.probabilities.shape}"
        )
    for name in ("probabilities", "state"):
        array = getattr(init, name)
        if array is not None and not np.isfinite(array).all():
            raise ValueError(f"init must have finite {name}, got nan or inf in them")
    state = (
        init.state if init.method == record.name else None
    )  # the state of another method is of another kind
    return allowed(np.array(init.probabilities, np.float64), field), state
