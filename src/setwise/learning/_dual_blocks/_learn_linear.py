"""Which learner a linear model of many sets gets: by its shape, and by how it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.sparse import issparse

from setwise._foundation._arguments import FloatArray, as_count, check_callback
from setwise._foundation._deadline import Deadline
from setwise._foundation._progress import Progress
from setwise.learning._cutting_planes._fit import Fit, Planes, PlaneShares
from setwise.learning._cutting_planes._one_slack import one_slack
from setwise.learning._dual_blocks._dual_blocks import dual_blocks, goes_straight, is_near
from setwise.learning._dual_blocks._linear_sets import LinearSets
from setwise.learning._dual_blocks._path_blocks import takes_steps
from setwise.learning._dual_blocks._plane_blocks import takes_planes
from setwise.learning._dual_blocks._splitting import MOST_SPLITS, takes_splitting
from setwise.learning._history import History
from setwise.losses._families import Polymatroids

Stage = tuple[Literal["planes", "blocks", "steps", "splits"], int]

_BY: dict[str, Literal["passes", "steps", "splitting"]]
_BY = {"blocks": "passes", "steps": "steps", "splits": "splitting"}

# Of so many examples a feature, planes need few rounds, whatever C; from so many on, no others are
# tried, nor for so few weights. Features count by what they weigh: one that is large beside the
# others is alone.
_TALL, _VERY_TALL = 20.0, 200.0
_FEW_WEIGHTS = 64
# More where every label is learned alone.
_TALL_OF_LABELS = 100.0
# But where the weights are nearly known, and many, a few passes prove them.
_MANY_WEIGHTS, _WARM_PASSES = 512, 64
# Fewer where a set has planes of its own and no projection: a pass does less, and is tried a while.
_WIDE_OF_PLANES = 10.0
_FOR_EVER = 1 << 40
# Newton's steps are few at any price, and each takes the time of many passes; of so many weights
# less so. What comes before them: passes, or rounds of planes.
_STEPS, _QUICK_STEPS = 150, 600
_BEFORE_STEPS, _BEFORE_LONG_STEPS, _BEFORE_WARM_STEPS = 100, 400, 80
_BEFORE_TALL_STEPS, _LITTLE_WORK = (50, 150), 1 << 23
# Steps, a dozen or three, are products of large matrices, which take a part of the time that the
# operations of a pass do.
_STEPS_WORK = 10.0
# A stage of blocks that leaves more of the gap is not worth another.
_HELP = 0.5
# |x|^2 beyond has no room for the sums of a dual.
_MOST_SQUARES = 1e200
_PLANES: tuple[Stage, ...] = (("planes", _FOR_EVER),)
_OF_TALL: tuple[Stage, ...] = (
    ("planes", 100),
    ("blocks", 300),
    ("planes", 300),
    ("blocks", 3000),
    ("planes", _FOR_EVER),
)
_OF_TALL_PLANES: tuple[Stage, ...] = (
    ("planes", 600),
    ("blocks", 300),
    ("planes", 1000),
    ("blocks", 3000),
    ("planes", _FOR_EVER),
)
_OF_MEDIUM_PLANES: tuple[Stage, ...] = (("blocks", 300), *_OF_TALL_PLANES)
# Passes that are extrapolated, or of each label by itself: planes of all together are no help.
_STRAIGHT: tuple[Stage, ...] = (("blocks", 100_000), ("planes", _FOR_EVER))
_OF_WIDE: tuple[Stage, ...] = (
    ("blocks", 3000),
    ("planes", 300),
    ("blocks", 100_000),
    ("planes", _FOR_EVER),
)


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

    Blocks are fast where examples are few beside the features, planes where they are many. What
    one has found, the other goes on from: the dual that blocks end with is a plane, which proves
    the same bound, and the best weights are kept. A stage that is not enough is followed by one of
    the other kind; the blocks are not asked again after a stage that gained little. The stages
    depend on the data alone, not on a clock. ``learner`` of the fit names those that ran.

    Parameters
    ----------
    sets : LinearSets
    C, tol, max_iter, time_limit, init, callback
        As in ``one_slack``; ``max_iter`` is of the rounds of all stages together.
    """
    check_callback(callback)
    limit = as_count(max_iter, "max_iter", least=1)
    deadline = Deadline.of(time_limit, armed=False)
    done: Fit | None = None
    blocks_help = True
    plan = stages(sets, init if isinstance(init, Fit) and is_near(init, C) else None)
    if isinstance(init, np.ndarray):  # a dual starts from a dual, planes from weights
        plan = (*_PLANES, *plan)
    for kind, most in plan:
        if kind == "blocks" and not blocks_help:
            continue
        start = init if done is None else done
        left = limit if done is None else limit - done.n_iter
        told = _told(callback, done)
        try:
            if kind != "planes":
                assert start is None or isinstance(start, Fit)
                fit = dual_blocks(
                    sets,
                    C,
                    tol=tol,
                    max_iter=left,
                    time_limit=deadline.inherited,
                    init=start,
                    callback=told,
                    most_passes=most,
                    by=_BY[kind],
                )
            else:
                fit = one_slack(
                    sets.risk,
                    sets.dimension,
                    C,
                    tol=tol,
                    max_iter=min(left, most),
                    time_limit=deadline.inherited,
                    init=start,
                    callback=told,
                )
        except KeyboardInterrupt:
            if done is None:
                raise
            if deadline.struck:
                return replace(done, reason=deadline.sentence)
            return replace(done, interrupted=True, reason="a callback or Ctrl-C ended it")
        if kind == "blocks":
            blocks_help = done is None or fit.gap <= _HELP * done.gap
        done = fit if done is None else _joined(done, fit)
        if done.converged or done.interrupted or deadline.struck or done.n_iter == limit:
            break
    assert done is not None
    return done


