"""A notebook widget for scribbling on pictures."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setwise._foundation._display import png
from setwise._foundation._threads import PAUSE
from setwise.app._decoding import working_picture
from setwise.app._drawing._answers import MaskAnswer
from setwise.app._drawing._drawing import Drawing
from setwise.app._drawing._jobs import MASK_SECONDS
from setwise.app._drawing._levels import resampled
from setwise.app._drawings import Drawings
from setwise.app._serve import as_guarantee
from setwise.app._session import Session

try:
    import anywidget
except ModuleNotFoundError as error:
    raise ImportError(
        "setwise.app.SegmentWidget needs anywidget, which is not installed: "
        "pip install 'setwise[app]'"
    ) from error

_STATIC = Path(__file__).parent / "static"


class SegmentWidget(anywidget.AnyWidget):
    """A widget for scribbling on an image in Jupyter, VS Code, Colab or marimo.

    Parameters
    ----------
    image : array-like of shape (H, W), (H, W, 3) or (H, W, 4)
        Bytes, numbers from 0 to 1, or any other numbers, which are scaled.

    guarantee : str, path or ConformalMasks, optional
        A predictor of ``sw.conformal`` that was calibrated on fields, or its file: the widget shows
        its inner and outer masks for drawings with two labels.

    Attributes
    ----------
    labels : array of shape (H, W), uint8
        The label of each pixel for the present strokes; None before anything is drawn.
    alternatives : array of shape (m, H, W), uint8
        Good labellings that differ visibly, the best one first; None until they are computed.
    certificate : str
        The certificate of ``labels`` in words; "" before anything is drawn.

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

    def __init__(self, image: ArrayLike, *, guarantee: Any = None, **named: Any) -> None:
        picture, original = working_picture(image)
        model = as_guarantee(guarantee)
        super().__init__(**named)
        drawing = Drawing(picture)
        drawing.original = original
        self._drawings = Drawings(guarantee=model)
        self._entry = self._drawings.add(drawing)
        self._sending = Lock()
        self._session = Session(self._entry, self._send_messages)
        self.on_msg(self._receive)

    def _receive(self, widget: object, message: object, buffers: object) -> None:
        self._session.receive(message)

    def _send_messages(self) -> None:
        with self._sending:  # keeps the messages of one thread together
            for message, buffers in self._session.messages():
                if message["type"] == "drawing":
                    buffers = [png(self._entry.drawing.image)]
                self.send(message, list(buffers))

    def _answer(self) -> MaskAnswer | None:
        """Wait for the answer for the present strokes and return it."""
        drawing, work = self._entry.drawing, self._entry.work
        end = monotonic() + MASK_SECONDS
        while not drawing.empty and monotonic() < end:
            answer = work.answer
            if answer is not None and answer.factor == 1 and answer.version == drawing.version:
                return answer
            if work.idle:
                work.changed()
            sleep(PAUSE)
        return None

    @property
    def labels(self) -> NDArray[np.uint8] | None:
        """The label of each pixel, shape (H, W); None before anything is drawn."""
        answer = self._answer()
        return None if answer is None else resampled(answer.labels, self._entry.drawing.original)

    @property
    def alternatives(self) -> NDArray[np.uint8] | None:
        """Good labellings (m, H, W) that differ visibly; None until they are computed."""
        listed, drawing = self._entry.work.alternatives, self._entry.drawing
        if listed is None or listed.version != drawing.version:
            return None
        return np.stack([resampled(item.labels, drawing.original) for item in listed.items])

    @property
    def certificate(self) -> str:
        """The certificate of ``labels`` in words."""
        answer = self._answer()
        return "" if answer is None else answer.words

    def close(self) -> None:
        """Close the widget and end all of its jobs."""
        if hasattr(self, "_session"):  # False if the constructor failed
            self._session.close()
            self._drawings.close()
        super().close()
