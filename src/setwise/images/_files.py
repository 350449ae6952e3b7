"""Readers of images and volumes, and writers of masks with the metadata of the input."""

from __future__ import annotations

import gzip
import io
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import as_array, as_flag
from setwise._foundation._display import FORMATS as DECODERS
from setwise._foundation._display import check_single
from setwise._foundation._files import as_path, whole_folder, write_whole
from setwise._foundation._imports import load
from setwise._foundation._threads import machine_memory
from setwise.images._ome_zarr import create_ome, open_ome
from setwise.images._picture import Picture
from setwise.images._tiff import arranged, check_bytes, read_tiff, tiff_bytes

# The share of the machine's memory that the array of a file may take. The field of a whole image
# needs many times as much, but a field of a part of it may fit. Not tuned.
_SHARE = 0.5


@dataclass(frozen=True)
class Written:
    """Numbers to write, with the spacing and unit of their axes."""

    values: NDArray[Any]
    channels: bool
    like: Picture
    """What the file of the image said about its axes."""


@dataclass(frozen=True)
class Format:
    """A format of files: its endings, its reader and writer, and the numbers that it can hold."""

    name: str
    endings: tuple[str, ...]
    read: Callable[[Path], Picture]
    write: Callable[[Path, Written], None]
    sides: tuple[int, ...] = (2, 3)
    kinds: str = "uf"
    """The kinds of numbers that it holds: u (8 or 16 bits), f (real numbers)."""
    colors: bool = False
    lossless: bool = True


def read(path: str | os.PathLike[str]) -> Picture:
    """Read an image or a volume, with its spacing.

    Parameters
    ----------
    path : path
        A PNG, JPEG or TIFF file, a stack or an OME-TIFF, a NIfTI file (if nibabel is installed),
        an array of NumPy (``.npy``), a folder of slices, or a folder in the format OME-Zarr.

    Returns
    -------
    Picture
        ``pixels``, ``channel_axis``, ``spacing`` and ``unit``. It can be passed to ``segment``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import setwise as sw
    >>> path = Path(tempfile.mkdtemp(), "mask.npy")
    >>> sw.images.write(path, np.ones((4, 20, 30), int))
    >>> sw.images.read(path).pixels.sum()
    np.uint64(2400)
    """
    source = as_path(path)
    found = format_of(source, reading=True)
    try:
        return found.read(source)
    except OSError as error:
        if error.errno is None:  # the error of a decoder, not of the system
            raise ValueError(f"{source} must be {found.name}: {error}") from None
        raise
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # decoders raise many types of errors
        words = str(error)
        if not words.startswith(str(source)):
            words = f"{source} must be {found.name}: {words or type(error).__name__}"
        raise ValueError(words) from None


def write(
    path: str | os.PathLike[str],
    values: ArrayLike,
    *,
    like: Picture | None = None,
    channels: bool = False,
) -> None:
    """Write labels or other numbers of pixels. The name of the file determines the format.

    The file never exists in part: an existing file is replaced only when the new one is complete.

    Parameters
    ----------
    path : path
        A name that ends in ``.npy``, ``.png``, ``.tif``, ``.ome.tif``, ``.nii``, ``.nii.gz`` or
        ``.zarr``, or that has no ending: a folder of slices. ``.jpg`` is for pictures with colours.
    values : array-like of shape (H, W) or (D, H, W)
        Whole numbers from 0 to 65535, booleans, or real numbers (not in PNG).
    like : Picture, optional
        The result of ``read`` for the image, whose spacing and unit are written into the file.
    channels : bool
        Whether the last axis of ``values`` holds red, green and blue.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import setwise as sw
    >>> path = Path(tempfile.mkdtemp(), "mask.png")
    >>> sw.images.write(path, [[0, 1], [1, 2]])
    >>> sw.images.read(path).pixels.tolist()
    [[0, 1], [1, 2]]
    """
    array = as_array(values, "values")
    if like is not None and not isinstance(like, Picture):
        raise TypeError(f"like must be what sw.images.read returns, got {type(like).__name__}")
    target, colored = as_path(path), as_flag(channels, "channels")
    found = check_writable(target, array.shape, array.dtype, channels=colored)
    numbers = _stored(array)
    sides = array.ndim - colored
    spacing = None if like is None else like.spacing
    if spacing is not None and len(spacing) != sides:
        raise ValueError(
            f"values must have {len(spacing)} sides like the image, got shape {array.shape}"
        )
    found.write(target, Written(numbers, colored, like or Picture(numbers)))


