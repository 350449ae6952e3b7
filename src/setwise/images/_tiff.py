"""TIFF files: pages, stacks, OME-TIFF and ImageJ's, with their axes and spacing."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any, BinaryIO
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from setwise.images._picture import Picture

# Names of axes in TIFF series that enumerate slices if there is no Z.
_SLICES = "QI"


def read_tiff(tifffile: Any, file: BinaryIO, most_bytes: int) -> Picture:
    """Read the first series of a TIFF file."""
    with _damage_refused(), tifffile.TiffFile(file) as tiff:
        series = tiff.series[0]
        if len(tiff.series) > 1:
            shapes = ", ".join(str(one.shape) for one in tiff.series[:3])
            raise ValueError(
                f"it must hold one picture or stack, got {shapes}: save each as a file"
            )
        axes, shape = series.axes, series.shape
        check_bytes(shape, series.dtype, most_bytes)
        _check_complete(series, tiff.filehandle.size)
        for name in _SLICES:
            if "Z" not in axes:
                axes = axes.replace(name, "Z", 1)
        axes = axes.replace("S", "C")
        spacing, unit = _spacing(tiff, axes)
        return arranged(series.asarray(), axes.lower(), spacing, unit)


@contextmanager
def _damage_refused() -> Iterator[None]:
    """Raise a ``ValueError`` at the end if tifffile has logged that it skipped damaged data."""
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, handler = logging.getLogger("tifffile"), Handler(logging.ERROR)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    if found:
        raise ValueError(f"it is damaged: {found[0]}")


def arranged(
    pixels: NDArray[Any], axes: str, spacing: dict[str, float] | None, unit: str | None
) -> Picture:
    """Return a picture of an array whose axes have the letters z, y, x, c and t as names."""
    for k in reversed(range(len(axes))):
        if axes[k] in "zyx" and axes.count(axes[k]) == 1:
            continue
        if pixels.shape[k] == 1:
            pixels, axes = pixels.take(0, axis=k), axes[:k] + axes[k + 1 :]
        elif axes[k] != "c" or axes.count("c") > 1:
            raise ValueError(
                f"it must hold one image or volume with channels, got the axes {axes.upper()} of "
                f"shape {pixels.shape}: save each {'time' if axes[k] == 't' else axes[k].upper()} "
                "as a file"
            )
    sides = axes.replace("c", "")
    if len(sides) not in (2, 3):
        raise ValueError(f"it must have two or three sides, got the axes {axes.upper()}")
    steps = None if spacing is None else tuple(spacing.get(name, 1.0) for name in sides)
    if steps is not None and not all(isfinite(step) and step > 0 for step in steps):
        steps = None
    return Picture(pixels, axes.index("c") if "c" in axes else None, steps, unit if steps else None)


def check_bytes(shape: tuple[int, ...], dtype: Any, most: int) -> None:
    """Check that an array fits into the memory for it."""
    needed = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if needed > most:
        raise ValueError(
            f"it must hold at most {most >> 20} MiB, half of this machine's memory, got shape "
            f"{shape} with {needed >> 20} MiB: sw.dask.solve_map cuts volumes larger than memory"
        )


def _check_complete(series: Any, size: int) -> None:
    """Check that the file has all bytes that its pages announce; missing ones would read as 0."""
    ends = [
        offset + count
        for page in series.pages
        if page is not None
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True)
    ]
    if series.dataoffset is not None:  # the array is stored as one block
        ends.append(series.dataoffset + series.nbytes)
    if max(ends, default=0) > size:
        raise ValueError(f"it is cut off: it announces {max(ends)} bytes and has {size}")


def _spacing(tiff: Any, axes: str) -> tuple[dict[str, float] | None, str | None]:
    """Return the spacing of the axes z, y and x, and its unit."""
    if tiff.is_ome and tiff.ome_metadata:
        return _ome_spacing(tiff.ome_metadata)
    page = tiff.pages[0]
    found: dict[str, float] = {}
    for name, tag in (("y", "YResolution"), ("x", "XResolution")):
        if tag in page.tags:
            pixels, length = page.tags[tag].value
            if pixels and length:
                found[name] = length / pixels
    described = tiff.imagej_metadata if tiff.is_imagej else None
    if not described or "x" not in found:
        # Photographs have a resolution for printing, which says nothing about the scene.
        return None, None
    if "Z" in axes:
        found["z"] = float(described.get("spacing", 1.0))
    return found, _unit(described.get("unit"))


def _ome_spacing(text: str) -> tuple[dict[str, float] | None, str | None]:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None, None
    pixels = next((node for node in root.iter() if node.tag.endswith("}Pixels")), None)
    if pixels is None:
        return None, None
    known = pixels.attrib
    found = {
        name.lower(): float(known[f"PhysicalSize{name}"])
        for name in "XYZ"
        if f"PhysicalSize{name}" in known
    }
    unit = known.get("PhysicalSizeXUnit", "µm")
    return (found, _unit(unit)) if "x" in found and "y" in found else (None, None)


def _unit(unit: object) -> str | None:
    """Return the name of a unit as OME-Zarr spells it."""
    names = {
        "µm": "micrometer",
        "um": "micrometer",
        "micron": "micrometer",
        "\\u00B5m": "micrometer",
    }
    names |= {"nm": "nanometer", "mm": "millimeter", "pixel": "", "inch": "inch"}
    return None if unit is None else names.get(str(unit), str(unit)) or None


def tiff_bytes(
    tifffile: Any,
    values: NDArray[Any],
    spacing: tuple[float, ...] | None,
    unit: str | None,
    *,
    channels: bool,
    ome: bool,
) -> bytes:
    """Return an image or a volume as a TIFF file: OME-TIFF, or with ImageJ's metadata."""
    sides = values.ndim - channels
    axes = "ZYX"[3 - sides :] + ("S" if channels else "")
    steps = dict(zip(axes, spacing or (), strict=False))
    short = {"micrometer": "µm", "nanometer": "nm", "millimeter": "mm"}.get(unit or "", unit)
    options: dict[str, Any] = {"metadata": {"axes": axes}}
    if channels:
        options["photometric"] = "rgb"
    else:
        options["photometric"] = "minisblack"
    if ome:
        options |= {"ome": True, "compression": "zlib"}
        for name, step in steps.items():
            options["metadata"][f"PhysicalSize{name}"] = step
            if short is not None:
                options["metadata"][f"PhysicalSize{name}Unit"] = short
    else:
        options["imagej"] = True
        if steps:
            options["resolution"] = (1 / steps["X"], 1 / steps["Y"])
            if "Z" in steps:
                options["metadata"]["spacing"] = steps["Z"]
            if unit is not None:
                options["metadata"]["unit"] = {"micrometer": "um"}.get(unit, short)
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, values, **options)
    return buffer.getvalue()
