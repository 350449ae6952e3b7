"""Masks in the forms that other programs read, and a drawing that can be opened again."""

from __future__ import annotations

import base64
import io
import json
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise._foundation._arguments import BoolArray
from setwise._foundation._pictures import png
from setwise.app._decoding import MOST_PIXELS, Refused, decode
from setwise.app._drawing import Drawing
from setwise.app._drawing_answers import AlternativeList
from setwise.app._drawing_levels import Tilt, resampled
from setwise.app._drawing_strokes import MOST_LABELS, Stroke
from setwise.app._outlines import outlines

Labels = NDArray[np.uint8]

_FORMAT, _FORMAT_VERSION = "setwise drawing", 1
_MOST_AGAINST = 64


def mask_png(labels: Labels) -> bytes:
    """A PNG of one byte a pixel: k is label k - 1, as in the scribble files of the command line."""
    return png((labels + 1).astype(np.uint8))


def mask_npy(labels: Labels) -> bytes:
    """An array of NumPy, the labels from 0 on."""
    out = io.BytesIO()
    np.save(out, labels)
    return out.getvalue()


def alternatives_zip(listed: AlternativeList, shape: tuple[int, int]) -> bytes:
    """A PNG of each alternative, and what is known of them."""
    out = io.BytesIO()
    told = []
    with zipfile.ZipFile(out, "w") as archive:
        for number, item in enumerate(listed.items, 1):
            name = f"alternative_{number}.png"
            archive.writestr(name, mask_png(resampled(item.labels, shape)))
            told.append(
                {"mask": name, "energy": item.value, "above": item.above, "differs": item.differs}
            )
        archive.writestr("alternatives.json", json.dumps(told, indent=1))
    return out.getvalue()


# ---- COCO


def run_lengths(mask: BoolArray) -> list[int]:
    """COCO's run lengths: column after column, zeros first."""
    flat = np.asarray(mask, np.bool_).ravel(order="F")
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    return [0, *lengths] if flat.size and flat[0] else lengths


def coco(labels: Labels, name: str) -> dict[str, Any]:
    """COCO's annotations, the mask of each label as run lengths."""
    height, width = labels.shape
    annotations = []
    for label in np.unique(labels).tolist():
        mask = labels == label
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        left, top = int(columns[0]), int(rows[0])
        box = [left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top]
        annotations.append(
            {
                "id": label + 1,
                "image_id": 1,
                "category_id": label + 1,
                "iscrowd": 1,  # by which COCO marks run lengths
                "area": int(mask.sum()),
                "bbox": box,
                "segmentation": {"size": [height, width], "counts": run_lengths(mask)},
            }
        )
    return {
        "images": [{"id": 1, "file_name": name, "height": height, "width": width}],
        "categories": [{"id": note["id"], "name": f"label {note['id']}"} for note in annotations],
        "annotations": annotations,
    }


def polygons(labels: Labels) -> dict[str, Any]:
    """GeoJSON in pixels: for each label its pieces, the outline first and then the holes."""
    features = []
    for label in np.unique(labels).tolist():
        rings = [ring.tolist() for ring in outlines(labels == label)]
        features.append(
            {
                "type": "Feature",
                "properties": {"label": label + 1},
                "geometry": {"type": "MultiPolygon", "coordinates": _with_holes(rings)},
            }
        )
    return {"type": "FeatureCollection", "features": features}


def _with_holes(rings: list[list[list[int]]]) -> list[list[list[list[int]]]]:
    """Each outline with the holes that lie in it: the smallest outline around a hole is its own."""
    areas = [_area(ring) for ring in rings]
    outer = [k for k, area in enumerate(areas) if area > 0]
    pieces: dict[int, list[list[list[int]]]] = {k: [[*rings[k], rings[k][0]]] for k in outer}
    for k, area in enumerate(areas):
        if area > 0:
            continue
        (x, y), (x1, y1) = rings[k][0], rings[k][1]
        # A point in the hole, just beside its first side.
        turn = (y1 - y, x - x1)
        long = max(abs(turn[0]), abs(turn[1]))
        point = ((x + x1) / 2 - 0.25 * turn[0] / long, (y + y1) / 2 - 0.25 * turn[1] / long)
        around = [o for o in outer if areas[o] > -area and _holds(rings[o], point)]
        if around:
            pieces[min(around, key=lambda o: areas[o])].append([*rings[k], rings[k][0]])
    return list(pieces.values())


