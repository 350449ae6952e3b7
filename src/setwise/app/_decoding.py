"""Pictures from outside: how large they are is known before anything is decoded."""

from __future__ import annotations

import io
import warnings
from math import ceil, sqrt
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._arguments import as_array
from setwise._foundation._imports import load

FORMATS = ("PNG", "JPEG", "TIFF")
MOST_BYTES = 64 * 2**20
MOST_PIXELS = 64_000_000
# Larger pictures are worked on at a reduced size, and masks enlarged again when they are exported.
WORKING_PIXELS = 4_000_000
SAMPLES = ("astronaut", "coffee", "chelsea", "rocket", "page", "coins")

# Pillow warns of bombs through Python's warnings, which all threads share.
_ONE_AT_A_TIME = Lock()


class Refused(ValueError):
    """A picture that is not opened, and why, in one sentence."""

    def __init__(self, words: str, status: int = 400) -> None:
        super().__init__(words)
        self.status = status


def decode(data: bytes) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """A picture (H, W, 3) from the bytes of a file, and its height and width in there."""
    if len(data) > MOST_BYTES:
        raise Refused(f"a file must have at most {MOST_BYTES >> 20} MiB", 413)
    images = load("PIL.Image")
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of metadata for instance
            warnings.simplefilter("error", images.DecompressionBombWarning)
            image = images.open(io.BytesIO(data), formats=FORMATS)
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise Refused(_too_large(height, width), 413)
            image.load()
        picture = _as_bytes(image)
    except Refused:
        raise
    except (images.DecompressionBombError, images.DecompressionBombWarning) as error:
        raise Refused(f"an image must have at most {MOST_PIXELS:,} pixels", 413) from error
    except images.UnidentifiedImageError as error:
        raise Refused(
            "the file must be a PNG, JPEG or TIFF image, got something else", 415
        ) from error
    except Exception as error:
        raise Refused(f"the image cannot be decoded: {str(error)[:200]}", 422) from error
    return _working(picture, (picture.shape[0], picture.shape[1]))


def _too_large(height: int, width: int) -> str:
    return f"an image must have at most {MOST_PIXELS:,} pixels, got {width} x {height}"


def _as_bytes(image: Any) -> NDArray[np.uint8]:
    """Three channels, upright."""
    upright = load("PIL.ImageOps").exif_transpose(image)
    if upright.mode.startswith(("I", "F")):  # more than a byte a pixel
        return as_picture(np.asarray(upright))
    if upright.mode in ("RGBA", "LA", "PA", "P"):
        ground = load("PIL.Image").new("RGBA", upright.size, "white")
        ground.alpha_composite(upright.convert("RGBA"))
        upright = ground
    return np.asarray(upright.convert("RGB"))


def as_picture(image: ArrayLike) -> NDArray[np.uint8]:
    """A picture (H, W, 3) of bytes from an array, grey or with channels, of any real type."""
    array = as_array(image, "image")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"image must hold real numbers, got dtype {array.dtype}")
    if array.ndim == 3 and array.shape[2] in (1, 2):
        array = array[..., 0]
    if array.ndim == 2 and array.size:
        return np.stack([_scaled(array)] * 3, axis=2)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or 0 in array.shape:
        raise ValueError(f"image must have shape (H, W), (H, W, 3) or (H, W, 4), got {array.shape}")
    return _scaled(array[..., :3])


def _scaled(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Numbers as bytes: those from 0 to 1 as they are, others from the least to the largest."""
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("image must be finite, got nan or inf")
    if array.dtype.kind == "f" and numbers.min() >= 0.0 and numbers.max() <= 1.0:
        low, high = 0.0, 1.0
    else:
        low, high = float(numbers.min()), float(numbers.max())
    scaled = (numbers - low) * (255.0 / (high - low) if high > low else 0.0)
    return np.rint(scaled).astype(np.uint8)


def working_picture(image: ArrayLike) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """An array as a picture of a size that is worked on, and its own height and width."""
    picture = as_picture(image)
    return _working(picture, (picture.shape[0], picture.shape[1]))


def _working(
    picture: NDArray[np.uint8], original: tuple[int, int]
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    height, width = picture.shape[:2]
    if height * width > WORKING_PIXELS:
        shrink = sqrt(height * width / WORKING_PIXELS)
        size = ceil(width / shrink), ceil(height / shrink)
        images = load("PIL.Image")
        small = images.fromarray(picture).resize(size, images.Resampling.BOX)
        return np.asarray(small), (height, width)
    return picture, (height, width)


def sample(name: str) -> NDArray[np.uint8]:
    """One of the photographs that come with scikit-image."""
    if name not in SAMPLES:
        raise Refused(f"sample must be one of {', '.join(SAMPLES)}", 404)
    return as_picture(getattr(load("skimage.data"), name)())
