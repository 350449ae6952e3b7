"""The results of a map over many images: a row per image, and arrays in memory or in zarr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from json import JSONDecodeError
from math import inf
from typing import Any
from zlib import crc32

import numpy as np
import zarr
from numpy.typing import NDArray

from setwise._foundation._arguments import did_you_mean
from setwise._foundation._base_classes import Record

_SHOWN = 5  # the number of rows that a summary lists per kind, so that it fits on a screen


@dataclass(frozen=True, repr=False)
class FieldRow(Record):
    """The certificate of one image.

    Attributes
    ----------
    image : int
        The index of the image.
    name : str
        The file name of the image, or its index as a string.
    value, bound, gap : float
        The value that the task optimises: an energy ("map"), an upper bound on log Z
        ("marginals"), the energy of the first item, with the largest gap of all items
        ("diverse"), or an expected loss ("decide").
    relative_gap : float
        The relative gap, as the result of the task defines it.
    proved : bool
        Whether the answer is proved to be exact, or for marginals to be within ``tol``.
    seconds : float
        The time for building the field and solving it.
    reason : str
        The method that was used, and why.
    error : str or None
        The error message if the image failed. Then all numbers are NaN.

    Examples
    --------
    >>> from setwise.dask._maps._field_results import FieldRow
    >>> FieldRow.failed(3, "3", ValueError("no pixels"), 0.5).error
    'ValueError: no pixels'
    """

    image: int
    name: str
    value: float
    bound: float
    gap: float
    relative_gap: float
    proved: bool
    seconds: float
    reason: str
    error: str | None

    @classmethod
    def failed(cls, image: int, name: str, error: BaseException, seconds: float) -> FieldRow:
        """Return the row of an image that failed."""
        words = f"{type(error).__name__}: {error}"
        return cls(image, name, *(float("nan"),) * 4, False, seconds, "", words)

    def as_text(self) -> dict[str, Any]:
        """Return the row with floats as strings, because JSON has no infinity and no NaN."""
        numbers = {"value", "bound", "gap", "relative_gap", "seconds"}
        return {
            own.name: repr(float(getattr(self, own.name)))
            if own.name in numbers
            else getattr(self, own.name)
            for own in fields(self)
        }

    @classmethod
    def of_text(cls, text: Mapping[str, Any]) -> FieldRow:
        """Return the row that ``as_text`` wrote."""
        numbers = {"value", "bound", "gap", "relative_gap", "seconds"}
        given: dict[str, Any] = {k: float(v) if k in numbers else v for k, v in text.items()}
        return cls(**given)


@dataclass(frozen=True)
class FieldStore:
    """A zarr group with a group for each image.

    Each image is written by one worker, in its own group. The row is written last and marks the
    image as done: arrays without a row, left by a worker that died, are overwritten. The row has
    checksums beside it, because zarr reads a chunk whose file is missing as zeros.
    """

    path: Any

    def open(self, task: str, n: int) -> None:
        """Create the group, or check that it has the same task and number of images."""
        try:
            group = zarr.open_group(self.path, mode="a")
        except JSONDecodeError as error:
            raise ValueError(
                f"store must be a zarr group, got {self.path!r}, whose own zarr.json is damaged "
                f"({error}): give another path"
            ) from error
        known = group.attrs.get("setwise")
        now = {"task": task, "n_images": n}
        if known is None:
            if len(list(group)):
                raise ValueError(
                    f"store must be empty or of an earlier map_fields, got {self.path!r} with "
                    "other things in it"
                )
            group.attrs["setwise"] = now
        elif known != now:
            raise ValueError(
                f"store must be of the same task and number of images, {now}, got {known}: give "
                "another path"
            )

    def row(self, place: int) -> FieldRow | None:
        """Return the row of an image, or None if the row is missing or any array is damaged."""
        try:
            own = zarr.open_group(self.path, mode="r", path=_name(place))
            row = FieldRow.of_text(own.attrs["row"])
            _arrays(own)
        except Exception:  # zarr and its codecs raise errors of many kinds
            return None
        return row

    def write(self, row: FieldRow, arrays: dict[str, NDArray[Any]]) -> None:
        """Write the arrays and then the row, and replace what is there."""
        own = zarr.open_group(self.path, mode="w", path=_name(row.image))
        for name, values in arrays.items():
            own.create_array(name, shape=values.shape, dtype=values.dtype)[...] = values
        checksums = {name: _checksum(values) for name, values in arrays.items()}
        own.attrs.update({"checksums": checksums, "row": row.as_text()})

    def arrays(self, place: int) -> dict[str, NDArray[Any]]:
        """Return the arrays that were written for an image."""
        return _arrays(zarr.open_group(self.path, mode="r", path=_name(place)))


def _arrays(own: zarr.Group) -> dict[str, NDArray[Any]]:
    """Return the arrays of an image. Raise an error if a checksum differs."""
    checksums: Any = own.attrs["checksums"]
    arrays = {name: np.asarray(own[name]) for name in checksums}
    for name, values in arrays.items():
        if checksums[name] != _checksum(values):
            raise ValueError(f"{name} is not what was written")
    return arrays


def _checksum(values: NDArray[Any]) -> int:
    return crc32(np.ascontiguousarray(values).tobytes())


def _name(place: int) -> str:
    return f"{place:08d}"


@dataclass(frozen=True, eq=False, repr=False)
class FieldResults(Record):
    """The rows and arrays of a map over images.

    Attributes
    ----------
    rows : list of FieldRow
        In the order of the images. Images that a stopped map did not reach are absent.
    task : str
    n_images : int

    ``results[i]`` are the arrays of image i, by name: "labels" ("map"), "probabilities"
    ("marginals"), "labelings" and "values" ("diverse"), "mask" and "probabilities" ("decide").

    Examples
    --------
    >>> import numpy as np
    >>> import setwise as sw
    >>> from setwise.dask import map_fields
    >>> images = np.random.default_rng(0).normal(size=(3, 4, 2))
    >>> results = map_fields(sw.fields.Field, images).compute()
    >>> results[0]["labels"].shape, results.n_proved
    ((4,), 3)
    >>> print(results.summary())
    map of 3 images: 3 done, 3 proved, 0 failed
    """

    _printed = "task n_images n_proved failed"

    rows: list[FieldRow]
    task: str
    n_images: int
    _arrays: Mapping[int, Mapping[str, NDArray[Any]]]
    _store: FieldStore | None

    def __getitem__(self, image: int) -> Mapping[str, NDArray[Any]]:
        if not 0 <= image < self.n_images:  # IndexError also ends a loop over the results
            raise IndexError(f"image must lie between 0 and {self.n_images - 1}, got {image}")
        if self._store is None:
            return self._arrays[image]
        try:
            return self._store.arrays(image)
        except FileNotFoundError:  # the map was stopped before this image
            raise
        except Exception as error:  # zarr and its codecs raise errors of many kinds
            name = next((row.name for row in self.rows if row.image == image), image)
            raise ValueError(
                f"store must hold the answer for image {name} whole, got a damaged one ({error}): "
                "compute() makes it anew"
            ) from error

    @property
    def n_proved(self) -> int:
        """The number of proved answers."""
        return sum(row.proved for row in self.rows)

    @property
    def failed(self) -> list[FieldRow]:
        """The rows with an error."""
        return [row for row in self.rows if row.error is not None]

    def largest_gaps(self, n: int = _SHOWN) -> list[FieldRow]:
        """Return at most ``n`` rows without a proof, those with the largest relative gap first."""
        unproved = [row for row in self.rows if row.error is None and not row.proved]
        return sorted(unproved, key=lambda row: (-_size(row.relative_gap), row.image))[:n]

    def look_at(self, n: int = 2 * _SHOWN) -> list[FieldRow]:
        """Return at most ``n`` rows to inspect: first those that failed, then the largest gaps."""
        return [*self.failed, *self.largest_gaps(n)][:n]

    def stacked(self, key: str) -> NDArray[Any]:
        """Stack the arrays of all images that did not fail. They must have the same shape.

        Parameters
        ----------
        key : str
            The name of an array in ``results[i]``.
        """
        found = [self[row.image] for row in self.rows if row.error is None]
        known = sorted(found[0]) if found else []
        if key not in known:
            near = did_you_mean(key, known)
            raise ValueError(
                f"key must be one of {known} for task {self.task!r}, got {key!r}{near}"
            )
        shapes = {arrays[key].shape for arrays in found}
        if len(shapes) > 1:
            raise ValueError(
                f"images must be of one shape to be stacked, got {sorted(shapes)[:2]} and others"
            )
        return np.stack([arrays[key] for arrays in found])

    def summary(self) -> str:
        """Return a readable summary: the numbers of images, the largest gaps, and the failures."""
        done = sum(row.error is None for row in self.rows)
        lines = [
            f"{self.task} of {self.n_images} images: {done} done, {self.n_proved} proved, "
            f"{len(self.failed)} failed"
        ]
        lines += [
            f"  image {row.name}: relative gap {row.relative_gap:.2g} ({row.reason})"
            for row in self.largest_gaps()
        ]
        lines += [f"  image {row.name}: {row.error}" for row in self.failed[:_SHOWN]]
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        import pandas as pd  # type: ignore[import-untyped]

        return pd.DataFrame([row.__dict__ for row in self.rows])


def rows_in_order(rows: Sequence[FieldRow]) -> list[FieldRow]:
    """Return the rows in the order of the images."""
    return sorted(rows, key=lambda row: row.image)


def _size(gap: float) -> float:
    return inf if np.isnan(gap) else gap
