"""The HTML representation of an object in a notebook: a table, and pictures if there are any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from setwise._foundation._pictures import Bytes, data_uri

Row = tuple[str, object]


def shown(value: object) -> str:
    """Return a value in a few characters."""
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
