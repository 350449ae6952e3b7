"""A lazy map that solves one field per image on a cluster, with a certificate for each image."""

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
from setwise._foundation._warnings import warn_caller
from setwise.dask._executor import ATTEMPTS, as_client
from setwise.dask._maps._field_answers import TASKS, FieldJob, ImageAnswer
from setwise.dask._maps._field_results import FieldResults, FieldRow, FieldStore, rows_in_order
from setwise.dask._worker_watch import cancel, check_open, watched
from setwise.inference._diverse._diverse import diverse
from setwise.inference._map._solve_map import solve_map
from setwise.inference._marginals._marginals import marginals

_CALLS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "map": (solve_map, set()),
    "marginals": (marginals, set()),
    "diverse": (diverse, set()),
    "decide": (marginals, {"loss", "label"}),
}


@dataclass(frozen=True, eq=False)
class _ImageBatch:
    """The images of one task: their source, indices and names."""

    source: Any
    places: list[int]
    names: list[str]


class FieldMap:
    """A lazy map over images, which ``compute`` evaluates.

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

    def __init__(self, job: FieldJob, parts: list[_ImageBatch], client: Client | None) -> None:
        self._job, self._parts, self._client = job, parts, client
        self.n_images = sum(len(part.places) for part in parts)

    def __repr__(self) -> str:
        return f"FieldMap({self._job.task} of {self.n_images} images)"

    def to_delayed(self) -> list[Delayed]:
        """Return a ``Delayed`` for each chunk of images: its rows, and its arrays without a store.

        No warnings are issued: the attribute ``warnings`` of each answer contains them.
        """
        ask = delayed(self._job, pure=False)
        return [ask(part.source, part.places, part.names) for part in self._parts]

    def compute(self, callback: Callable[[FieldRow], object] | None = None) -> FieldResults:
        """Solve the images that the store does not contain yet.

        Parameters
        ----------
        callback : callable, optional
            Called on the client with the ``FieldRow`` of each image that is done, in any order. A
            true return value stops the map; what was written to a store stays.

        Returns
        -------
        FieldResults

        Warns
        -----
        UserWarning
            If a field of ``build`` looks like a mistake, for instance if its unaries look like
            probabilities. Each warning is issued once per call, for any number of images.
        """
        check_callback(callback)
        store, warned = self._job.store, set[str]()
        answers: dict[int, ImageAnswer] = {}
        if store is not None:
            store.open(self._job.task, self.n_images)
        for done in self._answers(self._left(answers)):
            stop = False
            for answer in done:
                answers[answer.row.image] = answer
                for sentence in set(answer.warnings) - warned:
                    warned.add(sentence)
                    warn_caller(f"image {answer.row.name}, and perhaps others: {sentence}")
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

    def _left(self, answers: dict[int, ImageAnswer]) -> list[_ImageBatch]:
        """Return the parts with images left to solve. Add the rows of all others to ``answers``."""
        store, left = self._job.store, []
        for part in self._parts:
            rows = [None if store is None else store.row(place) for place in part.places]
            if any(row is None or row.error is not None for row in rows):
                left.append(part)
            else:
                answers.update((row.image, ImageAnswer(row, {})) for row in rows if row is not None)
        return left

    def _answers(self, parts: list[_ImageBatch]) -> Iterator[list[ImageAnswer]]:
        client = self._client or _default()
        if client is None:
            for part in parts:
                items = dask.compute(part.source, scheduler="sync")[0]
                yield self._job(items, part.places, part.names)
            return
        lost, suspects = parts, list[_ImageBatch]()
        for _ in range(ATTEMPTS):
            lost, forgotten = [], lost
            yield from self._asked(client, forgotten, lost, suspects)
        suspects += lost
        # An image that kills its worker also takes down the others that wait there. Each image is
        # submitted by itself, so that the others are solved.
        for part in suspects:
            for k in range(len(part.places)):
                yield from self._asked(client, [_single(part, k)])

    def _asked(
        self,
        client: Client,
        parts: list[_ImageBatch],
        lost: list[_ImageBatch] | None = None,
        suspects: list[_ImageBatch] | None = None,
    ) -> Iterator[list[ImageAnswer]]:
        """Yield the answers in the order in which they are done.

        Parts that the scheduler forgot are appended to ``lost``, and parts whose workers died to
        ``suspects``. Without these lists, such parts become rows with an error.
        """
        check_open(client)
        ask = delayed(self._job, pure=False)
        # One graph, so that data which chunks share, such as their array, is sent once.
        graph = [ask(part.source, part.places, part.names) for part in parts]
        asked = dict(zip(client.compute(graph), parts, strict=True))
        try:
            with watched(client, list(asked)) as watch:
                for future in as_completed(list(asked)):
                    part = asked.pop(future)
                    try:
                        found = future.result()
                    except Exception as error:
                        watch.check()
                        if isinstance(error, CancelledError) and lost is not None:
                            lost.append(part)
                            continue
                        if isinstance(error, KilledWorker) and suspects is not None:
                            suspects.append(part)
                            continue
                        found = [
                            ImageAnswer(FieldRow.failed(place, name, error, float("nan")), {})
                            for place, name in zip(part.places, part.names, strict=True)
                        ]
                    yield found
        finally:
            cancel(client, list(asked))


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
    """Solve a task for the field of each image, with a certificate per image.

    Nothing is computed before ``compute`` is called, and no image is loaded on the client. A worker
    takes a chunk of images, loads them, builds and solves their fields and writes the answers. An
    image that fails becomes a row with its error and does not stop the others. With a ``store``, a
    second call solves only images that are missing, failed or damaged in the store. Workers may
    join and leave as for ``DaskExecutor``.

    Parameters
    ----------
    build : callable
        A function from an image to a ``Field``, or to a ``Field`` and the shape of its answers, for
        instance (H, W). It runs on the workers.
    images : dask, zarr, xarray or NumPy array of shape (n, ...), or a list
        The first axis of an array runs over the images. An entry of a list is a ``Delayed`` object
        or anything that ``build`` accepts, for instance a file name.
    task : {"map", "marginals", "diverse", "decide"}, default="map"
        The function to call: ``solve_map``, ``marginals``, ``diverse``, or ``decide`` for the
        marginals of ``label`` (1 by default) and ``loss``.
    store : str, Path or zarr store, optional
        Where to write the answers, in a zarr group per image. By default they are returned to the
        client.
    names : sequence of str, optional
        The names of the images in rows and in the summary. The default are file names, or indices.
    client : distributed.Client, optional
        The default is the client that was created last. Without any client, this process does the
        work.
    **options
        Options of the function that the task calls, for instance ``tol`` or ``m``. The default of
        ``n_jobs`` is 1, because the workers already run in parallel.

    Returns
    -------
    FieldMap
        A lazy map. Its ``compute`` returns ``FieldResults``: rows, arrays and a summary.

    Examples
    --------
    Solve four images of 6 by 6 pixels, one of which contains NaN:

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


