"""Labels of a volume on disk, with a table of the results of each block."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from json import JSONDecodeError
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec
from zarr.core.sync import sync

from setwise.inference._editing._sliceable import Window

OPEN = 2
"""The state of a voxel without a label; a missing chunk has no labels."""
PROPOSED = 3
"""The state of an open voxel for which sweeps propose label 0; for label 1 it is one more."""

_FORMAT = 1


class DamagedLabels(OSError):
    """An error for labels that were written and can no longer be read."""


class LabelStore:
    """A zarr group with the labels "0", where 2 is a voxel without a label, and tables of rounds.

    Labels that are in the store are those of the best labelling, whatever has happened since, so
    an interrupted run can be continued from any state of it.
    """

    def __init__(self, path: Any) -> None:
        self.path = path

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    @cached_property
    def group(self) -> zarr.Group:
        return zarr.open_group(self.path, mode="r+")

    @cached_property
    def labels(self) -> zarr.Array:
        array = self.group["0"]
        assert isinstance(array, zarr.Array)
        return array

    def open(
        self,
        settings: Mapping[str, Any],
        sides: tuple[int, ...],
        chunks: tuple[int, ...],
        ome: Mapping[str, Any],
    ) -> None:
        """Create the group, or check that it has labels of the same volume and settings."""
        try:
            group = zarr.open_group(self.path, mode="a")
            known: Any = group.attrs.get("setwise")
        except JSONDecodeError as error:
            raise ValueError(
                f"store must be a zarr group, got {self.path!r}, whose own zarr.json is damaged "
                f"({error}): give another path"
            ) from error
        now = {"format": _FORMAT, **settings}
        if known is None:
            if len(list(group)):
                raise ValueError(
                    f"store must be empty or of an earlier solve_map, got {self.path!r} with other "
                    "things in it"
                )
            self._create(group, now, sides, chunks, ome)
            return
        for key, value in now.items():
            if known.get("settings", {}).get(key) != value:
                raise ValueError(
                    f"store must be of the same volume and settings, got {key} "
                    f"{known.get('settings', {}).get(key)!r} in {self.path!r} and {value!r} now: "
                    "give another path"
                )
        if "0" not in group:
            self._create(group, now, sides, chunks, ome)

    def _create(
        self,
        group: zarr.Group,
        settings: dict[str, Any],
        sides: tuple[int, ...],
        chunks: tuple[int, ...],
        ome: Mapping[str, Any],
    ) -> None:
        group.create_array(
            "0",
            shape=sides,
            chunks=chunks,
            dtype="uint8",
            fill_value=OPEN,
            compressors=[ZstdCodec(level=1, checksum=True)],
            dimension_names=["z", "y", "x"][3 - len(sides) :],
            overwrite=True,
        )
        group.attrs.update({"ome": dict(ome), "setwise": {"settings": settings, "found": {}}})

    @property
    def found(self) -> dict[str, Any]:
        """The results of earlier passes: numbers and lists of numbers."""
        attributes: Any = self.group.attrs["setwise"]
        return dict(attributes["found"])

    def find(self, **numbers: Any) -> None:
        """Add a result."""
        attributes: Any = self.group.attrs["setwise"]
        self.group.attrs["setwise"] = {**attributes, "found": {**attributes["found"], **numbers}}

    def read(self, window: Window, *, proposed: bool = False) -> NDArray[np.uint8]:
        """Return the labels of a window, optionally with the proposed ones."""
        try:
            states = np.ascontiguousarray(self.labels[window], np.uint8)
            return states if proposed else np.minimum(states, np.uint8(OPEN))
        except Exception as error:  # codecs raise errors of many kinds
            lost = self._remove_damaged(window)
            raise DamagedLabels(
                f"labels in {lost or 'the store'} cannot be read ({type(error).__name__}: {error})"
                + (" and were removed" if lost else "")
            ) from error

    def write(self, window: Window, labels: NDArray[np.uint8]) -> None:
        """Write the labels of a window, which consists of whole chunks."""
        self.labels[window] = labels

    def missing(self) -> tuple[int, ...] | None:
        """Return the first voxel of a chunk that was never written or has been removed."""
        if self.labels.nchunks_initialized == self.labels.nchunks:
            return None
        for chunk in np.ndindex(*self.labels.cdata_shape):
            if not sync((self.labels.store_path / self._key(chunk)).exists()):
                return tuple(at * side for at, side in zip(chunk, self.labels.chunks, strict=True))
        return None

    def table(self, name: str, rows: int, columns: int) -> NDArray[np.float64]:
        """Return the table of a round; rows that are not done hold NaN."""
        key = f"rounds/{name}"
        with suppress(Exception):
            array = self.group[key]
            if isinstance(array, zarr.Array) and array.shape == (rows, columns):
                return np.asarray(array[:], np.float64)
        self.group.create_array(
            key,
            shape=(rows, columns),
            chunks=(min(max(rows, 1), 256), columns),
            dtype="float64",
            fill_value=np.nan,
            overwrite=True,
        )
        return np.full((rows, columns), np.nan)

    def write_row(self, name: str, number: int, row: NDArray[np.float64]) -> None:
        """Write a row of a table."""
        array = self.group[f"rounds/{name}"]
        assert isinstance(array, zarr.Array)
        array[number] = row

    def forget_rounds(self) -> None:
        """Remove all tables: the next run reads which voxels are open."""
        self.find(rounds=None, again=True)
        if "rounds" in self.group:
            del self.group["rounds"]

    def forget_labels(self) -> None:
        """Make all voxels open."""
        for place in np.ndindex(*self.labels.cdata_shape):
            self._remove(place)
        self.find(again=False, unproved=False)

    def _remove_damaged(self, window: Window) -> str | None:
        """Remove the chunks of a window that cannot be read, and name the first one."""
        sides, first = self.labels.chunks, None
        ranges = [
            range(part.start // side, -(-part.stop // side))
            for part, side in zip(window, sides, strict=True)
        ]
        for place in np.ndindex(*map(len, ranges)):
            chunk = tuple(own[k] for own, k in zip(ranges, place, strict=True))
            part = tuple(
                slice(at * side, min((at + 1) * side, end))
                for at, side, end in zip(chunk, sides, self.labels.shape, strict=True)
            )
            try:
                np.asarray(self.labels[part])
            except Exception:
                self._remove(chunk)
                first = first or f"the chunk at {tuple(own.start for own in part)}"
        return first

    def _remove(self, chunk: tuple[int, ...]) -> None:
        sync((self.labels.store_path / self._key(chunk)).delete())

    def _key(self, chunk: tuple[int, ...]) -> str:
        return str(self.labels.metadata.encode_chunk_key(chunk))