def stages(sets: LinearSets, init: Fit | None = None) -> tuple[Stage, ...]:
    """What is tried, in this order, until the gap is small enough; ``init`` is of a near price."""
    few = sets.dimension <= _FEW_WEIGHTS or sets.labels.n <= 1
    if few or sets.n > _VERY_TALL * sets.columns:
        return _PLANES
    answer = sets.surrogate._polymatroids(sets.labels)
    if answer is None and not takes_planes(sets):
        return _with_steps(sets, ("planes", _BEFORE_TALL_STEPS[1]), _PLANES)
    squares = _column_squares(sets)
    total = float(squares.sum())
    if not (np.isfinite(total) and 0.0 < total < _MOST_SQUARES):
        return _PLANES
    shares = squares / total
    examples = sets.n * float(shares @ shares)
    if answer is None:
        if examples > _TALL:
            first: Stage = ("planes", _rounds_before_steps(sets))
            if init is not None and isinstance(init.dual, PlaneShares):
                first = ("blocks", _BEFORE_WARM_STEPS)
            return _with_steps(sets, first, _OF_TALL_PLANES)
        passes = _BEFORE_STEPS if sets.dimension <= _QUICK_STEPS else _BEFORE_LONG_STEPS
        wide = _OF_MEDIUM_PLANES if examples > _WIDE_OF_PLANES else _OF_WIDE
        return _with_steps(sets, ("blocks", passes), wide)
    if examples > (_TALL_OF_LABELS if answer[0].kind == Polymatroids.MODULAR else _TALL):
        near = init is not None and sets.dimension > _MANY_WEIGHTS
        tall = _steps_after(sets, 3, _OF_TALL)
        return (("blocks", _WARM_PASSES), *tall) if near else tall
    if not goes_straight(sets, answer[0]):
        return _steps_after(sets, 2, _OF_WIDE)
    if answer[0].kind == Polymatroids.MODULAR:  # whose labels have steps of their own
        return _STRAIGHT
    straight = _with_steps(sets, ("blocks", _passes_before_steps(sets)), _STRAIGHT)
    splits = init is not None and takes_splitting(sets)
    return (("splits", MOST_SPLITS), *straight) if splits else straight


def _rounds_before_steps(sets: LinearSets) -> int:
    """Fewer where a step costs little more than a round."""
    work = sets.n * sets.dimension**2
    return _BEFORE_TALL_STEPS[0] if work <= _LITTLE_WORK else _BEFORE_TALL_STEPS[1]


def _passes_before_steps(sets: LinearSets) -> int:
    """As many as take the time of the steps, as far as their operations tell."""
    n, p, columns = sets.n, sets.p, sets.columns
    step = n * (p * columns) ** 2 + (p * columns) ** 3 // 3
    one_pass = 2 * n * p * min(n, 2 * columns)
    return max(_BEFORE_STEPS, int(_STEPS_WORK * step / one_pass))


def _steps_after(sets: LinearSets, first: int, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Newton's steps for rows after so many stages: features in a large unit, or a large C."""
    if not (sets.by_label and takes_steps(sets)):
        return stages
    return (*stages[:first], ("steps", _STEPS), *stages[first:])


def _with_steps(sets: LinearSets, first: Stage, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Newton's steps after a first stage, where there is room for them."""
    return (first, ("steps", _STEPS), *stages) if takes_steps(sets) else stages


def _column_squares(sets: LinearSets) -> FloatArray:
    """The mean square of each feature, that of the intercept at the end."""
    X = sets.X
    sums = X.multiply(X).sum(axis=0) if issparse(X) else np.einsum("ij,ij->j", X, X)
    squares = np.asarray(sums, np.float64).ravel() / max(sets.n, 1)
    return np.append(squares, 1.0) if sets.intercept else squares


def _told(
    callback: Callable[[Progress], object] | None, done: Fit | None
) -> Callable[[Progress], object] | None:
    """The callback, to which the rounds of all stages are one count."""
    if callback is None or done is None:
        return callback
    rounds, seconds = done.n_iter, float(done.history.seconds[-1])

    def told(now: Progress) -> object:
        return callback(replace(now, n_iter=now.n_iter + rounds, seconds=now.seconds + seconds))

    return told


def _joined(before: Fit, fit: Fit) -> Fit:
    """One fit of two stages; the second went on from what the first had found."""
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
