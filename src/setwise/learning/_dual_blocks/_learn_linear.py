"""The choice of learners for a linear model of many sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from sys import maxsize
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import issparse

from setwise._foundation._arguments import SQUARABLE, FloatArray, as_count, check_callback
from setwise._foundation._clock import Deadline
from setwise._foundation._progress import Progress
from setwise._foundation._search import attempt
from setwise.learning._cutting_planes._fit import Fit, Planes, PlaneShares
from setwise.learning._cutting_planes._one_slack import one_slack
from setwise.learning._dual_blocks._central_path import MOST_STEPS
from setwise.learning._dual_blocks._dual_blocks import dual_blocks, goes_straight, is_near
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.learning._dual_blocks._path_blocks import takes_steps
from setwise.learning._dual_blocks._plane_blocks import takes_planes
from setwise.learning._dual_blocks._splitting import WARM_PASSES, takes_splitting
from setwise.learning._history import History
from setwise.losses._families import Polymatroids

Kind = Literal["planes", "blocks", "steps", "splits"]
Stage = tuple[Kind, int]

_BY: dict[str, Literal["passes", "steps", "splitting"]]
_BY = {"blocks": "passes", "steps": "steps", "splits": "splitting"}

# Cutting planes converge in few rounds above _TALL examples per feature, for any C. Up to
# _FEW_WEIGHTS weights only planes are tried. If one feature is much larger than the others, it
# counts as the only one (benchmarks/wide.py).
_TALL, _FEW_WEIGHTS = 20.0, 64
# Newton steps are tried after _SHORT passes or rounds, or after _LONG for more than _QUICK_STEPS
# weights, for which a step takes as long as many passes.
_QUICK_STEPS, _SHORT, _LONG = 600, 100, 400
# The number of passes before Newton steps is this times the ratio of the operations of a step and a
# pass. The operations of steps are faster, because they are products of large matrices.
_STEPS_WORK = 10.0
# If a stage of blocks leaves more than this share of the gap, later stages of blocks are skipped.
_HELP = 0.5
# Sequences of stages, each with its largest number of rounds of planes or passes of blocks.
_PLANES: tuple[Stage, ...] = (("planes", maxsize),)
_BY_PLANES: tuple[Stage, ...] = (("planes", 100), ("blocks", 300), *_PLANES)
_BY_BLOCKS: tuple[Stage, ...] = (("blocks", 3000), ("planes", 300), ("blocks", maxsize), *_PLANES)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The sets, and a fit with a similar C if there is one, from which stages are chosen."""

    sets: LinearSets
    near: Fit | None

    @cached_property
    def polymatroids(self) -> Polymatroids | None:
        """The dual polymatroids of the surrogate, or None."""
        found = self.sets.surrogate._polymatroids(self.sets.labels)
        return None if found is None else found[0]

    @property
    def is_modular(self) -> bool:
        """Whether each label is learned separately."""
        found = self.polymatroids
        return found is not None and found.kind == Polymatroids.MODULAR

    @property
    def steps(self) -> tuple[Stage, ...]:
        """The stage of Newton steps, if there is memory for them."""
        return (("steps", MOST_STEPS),) if takes_steps(self.sets) else ()

    def steps_after(self, kind: Kind, most: int) -> tuple[Stage, ...]:
        """Return a first stage and Newton steps, or no stages if there is no memory for them."""
        return ((kind, most), *self.steps) if self.steps else ()

    @cached_property
    def squares(self) -> FloatArray:
        """The mean square of each feature, with that of the intercept at the end."""
        X = self.sets.X
        sums = X.multiply(X).sum(axis=0) if issparse(X) else np.einsum("ij,ij->j", X, X)
        squares = np.asarray(sums, np.float64).ravel() / max(self.sets.n, 1)
        return np.append(squares, 1.0) if self.sets.intercept else squares

    @property
    def examples_per_feature(self) -> float:
        """The number of examples per feature, weighted by the scale of the features."""
        shares = self.squares / self.squares.sum()
        return self.sets.n * float(shares @ shares)

    @property
    def is_tall(self) -> bool:
        """Whether cutting planes converge in few rounds."""
        return self.examples_per_feature > _TALL

    def needs_planes(self) -> bool:
        """Return whether only cutting planes are possible or useful."""
        sets = self.sets
        if sets.dimension <= _FEW_WEIGHTS or sets.labels.n <= 1:
            return True
        total = float(self.squares.sum())
        # Otherwise sums would overflow.
        return not (np.isfinite(total) and 0.0 < total < SQUARABLE**2)

    def has_no_blocks(self) -> bool:
        """Return whether the surrogate has neither projections nor kept planes."""
        return self.polymatroids is None and not takes_planes(self.sets)

    def keeps_planes(self) -> bool:
        """Return whether the surrogate has kept planes instead of projections."""
        return self.polymatroids is None

    def is_straight(self) -> bool:
        """Return whether passes converge soon without a proximal term."""
        found = self.polymatroids
        return found is not None and goes_straight(self.sets, found)

    def of_kept_planes(self) -> tuple[Stage, ...]:
        """Return the stages for kept planes."""
        warm = self.near is not None and isinstance(self.near.dual, PlaneShares)
        if self.is_tall:
            return (*self.steps_after("blocks" if warm else "planes", _SHORT), *_BY_PLANES)
        quick = self.sets.dimension <= _QUICK_STEPS
        return (*self.steps_after("blocks", _SHORT if quick else _LONG), *_BY_BLOCKS)

    def of_tall_projections(self) -> tuple[Stage, ...]:
        """Return the stages for projections of many examples."""
        stages = (*_BY_PLANES[:2], *self._steps_of_rows, *_BY_PLANES[2:])
        return stages if self.near is None else (("blocks", WARM_PASSES), *stages)

    def of_straight_projections(self) -> tuple[Stage, ...]:
        """Return the stages for passes that converge soon. Separate labels make their own steps."""
        if self.is_modular:
            return _BY_BLOCKS
        stages = (*self.steps_after("blocks", self._passes_before_steps), *_BY_BLOCKS)
        splits = self.near is not None and takes_splitting(self.sets)
        return (("splits", WARM_PASSES), *stages) if splits else stages

    def of_other_projections(self) -> tuple[Stage, ...]:
        """Return the stages for passes with a proximal term."""
        return (*_BY_BLOCKS[:2], *self._steps_of_rows, *_BY_BLOCKS[2:])

    @property
    def _steps_of_rows(self) -> tuple[Stage, ...]:
        return self.steps if self.sets.by_label else ()

    @property
    def _passes_before_steps(self) -> int:
        """The number of passes with about as many operations as the Newton steps."""
        n, p, columns = self.sets.n, self.sets.p, self.sets.columns
        step = n * (p * columns) ** 2 + (p * columns) ** 3 // 3
        one_pass = 2 * n * p * min(n, 2 * columns)
        return max(_SHORT, int(_STEPS_WORK * step / one_pass))


