"""Export of masks to common file formats, and of drawings that can be opened again."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise import _core
from setwise._foundation._arguments import BoolArray, IntArray
from setwise._foundation._display import png
from setwise.app._decoding import MOST_PIXELS, Refused, decode
from setwise.app._drawing._answers import AlternativeList
from setwise.app._drawing._drawing import Drawing
from setwise.app._drawing._levels import Tilt, resampled
from setwise.app._drawing._memory import MemoryBudget
from setwise.app._drawing._strokes import MOST_LABELS, MOST_STROKE_BYTES, WORKING_PIXELS, Stroke
from setwise.app._outlines import pieces
from setwise.images._segment import N_ALTERNATIVES

Labels = NDArray[np.uint8]

_FORMAT, _FORMAT_VERSION = "setwise drawing", 1
# The largest bias and weight of a choice in a file. Biases are multiples of 2**-30, and their sums
# with costs are exact up to this size. A weight is at most the energy of a picture, below 1e9.
_LARGEST_BIAS, _LARGEST_WEIGHT = 1e6, 1e12
_SPACE = re.compile(r"[ \t\n\r]*")


def mask_png(labels: Labels) -> bytes:
    """Return a PNG with one byte per pixel, where k means label k - 1, as in scribble files."""
    return png((labels + 1).astype(np.uint8))


def mask_npy(labels: Labels) -> bytes:
    """Return a NumPy file with labels from 0."""
    out = io.BytesIO()
    np.save(out, labels)
    return out.getvalue()


def alternatives_zip(listed: AlternativeList, shape: tuple[int, int]) -> bytes:
    """Return a ZIP file with a PNG per alternative, and their energies."""
    out = io.BytesIO()
    entries = []
    with zipfile.ZipFile(out, "w") as archive:
        for number, item in enumerate(listed.items, 1):
            name = f"alternative_{number}.png"
            archive.writestr(name, mask_png(resampled(item.labels, shape)))
            entries.append(
                {"mask": name, "energy": item.value, "above": item.above, "differs": item.differs}
            )
        archive.writestr("alternatives.json", json.dumps(entries, indent=1))
    return out.getvalue()


# ---- COCO


def run_lengths(mask: BoolArray) -> list[int]:
    """Return the run lengths of COCO, which go column by column and begin with zeros."""
    flat = np.asarray(mask, np.bool_).ravel(order="F")
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    return [0, *lengths] if flat.size and flat[0] else lengths


def coco(labels: Labels, name: str) -> dict[str, Any]:
    """Return COCO annotations, with the mask of each label as run lengths."""
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
                "iscrowd": 1,  # COCO's flag for run lengths
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


def polygons(labels: Labels) -> bytes:
    """Return GeoJSON in pixels, with the pieces of each label: the outline and then the holes.

    The text is written piece by piece, because writing a noisy mask at once would block all other
    threads for seconds.
    """
    features = []
    for label in np.unique(labels).tolist():
        coordinates = []
        for rings in pieces(labels == label):
            _core.poll()
            coordinates.append(json.dumps([[*ring, ring[0]] for ring in map(_as_list, rings)]))
        properties = json.dumps({"label": label + 1})
        features.append(
            f'{{"type": "Feature", "properties": {properties}, "geometry": '
            f'{{"type": "MultiPolygon", "coordinates": [{", ".join(coordinates)}]}}}}'
        )
    return f'{{"type": "FeatureCollection", "features": [{", ".join(features)}]}}'.encode()


def _as_list(ring: IntArray) -> list[list[int]]:
    points: list[list[int]] = ring.tolist()
    return points


# ---- the drawing itself


def drawing_json(drawing: Drawing) -> dict[str, Any]:
    """Return the picture and every step as JSON data, for opening the drawing again."""
    steps = [_step_json(step.stroke, step.tilt) for step in drawing.steps]
    return {**_without_steps(drawing), "steps": steps}


def drawing_bytes(drawing: Drawing) -> bytes:
    """Return ``drawing_json`` as text.

    The text is written step by step, because the JSON writer blocks all other threads.
    """
    steps = [json.dumps(_step_json(step.stroke, step.tilt)).encode() for step in drawing.steps]
    empty = json.dumps({**_without_steps(drawing), "steps": []}).encode()
    return b"".join([empty[:-2], b", ".join(steps), empty[-2:]])


def _without_steps(drawing: Drawing) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "name": drawing.name,
        "image": base64.b64encode(png(drawing.image)).decode(),
        "original": list(drawing.original),
        "smoothness": drawing.smoothness,
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


def read_drawing(data: bytes, memory: MemoryBudget) -> Drawing:
    """Return the drawing in a file. Raise ``Refused`` if the file is invalid."""
    # Each byte takes at most six while the file is read: the text (1), again as characters of up to
    # 4 bytes, and the points of strokes as floats (1).
    with memory.holding(lambda: 6 * len(data)):
        try:
            given = _members(data.decode(json.detect_encoding(data)))
        except (ValueError, RecursionError) as error:
            raise Refused("the JSON cannot be read") from error
        return drawing_from_json(given, memory)


def _members(text: str) -> dict[str, Any]:
    """Return the members of the JSON object in a text, with steps converted to strokes.

    The members are read one by one, because the parser blocks all other threads.
    """
    members: dict[str, Any] = {}
    at = _after(text, 0, "{")
    while not (members or text.startswith("}", at)) or text.startswith(",", at):
        key, at = _value(text, _after(text, at, ",") if members else at)
        if not isinstance(key, str):
            raise ValueError("a name must be a string")
        at = _after(text, at, ":")
        if key == "steps" and text.startswith("[", at):
            steps: list[object] = []
            at = _after(text, at, "[")
            while not (steps or text.startswith("]", at)) or text.startswith(",", at):
                step, at = _value(text, _after(text, at, ",") if steps else at)
                steps.append(_as_stroke(step))
                at = _after(text, at, "")
            members[key], at = steps, _after(text, at, "]")
        else:
            members[key], at = _value(text, at)
            at = _after(text, at, "")
    if _after(text, at, "}") < len(text):
        raise ValueError("nothing must follow the object")
    return members


def _after(text: str, at: int, mark: str) -> int:
    """Return the position after ``mark``, which must be at ``at``, and the spaces behind it."""
    if not text.startswith(mark, at):
        raise ValueError(f"there must be {mark!r} at {at}")
    space = _SPACE.match(text, at + len(mark))
    assert space is not None  # the pattern matches the empty string
    return space.end()


def _value(text: str, at: int) -> tuple[Any, int]:
    """Return a JSON value of limited length, and the position where it ends."""
    decode_at = json.JSONDecoder().raw_decode
    if text.startswith('"', at):
        return decode_at(text, at)
    for most in (2**14, MOST_STROKE_BYTES):
        part = text[at : at + most]
        try:
            value, end = decode_at(part)
        except ValueError:
            if len(part) < most:
                raise
            continue
        return value, at + end
    raise ValueError(f"a value must have at most {MOST_STROKE_BYTES} characters")


def _as_stroke(step: object) -> object:
    """Return a step as a ``Stroke``, which takes less memory, or an invalid step as it is."""
    try:
        return step if _kind(step) in ("clear", "take") else Stroke.read(step)
    except ValueError:
        return step


def _kind(step: object) -> object:
    return step.get("kind") if isinstance(step, dict) else None


def drawing_from_json(given: object, memory: MemoryBudget | None = None) -> Drawing:
    """Return the drawing of JSON data. Raise ``Refused`` if the data is invalid."""
    if not isinstance(given, dict) or given.get("format") != _FORMAT:
        raise Refused("the JSON must be a drawing that this page has exported")
    version = given.get("format_version", _FORMAT_VERSION)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise Refused("the drawing must have a format_version, which is a positive integer")
    if version > _FORMAT_VERSION:
        raise Refused(
            f"format_version must be at most {_FORMAT_VERSION}, got {str(version)[:40]}: "
            "a newer version of setwise has written the drawing, which reads it"
        )
    try:
        image = base64.b64decode(given["image"], validate=True)
        original = [int(side) for side in given.get("original", ())]
        smoothness, name = float(given["smoothness"]), str(given.get("name", "image"))[:200]
        steps = list(given["steps"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Refused("the drawing lacks an image, a smoothness or its steps") from error
    picture, own = decode(image, memory)
    drawing = Drawing(picture, name)
    if memory is not None:
        drawing.count_in(memory)
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
    kind = _kind(step)
    if isinstance(step, Stroke):
        drawing.add(step)
    elif kind == "clear":
        drawing.clear()
    elif kind == "take":
        assert isinstance(step, dict)
        drawing.take(_read_tilt(step))
    else:
        drawing.add(Stroke.read(step))


def _read_tilt(step: dict[str, Any]) -> Tilt:
    try:
        bias, weight = float(step["bias"]), float(step["weight"])
        against = tuple(_read_labels(packed) for packed in step["against"][:N_ALTERNATIVES])
    except (KeyError, TypeError, OverflowError, zlib.error) as error:
        raise ValueError("a choice must have a bias, a weight and labellings") from error
    if not (abs(bias) <= _LARGEST_BIAS and abs(weight) <= _LARGEST_WEIGHT):
        raise ValueError(
            f"bias must lie within {_LARGEST_BIAS:.0e} and weight within {_LARGEST_WEIGHT:.0e}, "
            f"got {bias:g} and {weight:g}"
        )
    return Tilt(bias, against, weight)


def _read_labels(packed: dict[str, Any]) -> Labels:
    height, width = (int(side) for side in packed["shape"])
    if not 1 <= height * width <= WORKING_PIXELS or min(height, width) < 1:
        raise ValueError(f"a labelling must have a size, got {height} x {width}")
    data = base64.b64decode(packed["labels"], validate=True)
    flat = zlib.decompressobj().decompress(data, height * width)
    if len(flat) != height * width or max(flat) >= MOST_LABELS:
        raise ValueError("a labelling must have a label for each pixel")
    return np.frombuffer(flat, np.uint8).reshape(height, width)
