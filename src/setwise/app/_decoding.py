"""Decoding of pictures from outside, whose size is checked before they are decoded."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from math import ceil, floor, isfinite, sqrt
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import as_array
from setwise._foundation._display import FORMATS, check_single
from setwise._foundation._imports import load
from setwise.app._drawing._memory import MemoryBudget
from setwise.app._drawing._strokes import BLOCK_SIDE, WORKING_PIXELS

MOST_BYTES = 64 * 2**20  # the most bytes of a file; JPEG photographs of MOST_PIXELS are smaller
# The most pixels of a file, below the size at which Pillow warns of a decompression bomb.
MOST_PIXELS = 64_000_000
SAMPLES = ("astronaut", "coffee", "chelsea", "rocket", "page", "coins")

# The most bytes per pixel while a picture is decoded: the picture (4) and the coefficients of a
# progressive JPEG (8). Encoding a mask takes less.
CODING_BYTES = 12

# Only one thread decodes, because Pillow reports decompression bombs through Python's warnings,
# whose filters all threads share.
_ONE_AT_A_TIME = Lock()


class Refused(ValueError):
    """An error for a picture that cannot be opened, with the reason in one sentence."""

    def __init__(self, words: str, status: int = 400) -> None:
        super().__init__(words)
        self.status = status


def decode(
    data: bytes, memory: MemoryBudget | None = None
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Return a picture (H, W, 3) from the bytes of a file, and the original height and width.

    Only one picture at a time is decoded and reduced. Its bytes are counted in ``memory``.
    """
    if len(data) > MOST_BYTES:
        raise Refused(f"a file must have at most {MOST_BYTES >> 20} MiB", 413)
    images = load("PIL.Image")
    memory = memory or MemoryBudget()
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about metadata and the like do not matter
            warnings.simplefilter("error", images.DecompressionBombWarning)
            with images.open(io.BytesIO(data), formats=FORMATS) as image:
                width, height = image.size
                if width * height > MOST_PIXELS:
                    raise Refused(_too_large(height, width), 413)
                check_single(image, "the file")
                with memory.holding(lambda: CODING_BYTES * width * height):
                    image.load()
                    return _upright(image)
    except (Refused, MemoryError):
        raise
    except (images.DecompressionBombError, images.DecompressionBombWarning) as error:
        raise Refused(f"an image must have at most {MOST_PIXELS:,} pixels", 413) from error
    except images.UnidentifiedImageError as error:
        raise Refused(
            "the file must be a PNG, JPEG or TIFF image, got something else", 415
        ) from error
    except Exception as error:
        raise Refused(f"the image cannot be decoded: {str(error)[:200]}", 422) from error


def _too_large(height: int, width: int) -> str:
    return f"an image must have at most {MOST_PIXELS:,} pixels, got {width} x {height}"


