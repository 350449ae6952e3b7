"""Answers of many images in zarr: a group an image, whose row is written when all else is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from setwise.dask._field_results import FieldRow


@dataclass(frozen=True)
class FieldStore:
    """A zarr group with a group for each image.

    Images are written by whichever worker has them, and no two write to one place. The row is the
    mark that an image is done: a worker that dies before leaves arrays that are written over.
    """

    path: Any

    def open(self, task: str, n: int) -> None:
        """Begin, or go on with what is there: of the same task and as many images."""
        group = zarr.open_group(self.path, mode="a")
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
        """The row of an image, if it is there."""
        try:
            own = zarr.open_group(self.path, mode="r", path=_name(place))
        except FileNotFoundError:
            return None
        text = own.attrs.get("row")
        return None if text is None else FieldRow.of_text(text)

    def write(self, row: FieldRow, arrays: dict[str, NDArray[Any]]) -> None:
        """The arrays, and then the row."""
        own = zarr.open_group(self.path, mode="a", path=_name(row.image))
        for name, values in arrays.items():
            own.create_array(name, data=np.ascontiguousarray(values), overwrite=True)
        own.attrs["row"] = row.as_text()

    def arrays(self, place: int) -> dict[str, NDArray[Any]]:
        """What was written of an image."""
        own = zarr.open_group(self.path, mode="r", path=_name(place))
        return {name: np.asarray(own[name][...]) for name in own.array_keys()}


def _name(place: int) -> str:
    return f"{place:08d}"
