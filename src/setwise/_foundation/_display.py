"""The display of results in notebooks: HTML tables, and small pictures, as PNG made with zlib."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Row = tuple[str, object]

# The accepted formats of picture files. Pillow starts external programs to read some other formats.
FORMATS = ("PNG", "JPEG", "TIFF")

# The colours of Okabe and Ito, which most people can distinguish, also in grey.
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


def check_single(picture: Any, name: str) -> None:
    """Raise a ``ValueError`` if a file that Pillow opened contains several pictures.

    The further pictures of a JPEG are previews of the first.
    """
    if picture.format in ("PNG", "TIFF") and (n := getattr(picture, "n_frames", 1)) > 1:
        raise ValueError(
            f"{name} must hold one picture, got {n}: save each as a file, or a volume as .npy"
        )


def label_colors(n_labels: int) -> Bytes:
    """Return colours (L, 3) of labels, which repeat after nine labels."""
    return PALETTE[np.arange(n_labels) % len(PALETTE)]


def label_picture(labels: NDArray[np.int64]) -> Bytes:
    """Return labels (H, W) as colours (H, W, 3); for a volume, its middle slice."""
    plane = _plane(labels)
    return np.asarray(label_colors(int(plane.max(initial=0)) + 1)[plane])


def heat_picture(values: NDArray[Any], most: float) -> Bytes:
    """Return numbers (H, W) from 0 to ``most`` in grey (H, W), from black to white."""
    shares = _plane(values) / most if most > 0 else np.zeros_like(_plane(values))
    return np.round(255 * np.clip(shares, 0.0, 1.0)).astype(np.uint8)


def _plane(values: NDArray[Any]) -> NDArray[Any]:
    """Return middle slices until two axes are left. A vector becomes one row."""
    while values.ndim > 2:
        values = values[len(values) // 2]
    return np.atleast_2d(values)


def png(picture: Bytes) -> bytes:
    """Return a picture, (H, W) grey or (H, W, 3), as a PNG file."""
    height, width = picture.shape[:2]
    kind = 0 if picture.ndim == 2 else 2
    rows = np.zeros((height, 1 + picture[0].size), np.uint8)  # each row begins with filter type 0
    rows[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in parts)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def data_uri(picture: Bytes, side: int = 320) -> str:
    """Return a picture as a data URI, with every k-th pixel if it is large."""
    step = -(-max(picture.shape[:2]) // side)
    encoded = base64.b64encode(png(np.ascontiguousarray(picture[::step, ::step])))
    return f"data:image/png;base64,{encoded.decode()}"


def shown(value: object) -> str:
    """Return a value as a short text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return " x ".join(map(str, value))
    return str(value)


def as_html(title: str, rows: Iterable[Row], pictures: Sequence[tuple[str, Bytes]] = ()) -> str:
    """Return a table of names and values with a title, and captioned pictures beside it."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(shown(value))}</td></tr>'
        for name, value in rows
    )
    figures = "".join(_figure(caption, picture) for caption, picture in pictures)
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
        f"<table><caption>{escape(title)}</caption><tbody>{lines}</tbody></table>{figures}</div>"
    )


def _figure(caption: str, picture: Bytes) -> str:
    look = "image-rendering:pixelated;min-width:64px;max-width:320px;max-height:240px"
    words = escape(caption)
    return (
        f'<figure style="margin:0"><img alt="{words}" src="{data_uri(picture)}" style="{look}">'
        f"<figcaption>{words}</figcaption></figure>"
    )


def certificate_rows(value: float, bound: float, relative_gap: float, exact: bool) -> list[Row]:
    """Return the rows of a certificate, including a sentence."""
    if exact:
        proved = "no labelling is better"
    elif relative_gap < float("inf"):
        proved = f"at most {relative_gap:.2g} of what there was to gain is left"
    else:
        proved = "nothing is proved"
    return [("value", value), ("bound", bound), ("certificate", proved)]