class Plan(NamedTuple):
    """A sequence of stages, the condition for its problems, and the reason."""

    fits: Callable[[_Problem], bool]
    stages: Callable[[_Problem], tuple[Stage, ...]]
    because: str


# The first plan that fits is used. Trials: the numbers above, and those of the blocks in this
# folder, were multiplied by 1/4 and 4, counting the operations of 260 fits and paths. Numbers that
# changed nothing were removed.
PLANS = (
    Plan(_Problem.needs_planes, lambda _: _PLANES, "few weights, or one set"),
    Plan(
        _Problem.has_no_blocks,
        lambda problem: (*problem.steps_after("planes", _SHORT), *_PLANES),
        "sets too large for kept planes, and no projections",
    ),
    Plan(_Problem.keeps_planes, _Problem.of_kept_planes, "no projections, but kept planes"),
    Plan(
        lambda problem: problem.is_tall,
        _Problem.of_tall_projections,
        "projections, and many examples per feature: planes converge soon",
    ),
    Plan(
        _Problem.is_straight,
        _Problem.of_straight_projections,
        "projections whose passes converge soon without a pull",
    ),
    Plan(lambda _: True, _Problem.of_other_projections, "projections whose passes need a pull"),
)


def stages(sets: LinearSets, near: Fit | None = None) -> tuple[Stage, ...]:
    """Return the stages that are tried in order until the gap is small enough.

    ``near`` is a fit with a similar C.
    """
    problem = _Problem(sets, near)
    return next(plan.stages(problem) for plan in PLANS if plan.fits(problem))


