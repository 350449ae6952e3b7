"""`setwise app`: a page to draw on."""

from __future__ import annotations

import io
import json
import sys
from contextlib import nullcontext, redirect_stdout

import click

from setwise._commands._output import example, json_option
from setwise._foundation._imports import load


@click.command(epilog=example("setwise app cup.jpg"))
@click.argument("image", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--guarantee",
    metavar="FILE.json",
    help="Of sw.conformal: show the inner and the outer mask.",
)
@click.option("--port", type=int, default=0, show_default=True, help="0 for one that is free.")
@click.option("--no-browser", is_flag=True, help="Do not open it, print its address only.")
@json_option
def app(
    image: str | None, guarantee: str | None, port: int, no_browser: bool, as_json: bool
) -> None:
    """Open a page for drawing strokes on a photograph, with mask, certificate and alternatives.

    The page is served to this machine only, until Ctrl-C. The first line printed is its address.
    """
    serve = load("setwise.app").serve
    with redirect_stdout(_FirstLineAsJson()) if as_json else nullcontext():
        serve(image, guarantee=guarantee, port=port, open_browser=not no_browser)


class _FirstLineAsJson(io.TextIOBase):
    """A stream that prints the first line, the server's address, as a JSON object."""

    def __init__(self) -> None:
        self._out, self._line = sys.stdout, ""

    def write(self, text: str) -> int:
        """Print nothing until a line is complete."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._out.write(json.dumps({"address": line}) + "\n")
            self._out.flush()
        return len(text)
