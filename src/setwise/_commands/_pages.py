"""`setwise app` and `setwise demo`: a page to draw on, and the report."""

from __future__ import annotations

import io
import json
import sys
from contextlib import nullcontext, redirect_stdout

import click

from setwise._commands._output import example, json_option, print_json
from setwise._foundation._imports import load


@click.command(epilog=example("setwise app cup.jpg"))
@click.argument("image", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--port", type=int, default=0, show_default=True, help="0 for one that is free.")
@click.option("--no-browser", is_flag=True, help="Do not open it, print its address only.")
@json_option
def app(image: str | None, port: int, no_browser: bool, as_json: bool) -> None:
    """Open the page: draw strokes on a photograph, and see mask, certificate and alternatives.

    It is served to this machine alone, until Ctrl-C. The first line printed is its address.
    """
    serve = load("setwise.app").serve
    with redirect_stdout(_FirstLineAsJson()) if as_json else nullcontext():
        serve(image, port=port, open_browser=not no_browser)


class _FirstLineAsJson(io.TextIOBase):
    """Takes the address, which the page's server prints first, and prints an object with it."""

    def __init__(self) -> None:
        self._out, self._line = sys.stdout, ""

    def write(self, text: str) -> int:
        """Nothing is printed until a line is there."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._out.write(json.dumps({"address": line}) + "\n")
            self._out.flush()
        return len(text)


@click.command(epilog=example("setwise demo --quick --out report"))
@click.option("--out", default="out", show_default=True, help="Folder of the page.")
@click.option("--quick", is_flag=True, help="A few seconds, to see that it works.")
@json_option
def demo(out: str, quick: bool, as_json: bool) -> None:
    """Write the report: what set losses, fields and lists do, on data at hand."""
    try:
        from setwise.demo._report import write_report
    except ImportError as error:
        raise click.ClickException(f"the demo needs pip install 'setwise[demo]': {error}") from None
    page, summary = write_report(out, quick=quick)
    if as_json:
        print_json({"page": page, "summary": summary.splitlines()})
    else:
        click.echo(summary)
        click.echo(page)
