"""The session of one watcher of a drawing, with messages in both directions."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setwise.app._drawing._answers import (
    AlternativeList,
    Event,
    Failed,
    GuaranteedMasks,
    MaskAnswer,
    UncertaintyMap,
    Working,
)
from setwise.app._drawing._drawing import DrawingStep
from setwise.app._drawing._levels import resampled
from setwise.app._drawing._strokes import Stroke
from setwise.app._drawings import Changed, Entry
from setwise.app._outlines import outlines

Message = tuple[dict[str, Any], Sequence[bytes]]
"""A message and its buffers."""

# The longer side of the thumbnail of an alternative, in pixels. Screens with two pixels per point
# show it sharply. Not tuned.
_THUMBNAIL = 240
# The number of points per message of a history. Such a message has about 0.2 MB and is written in
# some milliseconds. Not tuned.
_POINTS_PER_MESSAGE = 10_000
# The number of latest error messages that are kept for the host. It bounds the memory if the host
# never reads them. Not tuned.
_MOST_ERRORS = 16
_FIRST = "drawing", "history"


class Session:
    """A connection that passes messages of a host to a drawing, and events to the host.

    When there are new messages, ``wake`` is called from any thread, and ``messages`` returns them.
    Only the latest event of each kind waits. A slow host therefore gets fewer messages, and if a
    host reads none, only a few wait.
    """

    def __init__(self, entry: Entry, wake: Callable[[], None]) -> None:
        self.entry = entry
        drawing = entry.drawing
        self._wake = wake
        self._lock = Lock()
        self._waiting: dict[str, Event | Changed | None] = {}
        self._errors: deque[str] = deque(maxlen=_MOST_ERRORS)
        self._latest: tuple[int, int | None] = drawing.version, None
        """the version to report next, and the number of the change that made it"""
        self._shown: NDArray[np.uint8] | None = None
        """the mask that the host has after all messages"""
        self._listed: list[int] = []
        """the numbers of the steps that the host has after all messages"""
        self._own: dict[str, int] = {}
        """the hash of each stroke of the host by its key; such strokes are not sent back"""
        self._stop: Callable[[], None] = entry.watch(self._receive_event)

    def begin(self) -> None:
        """Send the drawing, its history and all present results."""
        drawing, work = self.entry.drawing, self.entry.work
        with self._lock:
            self._latest = drawing.version, None
            self._waiting = {"drawing": None, "history": Changed(drawing.version)}
            self._own = {}
        for event in (work.answer, work.alternatives, work.uncertainty, work.guaranteed):
            if event is not None and event.version == drawing.version:
                self._receive_event(event)
        self._wake()
        work.changed()

    def messages(self) -> list[Message]:
        """Return the waiting messages in order, and remove them.

        The result of a change waits until the version of the change has been reported.
        """
        with self._lock:
            version = self._latest[0]
            # The version is reported first. Events of older versions are dropped.
            waiting = {k: self._waiting.pop(k) for k in _FIRST if k in self._waiting}
            for kind, event in tuple(self._waiting.items()):
                if event is None or event.version <= version:
                    del self._waiting[kind]
                    if event is not None and event.version == version:
                        waiting[kind] = event
            errors = list(self._errors)
            self._errors.clear()
        answers = [self._message(kind, event) for kind, event in waiting.items()]
        return answers + [({"type": "error", "words": words}, ()) for words in errors]

    def receive(self, message: object) -> None:
        """Process a message. An invalid message is answered with an error."""
        try:
            self._do(message)
        except (ValueError, MemoryError) as error:
            self._report_error(str(error))

    def close(self) -> None:
        """End the session and a stroke that is not complete yet."""
        self._stop()
        self._stop = _nothing  # breaks a reference cycle that would keep the drawing alive
        self.entry.work.changed()

    def _do(self, message: object) -> None:
        if not isinstance(message, dict):
            raise ValueError("a message must be an object")
        drawing, work = self.entry.drawing, self.entry.work
        match message.get("type"):
            case "stroke":
                stroke = Stroke.read(message.get("stroke"))
                drawing.add(stroke)
                with self._lock:
                    self._own[stroke.key] = hash(stroke)
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
            version = self._latest[0]
        self.entry.emit(Changed(version))
        work.changed(live=message.get("live") is True)

    def _report_error(self, words: str) -> None:
        with self._lock:
            self._errors.append(words)
        self._wake()

    def _receive_event(self, event: Event | Changed) -> None:
        if isinstance(event, Failed):
            self._report_error(event.words)
            return
        kind = _KINDS[type(event)]
        with self._lock:
            self._waiting.pop(kind, None)
            if isinstance(event, Changed):
                event = Changed(max(self._latest[0], event.version))
                self._latest = event.version, self._latest[1]
            self._waiting[kind] = event
        self._wake()

    def _message(self, kind: str, event: Event | Changed | None) -> Message:
        match event:
            case Changed():
                return self._history(), ()
            case MaskAnswer():
                return self._labels(event)
            case AlternativeList():
                small = [_thumbnail(item.labels) for item in event.items]
                return _alternatives(event, small), [_bytes(picture) for picture in small]
            case UncertaintyMap():
                return _uncertainty(event), [_bytes(event.heat)]
            case GuaranteedMasks():
                return _guaranteed(event), [_bytes(event.zones)]
            case Working():
                return {"type": kind, "what": event.what, "share": event.share}, ()
        return self._drawing(), ()

    def _drawing(self) -> dict[str, Any]:
        self._shown, self._listed = None, []
        drawing = self.entry.drawing
        height, width = drawing.shape
        return {
            "type": "drawing",
            "key": self.entry.key,
            "name": drawing.name,
            "height": height,
            "width": width,
            "original": list(drawing.original),
            "smoothness": drawing.smoothness,
        }

    def _history(self) -> dict[str, Any]:
        """Return the steps as a difference: the number of steps to keep, and new steps."""
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
            self._shown = None  # after this change the host shows no mask
        steps = drawing.steps
        pairs = zip(self._listed, steps, strict=False)
        same = next((k for k, (number, step) in enumerate(pairs) if number != step.number), None)
        keep = min(len(self._listed), len(steps)) if same is None else same
        del self._listed[keep:]
        new: list[dict[str, Any]] = []
        points = 0
        for step in steps[keep:]:
            if points > _POINTS_PER_MESSAGE:  # the rest is sent with the next message
                with self._lock:
                    self._waiting.setdefault("history", Changed(version))
                self._wake()
                break
            new.append(self._step(step))
            self._listed.append(step.number)
            points += 1 + len(new[-1].get("points", ()))
        return {**message, "keep": keep, "steps": new}

    def _step(self, step: DrawingStep) -> dict[str, Any]:
        if step.stroke is None:
            return {"kind": "take" if step.tilt else "clear"}
        if step.stroke.key and self._own.get(step.stroke.key) == hash(step.stroke):
            return {"key": step.stroke.key}
        return step.stroke.as_json()

    def _labels(self, answer: MaskAnswer) -> Message:
        """Return the message for a mask, with the box of pixels that have changed."""
        labels, before = answer.labels, self._shown
        box: tuple[int, ...] = (0, 0, *labels.shape)
        if answer.factor == 1:
            if before is not None:
                box = box_of_changes(before, labels)
            self._shown = labels
        top, left, height, width = box
        part = labels[top : top + height, left : left + width]
        return {**_answer(answer), "box": box}, [_bytes(part)]


def _nothing() -> None:
    """Do nothing."""


def box_of_changes(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> tuple[int, ...]:
    """Return the box (top, left, height, width) of changed pixels; zeros without changes."""
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
    MaskAnswer: "labels",
    AlternativeList: "alternatives",
    UncertaintyMap: "uncertainty",
    GuaranteedMasks: "guaranteed",
    Working: "working",
}


def framed(message: dict[str, Any], buffers: Sequence[bytes]) -> bytes:
    """Return one binary message: the length of the header, the header as JSON, the buffers."""
    header = json.dumps({**message, "buffers": [len(buffer) for buffer in buffers]}).encode()
    return b"".join([len(header).to_bytes(4, "little"), header, *buffers])


def _bytes(picture: NDArray[np.uint8]) -> bytes:
    return picture.tobytes()


def _answer(answer: MaskAnswer) -> dict[str, Any]:
    height, width = answer.labels.shape
    return {
        "type": "labels",
        "version": answer.version,
        "height": height,
        "width": width,
        "factor": answer.factor,
        "words": answer.words,
        "statement": answer.statement,
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


def _guaranteed(found: GuaranteedMasks) -> dict[str, Any]:
    height, width = found.zones.shape
    return {
        "type": "guaranteed",
        "version": found.version,
        "height": height,
        "width": width,
        "words": found.words,
    }


def _uncertainty(found: UncertaintyMap) -> dict[str, Any]:
    height, width = found.heat.shape
    regions = []
    for region in found.regions:
        corner = region.columns[0], region.rows[0]
        rings = [
            ((ring + np.array(corner)) * found.factor).tolist() for ring in outlines(region.mask)
        ]
        regions.append({"entropy": region.entropy, "words": region.words, "rings": rings})
    return {
        "type": "uncertainty",
        "version": found.version,
        "height": height,
        "width": width,
        "factor": found.factor,
        "regions": regions,
    }
