"""Image files and scribble files, in and out."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from setwise._commands._output import read_array, read_bytes, write_array

_MOST_PIXELS = 100_000_000


def read_image(source: str) -> NDArray[Any]:
    """An image, (H, W) or (H, W, 3); or the array of a .npy file."""
    if source.endswith(".npy"):
        return read_array(source, source)
    picture = _opened(source)
    grey = picture.mode in ("1", "L", "I", "F") or picture.mode.startswith("I;16")
    return np.asarray(picture if grey else picture.convert("RGB"))


def read_marks(source: str) -> NDArray[np.int64]:
    """Labels of a scribble file, where 0 is unmarked and k is label k - 1; -1 where unmarked."""
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


def write_picture(picture: NDArray[Any], output: str) -> None:
    """A picture, as PNG unless the name says otherwise; - is stdout."""
    if output.endswith(".npy"):
        write_array(picture, output)
        return
    image = Image.fromarray(picture)
    if output == "-":
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        sys.stdout.buffer.write(buffer.getvalue())
        return
    if Path(output).suffix.lower() in (".jpg", ".jpeg") and picture.ndim == 2:
        raise ValueError(f"{output} must not be a JPEG, which would change the numbers: use .png")
    try:
        image.save(output)
    except (ValueError, KeyError):
        raise ValueError(f"{output} must end in .png, .tif or .npy") from None


def mask_numbers(labels: NDArray[np.int64]) -> NDArray[Any]:
    """Labels as a mask file has them: k is label k - 1, as in a scribble file."""
    return (labels + 1).astype(np.uint8 if labels.max(initial=0) < 255 else np.uint16)


def _opened(source: str) -> Image.Image:
    name = "stdin" if source == "-" else source
    data = read_bytes(source)
    try:
        picture = Image.open(io.BytesIO(data))
        if picture.width * picture.height > _MOST_PIXELS:
            raise ValueError(
                f"{name} must have at most {_MOST_PIXELS} pixels, got {picture.width} x "
                f"{picture.height}"
            )
        picture.load()
    except UnidentifiedImageError:
        raise ValueError(f"{name} must be a picture, got something else") from None
    except (Image.DecompressionBombError, OSError, SyntaxError, EOFError) as error:
        raise ValueError(f"{name} must be a picture: {error}") from None
    return ImageOps.exif_transpose(picture)  # upright, as it is seen
