"""A field for each of many images, over a cluster: lazily, with a certificate each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, KilledWorker, as_completed, default_client
from numpy.typing import NDArray

from setwise._foundation._arguments import (
    as_choice,
    as_function,
    as_list,
    check_callback,
    did_you_mean,
)
from setwise.dask._executor import as_client
from setwise.dask._field_answers import TASKS, Answer, FieldJob
from setwise.dask._field_results import FieldResults, FieldRow, rows_in_order
from setwise.dask._field_store import FieldStore
from setwise.inference import diverse, marginals, solve_map

_CALLS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "map": (solve_map, set()),
    "marginals": (marginals, set()),
    "diverse": (diverse, set()),
    "decide": (marginals, {"loss", "label"}),
}


@dataclass(frozen=True, eq=False)
class _Part:
    """Images that one task does: where they are from, their places and names."""

    source: Any
    places: list[int]
    names: list[str]


class FieldMap:
    """A map over images that has not been made yet: ``compute`` makes it.

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> from setwise.dask import map_fields
    >>> lazy = map_fields(sw.fields.Field, np.zeros((5, 4, 2)), task="marginals")
    >>> lazy
    FieldMap(marginals of 5 images)
    >>> lazy.compute().n_proved
    5
    """

    def __init__(self, job: FieldJob, parts: list[_Part], client: Client | None) -> None:
        self._job, self._parts, self._client = job, parts, client
        self.n_images = sum(len(part.places) for part in parts)

    def __repr__(self) -> str:
        return f"FieldMap({self._job.task} of {self.n_images} images)"

    def to_delayed(self) -> list[Delayed]:
        """A ``Delayed`` for each chunk of images: its rows, and arrays where there is no store."""
        ask = delayed(self._job, pure=False)
        return [ask(part.source, part.places, part.names) for part in self._parts]

    def compute(self, callback: Callable[[FieldRow], object] | None = None) -> FieldResults:
        """Do what is not done yet.

        Parameters
        ----------
        callback : callable, optional
            Called here with the ``FieldRow`` of each image as it comes in, in no order; any true
            answer stops the map, and what was written to a store stays.

        Returns
        -------
        FieldResults
        """
        check_callback(callback)
        store = self._job.store
        answers: dict[int, Answer] = {}
        if store is not None:
            store.open(self._job.task, self.n_images)
        for done in self._answers(self._left(answers)):
            stop = False
            for answer in done:
                answers[answer.row.image] = answer
                stop = stop or (callback is not None and bool(callback(answer.row)))
            if stop:
                break
        return FieldResults(
            rows_in_order([answer.row for answer in answers.values()]),
            self._job.task,
            self.n_images,
            {place: answer.arrays for place, answer in answers.items()},
            store,
        )

    def _left(self, answers: dict[int, Answer]) -> list[_Part]:
        """Parts with something to do; the rows of what is done go to the answers."""
        store, left = self._job.store, []
        for part in self._parts:
            rows = [None if store is None else store.row(place) for place in part.places]
            if any(row is None or row.error is not None for row in rows):
                left.append(part)
            else:
                answers.update((row.image, Answer(row, {})) for row in rows if row is not None)
        return left

    def _answers(self, parts: list[_Part]) -> Iterator[list[Answer]]:
        client = self._client or _default()
        if client is None:
            for part in parts:
                items = dask.compute(part.source, scheduler="sync")[0]
                yield self._job(items, part.places, part.names)
            return
        suspects: list[_Part] = []
        yield from self._asked(client, parts, suspects)
        # One of the images ends the worker that has it, and others that wait there with it: each
        # by itself, the others have their answers.
        for part in suspects:
            for k, place in enumerate(part.places):
                yield from self._asked(client, [_Part(_one(part, k), [place], [part.names[k]])])

    def _asked(
        self, client: Client, parts: list[_Part], suspects: list[_Part] | None = None
    ) -> Iterator[list[Answer]]:
        """The answers as they come; parts lost with their workers go to the suspects, if asked."""
        ask = delayed(self._job, pure=False)
        # In one graph, so that what chunks share, as the array they are cut from, travels once.
        graph = [ask(part.source, part.places, part.names) for part in parts]
        asked = dict(zip(client.compute(graph), parts, strict=True))
        try:
            for future in as_completed(list(asked)):
                part = asked.pop(future)
                error = future.exception() if future.status != "finished" else None
                if error is None:
                    yield future.result()
                elif isinstance(error, KilledWorker | CancelledError) and suspects is not None:
                    suspects.append(part)
                else:
                    yield [
                        Answer(FieldRow.failed(place, name, error, float("nan")), {})
                        for place, name in zip(part.places, part.names, strict=True)
                    ]
        finally:
            client.cancel(list(asked))


def map_fields(
    build: Callable[[Any], Any],
    images: Any,
    task: str = "map",
    *,
    store: Any = None,
    names: Sequence[str] | None = None,
    client: Client | None = None,
    **options: Any,
) -> FieldMap:
    """A field for each of many images, and the answer to a task with its certificate.

    Nothing is computed before ``compute`` is called, nor is any image loaded here: chunk by chunk,
    a worker loads images, builds their fields, solves them and writes what it found. An image that
    fails is a row with its error, and does not stop the rest. With a ``store`` a second call does
    what the first has left: what is done is not done again, what failed is tried once more.

    Parameters
    ----------
    build : callable
        image -> ``Field``, or a ``Field`` and the shape that its answers shall have, as (H, W). It
        is run on the workers.
    images : dask, zarr, xarray or NumPy array of shape (n, ...), or a list
        Of an array the first axis counts the images. Of a list each entry is one: a ``Delayed``
        object, or anything that ``build`` takes, as a file name.
    task : {"map", "marginals", "diverse", "decide"}, default="map"
        ``solve_map``, ``marginals``, ``diverse``, or ``decide`` of the marginals of ``label`` (1 by
        default) for ``loss``.
    store : str, Path or zarr store, optional
        Where the answers go, a zarr group an image; by default they come back to the client.
    names : sequence of str, optional
        What to call the images in rows and summary; by default file names, or their places.
    client : distributed.Client, optional
        By default the one that was made last; where there is none, this process does the work.
    **options
        Of the function that the task stands for, as ``tol`` or ``m``. ``n_jobs`` is 1 unless it is
        given: workers are many already.

    Returns
    -------
    FieldMap
        Whose ``compute`` gives ``FieldResults``: rows, arrays, and a summary.

    Examples
    --------
    Four images of 6 by 6 pixels, of which one is broken:

    >>> import numpy as np
    >>> import setwise as sw
    >>> from setwise.dask import map_fields
    >>> images = np.random.default_rng(0).normal(size=(4, 6, 6))
    >>> images[2] = np.nan
    >>> def build(image):
    ...     unary = np.stack([image.ravel(), -image.ravel()], axis=1)
    ...     edges = sw.fields.grid_edges(image.shape)
    ...     return sw.fields.Field(unary) + sw.fields.Potts(edges, 0.5), image.shape
    >>> results = map_fields(build, images).compute()
    >>> results[0]["labels"].shape, results.n_proved, len(results.failed)
    ((6, 6), 3, 1)
    >>> print(results.summary())
    map of 4 images: 3 done, 3 proved, 1 failed
      image 2: ValueError: unary must hold numbers or +inf, got nan
    """
    as_function(build, "build")
    as_choice(task, "task", TASKS)
    _check_options(task, options)
    parts = _parts(images, names)
    held = None if client is None else as_client(client)
    place = None if store is None else FieldStore(store)
    return FieldMap(FieldJob(build, task, options, place), parts, held)


def _check_options(task: str, options: dict[str, Any]) -> None:
    call, own = _CALLS[task]
    known = {*inspect.signature(call).parameters, *own} - {"field", "callback", "verbose", "init"}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(
            f"options of task={task!r} must be among {', '.join(sorted(known))}, got {unknown[0]!r}"
            f"{did_you_mean(unknown[0], known)}"
        )
    needed = {"diverse": "m", "decide": "loss"}.get(task)
    if needed is not None and needed not in options:
        raise TypeError(f"{needed} must be given for task={task!r}, got none")


def _parts(images: Any, names: Sequence[str] | None) -> list[_Part]:
    """The images as tasks have them."""
    array = _as_array(images)
    if array is not None and array.ndim < 2:
        raise ValueError(f"images must have shape (n, ...), got {array.ndim} dimension(s)")
    if not isinstance(array, da.Array):
        # Each image by itself, so that a task carries its own and no other.
        items = as_list(images, "images", "images") if array is None else list(array)
        called = _names(names, [x if isinstance(x, str) else str(k) for k, x in enumerate(items)])
        return [_Part([item], [k], [called[k]]) for k, item in enumerate(items)]
    if np.isnan(array.shape[0]):
        array = array.compute_chunk_sizes()
    array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    called = _names(names, [str(k) for k in range(array.shape[0])])
    ends = np.concatenate([[0], np.cumsum(array.chunks[0])])
    parts = []
    for chunk, begin, end in zip(array.to_delayed().ravel(), ends[:-1], ends[1:], strict=True):
        places = list(range(int(begin), int(end)))
        if places:
            parts.append(_Part(chunk, places, [called[k] for k in places]))
    return parts


def _as_array(images: Any) -> da.Array | NDArray[Any] | None:
    if isinstance(images, da.Array):
        return images
    kind = type(images).__module__.partition(".")[0]
    if kind == "zarr":
        return da.from_zarr(images)
    if kind == "xarray":
        inner = images.data
        return inner if isinstance(inner, da.Array) else _as_array(np.asarray(inner))
    if isinstance(images, np.ndarray) and images.ndim > 0 and images.dtype.kind != "U":
        return images
    return None


def _names(names: Sequence[str] | None, usual: list[str]) -> list[str]:
    if names is None:
        return usual
    given = as_list(names, "names", "words")
    if len(given) != len(usual) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"names must be {len(usual)} words, one an image, got {len(given)}")
    return given


def _one(part: _Part, k: int) -> Any:
    """The k-th image alone."""
    return [part.source[k]]


def _default() -> Client | None:
    try:
        return default_client()
    except ValueError:
        return None
