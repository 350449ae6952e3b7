"""The solution of a task for one image: its field, its answer and the certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._search import completed
from setwise._foundation._threads import one_thread
from setwise._foundation._warnings import gathered_warnings
from setwise.dask._maps._field_results import FieldRow, FieldStore
from setwise.decisions._decide import decide
from setwise.fields import Field
from setwise.inference._diverse._diverse import diverse
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import marginals

Arrays = dict[str, NDArray[Any]]


class Certified(NamedTuple):
    """Arrays over the pixels, and a certificate for the value that the task optimises."""

    arrays: Arrays
    value: float
    bound: float
    gap: float
    relative_gap: float
    proved: bool
    reason: str


def _best(field: Field, **options: Any) -> Certified:
    found = completed(solve_map(field, **options))
    return Certified(
        {"labels": found.labels},
        found.value,
        found.bound,
        found.gap,
        found.relative_gap,
        found.exact,
        found.reason,
    )


def _marginals(field: Field, **options: Any) -> Certified:
    post = completed(marginals(field, **options))
    proved = post.certified and post.converged
    return Certified(
        {"probabilities": post.probabilities},
        post.value,
        post.bound,
        post.gap,
        post.relative_gap,
        proved,
        post.reason,
    )


def _diverse(field: Field, **options: Any) -> Certified:
    found = completed(diverse(field, **options))
    return Certified(
        {"labelings": found.labelings, "values": found.values},
        float(found.values[0]),
        float(found.bounds[0] + found.gains[0]),
        float(found.gaps.max()),
        float(found.relative_gaps.max()),
        bool(found.exact),
        found.reason,
    )


def _decide(field: Field, *, loss: Any, label: int = 1, **options: Any) -> Certified:
    post = completed(marginals(field, **options))
    answer = decide(post.probabilities[:, label], loss, n_jobs=1)
    gap, expected = float(answer.regret_bound), float(answer.expected)
    return Certified(
        {"mask": np.asarray(answer.mask), "probabilities": post.probabilities},
        expected,
        float(answer.bound),
        gap,
        gap / expected if expected > 0 else 0.0,
        bool(answer.exact),
        f"by {answer.method}, for {answer.law}; marginals: {post.reason}",
    )


TASKS: dict[str, Callable[..., Certified]] = {
    "map": _best,
    "marginals": _marginals,
    "diverse": _diverse,
    "decide": _decide,
}


class ImageAnswer(NamedTuple):
    """The row of an image, its arrays unless a store holds them, and its warnings."""

    row: FieldRow
    arrays: Arrays
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FieldJob:
    """A function (items, places, names) -> answers, which skips the images a store contains."""

    build: Callable[[Any], Any]
    task: str
    options: Mapping[str, Any]
    store: FieldStore | None

    def __call__(self, items: Any, places: list[int], names: list[str]) -> list[ImageAnswer]:
        with one_thread():
            return [
                self._answer(item, place, name)
                for item, place, name in zip(items, places, names, strict=True)
            ]

    def _answer(self, item: Any, place: int, name: str) -> ImageAnswer:
        if self.store is not None:
            row = self.store.row(place)
            if row is not None and row.error is None:
                return ImageAnswer(row, {})
        start = perf_counter()
        with gathered_warnings() as messages:
            try:
                arrays, row = self._solved(item, place, name, start)
            except Exception as error:  # the other images go on
                arrays = {}
                row = FieldRow.failed(place, name, error, perf_counter() - start)
        if self.store is None:
            return ImageAnswer(row, arrays, tuple(messages))
        self.store.write(row, arrays)
        return ImageAnswer(row, {}, tuple(messages))

    def _solved(self, item: Any, place: int, name: str, start: float) -> tuple[Arrays, FieldRow]:
        built = self.build(item)
        field, shape = built if isinstance(built, tuple) else (built, None)
        if not isinstance(field, Field):
            raise TypeError(
                "build must return a Field, or a Field and a shape, got " + type(field).__name__
            )
        found = TASKS[self.task](field, **{"n_jobs": 1, **self.options})
        arrays = {
            key: _shaped(key, values, shape, field.n_variables)
            for key, values in found.arrays.items()
        }
        row = FieldRow(
            image=place,
            name=name,
            value=found.value,
            bound=found.bound,
            gap=found.gap,
            relative_gap=found.relative_gap,
            proved=found.proved,
            seconds=perf_counter() - start,
            reason=found.reason,
            error=None,
        )
        return arrays, row


def _shaped(key: str, values: NDArray[Any], shape: Any, n: int) -> NDArray[Any]:
    """Reshape the axis of the pixels into the shape of the image."""
    if shape is None or key == "values":
        return values
    shape = tuple(shape)
    axis = values.shape.index(n, 1) if key == "labelings" else 0
    return values.reshape(*values.shape[:axis], *shape, *values.shape[axis + 1 :])
