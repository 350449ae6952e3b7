"""Images, scribbles and masks of the command line: files, or pictures on stdin and stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import setwise as sw
from setwise._commands._output import read_array, read_bytes, write_bytes
from setwise.images._files import check_writable, decoded, encoded
from setwise.images._picture import Picture


def read_image(source: str) -> Picture:
    """Read an image or a volume; - is a picture on stdin."""
    if source != "-":
        return sw.images.read(source)
    data = read_bytes(source)
    try:
        return decoded(data)
    except Exception as error:  # decoders raise many types of errors
        raise ValueError(f"stdin must be a picture, PNG, JPEG or TIFF: {error}") from None


def read_marks(source: str) -> NDArray[np.int64]:
    """Read labels of a scribble file: k is label k - 1, and 0 (unmarked) becomes -1."""
    if source.endswith(".npy"):
        numbers = read_array(source, source)
    else:
        picture = read_image(source)
        if isinstance(picture.channel_axis, int):
            raise ValueError(
                f"{source} must be a grey or palette picture whose numbers are 0 where nothing was "
                f"drawn and k for label k - 1, got channels: shape {picture.shape}"
            )
        numbers = picture.pixels
    if numbers.dtype.kind not in "iub":
        raise ValueError(f"{source} must hold whole numbers, got dtype {numbers.dtype}")
    return numbers.astype(np.int64) - 1


def check_output(output: str, shape: tuple[int, ...], *, colors: bool) -> None:
    """Raise an error unless numbers or colours of this shape can be written; - is stdout."""
    if output == "-":
        output = ".png"
    check_writable(output, (*shape, 3) if colors else shape, channels=colors)


def write_output(
    values: NDArray[Any], output: str, like: Picture | None = None, *, colors: bool = False
) -> None:
    """Write an image in the format of its name, with the metadata of another; on stdout as PNG."""
    if output == "-":
        write_bytes(encoded(values), output)
    else:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        sw.images.write(output, values, like=like, channels=colors)


def mask_numbers(labels: NDArray[np.int64]) -> NDArray[Any]:
    """Return labels in the encoding of a mask file: k is label k - 1, as in scribble files."""
    return (labels + 1).astype(np.uint8 if labels.max(initial=0) < 255 else np.uint16)
