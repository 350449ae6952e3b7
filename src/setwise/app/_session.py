"""One watcher of a drawing: what it asks for, and what it is told, as messages with buffers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.app._drawing_answers import AlternativeList, Answer, Doubt, Event, Failed, Working
from setwise.app._drawing_levels import resampled
from setwise.app._drawing_strokes import Stroke
from setwise.app._drawings import Changed, Entry
from setwise.app._outlines import outlines

Send = Callable[[dict[str, Any], Sequence[bytes]], None]
"""Takes a message and its buffers, from any thread."""

# The longer side of a small picture of an alternative.
_THUMBNAIL = 240
_PROTOCOL = 1


class Session:
    """Hands messages of a host to a drawing, and a drawing's events to the host."""

    def __init__(self, entry: Entry, send: Send) -> None:
        self.entry = entry
        self._send = send
        self._echo: int | None = None
        self._stop = entry.watch(self._told)

    def begin(self) -> None:
        """Tells all that is known."""
        drawing = self.entry.drawing
        height, width = drawing.shape
        self._send(
            {
                "type": "drawing",
                "protocol": _PROTOCOL,
                "key": self.entry.key,
                "name": drawing.name,
                "height": height,
                "width": width,
                "original": list(drawing.original),
                "smoothness": drawing.smoothness,
            },
            [],
        )
        self._echo = None
        self._tell_history(whole=True)
        work = self.entry.work
        for event in (work.answer, work.alternatives, work.doubt):
            if event is not None and event.version == drawing.version:
                self._told(event)
        work.changed()

    def receive(self, message: object) -> None:
        """Does what a message asks for; what is wrong with it is told in a sentence."""
        try:
            self._do(message)
        except ValueError as error:
            self._send({"type": "error", "words": str(error)}, [])

    def close(self) -> None:
        """Nothing more is told; a stroke that was under the pen ends here."""
        self._stop()
        self.entry.work.changed()

    def _do(self, message: object) -> None:
        if not isinstance(message, dict):
            raise ValueError("a message must be an object")
        drawing, work = self.entry.drawing, self.entry.work
        match message.get("type"):
            case "stroke":
                drawing.add(Stroke.read(message.get("stroke")))
            case "undo":
                drawing.undo()
            case "redo":
                drawing.redo()
            case "clear":
                if not drawing.empty:
                    drawing.clear()
            case "smoothness":
                value = message.get("value")
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise ValueError("smoothness must be a number")
                drawing.set_smoothness(value)
            case "take":
                number = message.get("number")
                if isinstance(number, bool) or not isinstance(number, int):
                    raise ValueError("number must be an integer")
                work.take(number)
            case "want":
                work.want(str(message.get("what")), message.get("on") is True)
                return
            case "begin":
                self.begin()
                return
            case other:
                raise ValueError(f"there is no message {str(other)[:40]!r}")
        number = message.get("n")
        self._echo = number if isinstance(number, int) else None
        # The version is told before any answer to it.
        self.entry.tell(Changed(drawing.version, self, message["type"] != "stroke"))
        work.changed(live=message.get("live") is True)

    def _told(self, event: Event | Changed) -> None:
        match event:
            case Changed():
                self._tell_history(whole=event.whole or event.by is not self)
            case Answer():
                self._send(_answer(event), [_bytes(event.labels)])
            case AlternativeList():
                small = [_thumbnail(item.labels) for item in event.items]
                self._send(_alternatives(event, small), [_bytes(picture) for picture in small])
            case Doubt():
                self._send(_doubt(event), [_bytes(event.heat)])
            case Working():
                self._send(
                    {"type": "working", "what": event.what, "share": event.share},
                    [],
                )
            case Failed():
                self._send({"type": "error", "words": event.words}, [])

    def _tell_history(self, whole: bool) -> None:
        drawing = self.entry.drawing
        message: dict[str, Any] = {
            "type": "history",
            "version": drawing.version,
            "echo": self._echo,
            "undo": drawing.can_undo,
            "redo": drawing.can_redo,
            "empty": drawing.empty,
            "smoothness": drawing.smoothness,
        }
        if whole:
            kinds = [
                step.stroke.as_json() if step.stroke else {"kind": "take" if step.tilt else "clear"}
                for step in drawing.steps
            ]
            message["steps"] = kinds
        self._send(message, [])


def framed(message: dict[str, Any], buffers: Sequence[bytes]) -> bytes:
    """One binary message: the length of the header, the header as JSON, the buffers."""
    header = json.dumps({**message, "buffers": [len(buffer) for buffer in buffers]}).encode()
    return b"".join([len(header).to_bytes(4, "little"), header, *buffers])


def _bytes(picture: NDArray[np.uint8]) -> bytes:
    return picture.tobytes()


def _answer(answer: Answer) -> dict[str, Any]:
    height, width = answer.labels.shape
    return {
        "type": "labels",
        "version": answer.version,
        "height": height,
        "width": width,
        "factor": answer.factor,
        "words": answer.words,
        "exact": answer.exact,
        "final": answer.final,
        "energy": answer.value if np.isfinite(answer.value) else None,
        "milliseconds": 1e3 * answer.seconds,
    }


def _thumbnail(labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    shrink = max(max(labels.shape) / _THUMBNAIL, 1.0)
    return resampled(labels, (round(labels.shape[0] / shrink), round(labels.shape[1] / shrink)))


def _alternatives(listed: AlternativeList, small: list[NDArray[np.uint8]]) -> dict[str, Any]:
    height, width = small[0].shape
    return {
        "type": "alternatives",
        "version": listed.version,
        "height": height,
        "width": width,
        "done": listed.done,
        "items": [
            {
                "energy": item.value,
                "above": item.above,
                "differs": item.differs,
                "words": item.words,
            }
            for item in listed.items
        ],
    }


def _doubt(doubt: Doubt) -> dict[str, Any]:
    height, width = doubt.heat.shape
    regions = []
    for region in doubt.regions:
        corner = region.columns[0], region.rows[0]
        rings = [
            ((ring + np.array(corner)) * doubt.factor).tolist() for ring in outlines(region.mask)
        ]
        regions.append({"doubt": region.doubt, "words": region.words, "rings": rings})
    return {
        "type": "uncertainty",
        "version": doubt.version,
        "height": height,
        "width": width,
        "factor": doubt.factor,
        "regions": regions,
    }
