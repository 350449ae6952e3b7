"""The learning problem of a classifier of sets whose rows lie on workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np
from dask.delayed import delayed
from sklearn.utils.class_weight import compute_class_weight

from setwise._foundation._arguments import FloatArray, as_flag
from setwise.dask._partitions import row_parts
from setwise.dask._set_shards import (
    ChunkRisk,
    Reading,
    SetSummary,
    labels_of_rows,
    merged,
    read_rows,
    scores_of_rows,
    slope_of_rows,
    summarize,
    truths,
)
from setwise.estimators._sets._certificates import is_certified
from setwise.estimators._sets._label_encoding import Encoding, learn_encoding, weigh_classes
from setwise.estimators._sets._surrogate_choice import first_surrogate, settled
from setwise.learning._cutting_planes._parted_oracle import PartedOracle
from setwise.learning._executors import Executor
from setwise.losses import Loss
from setwise.losses._labels import read_labels
from setwise.losses._scoring._layout import Arrangement, arrange
from setwise.surrogates import DecomposedHinge, Surrogate

WHOLE = ("sample", "columns", "cells")


@dataclass(frozen=True, eq=False)
class PlacedSample:
    """Rows on workers, with a summary of each part on the client."""

    rows: Sequence[Any]
    seen: list[SetSummary]

    @property
    def lengths(self) -> list[int]:
        """The number of rows of each part."""
        return [part.n for part in self.seen]

    @property
    def one(self) -> SetSummary:
        """The summary of the first part with rows."""
        return next(part for part in self.seen if part.n)

    def kind(self, sets: Any, groups: Any) -> str:
        """Return the kind of sets, as ``arrange`` names it."""
        shape = (1, self.one.n_outputs) if self.one.n_outputs else (1,)
        named = None if groups is None else np.zeros(1)
        return arrange(np.zeros(shape, np.bool_), sets, named, None).kind

    def check_groups(self) -> None:
        """Raise an error if a group lies in two parts."""
        where: dict[Any, int] = {}
        for place, part in enumerate(self.seen):
            for name in () if part.groups is None else part.groups.tolist():
                if name in where:
                    raise ValueError(
                        f"groups must lie in one chunk each, got group {name!r} in chunks "
                        f"{where[name]} and {place}: rechunk X and the others where groups end, or "
                        "repartition a DataFrame by df.shuffle(on=...) on the column of the groups"
                    )
                where[name] = place


def gather(executor: Executor, X: Any, **others: Any) -> PlacedSample:
    """Validate the rows of dask collections, place them on workers and summarise them."""
    read = delayed(read_rows, pure=False)
    parts = row_parts(X, **others)
    rows = executor.place([read(part, place) for place, part in enumerate(parts)])
    sample = PlacedSample(rows, executor.map(summarize, rows))
    with_rows = [part for part in sample.seen if part.n]
    if not with_rows:
        raise ValueError("X must have at least one row, got 0 in all chunks")
    for what in ("width", "n_outputs", "names"):
        if len(kinds := {str(getattr(part, what)) for part in with_rows}) > 1:
            raise ValueError(f"X and y must have the same columns in all chunks, got {kinds}")
    if not any(part.counted for part in with_rows):
        raise ValueError("sample_weight must not be zero for every sample, got only zeros")
    return sample


def encoding_of(sample: PlacedSample) -> Encoding:
    """Return the encoding of the two classes of all parts."""
    labels = np.unique(np.concatenate([part.labels for part in sample.seen if part.n]))
    values = labels.reshape(1, -1) if sample.one.n_outputs else labels
    return learn_encoding(values)[0]


def class_weights(
    class_weight: Any, encoding: Encoding, sample: PlacedSample
) -> dict[Any, float] | None:
    """Return the weight of each class by its label; "balanced" means n / (2 n_y)."""
    if class_weight is None:
        return None
    classes = encoding.classes
    if sample.one.n_outputs:  # raises an error: a matrix of labels has no class weights
        weigh_classes(class_weight, classes, np.zeros((1, 1)), None)
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.zeros(2)
        for part in sample.seen:
            counts[np.searchsorted(classes, part.labels)] += part.counts
        weights = counts.sum() / (2 * counts)
    else:
        weights = compute_class_weight(class_weight, classes=classes, y=classes)
    return dict(zip(classes.tolist(), weights.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class DaskSetProblem:
    """The objective 1/2 |W|^2 + C risk(W) of sets on workers."""

    oracle: Callable[[FloatArray], tuple[float, FloatArray]]
    shape: tuple[int, int]
    surrogate: Surrogate
    certified: bool


def pose(
    parameters: Any,
    executor: Executor,
    sample: PlacedSample,
    encoding: Encoding,
    groups: Any,
    planes: int,
) -> DaskSetProblem:
    """Return the problem of a sample, with the surrogate chosen from all of its truths."""
    intercept = as_flag(parameters.fit_intercept, "fit_intercept")
    first = first_surrogate(parameters.surrogate, parameters.loss)
    kind = sample.kind(parameters.sets, groups)
    weights = class_weights(parameters.class_weight, encoding, sample)
    reading = Reading(encoding, parameters.sets, weights, first._traits.is_separable)
    whole = kind in WHOLE and not first._traits.is_separable
    if kind == "groups" and not first._traits.is_separable:
        sample.check_groups()
    if whole:
        sets = gathered_sets(executor, sample, reading, first)
    else:
        sets = known_truths(parameters, executor, sample, reading, first)
    surrogate = settled(first, parameters.surrogate, sets)
    if sets.multiplicity is not None:
        surrogate = surrogate._with_multiplicity(sets.multiplicity)
    certified = is_certified(surrogate, sets)
    shape = max(1, sample.one.n_outputs), sample.one.width + intercept
    oracle: Any
    if whole:
        if planes > 1:
            raise ValueError(
                f"planes must be 1 where a set reaches over the whole sample, got {planes}: its "
                "risk is no sum over shards"
            )
        oracle = WholeSetRisk(
            executor, sample.rows, sample.lengths, sets, surrogate, shape[1], intercept
        )
    else:
        part = ChunkRisk(uuid4().hex, reading, surrogate, intercept)

        def asked(w: FloatArray) -> list[tuple[float, FloatArray]]:
            return executor.sums(part, sample.rows, w.reshape(shape), most=planes)

        oracle = PartedOracle(asked) if planes > 1 else _SinglePlaneOracle(asked)
    return DaskSetProblem(oracle, shape, surrogate, certified)


@dataclass(frozen=True, eq=False)
class _SinglePlaneOracle:
    """An oracle that returns a single plane."""

    ask: Callable[[FloatArray], list[tuple[float, FloatArray]]]

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        risk, slope = self.ask(w)[0]
        return risk, slope.ravel()


class WholeSetRisk:
    """A function w -> the risk of the sample, its columns or its cells, and a subgradient.

    The surrogate of such a set sorts all of its errors and is not a sum over shards. The client
    collects the scores of all shards and sorts them, and every shard gets the slopes of its own
    rows back. The gradient is then the usual sum over shards. The result is exact. A round moves 16
    bytes per score, whereas sets within shards move one vector of weights per round.
    """

    def __init__(
        self,
        executor: Executor,
        rows: Sequence[Any],
        lengths: Sequence[int],
        sets: Arrangement,
        surrogate: Surrogate,
        columns: int,
        intercept: bool,
    ) -> None:
        self._executor, self._rows, self._ends = executor, rows, np.cumsum(lengths)
        self._sets, self._surrogate, self._intercept = sets, surrogate, intercept
        self._labels = replace(read_labels(sets.positive, sets.ragged_offsets), kept={})
        self._shape = sets.n_outputs, columns

    @property
    def dimension(self) -> int:
        """The length of w."""
        return self._shape[0] * self._shape[1]

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the risk and a subgradient."""
        W = w.reshape(self._shape)
        found = self._executor.map(scores_of_rows, self._rows, W, self._intercept)
        scores = np.concatenate(found)
        given = self._sets.gather(scores if self._sets.kind != "sample" else scores[:, 0])
        values, slopes = self._surrogate._of_labels(self._labels, given)
        by_row = np.zeros(scores.shape)
        # A row of weight 2 appears twice in its set, so its slopes are added up.
        own = slopes.T if self._sets.kind == "columns" else slopes
        np.add.at(by_row, self._sets.order, own.reshape(-1, scores.shape[1]))
        each = np.split(by_row, self._ends[:-1])
        gradient = self._executor.sums(slope_of_rows, self._rows, self._intercept, each=each)[0]
        return float(np.sum(values)), gradient.ravel()


def gathered_sets(
    executor: Executor, sample: PlacedSample, reading: Reading, objective: Surrogate | Loss
) -> Arrangement:
    """Return the sets over the whole sample. The client collects one byte per label."""
    found = executor.map(labels_of_rows, sample.rows, reading)
    positive, weight = (np.concatenate(part) for part in zip(*found, strict=True))
    return arrange(
        positive, reading.sets, None, weight, fractional=objective._traits.takes_multiplicity
    )


def known_truths(
    parameters: Any,
    executor: Executor,
    sample: PlacedSample,
    reading: Reading,
    surrogate: Surrogate,
) -> Arrangement:
    """Return one truth per class of equivalent truths, if the choice of a surrogate needs them."""
    named, loss = parameters.surrogate, surrogate.loss
    by_name = isinstance(named, str) and named in ("auto", "lovasz")
    open_ = by_name and (loss.is_submodular is None or isinstance(surrogate, DecomposedHinge))
    if not open_ and surrogate.is_exact and surrogate.is_convex:
        return merged([])
    found: dict[object, Any] = {}
    for own in executor.map(truths, sample.rows, reading, loss):
        for truth in own:
            found.setdefault(loss._key(truth), truth)
    return merged(list(found.values()))