def check_writable(
    path: str | os.PathLike[str],
    shape: tuple[int, ...],
    dtype: Any = np.uint8,
    *,
    channels: bool = False,
) -> Format:
    """Return the format of a name. Raise an error unless it can hold such numbers."""
    target = Path(path)
    found = format_of(target, reading=False)
    sides, kind = len(shape) - channels, np.dtype(dtype).kind
    if kind not in "uibf":
        raise TypeError(f"values must hold real numbers, got dtype {dtype}")
    if found is not _ARRAY:
        if sides not in found.sides:
            others = ".npy, .tif, .nii, .zarr or a folder" if sides == 3 else "another format"
            raise ValueError(
                f"{target} must have a format that holds {sides} sides, for numbers of shape "
                f"{shape}: use {others}"
            )
        if channels and not (found.colors and shape[-1] == 3 and np.dtype(dtype) == np.uint8):
            raise ValueError(
                f"{target} must be a PNG, JPEG or TIFF with three bytes per pixel, got shape "
                f"{shape} and dtype {dtype}"
            )
        if not channels and not found.lossless:
            raise ValueError(
                f"{target} must not be a JPEG, which would change the numbers: use .png"
            )
        if kind == "f" and "f" not in found.kinds:
            raise ValueError(f"{target} must be .npy, .tif, .nii or .zarr for real numbers")
    if found is _NIFTI:
        _nibabel(target)
    return found


def format_of(path: Path, *, reading: bool) -> Format:
    """Return the format of a name; that of a folder depends on its files."""
    name = path.name.lower()
    if reading and path.is_dir():
        marks = (".zattrs", ".zgroup", ".zarray", "zarr.json")
        return _ZARR if any((path / mark).exists() for mark in marks) else _SLICES
    for found in ALL:
        if name.endswith(found.endings):
            return found
    if not reading and not path.suffix:
        return _SLICES
    if reading and not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    raise ValueError(
        f"{path} must end in .png, .jpg, .tif, .nii, .npy or .zarr, or be a folder of slices"
    )