def _upright(image: Any) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Return an upright picture of working size, and the original height and width."""
    images = load("PIL.Image")
    small = images.fromarray(_three_channels(image))
    tag = load("PIL.ExifTags").Base.Orientation
    orientation = image.getexif().get(tag, 1)
    small.getexif()[tag] = orientation
    picture = np.asarray(load("PIL.ImageOps").exif_transpose(small))
    width, height = image.size
    turned = orientation in (5, 6, 7, 8)  # rotated by 90 degrees
    return picture, (width, height) if turned else (height, width)


def _three_channels(image: Any) -> NDArray[np.uint8]:
    """Return a picture of working size with three channels, made block by block."""
    images = load("PIL.Image")
    width, height = _working_size(*image.size)
    picture = np.empty((height, width, 3), np.uint8)
    as_rgb = _scaled_block(image) if image.mode.startswith(("I", "F")) else _rgb_block
    for rows, (top, bottom), (y0, y1) in _blocks(image.size[1], height):
        for columns, (left, right), (x0, x1) in _blocks(image.size[0], width):
            block = as_rgb(image.crop((left, top, right, bottom)))
            size = columns.stop - columns.start, rows.stop - rows.start
            if block.size != size:
                block = block.resize(size, images.Resampling.BOX, box=(x0, y0, x1, y1))
            picture[rows, columns] = np.asarray(block)
    return picture


def _blocks(source: int, target: int) -> Iterator[tuple[slice, tuple[int, int], tuple[float, ...]]]:
    """Yield parts of a side: a slice of the target, a range of the source, and exact limits."""
    number = min(ceil(source / BLOCK_SIDE), target)
    for k in range(number):
        first, last = k * target // number, (k + 1) * target // number
        begin, end = first * source / target, last * source / target
        low, high = floor(begin), min(ceil(end), source)
        yield slice(first, last), (low, high), (begin - low, end - low)


def _rgb_block(block: Any) -> Any:
    """Return a block with three channels. Transparent pixels are blended with white."""
    if block.mode in ("RGBA", "LA", "PA", "P"):
        ground = load("PIL.Image").new("RGBA", block.size, "white")
        ground.alpha_composite(block.convert("RGBA"))
        block = ground
    return block.convert("RGB")


def _scaled_block(image: Any) -> Callable[[Any], Any]:
    """Return a function that scales blocks with more than a byte per pixel to three channels."""
    images = load("PIL.Image")
    ranges = []
    for _, (top, bottom), _ in _blocks(image.size[1], image.size[1]):
        for _, (left, right), _ in _blocks(image.size[0], image.size[0]):
            ranges.append(_range(np.asarray(image.crop((left, top, right, bottom)))))
    low, high = min(pair[0] for pair in ranges), max(pair[1] for pair in ranges)
    return lambda block: images.fromarray(_scaled(np.asarray(block), low, high)).convert("RGB")


def as_picture(image: ArrayLike) -> NDArray[np.uint8]:
    """Return a picture (H, W, 3) of bytes from a real array, grey or with channels."""
    array = as_array(image, "image")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"image must hold real numbers, got dtype {array.dtype}")
    if array.ndim == 3 and array.shape[2] in (1, 2):
        array = array[..., 0]
    if array.ndim == 2 and array.size:
        return np.stack([_scaled(array, *_range(array))] * 3, axis=2)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or 0 in array.shape:
        raise ValueError(f"image must have shape (H, W), (H, W, 3) or (H, W, 4), got {array.shape}")
    channels = array[..., :3]
    return _scaled(channels, *_range(channels))


def _range(array: NDArray[Any]) -> tuple[float, float]:
    """Return the minimum and maximum of an array. They must be finite."""
    low, high = float(array.min()), float(array.max())
    if not (isfinite(low) and isfinite(high)):
        raise ValueError("image must be finite, got nan or inf")
    return low, high


def _scaled(array: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Scale floats in [0, 1] by 255, and any other numbers from [low, high] to 0 ... 255."""
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "f" and low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    scaled = array.astype(np.float64)
    scaled -= low
    scaled *= 255.0 / (high - low) if high > low else 0.0
    np.rint(scaled, out=scaled)
    return scaled.astype(np.uint8)


def working_picture(image: ArrayLike) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Return an array as a picture of working size, and the original height and width."""
    picture = as_picture(image)
    return _working(picture, (picture.shape[0], picture.shape[1]))


def _working(
    picture: NDArray[np.uint8], original: tuple[int, int]
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    height, width = picture.shape[:2]
    size = _working_size(width, height)
    if size != (width, height):
        images = load("PIL.Image")
        small = images.fromarray(picture).resize(size, images.Resampling.BOX)
        return np.asarray(small), (height, width)
    return picture, (height, width)


def _working_size(width: int, height: int) -> tuple[int, int]:
    """Return the working width and height of a picture."""
    shrink = sqrt(max(height * width / WORKING_PIXELS, 1.0))
    return ceil(width / shrink), ceil(height / shrink)


def sample(name: str) -> NDArray[np.uint8]:
    """Return one of the photographs that scikit-image contains."""
    if name not in SAMPLES:
        raise Refused(f"sample must be one of {', '.join(SAMPLES)}", 404)
    return as_picture(getattr(load("skimage.data"), name)())
