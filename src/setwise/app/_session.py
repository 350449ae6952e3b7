"""One watcher of a drawing: what it asks for, and what it is told, as messages with buffers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.app._drawing_answers import AlternativeList, Answer, Doubt, Event, Failed, Working
from setwise.app._drawing_levels import resampled
from setwise.app._drawing_strokes import Stroke
from setwise.app._drawings import Changed, Entry
from setwise.app._outlines import outlines

Message = tuple[dict[str, Any], Sequence[bytes]]
"""A message and its buffers."""

# The longer side of a small picture of an alternative.
_THUMBNAIL = 240
_PROTOCOL = 2
_MOST_ERRORS = 16
_FIRST = "drawing", "history"


class Session:
    """Hands messages of a host to a drawing, and a drawing's events to the host.

    When there is something to be told ``wake`` is called, from any thread; ``messages`` then says
    what. Of each kind the latest alone waits, so that a host that is slow to ask is told less, and
    never more than a handful of messages wait for one that does not ask at all.
    """

    def __init__(self, entry: Entry, wake: Callable[[], None]) -> None:
        self.entry = entry
        drawing = entry.drawing
        self._wake = wake
        self._lock = Lock()
        self._waiting: dict[str, Event | Changed | None] = {}
        self._errors: deque[str] = deque(maxlen=_MOST_ERRORS)
        self._latest: tuple[int, int | None] = drawing.version, None
        """the version to be told next, and the number of the change that made it"""
        self._shown: NDArray[np.uint8] | None = None
        """the mask that the host has, once it has got all messages"""
        self._stop = entry.watch(self._told)

    def begin(self) -> None:
        """Tells all that is known."""
        drawing, work = self.entry.drawing, self.entry.work
        with self._lock:
            self._latest = drawing.version, None
            self._waiting = {"drawing": None, "history": Changed(drawing.version, None, True)}
        for event in (work.answer, work.alternatives, work.doubt):
            if event is not None and event.version == drawing.version:
                self._told(event)
        self._wake()
        work.changed()

    def messages(self) -> list[Message]:
        """What is to be told, in order; it does not wait any more.

        An answer to a change that is under way waits until the change's own version is told.
        """
        with self._lock:
            version = self._latest[0]
            # The version is told first; of one that is no more nothing else is told.
            waiting = {k: self._waiting.pop(k) for k in _FIRST if k in self._waiting}
            for kind, event in tuple(self._waiting.items()):
                if event is None or event.version <= version:
                    del self._waiting[kind]
                    if event is not None and event.version == version:
                        waiting[kind] = event
            errors = list(self._errors)
            self._errors.clear()
        told = [self._message(kind, event) for kind, event in waiting.items()]
        return told + [({"type": "error", "words": words}, ()) for words in errors]

    def receive(self, message: object) -> None:
        """Does what a message asks for; what is wrong with it is told in a sentence."""
        try:
            self._do(message)
        except ValueError as error:
            self._say(str(error))

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
        with self._lock:
            self._latest = drawing.version, number if isinstance(number, int) else None
        self.entry.tell(Changed(self._latest[0], self, message["type"] != "stroke"))
        work.changed(live=message.get("live") is True)

    def _say(self, words: str) -> None:
        with self._lock:
            self._errors.append(words)
        self._wake()

    def _told(self, event: Event | Changed) -> None:
        if isinstance(event, Failed):
            self._say(event.words)
            return
        kind = _KINDS[type(event)]
        with self._lock:
            before = self._waiting.pop(kind, None)
            if isinstance(event, Changed):
                whole = event.whole or event.by is not self
                whole |= isinstance(before, Changed) and before.whole
                version = max(self._latest[0], event.version)
                event = replace(event, whole=whole, version=version)
                self._latest = version, self._latest[1]
            self._waiting[kind] = event
        self._wake()

    def _message(self, kind: str, event: Event | Changed | None) -> Message:
        match event:
            case Changed():
                return self._history(event.whole), ()
            case Answer():
                return self._labels(event)
            case AlternativeList():
                small = [_thumbnail(item.labels) for item in event.items]
                return _alternatives(event, small), [_bytes(picture) for picture in small]
            case Doubt():
                return _doubt(event), [_bytes(event.heat)]
            case Working():
                return {"type": kind, "what": event.what, "share": event.share}, ()
        return self._drawing(), ()

    def _drawing(self) -> dict[str, Any]:
        self._shown = None
        drawing = self.entry.drawing
        height, width = drawing.shape
        return {
            "type": "drawing",
            "protocol": _PROTOCOL,
            "key": self.entry.key,
            "name": drawing.name,
            "height": height,
            "width": width,
            "original": list(drawing.original),
            "smoothness": drawing.smoothness,
        }

    def _history(self, whole: bool) -> dict[str, Any]:
        drawing = self.entry.drawing
        version, echo = self._latest
        message: dict[str, Any] = {
            "type": "history",
            "version": version,
            "echo": echo,
            "undo": drawing.can_undo,
            "redo": drawing.can_redo,
            "empty": drawing.empty,
            "smoothness": drawing.smoothness,
        }
        if message["empty"]:
            self._shown = None  # which the host takes away
        if whole:
            kinds = [
                step.stroke.as_json() if step.stroke else {"kind": "take" if step.tilt else "clear"}
                for step in drawing.steps
            ]
            message["steps"] = kinds
        return message

    def _labels(self, answer: Answer) -> Message:
        """A mask: of one that takes the place of another the box that holds all changes."""
        labels, before = answer.labels, self._shown
        box: tuple[int, ...] = (0, 0, *labels.shape)
        if answer.factor == 1:
            if before is not None:
                box = box_of_changes(before, labels)
            self._shown = labels
        top, left, height, width = box
        part = labels[top : top + height, left : left + width]
        return {**_answer(answer), "box": box}, [_bytes(part)]


def box_of_changes(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> tuple[int, ...]:
    """The first row and column of all pixels that differ, and how many; zeros where none do."""
    changed = before != after
    rows = np.flatnonzero(changed.any(axis=1))
    if not len(rows):
        return 0, 0, 0, 0
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    columns = np.flatnonzero(changed[top:bottom].any(axis=0))
    left, right = int(columns[0]), int(columns[-1]) + 1
    return top, left, bottom - top, right - left


_KINDS: dict[type, str] = {
    Changed: "history",
    Answer: "labels",
    AlternativeList: "alternatives",
    Doubt: "uncertainty",
    Working: "working",
}


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
        "factor": listed.factor,
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
