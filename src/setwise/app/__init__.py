"""Scribble on a photograph, and get a mask that is proved to be the best: a page and a widget.

Both need the extra: ``pip install 'setwise[app]'``. They share one core, which knows neither HTTP
nor notebooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from setwise._foundation._imports import load
from setwise.app._serve import serve

if TYPE_CHECKING:
    from setwise.app._widget import SegmentWidget

__all__ = ["SegmentWidget", "serve"]


def __getattr__(name: str) -> Any:
    if name == "SegmentWidget":  # anywidget brings ipywidgets along
        return load("setwise.app._widget").SegmentWidget
    raise AttributeError(f"module 'setwise.app' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