def learn_linear(
    sets: LinearSets,
    C: float,
    *,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    time_limit: float | None = None,
    init: Fit | FloatArray | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Fit:
    r"""Minimise 1/2 |W|^2 + C risk(W) by dual blocks, by cutting planes, or by both in turn.

    Blocks are fast with few examples per feature, and planes with many. Each stage continues from
    the last one: the final dual of blocks is a plane, which proves the same bound, and the best
    weights are kept. A stage that does not converge is followed by one of the other kind. Blocks
    are not used again after a stage that gained little. The stages depend on the data only, not on
    time. ``learner`` of the fit names the learners that ran.

    Parameters
    ----------
    sets : LinearSets
    C, tol, max_iter, time_limit, init, callback
        See ``one_slack``. ``max_iter`` limits the rounds of all stages together.
    """
    check_callback(callback)
    limit = as_count(max_iter, "max_iter", least=1)
    deadline = Deadline.of(time_limit, armed=False)
    done: Fit | None = None
    blocks_help = True
    plan = stages(sets, init if isinstance(init, Fit) and is_near(init, C) else None)
    if isinstance(init, np.ndarray):  # only planes can start from weights
        plan = (*_PLANES, *plan)
    for kind, most in plan:
        if kind == "blocks" and not blocks_help:
            continue
        start = init if done is None else done
        left = limit if done is None else limit - done.n_iter
        reporting = _callback_of_stages(callback, done)
        fit, ended = attempt(_learn, sets, C, kind, most, tol, left, deadline, start, reporting)
        if fit is None:
            if done is None:
                raise KeyboardInterrupt
            if deadline.expired:
                return replace(done, reason=deadline.sentence)
            return replace(done, interrupted=ended, reason="a callback or Ctrl-C ended it")
        if kind == "blocks":
            blocks_help = done is None or fit.gap <= _HELP * done.gap
        done = fit if done is None else _joined(done, fit)
        if done.converged or done.interrupted or deadline.expired or done.n_iter == limit:
            break
    assert done is not None
    return done


def _learn(
    sets: LinearSets,
    C: float,
    kind: Kind,
    most: int,
    tol: float,
    left: int,
    deadline: Deadline,
    start: Fit | FloatArray | None,
    callback: Callable[[Progress], object] | None,
) -> Fit:
    """Run one stage: at most ``most`` passes of blocks, or rounds of planes."""
    limit = deadline.inherited
    if kind == "planes":
        return one_slack(
            sets.risk,
            sets.dimension,
            C,
            tol=tol,
            max_iter=min(left, most),
            time_limit=limit,
            init=start,
            callback=callback,
        )
    assert start is None or isinstance(start, Fit)
    return dual_blocks(
        sets,
        C,
        tol=tol,
        max_iter=left,
        time_limit=limit,
        init=start,
        callback=callback,
        most_passes=most,
        by=_BY[kind],
    )


def _callback_of_stages(
    callback: Callable[[Progress], object] | None, done: Fit | None
) -> Callable[[Progress], object] | None:
    """Return a callback that counts the rounds of all stages together."""
    if callback is None or done is None:
        return callback
    rounds, seconds = done.n_iter, float(done.history.seconds[-1])

    def reporting(now: Progress) -> object:
        return callback(replace(now, n_iter=now.n_iter + rounds, seconds=now.seconds + seconds))

    return reporting


def _joined(before: Fit, fit: Fit) -> Fit:
    """Return the joint record of two stages, of which the second started from the first."""
    first, second = before.history, fit.history
    primal = np.minimum.accumulate(np.concatenate([first.primal, second.primal]))
    dual = np.maximum.accumulate(np.concatenate([first.dual, second.dual]))
    seconds = np.concatenate([first.seconds, second.seconds + first.seconds[-1]])
    names = [name for name in before.learner.split(", ") if name != fit.learner]
    planes = fit.planes
    if fit.learner != "one_slack":
        planes = Planes(
            np.vstack([before.planes.slopes, planes.slopes]),
            np.concatenate([before.planes.offsets, planes.offsets]),
        )
    return replace(
        fit,
        n_iter=before.n_iter + fit.n_iter,
        history=History(primal, np.minimum(dual, primal), seconds),
        bound=min(max(before.bound, fit.bound), fit.value),
        planes=planes,
        dual=before.dual if fit.dual is None else fit.dual,
        learner=", ".join([*names, fit.learner]),
    )
