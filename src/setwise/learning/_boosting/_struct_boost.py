"""Boosting for structured outputs: column generation over cutting planes."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from setwise._foundation._arguments import (
    FloatArray,
    as_choice,
    as_count,
    as_number,
)
from setwise._foundation._progress import displayed
from setwise._foundation._search import STANDS_STILL, Control, Ending, Search, drive
from setwise._foundation._warnings import callers_level
from setwise.learning._boosting._boost_fit import BoostFit, BoostHistory, BoostProgress
from setwise.learning._boosting._master import ACCURACY, MasterSolution
from setwise.learning._boosting._pricing import Pricing
from setwise.learning._boosting._problem import Column, Risk, WeakLearnerSearch
from setwise.learning._boosting._restricted import Restricted
from setwise.learning._boosting._smoothed import SHARE_OF_GAP
from setwise.learning._boosting._timed import Timed
from setwise.learning._history import columns_of
from setwise.learning._relative_gap import gap_scale_of, share_left

# The largest C; beyond, the penalty is below the rounding error of C times the risk.
_LARGEST = 1e15


@displayed("fit")
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

    A boosting problem has two independent parts: ``risk`` returns a plane for given scores (from
    the most violated outputs), and ``search`` returns the best weak learner for given weights. Each
    round has two steps:

    1. Cutting: the problem over the learners in use is solved by cutting planes, as accurately as
       the present gap requires.
    2. Pricing: the multipliers :math:`\lambda_p` of the planes :math:`(b_p, g_p)` give weights
       :math:`u = -\sum_p \lambda_p g_p`, and the search finds the learner with the largest edge
       :math:`e = \langle u, h \rangle`. It is violated, and added, if e > 1.

    The planes hold for all learners. Therefore every round gives a lower bound for the whole
    problem, :math:`\sum_p \lambda_p b_p / \max(1, e)`, and the gap to 1'w + C R(f) is a certificate
    if the search is exact. The fit stops when no learner is violated, when the gap is small enough,
    or after ``n_estimators`` columns.

    These are Algorithms 1 and 2 of the paper, with three differences. First, planes and columns are
    added in turn to one linear program, which is solved with warm starts. Second, the optimum of
    the program jumps, and in early rounds large weights cancel. Therefore the risk is evaluated
    between the best weights and that optimum, and the search gets a mean of the multipliers and the
    best ones. Third, planes that are no longer needed are dropped.

    A round costs one search and several evaluations of the risk, O(S K) each for S scores and K
    learners, and as many linear programs, whose basis has order K.

    Parameters
    ----------
    risk : Risk
        A function from scores (flat, cut into segments by ``risk.offsets``) to a pair (value,
        subgradient). It must be convex and nonnegative.
    search : WeakLearnerSearch
        A function from weights (flat like the scores) to a list of ``Column``, best first.
    C : float
        The weight of the risk relative to the sum of the weights. Positive, at most 1e15.
    tol : float
        Stop when value - bound is at most this share of the largest possible gain, C R(0) - bound,
        and of the value.
    n_estimators : int
        The largest number of columns.
    time_limit : float, optional
        The largest number of seconds. After it, the fit ends with the best weights so far and a
        valid bound, and ``reason`` mentions it. The time is checked before each evaluation of the
        risk and each search. The first round, without weak learners, is always made, and a linear
        program is not interrupted. Only if the limit is reached does the result depend on the speed
        of the machine.
    slack : {"one", "example"}
        One slack for the whole risk (equation (9)), or one slack per example (equation (3)), which
        needs ``risk.each`` and gives a finer model with a much larger linear program. The optimum
        is the same (Theorem 2.1).
    columns : {"class", "shared"}
        "class": a weak learner contributes to the segment for which the search found it, with a
        nonnegative weight. "shared": it contributes to all segments, with a weight of any sign for
        each (Section 3.3 of the paper), whose absolute values are added up. The segments must then
        have equal lengths, and for the bound to hold the negation of each weak learner must be a
        weak learner too.
    penalty : {"l1", "group"}
        "l1" is the sum of the absolute weights. "group", for shared columns, is the sum over the
        learners of the Euclidean norm of their weights, :math:`\sum_j \|w_j\|_2 + C R(f)`. A
        learner that is used in one segment then costs little more in others. Its edge is the norm
        of its edges in the segments, which the search must maximise, and declare by an attribute
        ``joint`` (``StepSearch``); the result of another search is not certified. A search with
        ``joint`` cannot be used with "l1" unless there is one segment. "group" needs a smooth risk
        with a ``temperature``, such as the logistic one, and uses descent without a linear program.
    columns_per_round : int
        The largest number of violated columns per round that are added.
    verbose : bool
        Show value, bound, gap and seconds on stderr, as a bar in a terminal or a notebook (with
        rich), else as lines.
    callback : callable, optional
        Called with a ``BoostProgress`` after each round. A true return value stops the fit.

    Returns
    -------
    BoostFit
        The columns, their weights ``w``, ``value``, ``bound``, ``gap``, ``stages``, ``history``,
        ``reason`` and ``timings``. Ctrl-C also stops the fit: then the weights are the best so far,
        and ``interrupted`` is True.

    Warns
    -----
    UserWarning
        If all weights are zero because C is too small for any learner to lower the objective, or
        because ``n_estimators`` is too small (then a ``ConvergenceWarning``).

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
    problem = Restricted(
        risk, C, examplewise=examplewise, shared=shared, grouped=grouped, timed=timed
    )
    boosting = _Boosting(problem, Pricing(search, timed, grouped=grouped), tol, most, width)
    control = Control(tol, callback=callback, deadline=timed.deadline, keeps_history=True)
    fit = boosting.fit(drive(boosting, control), timed)
    if not (fit.interrupted or timed.deadline.expired or fit.w.any()):
        _warn_of_zero(fit, C, tol)
    return fit


class _Boosting(Search[BoostProgress]):
    """Rounds that cut, which gives the weights of the columns in use, and price new columns."""

    calls_user = True

    def __init__(
        self, problem: Restricted, pricing: Pricing, tol: float, most: int, width: int
    ) -> None:
        self._problem, self._pricing = problem, pricing
        self._tol, self._most, self._width = tol, most, width
        self._found: list[Column] = []
        self._before, self._left = (np.inf, np.inf, np.inf), np.inf
        self._stages: dict[int, FloatArray] = {}
        self._is_first, self._hardens = True, False

    @property
    def _bound(self) -> float:
        return min(self._pricing.best.bound, self._problem.best.value)

    @property
    def relative_gap(self) -> float:  # type: ignore[override]
        problem, rounding = self._problem, self._pricing.best.rounding
        return share_left(problem.best.value, self._bound, problem.zero, rounding)

    def step(self) -> bool:
        problem, pricing, model = self._problem, self._pricing, None
        self._begin_round()
        if problem.soft is not None:
            point = problem.soften(pricing.best.bound)
        else:
            value = problem.best.value
            gap_scale = gap_scale_of(value, pricing.best.bound, problem.zero)
            floor = max(SHARE_OF_GAP * self._tol * gap_scale, ACCURACY * value)
            model = problem.minimize(floor, SHARE_OF_GAP, pricing.best.bound)
            point = problem.dual(model)
        self._found, self._is_first = pricing(problem, point), False
        # This is the last stage if the fit ends here.
        self._stages.setdefault(len(problem.best.w), problem.best.w)
        if self.has_converged(self._tol):
            return True
        if len(problem.responses) >= self._most:
            self.ending = "n_estimators reached"
            return True
        self.ending = "no further weak learner helps"
        return self._is_at_end(model)

    def _is_at_end(self, model: MasterSolution | None) -> bool:
        """Return whether no violated column is left and the risk cannot be made more accurate."""
        problem, bound = self._problem, self._pricing.best.bound
        if model is not None:
            now = problem.best.value, model.value, bound
            before, self._before = self._before, now
            return not self._found and now == before  # no column is violated and no plane missing
        assert problem.soft is not None
        if self._found or problem.soft.sharpen():
            return False
        left, self._left = self._left, problem.best.value - bound
        if problem.grouped:  # the remaining gap is within the accuracy of the descent
            return bool(self._left > STANDS_STILL * left)
        self._hardens = True
        return False

    def _begin_round(self) -> None:
        """Add the best columns that the search found to the problem."""
        problem, n_new = self._problem, 0
        if self._is_first:
            return
        if self._hardens:
            problem.harden()
            self._hardens = False
        for column in self._found:
            if n_new == self._width or len(problem.responses) == self._most:
                break
            # The search may return one column for two segments.
            if not (problem.shared and problem.resembles(column)):
                problem.add_column(column)
                self._pricing.meet(column, problem)
                n_new += 1
        problem.drop_idle()

    def progress(self, n_iter: int, seconds: float) -> BoostProgress:
        problem = self._problem
        return BoostProgress(
            n_iter=n_iter,
            value=problem.best.value,
            bound=self._bound,
            relative_gap=self.relative_gap,
            seconds=seconds,
            n_columns=len(problem.responses),
            n_planes=len(problem.planes),
            n_cuts=problem.n_cuts,
            columns=problem.columns,
            w=problem.best.w,
        )

    def fit(self, ending: Ending[BoostProgress], timed: Timed) -> BoostFit:
        """Return the record of the search."""
        problem, best, rounds = self._problem, self._problem.best, ending.history
        counts = np.array([(r.n_columns, r.n_planes, r.n_cuts) for r in rounds], np.int64)
        self._stages[len(best.w)] = best.w
        del self._stages[0]
        return BoostFit(
            columns=problem.columns,
            w=best.w,
            scores=problem.scores,
            value=best.value,
            bound=self._bound,
            zero=problem.zero,
            certified=self._pricing.exact,
            n_iter=len(rounds),
            converged=ending.converged,
            interrupted=ending.interrupted,
            stages=_as_rows(list(self._stages.values()), len(best.w)),
            history=BoostHistory(*columns_of(rounds), *counts.T.copy()),
            rounding=self._pricing.best.rounding,
            reason=ending.reason,
            timings=timed.watch.timings("program"),
        )


def _as_rows(stages: list[FloatArray], width: int) -> csr_array:
    """Return weights of growing length as rows of one sparse array."""
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
