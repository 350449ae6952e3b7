"""What a map over many images leaves: a row an image, and which of them to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import did_you_mean

if TYPE_CHECKING:
    from setwise.dask._field_store import FieldStore

_SHOWN = 5


@dataclass(frozen=True)
class FieldRow:
    """The certificate of one image.

    Attributes
    ----------
    image : int
        Its place.
    name : str
        Its file name, or its place as a word.
    value, bound, gap : float
        Of the task: an energy ("map"), an upper bound on log Z ("marginals"), the energy of the
        first item, with the largest gap of all ("diverse"), an expected loss ("decide").
    relative_gap : float
        The gap as a share, as the result of the task has it.
    proved : bool
        Whether the answer is proved: exact, of marginals within ``tol``.
    seconds : float
        What it took, the field included.
    reason : str
        Which method, and why.
    error : str or None
        What went wrong, if something did; all numbers are NaN then.

    Examples
    --------
    >>> from setwise.dask import FieldRow
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
        """The row of an image that could not be done."""
        words = f"{type(error).__name__}: {error}"
        return cls(image, name, *(float("nan"),) * 4, False, seconds, "", words)

    def as_text(self) -> dict[str, Any]:
        """Words and whole numbers alone, which every JSON keeps, whatever the floats are."""
        numbers = {"value", "bound", "gap", "relative_gap", "seconds"}
        return {
            own.name: repr(float(getattr(self, own.name)))
            if own.name in numbers
            else getattr(self, own.name)
            for own in fields(self)
        }

    @classmethod
    def of_text(cls, text: Mapping[str, Any]) -> FieldRow:
        """What ``as_text`` wrote."""
        numbers = {"value", "bound", "gap", "relative_gap", "seconds"}
        given: dict[str, Any] = {k: float(v) if k in numbers else v for k, v in text.items()}
        return cls(**given)


@dataclass(frozen=True, eq=False)
class FieldResults:
    """Rows and arrays of a map over images.

    Attributes
    ----------
    rows : list of FieldRow
        In the order of the images; those that were not reached, if the map was stopped, are absent.
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

    rows: list[FieldRow]
    task: str
    n_images: int
    _arrays: Mapping[int, Mapping[str, NDArray[Any]]]
    _store: FieldStore | None

    def __getitem__(self, image: int) -> Mapping[str, NDArray[Any]]:
        if not 0 <= image < self.n_images:  # which is also what ends a loop over the results
            raise IndexError(f"image must lie between 0 and {self.n_images - 1}, got {image}")
        if self._store is not None:
            return self._store.arrays(image)
        return self._arrays[image]

    @property
    def n_proved(self) -> int:
        """How many answers are proved."""
        return sum(row.proved for row in self.rows)

    @property
    def failed(self) -> list[FieldRow]:
        """The rows with an error."""
        return [row for row in self.rows if row.error is not None]

    def largest_gaps(self, n: int = _SHOWN) -> list[FieldRow]:
        """The rows that are not proved, the largest relative gap first."""
        unproved = [row for row in self.rows if row.error is None and not row.proved]
        return sorted(unproved, key=lambda row: (-_size(row.relative_gap), row.image))[:n]

    def look_at(self, n: int = 2 * _SHOWN) -> list[FieldRow]:
        """What to look at: first what failed, then the largest gaps."""
        return [*self.failed, *self.largest_gaps(n)][:n]

    def stacked(self, key: str) -> NDArray[Any]:
        """One array of all images, where theirs are of one shape: those that failed are left out.

        Parameters
        ----------
        key : str
            As in ``results[i]``.
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
        """How many are done and proved, the largest gaps, what failed: for people."""
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
        """The rows as a pandas DataFrame."""
        import pandas as pd  # type: ignore[import-untyped]

        return pd.DataFrame([row.__dict__ for row in self.rows])


def rows_in_order(rows: Sequence[FieldRow]) -> list[FieldRow]:
    """By the place of their images."""
    return sorted(rows, key=lambda row: row.image)


def _size(gap: float) -> float:
    return inf if np.isnan(gap) else gap