def _area(ring: list[list[int]]) -> float:
    x, y = np.array(ring, float).T
    return float(0.5 * np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def _holds(ring: list[list[int]], point: tuple[float, float]) -> bool:
    x, y = np.array(ring, float).T
    x1, y1 = np.roll(x, -1), np.roll(y, -1)
    crosses = (y > point[1]) != (y1 > point[1])
    at = x + (point[1] - y) * (x1 - x) / np.where(y1 == y, 1.0, y1 - y)
    return bool(np.count_nonzero(crosses & (at > point[0])) % 2)


# ---- the drawing itself


def drawing_json(drawing: Drawing) -> dict[str, Any]:
    """The picture and every step, to be opened again."""
    return {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "name": drawing.name,
        "image": base64.b64encode(png(drawing.image)).decode(),
        "original": list(drawing.original),
        "smoothness": drawing.smoothness,
        "steps": [_step_json(step.stroke, step.tilt) for step in drawing.steps],
    }


def _step_json(stroke: Stroke | None, tilt: Tilt | None) -> dict[str, Any]:
    if stroke is not None:
        return stroke.as_json()
    if tilt is None:
        return {"kind": "clear"}
    packed = [
        {
            "shape": list(other.shape),
            "labels": base64.b64encode(zlib.compress(other.tobytes())).decode(),
        }
        for other in tilt.against
    ]
    return {"kind": "take", "bias": tilt.bias, "weight": tilt.weight, "against": packed}


def drawing_from_json(given: object) -> Drawing:
    """The drawing that was written; ``Refused`` where it is none."""
    if not isinstance(given, dict) or given.get("format") != _FORMAT:
        raise Refused("the JSON must be a drawing that this page has exported")
    try:
        image = base64.b64decode(given["image"], validate=True)
        original = [int(side) for side in given.get("original", ())]
        smoothness, name = float(given["smoothness"]), str(given.get("name", "image"))[:200]
        steps = list(given["steps"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Refused("the drawing lacks an image, a smoothness or its steps") from error
    picture, own = decode(image)
    drawing = Drawing(picture, name)
    drawing.original = own
    if len(original) == 2 and min(original) >= 1 and original[0] * original[1] <= MOST_PIXELS:
        drawing.original = original[0], original[1]
    try:
        drawing.set_smoothness(smoothness)
        for step in steps:
            _do(drawing, step)
    except ValueError as error:
        raise Refused(f"the drawing has a step that is none: {error}") from error
    return drawing


def _do(drawing: Drawing, step: object) -> None:
    kind = step.get("kind") if isinstance(step, dict) else None
    if kind == "clear":
        drawing.clear()
    elif kind == "take":
        assert isinstance(step, dict)
        drawing.take(_read_tilt(step))
    else:
        drawing.add(Stroke.read(step))


def _read_tilt(step: dict[str, Any]) -> Tilt:
    try:
        bias, weight = float(step["bias"]), float(step["weight"])
        against = tuple(_read_labels(packed) for packed in step["against"][:_MOST_AGAINST])
    except (KeyError, TypeError, OverflowError, zlib.error) as error:
        raise ValueError("a choice must have a bias, a weight and labellings") from error
    if not np.isfinite([bias, weight]).all():
        raise ValueError("bias and weight must be finite")
    return Tilt(bias, against, weight)


def _read_labels(packed: dict[str, Any]) -> Labels:
    height, width = (int(side) for side in packed["shape"])
    if not 1 <= height * width <= 4_000_000 or min(height, width) < 1:
        raise ValueError(f"a labelling must have a size, got {height} x {width}")
    data = base64.b64decode(packed["labels"], validate=True)
    flat = zlib.decompressobj().decompress(data, height * width)
    if len(flat) != height * width or max(flat) >= MOST_LABELS:
        raise ValueError("a labelling must have a label for each pixel")
    return np.frombuffer(flat, np.uint8).reshape(height, width)
