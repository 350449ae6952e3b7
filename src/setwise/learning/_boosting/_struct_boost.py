"""Boosting for structured outputs: column generation over cutting planes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array

from setwise._foundation._arguments import (
    FloatArray,
    as_choice,
    as_count,
    as_number,
)
from setwise._foundation._callers import callers_level
from setwise._foundation._deadline import Deadline
from setwise._foundation._display import check_display, progress_callback
from setwise._foundation._progress import stops
from setwise.learning._boosting._boost_fit import BoostFit, BoostHistory, BoostProgress
from setwise.learning._boosting._dual_point import DualPoint
from setwise.learning._boosting._master import ACCURACY
from setwise.learning._boosting._pricing import Pricing
from setwise.learning._boosting._problem import Risk, WeakLearnerSearch
from setwise.learning._boosting._restricted import Restricted
from setwise.learning._boosting._timed import Timed
from setwise.learning._history import columns_of
from setwise.learning._room import room_of, share_left

# The cutting planes of a round need not be more accurate than a share of what weak learners yet to
# come may bring, nor than a share of the tolerance.
_SHARE_OF_GAP, _SHARE_OF_TOLERANCE = 0.2, 0.2
_STALLED = 0.99  # of the gap: a round that leaves more, and finds no learner, leads nowhere
_LARGEST = 1e15  # of C: beyond, the weights of the learners are less than the rounding of the risk


def struct_boost(
    risk: Risk,
    search: WeakLearnerSearch,
    C: float = 100.0,
    *,
    tol: float = 1e-3,
    n_estimators: int = 200,
    time_limit: float | None = None,
    slack: str = "one",
    columns: str = "class",
    penalty: str = "l1",
    columns_per_round: int = 1,
    verbose: bool = False,
    callback: Callable[[BoostProgress], object] | None = None,
) -> BoostFit:
    r"""Minimise 1'w + C R(f) over all weak learners, f = sum_j w_j h_j with w >= 0.

    A boosting problem is two things that do not know one another: ``risk`` answers scores with a
    plane (the most violated outputs), ``search`` answers weights with the best weak learner. Each
    round

    1. cuts: the problem over the learners in use is solved by cutting planes, as accurately as the
       present gap asks for;
    2. prices: the multipliers :math:`\lambda_p` of the planes :math:`(b_p, g_p)` weigh the scores
       by :math:`u = -\sum_p \lambda_p g_p`, and the search looks for the learner of the largest
       edge :math:`e = \langle u, h \rangle`. It is violated, and enters, if e > 1.

    The planes hold for all learners, so that every round gives a bound for the whole problem,
    :math:`\sum_p \lambda_p b_p / \max(1, e)`, with 1'w + C R(f) computed in full above it: the gap
    is a certificate if the search is exact. The fit stops when no learner is violated, at the gap,
    or after ``n_estimators`` columns.

    Algorithm 1 and 2 of the paper, with three differences: one linear program gains planes and
    columns in turn and goes on from its last basis; questions lie on the way from the best weights
    to the model's optimum, and the search sees multipliers averaged with the best ones, because
    the program's own optimum jumps, and early on cancels one learner against another; planes that
    are not needed any more are dropped.

    A round costs one search and several questions to the risk, O(S K) each for S scores and K
    learners, and as many linear programs whose basis is of order K.

    Parameters
    ----------
    risk : Risk
        Scores (flat, cut into segments by ``risk.offsets``) -> (value, subgradient); convex, not
        negative.
    search : WeakLearnerSearch
        Weights (flat like the scores) -> list of ``Column``, best first.
    C : float
        Weight of the risk against the sum of the weights; positive, at most 1e15.
    tol : float
        Stop when value - bound is at most this share of C R(0) - bound, what there was to gain,
        and of the value.
    n_estimators : int
        The most columns.
    time_limit : float, optional
        The most seconds: then the fit ends with the best weights so far, a bound that holds, and
        ``reason`` says so. The clock is looked at before each question to the risk or the search,
        and the first round, without weak learners, is made in any case; one linear program is not
        cut short. The answer then depends on the machine and on what else it does; without a limit,
        or within it, it does not.
    slack : {"one", "example"}
        One slack for the whole risk (equation (9)), or one an example (equation (3)), which needs
        ``risk.each``: a finer model and a much larger linear program. The optimum is the same
        (Theorem 2.1).
    columns : {"class", "shared"}
        "class": a weak learner scores the one segment that the search found it for, with a weight
        that is not negative. "shared": it scores all of them, with a weight of any sign for each
        (Section 3.3 of the paper), whose absolute values are summed: segments must be of one
        length, and the negation of a weak learner one too, for the bound to hold.
    penalty : {"l1", "group"}
        "l1": the sum of the absolute weights. "group", for columns that are shared: the sum over
        the learners of the Euclidean norm of their weights,
        :math:`\sum_j \|w_j\|_2 + C R(f)`, so that a learner which speaks for one segment speaks
        for others at little more. Its edge is then the norm of its edges in the segments, which
        the search has to make largest (``StepSearch``): one that does says so by an attribute
        ``joint``, and of any other nothing is certified; with "l1" it is refused unless there is
        one segment. The risk must be smooth, with a ``temperature`` as the logistic one has: there
        is descent alone, and no linear program.
    columns_per_round : int
        How many of the violated columns that the search returns enter in a round.
    verbose : bool
        Show value, bound, gap and seconds on stderr: a bar in a terminal or a notebook (with rich),
        else lines.
    callback : callable, optional
        Called with a ``BoostProgress`` after each round; any true answer stops the fit.

    Returns
    -------
    BoostFit
        With ``columns``, ``w``, ``value``, ``bound``, ``gap``, ``stages``, ``history``,
        ``reason``, ``timings``. Ctrl-C stops the fit too and gives the best weights so far, with
        ``interrupted`` True.

    Warns
    -----
    UserWarning
        If all weights are zero: C is too small for any learner to pay, or ``n_estimators`` for
        them to do so together (then a ``ConvergenceWarning``).

    References
    ----------
    C. Shen, G. Lin, A. van den Hengel, StructBoost: boosting methods for predicting structured
    output variables, 2014. V. Franc, S. Sonnenburg, Optimized cutting plane algorithm for
    large-scale risk minimization, 2009 (the line search). P. Wentges, Weighted Dantzig-Wolfe
    decomposition for linear mixed-integer programming, 1997 (the averages).

    Examples
    --------
    Two examples with labels +1 and -1, the hinge loss, and signs as weak learners:

    >>> import numpy as np
    >>> from setwise.learning import Column, struct_boost
    >>> class Hinge:
    ...     offsets = np.array([0, 2])
    ...
    ...     def __call__(self, f):
    ...         y = np.array([1.0, -1.0])
    ...         return np.maximum(1 - y * f, 0).mean(), np.where(y * f < 1, -y, 0) / 2
    >>> class Signs:
    ...     exact = True
    ...
    ...     def __call__(self, weights):
    ...         return [Column("signs", 0, np.sign(weights))]
    >>> fit = struct_boost(Hinge(), Signs(), C=10.0)
    >>> fit.w.tolist(), fit.value, fit.bound, fit.converged
    ([1.0], 1.0, 1.0, True)
    """
    check_display(verbose, callback)
    if verbose:
        with progress_callback(True, tol, callback) as shown:
            return struct_boost(
                risk,
                search,
                C,
                tol=tol,
                n_estimators=n_estimators,
                time_limit=Deadline.of(time_limit, armed=False).inherited,
                slack=slack,
                columns=columns,
                penalty=penalty,
                columns_per_round=columns_per_round,
                callback=shown,
            )
    C = as_number(C, "C", positive=True)
    if C > _LARGEST:
        raise ValueError(f"C must be at most {_LARGEST:g}, got {C:g}")
    tol = as_number(tol, "tol", nonnegative=True)
    most = as_count(n_estimators, "n_estimators", least=1)
    width = as_count(columns_per_round, "columns_per_round", least=1)
    examplewise = as_choice(slack, "slack", ("one", "example")) == "example"
    shared = as_choice(columns, "columns", ("class", "shared")) == "shared"
    grouped = as_choice(penalty, "penalty", ("l1", "group")) == "group"
    if grouped and not shared:
        raise ValueError("penalty must be 'l1' unless columns='shared', got 'group'")
    parts: tuple[tuple[object, str, str], ...] = (
        (risk, "risk", "offsets"),
        (search, "search", "exact"),
    )
    for part, name, needs in parts:
        if not (callable(part) and hasattr(part, needs)):
            raise TypeError(f"{name} must be callable and have {needs}, got {type(part).__name__}")
    if examplewise and not hasattr(risk, "each"):
        raise TypeError(
            f"risk must have a method each for slack='example', got {type(risk).__name__}"
        )
    if getattr(search, "joint", False) and not grouped and np.size(risk.offsets) > 2:
        raise ValueError(
            "penalty must be 'group' for a search that looks at all segments together, as "
            f"{type(search).__name__} does, got 'l1'"
        )
    timed = Timed(time_limit)
    rounds = _Rounds(tol, callback, timed)
    problem = Restricted(
        risk, C, examplewise=examplewise, shared=shared, grouped=grouped, timed=timed
    )
    pricing = Pricing(search, timed, grouped=grouped)
    before, left = (np.inf, np.inf, np.inf), np.inf
    try:
        while True:
            if problem.soft is not None:
                model, point = None, problem.soften(pricing.best.bound)
            else:
                value = problem.best.value
                room = room_of(value, pricing.best.bound, problem.zero)
                floor = max(_SHARE_OF_TOLERANCE * tol * room, ACCURACY * value)
                model = problem.minimize(floor, _SHARE_OF_GAP, pricing.best.bound)
                point = problem.dual(model)
            found = pricing(problem, point)
            if rounds.end(problem, pricing.best) or len(problem.responses) >= most:
                break
            if problem.soft is not None:
                if not found and not problem.soft.sharpen():
                    if not grouped:
                        problem.harden()
                    elif problem.best.value - pricing.best.bound > _STALLED * left:
                        break  # what is left is within the accuracy of the descent
                    left = problem.best.value - pricing.best.bound
            elif model is not None:
                now = problem.best.value, model.value, pricing.best.bound
                if not found and now == before:
                    break  # no learner is violated, and nothing is left to cut
                before = now
            n_new = 0
            for column in found:
                if n_new == min(width, most - len(problem.responses) + n_new):
                    break
                if not (shared and problem.resembles(column)):  # two segments may ask for one
                    problem.add_column(column)
                    pricing.meet(column, problem)
                    n_new += 1
            problem.drop_idle()
    except KeyboardInterrupt:
        rounds.interrupt()
    fit = rounds.fit(problem, pricing.best, most=most, certified=pricing.exact)
    if not (fit.interrupted or timed.deadline.struck or fit.w.any()):
        _warn_of_zero(fit, C, tol)
    return fit


class _Rounds:
    """What happened in each round, and when to stop."""

    def __init__(
        self, tol: float, callback: Callable[[BoostProgress], object] | None, timed: Timed
    ) -> None:
        self._tol, self._timed = tol, timed
        self._callback = callback
        self._rounds: list[BoostProgress] = []
        self._stages: dict[int, FloatArray] = {}
        self._interrupted = False
        self._start = perf_counter()

    def end(self, problem: Restricted, dual: DualPoint) -> bool:
        """Write a round down; True if it was the last."""
        value = problem.best.value
        bound = min(dual.bound, value)
        progress = BoostProgress(
            n_iter=len(self._rounds) + 1,
            value=value,
            bound=bound,
            relative_gap=share_left(value, bound, problem.zero, dual.rounding),
            seconds=perf_counter() - self._start,
            n_columns=len(problem.responses),
            n_planes=len(problem.planes),
            n_cuts=problem.n_cuts,
            columns=problem.columns,
            w=problem.best.w,
        )
        self._stages.setdefault(len(problem.best.w), problem.best.w)  # as if it ended here
        self._rounds.append(progress)
        self._timed.deadline.armed = True  # from now on there is an answer
        if stops(self._callback, progress):
            self._interrupted = progress.relative_gap > self._tol
            return True
        return progress.relative_gap <= self._tol

    def interrupt(self) -> None:
        """Ctrl-C, or the time limit: what there is stands, unless there is nothing yet."""
        if not self._rounds:
            raise KeyboardInterrupt
        self._interrupted = True

    def fit(self, problem: Restricted, dual: DualPoint, *, most: int, certified: bool) -> BoostFit:
        """The record of it all."""
        best = problem.best
        rounds = self._rounds
        counts = np.array([(r.n_columns, r.n_planes, r.n_cuts) for r in rounds], np.int64)
        bound = min(dual.bound, best.value)
        self._stages[len(best.w)] = best.w
        del self._stages[0]
        converged = share_left(best.value, bound, problem.zero, dual.rounding) <= self._tol
        return BoostFit(
            columns=problem.columns,
            w=best.w,
            scores=problem.scores,
            value=best.value,
            bound=bound,
            zero=problem.zero,
            certified=certified,
            n_iter=len(rounds),
            converged=converged,
            interrupted=self._interrupted and not self._timed.deadline.struck,
            stages=_as_rows(list(self._stages.values()), len(best.w)),
            history=BoostHistory(*columns_of(rounds), *counts.T.copy()),
            rounding=dual.rounding,
            reason=self._reason(converged, len(problem.responses) >= most),
            timings=self._timed.watch.timings("program"),
        )

    def _reason(self, converged: bool, full: bool) -> str:
        """Why the fit ended."""
        if self._interrupted:
            deadline = self._timed.deadline
            return deadline.sentence if deadline.struck else "a callback or Ctrl-C ended it"
        if converged:
            return f"the relative gap is within tol={self._tol:g}"
        return "n_estimators reached" if full else "no further weak learner helps"


def _as_rows(stages: list[FloatArray], width: int) -> csr_array:
    """Weights of growing length as rows of one sparse array."""
    rows = np.zeros((len(stages), width))
    for row, w in zip(rows, stages, strict=True):
        row[: len(w)] = w
    return csr_array(rows)


def _warn_of_zero(fit: BoostFit, C: float, tol: float) -> None:
    category: type[UserWarning] = UserWarning
    if fit.converged and fit.relative_gap > ACCURACY:
        message = (
            f"the gap of {fit.relative_gap:.1e} without any weak learner is within tol={tol:g}: "
            "all weights are 0, lower tol, or raise C if that brings none"
        )
    elif fit.converged:
        message = f"no weak learner lowers the objective at C={C:g}: all weights are 0, raise C"
    else:
        from sklearn.exceptions import ConvergenceWarning

        category = ConvergenceWarning
        message = (
            f"{len(fit.columns)} weak learners together do not lower the objective at C={C:g}: all "
            f"weights are 0 and the relative gap is {fit.relative_gap:.1e}, above tol={tol:g}: "
            "raise n_estimators or C"
        )
    warnings.warn(message, category, stacklevel=callers_level())