def _stored(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the smallest type that the formats support."""
    if array.dtype.kind == "f":
        return array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    if low < 0 or high > 65535:
        raise ValueError(
            f"values must be whole numbers from 0 to 65535, got {low if low < 0 else high}"
        )
    return array.astype(np.uint8 if high <= 255 else np.uint16)


def most_bytes() -> int:
    """Return the largest size of an array that is read from a file."""
    return int(_SHARE * machine_memory())


# ------------------------------------------------------------------------------------ the formats


def _read_array(path: Path) -> Picture:
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    check_bytes(mapped.shape, mapped.dtype, most_bytes())
    return Picture(np.array(mapped))


def _write_array(path: Path, what: Written) -> None:
    buffer = io.BytesIO()
    np.save(buffer, what.values, allow_pickle=False)
    write_whole(path, buffer.getvalue())


def _read_picture(path: Path) -> Picture:
    return decoded(path.read_bytes())


def decoded(data: bytes) -> Picture:
    """Return the picture of a PNG, JPEG or TIFF file; with a palette, the indices of colours."""
    images = _pillow()
    with _silenced(), _opened(images, data) as picture:
        check_bytes((picture.height, picture.width, 4), np.uint8, most_bytes())
        check_single(picture, "it")
        picture.load()
        upright = load("PIL.ImageOps").exif_transpose(picture)  # apply the orientation tag
        one = upright.mode in ("1", "L", "P", "I", "F") or upright.mode.startswith("I;16")
        if one:
            return Picture(np.asarray(upright), None)
        return Picture(np.asarray(upright.convert("RGB")), 2)


def _opened(images: Any, data: bytes) -> Any:
    try:
        return images.open(io.BytesIO(data), formats=DECODERS)
    except images.UnidentifiedImageError:
        raise ValueError("it is no PNG, JPEG or TIFF") from None


def _write_picture(path: Path, what: Written) -> None:
    write_whole(path, encoded(what.values, path.suffix))


def encoded(values: NDArray[Any], ending: str = ".png") -> bytes:
    """Return a picture as the bytes of a PNG or JPEG file."""
    buffer = io.BytesIO()
    kind = "PNG" if ending.lower() == ".png" else "JPEG"
    _pillow().fromarray(values).save(buffer, kind)
    return buffer.getvalue()


def _read_tiff(path: Path) -> Picture:
    tifffile = _tifffile()
    data = path.read_bytes()
    with _silenced():
        try:
            return read_tiff(tifffile, io.BytesIO(data), most_bytes())
        except Exception as error:
            if "imagecodecs" not in str(error):
                raise
    try:
        return decoded(data)  # Pillow supports more compressions, for single pictures
    except Exception:
        raise ValueError("its compression needs the package imagecodecs") from None


def _write_tiff(path: Path, what: Written) -> None:
    values = what.values
    ome = path.name.lower().endswith((".ome.tif", ".ome.tiff")) or values.dtype == np.float64
    data = tiff_bytes(
        _tifffile(), values, what.like.spacing, what.like.unit, channels=what.channels, ome=ome
    )
    write_whole(path, data)


def _read_nifti(path: Path) -> Picture:
    image = _nibabel(path).load(path)
    check_bytes(image.shape, np.float64, most_bytes())
    raw = np.asarray(image.dataobj)
    while raw.ndim > 3 and raw.shape[-1] == 1:
        raw = raw[..., 0]
    axes = "xyz"[: raw.ndim] + "tc"[: max(raw.ndim - 3, 0)]
    steps = dict(zip(axes, map(float, image.header.get_zooms()), strict=False))
    unit = {"mm": "millimeter", "micron": "micrometer"}.get(image.header.get_xyzt_units()[0])
    found = arranged(raw.T, axes[::-1], steps, unit)
    return replace(found, pixels=np.ascontiguousarray(found.pixels), affine=image.affine)


def _write_nifti(path: Path, what: Written) -> None:
    nibabel = _nibabel(path)
    values, like = what.values, what.like
    steps = (like.spacing or (1.0,) * values.ndim)[::-1]
    affine = np.diag([*steps, *(1.0,) * (4 - len(steps))]) if like.affine is None else like.affine
    image = nibabel.Nifti1Image(values.T, affine)
    known = {"millimeter": "mm", "micrometer": "micron"}.get(like.unit or "")
    image.header.set_xyzt_units(known or "unknown")
    data = image.to_bytes()
    if path.name.lower().endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    write_whole(path, data)


def _read_zarr(path: Path) -> Picture:
    _zarr()
    level = open_ome(path)
    check_bytes(level.array.shape, level.array.dtype, most_bytes())
    pixels = np.asarray(level.array[...])
    if not level.axes:
        return Picture(pixels)
    sides = [name for name in level.axes if name in "zyx"]
    steps = dict(zip(sides, level.spacing or (), strict=False))
    return arranged(pixels, level.axes, steps or None, level.unit)


def _write_zarr(path: Path, what: Written) -> None:
    _zarr()
    values = what.values
    with whole_folder(path) as place:
        level = create_ome(
            place, values.shape, values.dtype, spacing=what.like.spacing, unit=what.like.unit
        )
        level[...] = values


def _read_slices(path: Path) -> Picture:
    names = sorted(
        (
            one
            for one in path.iterdir()
            if one.name.lower().endswith(_PICTURE.endings + _TIFF.endings) and one.name[0] != "."
        ),
        key=lambda one: [int(word) if word.isdigit() else word for word in _words(one.name)],
    )
    if not names:
        raise ValueError("it holds no slices that are PNG, JPEG or TIFF files")
    first = read(names[0])
    check_bytes((len(names), *first.shape), first.pixels.dtype, most_bytes())
    pixels = np.empty((len(names), *first.shape), first.pixels.dtype)
    for k, name in enumerate(names):
        one = read(name)
        if one.shape != first.shape or one.pixels.dtype != pixels.dtype:
            raise ValueError(
                f"its slices must have one shape and type, got {first.shape} {pixels.dtype} in "
                f"{names[0].name} and {one.shape} {one.pixels.dtype} in {name.name}"
            )
        pixels[k] = one.pixels
    axis = first.channel_axis
    return Picture(pixels, axis + 1 if isinstance(axis, int) else axis)


def _words(name: str) -> list[str]:
    return re.split(r"(\d+)", name)


def _write_slices(path: Path, what: Written) -> None:
    digits = len(str(max(len(what.values) - 1, 1)))
    with whole_folder(path) as place:
        for k, plane in enumerate(what.values):
            (place / f"{k:0{digits}}.png").write_bytes(encoded(plane))


# -------------------------------------------------------------------------------- their libraries


def _needed(module: str, package: str, extra: str = "setwise[volumes]") -> Any:
    try:
        return load(module)
    except ImportError:
        raise ImportError(f"this file needs {package}: pip install '{extra}'") from None


def _pillow() -> Any:
    return _needed("PIL.Image", "Pillow")


def _tifffile() -> Any:
    return _needed("tifffile", "tifffile")


def _zarr() -> Any:
    return _needed("zarr", "zarr")


def _nibabel(path: Path) -> Any:
    try:
        return load("nibabel")
    except ImportError:
        raise ImportError(f"{path} needs nibabel: pip install nibabel") from None


@contextmanager
def _silenced() -> Iterator[None]:
    """Suppress messages of decoders on stderr, where libtiff writes directly."""
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        with redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


_ARRAY = Format("a .npy file", (".npy",), _read_array, _write_array)
_PICTURE = Format("a picture", (".png",), _read_picture, _write_picture, (2,), "u", colors=True)
_JPEG = Format(
    "a picture", (".jpg", ".jpeg"), _read_picture, _write_picture, (2,), "u", True, lossless=False
)
_TIFF = Format("a picture", (".tif", ".tiff"), _read_tiff, _write_tiff, colors=True)
_NIFTI = Format("a NIfTI file", (".nii", ".nii.gz"), _read_nifti, _write_nifti)
_ZARR = Format("an OME-Zarr folder", (".zarr",), _read_zarr, _write_zarr)
_SLICES = Format("a folder of slices", (), _read_slices, _write_slices, (3,), "u")

ALL = (_ARRAY, _PICTURE, _JPEG, _TIFF, _NIFTI, _ZARR)
ENDINGS = tuple(ending for one in ALL for ending in one.endings)


def ending_of(path: str | os.PathLike[str]) -> str:
    """Return the ending of a file's name, which determines the format, or an empty text."""
    name = Path(path).name.lower()
    known = [
        ending
        for ending in (".ome.tif", ".ome.tiff", ".ome.zarr", *ENDINGS)
        if name.endswith(ending)
    ]
    return max(known, key=len, default="")