def _parts(images: Any, names: Sequence[str] | None) -> list[_ImageBatch]:
    """Return the images in parts, one per task."""
    array = _as_array(images)
    if array is not None and array.ndim < 2:
        raise ValueError(f"images must have shape (n, ...), got {array.ndim} dimension(s)")
    if not isinstance(array, da.Array):
        # One image per part, so that a task carries no other image.
        items = as_list(images, "images", "images") if array is None else list(array)
        called = _names(names, [x if isinstance(x, str) else str(k) for k, x in enumerate(items)])
        return [_ImageBatch([item], [k], [called[k]]) for k, item in enumerate(items)]
    if np.isnan(array.shape[0]):
        array = array.compute_chunk_sizes()
    array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
    called = _names(names, [str(k) for k in range(array.shape[0])])
    ends = np.concatenate([[0], np.cumsum(array.chunks[0])])
    parts = []
    for chunk, begin, end in zip(array.to_delayed().ravel(), ends[:-1], ends[1:], strict=True):
        places = list(range(int(begin), int(end)))
        if places:
            parts.append(_ImageBatch(chunk, places, [called[k] for k in places]))
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


def _single(part: _ImageBatch, k: int) -> _ImageBatch:
    """Return a list with the k-th image."""
    return _ImageBatch([part.source[k]], [part.places[k]], [part.names[k]])


def _default() -> Client | None:
    try:
        return default_client()
    except ValueError:
        return None
