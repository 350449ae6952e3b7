"""Approximate marginals and bounds on the partition function, by the method that fits a field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from setwise._foundation._arguments import (
    FloatArray,
    as_count,
    as_number,
)
from setwise._foundation._deadline import Deadline, TimeUp
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._interrupts import whole
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._methods import Method
from setwise._foundation._randomness import as_generator
from setwise._foundation._threads import as_threads
from setwise._foundation._timings import Stopwatch
from setwise.fields._field import Field, as_field
from setwise.inference._map._energy_scale import NEGLIGIBLE, trivial_of_tables
from setwise.inference._map._ground import ground
from setwise.inference._map._largest_energy import check_magnitude
from setwise.inference._map._reach import (
    digits_lost,
    rounding_of_prices,
    rounding_of_unaries,
    within_sight,
)
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._feasibility import UNKNOWN, feasible_bound, forbids
from setwise.inference._marginals._forest_bound import forest_bound
from setwise.inference._marginals._lower_bound import SWEEPS, TRIAL, Raised, raised_bound
from setwise.inference._marginals._methods import METHODS
from setwise.inference._marginals._not_begun import not_begun
from setwise.inference._marginals._options import Options, Solution
from setwise.inference._marginals._result import MarginalsProgress, MarginalsResult

SMALL_FIELD = 20_000  # entries of the unaries; beyond, the best labelling costs more than the bound
DType = str | type[Any] | np.dtype[Any]


@METHODS.describe
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
    r"""Approximate marginals of a field, and two bounds that log Z lies between.

    The distribution is :math:`P_t(x) = \exp(-E(x) / t) / Z_t` with :math:`Z_t = \sum_x \exp(-E(x) /
    t)`; ``temperature`` is t, and every log Z below is :math:`\log Z_t`. With shares
    :math:`\rho_e` of the edges, those of a mean of forests, an energy of pairs has the upper bound

    .. math:: \log Z_t \le \max_\mu \sum_i H(\mu_i) - \sum_e \rho_e I(\mu_e) - E(\mu) / t

    over marginals of variables and pairs that agree (``trees``; other terms enter by their Lovász
    extensions). ``projection`` has neither pairs nor shares: a submodular energy is
    :math:`E(x) = c + F(\{(i, x_i)\})` with F submodular on the pairs (variable, label); each point
    s of its base polytope B(F) gives an upper bound, and the best one a factorised distribution:

    .. math:: \log Z_t \le -c / t + \min_{s \in B(F)} \sum_i \log \sum_j \exp(-s_{ij} / t), \qquad
       p_{ij} \propto \exp(-s_{ij} / t)

    (equations (2) and (13) of Zhang, Djolonga and Krause, *Higher-Order Inference for Multi-class
    Log-supermodular Models*). Its dual is :math:`\min_p f(p) - t \sum_i H(p_i)`, f the Lovász
    extension: the relaxation of the MAP problem, smoothed (equation (9)).

    [methods]

    Parameters
    ----------
    field : Field
        Unaries plus potentials; ``+inf`` unaries have probability 0.
    method : str
        "auto" is elimination where that is cheap (forests, small narrow graphs), counts for two
        labels with functions of counts (both where no start is given), trees where there are pairs
        and all else is submodular, projection for other submodular energies, belief_propagation
        where tables forbid labellings, else mean_field; the result says which and why.
    tol : float
        Stop when ``relative_gap`` is at most this; mean field and belief propagation stop when no
        probability, or message, moves by more.
    max_iter : int, optional
        The most passes, or samples; by default 10,000, less for methods without a certificate.
    time_limit : float, optional
        The most seconds: then the search ends with the best so far, bounds that hold, and
        ``reason`` says so. The answer then depends on the machine and on what else it does; without
        a limit, or within it, it does not. Not cut short: one step of setting a method up, and the
        sums that the bounds of the answer are. 0 gives the unaries' probabilities.
    temperature : float
        t > 0.
    init : MarginalsResult, optional
        A result for a field like this one (other unaries, other weights) to go on from. Projection
        goes on from a projection's blocks, trees from messages of trees or from any probabilities,
        as mean field and Frank-Wolfe do. "auto" begins afresh where that is all that there is, of a
        result without blocks.
    n_jobs : int, optional
        Threads; None for all cores. The answer does not depend on it, to the last bit.
    rng : optional
        The noise of ``perturb``; nothing else is random.
    dtype : {"float64", "float32"}
        Of the state of ``projection`` and ``trees``, and of ``probabilities``; numpy's types do
        too. float32 halves the memory of the state, and reaches a relative gap of about 1e-6; the
        bounds hold all the same: all sums are in double precision, and the last pass of
        ``projection``; the messages of ``trees`` are rounded up.
    verbose : bool
        Show value, bound, gap and seconds on stderr: a bar in a terminal or a notebook (with rich),
        else lines.
    callback : callable, optional
        Called with a ``MarginalsProgress`` after each pass (level of cuts, sample); the search
        stops when it returns a true value.

    Returns
    -------
    MarginalsResult
        ``probabilities``, ``log_partition_upper``, ``log_partition_lower``, ``width``, ``gap``,
        ``relative_gap``, ``entropy``, ``n_iter``, ``converged``, ``method``, ``reason``,
        ``timings``. Ctrl-C ends the search too, with what it has; before the first pass (while a
        method is set up, or in the first sample of ``perturb``) it raises ``KeyboardInterrupt`` as
        usual.

    Notes
    -----
    Memory, in arrays of N L numbers: at most 3 G + 6 of ``dtype`` for ``projection``, G the number
    of groups of disjoint blocks (rows, columns, one a layer of regions), of which G + 1 stay in the
    result; after that about 8 float64 ones for the last pass of float32, and for the lower bound.

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
    check_display(verbose, callback)
    deadline, watch = Deadline.of(time_limit), Stopwatch()
    if verbose:
        with progress_callback(True, tol, callback, what="marginals") as shown:
            return marginals(
                field,
                method,
                tol=tol,
                max_iter=max_iter,
                time_limit=deadline.inherited,
                temperature=temperature,
                init=init,
                n_jobs=n_jobs,
                rng=rng,
                dtype=dtype,
                callback=shown,
            )
    field = as_field(field)
    method = METHODS.read(method)
    parts = ground(field)
    problem = parts.field
    reason = "asked for"
    if method == "auto":
        method, reason = METHODS.choose(problem, started=init is not None)
        if method == "projection" and isinstance(init, MarginalsResult) and init.method != method:
            _as_start(init, field, METHODS[method])  # says what is wrong with it
            init = None  # it has no blocks to go on from
            method, reason = METHODS.choose(problem)
    else:
        METHODS[method].check(problem)
    record = METHODS[method]
    start, state = _as_start(init, field, record)
    options = Options(
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
    offset, margin = parts.over(options.temperature)
    options = replace(options, offset=offset, margin=margin, from_below=not record.gives_bound)
    problem, lost = _within_sight(problem, options)
    watch.lap("set-up")
    of = record.of
    try:
        solution = deadline.run(record.run, problem, options)
    except TimeUp:  # while it was set up
        solution = not_begun(problem, options, gives_bound=record.gives_bound)
        of = f"the {'unaries alone' if start is None else 'start'}: there was no time for more"
    if reason != "asked for" and method == "counts" and not solution.converged:
        other = _by_trees(problem, solution, options)
        if other.upper < solution.upper:
            method, solution, of = "trees", other, METHODS["trees"].of
            reason = "counts did not converge: trees have the lower bound"
        else:
            solution = replace(solution, interrupted=other.interrupted)
    watch.lap("search")
    below, interrupted = Raised(solution.lower, solution.probabilities), solution.interrupted
    if below.bound == -np.inf:
        below, interrupted = _lower_bound(problem, solution, options)
        watch.lap("bound")
    relative_gap = solution.relative_gap + lost
    converged = solution.converged and not (record.certified and relative_gap > options.tol)
    if below.bound == -np.inf and forbids(problem) and not interrupted:
        found = [below, Raised(-np.inf, solution.probabilities)]
        known = feasible_bound(problem, options.temperature, found)
        if known is None:
            reason, converged = f"{reason}; {UNKNOWN}", False
        else:
            below = known
    probabilities, of_lower = (
        _allowed(p.astype(np.float64), problem) if p[np.isinf(problem.unary)].any() else p
        for p in (solution.probabilities, below.probabilities)
    )  # a label's price may have been too small
    return MarginalsResult(
        probabilities=probabilities.astype(options.dtype, copy=False),
        log_partition_upper=options.above(solution.upper + lost),
        log_partition_lower=options.below(below.bound - lost),
        excess=solution.gap + lost,
        relative_gap=relative_gap,
        n_iter=solution.n_iter,
        converged=converged,
        certified=record.certified,
        method=method,
        reason=deadline.added_to(reason) if interrupted else reason,
        temperature=options.temperature,
        history=[options.told(value) for value in solution.history],
        interrupted=interrupted and not deadline.struck,
        state=solution.state,
        timings=watch.timings("answer"),
        shape=field.shape,
        of=of,
        lower_probabilities=of_lower.astype(options.dtype, copy=False),
    )


def _by_trees(field: Field, solution: Solution, options: Options) -> Solution:
    """What trees have where a search of counts ended by itself; where they cannot say, that one.

    Cold and strong functions of counts have steep bounds, in which its steps get stuck.
    """
    trees = METHODS["trees"]
    if solution.interrupted or options.max_iter is not None or trees.obstacle(field) is not None:
        return solution
    try:
        return options.deadline.run(trees.run, field, options)
    except (TimeUp, KeyboardInterrupt):  # while they were set up
        return replace(solution, interrupted=True)


def _lower_bound(field: Field, solution: Solution, options: Options) -> tuple[Raised, bool]:
    """The lower bound on log Z from the probabilities found, and whether anything was cut short."""
    q = _allowed(solution.probabilities.astype(np.float64, copy=False), field)
    t, n_threads = options.temperature, options.n_threads

    def raised(sweeps: int) -> Raised:
        if solution.strengths is None:
            return raised_bound(field, q, t, n_threads, sweeps=sweeps, upper=solution.upper)
        labels = None
        if sweeps and q.size <= SMALL_FIELD:
            labels = whole(solve_map(field, tol=np.inf, n_jobs=n_threads)).labels
        if not sweeps or not len(solution.strengths):
            return raised_bound(field, q, t, n_threads, sweeps=sweeps, labels=labels)
        best = raised_bound(field, q, t, n_threads, sweeps=TRIAL, labels=labels)
        forest = forest_bound(
            field,
            best.probabilities,
            t,
            solution.strengths,
            sweeps=sweeps,
            n_threads=n_threads,
            upper=solution.upper,
        )
        if forest.bound > best.bound:
            return forest
        more = raised_bound(field, best.probabilities, t, n_threads, sweeps=sweeps)
        return max(best, more, key=lambda one: one.bound)

    if solution.interrupted:
        try:
            return raised(0), True
        except KeyboardInterrupt:
            return Raised(-np.inf, q), True
    try:
        return options.deadline.run(raised, SWEEPS), False
    except TimeUp:
        return raised(0), True
    except KeyboardInterrupt:
        return Raised(-np.inf, q), True


def _within_sight(field: Field, options: Options) -> tuple[Field, float]:
    """The field without prices whose rounding is seen in log Z, and what is left of it, in nats."""
    t = options.temperature
    rounding = max(rounding_of_prices(field), rounding_of_unaries(field))
    if rounding <= NEGLIGIBLE * t:
        return field, 0.0
    limit = options.deadline.inherited  # any labelling will do
    found = solve_map(field, tol=np.inf, n_jobs=options.n_threads, time_limit=limit)
    value = whole(found).value
    if rounding <= NEGLIGIBLE * (value - trivial_of_tables(field)):
        return field, 0.0
    near = within_sight(field, t, value)
    return near, digits_lost(near) / t


def _as_dtype(dtype: object) -> str:
    """The name of a dtype that is given by name, by numpy's type or by a dtype object."""
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
    """Probabilities and state to go on from."""
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
    state = init.state if init.method == record.name else None  # blocks are no messages
    return _allowed(np.array(init.probabilities, np.float64), field), state


def _allowed(q: FloatArray, field: Field) -> FloatArray:
    """q without the labels that the field forbids, rows summing to 1 in double precision."""
    q = np.where(np.isfinite(field.unary), q, 0.0)
    total = q.sum(axis=1, keepdims=True)
    q = np.where(total > 0, q, np.isfinite(field.unary))
    q /= q.sum(axis=1, keepdims=True)
    return q
