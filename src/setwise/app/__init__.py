"""A web page and a notebook widget that turn scribbles on a photograph into the best mask.

Both need an extra: ``pip install 'setwise[app]'``. They share one core, which is independent of
HTTP and of notebooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from setwise._foundation._imports import load
from setwise.app._serve import serve

if TYPE_CHECKING:
    from setwise.app._widget import SegmentWidget

__all__ = ["SegmentWidget", "serve"]


def __getattr__(name: str) -> Any:
    if name == "SegmentWidget":  # loaded on demand, because anywidget imports ipywidgets
        return load("setwise.app._widget").SegmentWidget
    raise AttributeError(f"module 'setwise.app' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
