"""Small pictures of labels and numbers, as PNG: zlib is all they need."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

# Okabe and Ito's colours, blue and orange first: they differ to most eyes, and in grey.
PALETTE: Bytes = np.array(
    [
        [0, 114, 178],
        [230, 159, 0],
        [0, 158, 115],
        [204, 121, 167],
        [86, 180, 233],
        [213, 94, 0],
        [240, 228, 66],
        [0, 0, 0],
        [255, 255, 255],
    ],
    np.uint8,
)


def label_colors(n_labels: int) -> Bytes:
    """Colours (L, 3) of labels; beyond nine they come again."""
    return PALETTE[np.arange(n_labels) % len(PALETTE)]


def label_picture(labels: NDArray[np.int64]) -> Bytes:
    """Labels (H, W) as their colours (H, W, 3); of a volume the slice in the middle."""
    plane = _plane(labels)
    return np.asarray(label_colors(int(plane.max(initial=0)) + 1)[plane])


def heat_picture(values: NDArray[Any], most: float) -> Bytes:
    """Numbers (H, W) from 0 to ``most`` in grey (H, W), from black to white."""
    shares = _plane(values) / most if most > 0 else np.zeros_like(_plane(values))
    return np.round(255 * np.clip(shares, 0.0, 1.0)).astype(np.uint8)


def _plane(values: NDArray[Any]) -> NDArray[Any]:
    """The slices in the middle, until two sides are left; a row is a plane of one."""
    while values.ndim > 2:
        values = values[len(values) // 2]
    return np.atleast_2d(values)


def png(picture: Bytes) -> bytes:
    """A picture, (H, W) grey or (H, W, 3), as a PNG file."""
    height, width = picture.shape[:2]
    kind = 0 if picture.ndim == 2 else 2
    rows = np.zeros((height, 1 + picture[0].size), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in parts)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def data_uri(picture: Bytes, side: int = 320) -> str:
    """A picture as the address of itself; of larger ones every second, third, ... pixel."""
    step = -(-max(picture.shape[:2]) // side)
    encoded = base64.b64encode(png(np.ascontiguousarray(picture[::step, ::step])))
    return f"data:image/png;base64,{encoded.decode()}"
