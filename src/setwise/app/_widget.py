"""The page inside a notebook."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._pictures import png
from setwise.app._decoding import working_picture
from setwise.app._drawing import Drawing
from setwise.app._drawing_answers import Answer
from setwise.app._drawing_levels import resampled
from setwise.app._drawings import Drawings
from setwise.app._session import Session

try:
    import anywidget
except ModuleNotFoundError as error:
    raise ImportError(
        "setwise.app.SegmentWidget needs anywidget, which is not installed: "
        "pip install 'setwise[app]'"
    ) from error

_STATIC = Path(__file__).parent / "static"
# What may pass until the mask of what was drawn last is there.
_PATIENCE = 60.0


class SegmentWidget(anywidget.AnyWidget):
    """Scribbles on an image in Jupyter, VS Code, Colab or marimo, and the mask in Python.

    Parameters
    ----------
    image : array-like of shape (H, W), (H, W, 3) or (H, W, 4)
        Bytes, numbers from 0 to 1, or any others, which are scaled.

    Attributes
    ----------
    labels : array of shape (H, W), uint8
        The label of each pixel, for what is drawn now; None before anything is.
    alternatives : array of shape (m, H, W), uint8
        Good labellings that differ visibly, the best one first; None as long as there are none.
    certificate : str
        What is proved of ``labels``, in words; "" before anything is drawn.

    Examples
    --------
    >>> import setwise as sw
    >>> from skimage import data
    >>> widget = sw.app.SegmentWidget(data.astronaut())
    >>> widget  # the last line of a cell shows it  # doctest: +SKIP
    >>> widget.labels is None  # nothing is drawn yet
    True
    """

    _esm = _STATIC / "segment.js"
    _css = _STATIC / "segment.css"

    def __init__(self, image: ArrayLike, **named: Any) -> None:
        picture, original = working_picture(image)
        super().__init__(**named)
        drawing = Drawing(picture)
        drawing.original = original
        self._drawings = Drawings()
        self._entry = self._drawings.add(drawing)
        self._telling = Lock()
        self._session = Session(self._entry, self._tell)
        self.on_msg(self._asked)

    def _asked(self, widget: object, message: object, buffers: object) -> None:
        self._session.receive(message)

    def _tell(self) -> None:
        with self._telling:  # what one thread tells does not come between what another does
            for message, buffers in self._session.messages():
                if message["type"] == "drawing":
                    buffers = [png(self._entry.drawing.image)]
                self.send(message, list(buffers))

    def _answer(self) -> Answer | None:
        """The answer for what is drawn now; it is waited for."""
        drawing, work = self._entry.drawing, self._entry.work
        end = monotonic() + _PATIENCE
        while not drawing.empty and monotonic() < end:
            answer = work.answer
            if answer is not None and answer.factor == 1 and answer.version == drawing.version:
                return answer
            if work.idle:
                work.changed()
            sleep(0.01)
        return None

    @property
    def labels(self) -> NDArray[np.uint8] | None:
        """(H, W): the label of each pixel; None before anything is drawn."""
        answer = self._answer()
        return None if answer is None else resampled(answer.labels, self._entry.drawing.original)

    @property
    def alternatives(self) -> NDArray[np.uint8] | None:
        """(m, H, W): good labellings that differ visibly; None as long as there are none."""
        listed, drawing = self._entry.work.alternatives, self._entry.drawing
        if listed is None or listed.version != drawing.version:
            return None
        return np.stack([resampled(item.labels, drawing.original) for item in listed.items])

    @property
    def certificate(self) -> str:
        """What is proved of ``labels``, in words."""
        answer = self._answer()
        return "" if answer is None else answer.words

    def close(self) -> None:
        """Ends the widget and all work for it."""
        if hasattr(self, "_session"):  # it was made
            self._session.close()
            self._drawings.close()
        super().close()
