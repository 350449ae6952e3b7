"""Readers and writers of image files and scribble files."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from setwise._commands._output import read_array, read_bytes, write_array, write_bytes
from setwise._foundation._display import FORMATS, check_single

# The most pixels of an image file: 300 MB in colour. Larger pictures must be given as .npy files.
# Chosen by hand to bound the memory.
_MOST_PIXELS = 100_000_000
_WRITTEN = {".png": "PNG", ".tif": "TIFF", ".tiff": "TIFF", ".jpg": "JPEG", ".jpeg": "JPEG"}


def read_image(source: str) -> NDArray[Any]:
    """Read an image, (H, W) or (H, W, 3), or the array of a .npy file."""
    if source.endswith(".npy"):
        return read_array(source, source)
    picture = _opened(source)
    grey = picture.mode in ("1", "L", "I", "F") or picture.mode.startswith("I;16")
    return np.asarray(picture if grey else picture.convert("RGB"))


def read_marks(source: str) -> NDArray[np.int64]:
    """Read labels of a scribble file: k is label k - 1, and 0 (unmarked) becomes -1."""
    if source.endswith(".npy"):
        numbers = read_array(source, source)
    else:
        picture = _opened(source)
        if picture.mode not in ("1", "L", "P", "I") and not picture.mode.startswith("I;16"):
            raise ValueError(
                f"{source} must be a grey or palette picture whose numbers are 0 where nothing was "
                f"drawn and k for label k - 1, got the mode {picture.mode}"
            )
        numbers = np.asarray(picture)
    if numbers.dtype.kind not in "iub":
        raise ValueError(f"{source} must hold whole numbers, got dtype {numbers.dtype}")
    return numbers.astype(np.int64) - 1


def check_picture(output: str, shape: tuple[int, ...], *, lossless: bool) -> None:
    """Raise an error unless a picture of this shape can be written to the output; - is stdout."""
    if output.endswith(".npy"):
        return
    if len(shape) > 2:
        raise ValueError(
            f"{output} must end in .npy, which alone holds volumes, for an image of shape {shape}"
        )
    ending = Path(output).suffix.lower()
    if lossless and ending in (".jpg", ".jpeg"):
        raise ValueError(f"{output} must not be a JPEG, which would change the numbers: use .png")
    if output != "-" and ending not in _WRITTEN:
        raise ValueError(f"{output} must end in .png, .tif or .npy")


def write_picture(picture: NDArray[Any], output: str) -> None:
    """Write a picture in the format of its name; to stdout (-) as PNG."""
    if output.endswith(".npy"):
        write_array(picture, output)
        return
    buffer = io.BytesIO()
    kind = "PNG" if output == "-" else _WRITTEN[Path(output).suffix.lower()]
    Image.fromarray(picture).save(buffer, kind)
    write_bytes(buffer.getvalue(), output)


def mask_numbers(labels: NDArray[np.int64]) -> NDArray[Any]:
    """Return labels in the encoding of a mask file: k is label k - 1, as in scribble files."""
    return (labels + 1).astype(np.uint8 if labels.max(initial=0) < 255 else np.uint16)


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


def _opened(source: str) -> Image.Image:
    name = "stdin" if source == "-" else source
    data = read_bytes(source)
    try:
        with _silenced():
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
            if picture.width * picture.height > _MOST_PIXELS:
                raise ValueError(
                    f"it must have at most {_MOST_PIXELS} pixels, got {picture.width} x "
                    f"{picture.height}"
                )
            check_single(picture, "it")
            picture.load()
            return ImageOps.exif_transpose(picture)  # apply the orientation tag
    except UnidentifiedImageError:
        raise ValueError(
            f"{name} must be a picture, as PNG, JPEG or TIFF, or a .npy file, got something else"
        ) from None
    except Exception as error:  # decoders raise many types of errors
        raise ValueError(f"{name} must be a picture: {error}") from None
