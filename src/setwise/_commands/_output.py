"""Output to files or stdout, as JSON or text, and input from stdin."""

from __future__ import annotations

import io
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from setwise._foundation._files import write_whole

json_option = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Only the answer.")


def example(*commands: str) -> str:
    """Return the unwrapped end of a command's help."""
    return "\b\n" + "\n".join(f"Example: {command}" for command in commands)


def check_stdout(as_json: bool, *outputs: str | None) -> None:
    """Check that at most one output goes to stdout."""
    if as_json + sum(output == "-" for output in outputs) > 1:
        raise click.UsageError("give - for one file only, and without --json: both are on stdout")


def print_note(words: str, quiet: bool) -> None:
    """Print text for a reader on stderr, since stdout is for the answer. Ignore errors."""
    if not quiet:
        with suppress(OSError):
            click.echo(words, err=True)


def shows_progress(quiet: bool) -> bool:
    """Return whether a progress bar can be shown in a terminal."""
    return not quiet and sys.stderr.isatty()


def print_json(answer: dict[str, Any]) -> None:
    """Print an object as one line of JSON; infinite numbers and NaN become null."""
    click.echo(json.dumps(_plain(answer), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def write_text(text: str, output: str | None) -> None:
    """Write text into a file or to stdout."""
    write_bytes(text.encode(), output)


def write_bytes(data: bytes, output: str | None) -> None:
    """Write bytes to a file or to stdout, and flush, so that errors are raised here."""
    if output is None or output == "-":
        click.echo(data, nl=False)
    else:
        write_whole(output, data)


def read_bytes(source: str) -> bytes:
    """Return the bytes of a file, or of stdin for ``-``."""
    if source == "-":
        if sys.stdin is None:  # the caller has closed stdin
            raise ValueError("stdin must be open to be read, got none")
        return sys.stdin.buffer.read()
    return Path(source).read_bytes()


def read_array(source: str, name: str) -> NDArray[Any]:
    """Read the array of a .npy file, or a table of numbers in a text file."""
    data = read_bytes(source)
    try:
        if data[:6] == b"\x93NUMPY":
            return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
        text = data.decode("utf-8").replace(",", " ")
        if not text.strip():
            raise ValueError("it is empty")
        return np.loadtxt(io.StringIO(text), ndmin=1)
    except Exception as error:  # headers are parsed as Python, with many kinds of errors
        raise ValueError(f"{name} must be a .npy file or a table of numbers: {error}") from None


def write_array(values: NDArray[Any], output: str) -> None:
    """Write an array as .npy, into a file or to stdout."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_bytes(buffer.getvalue(), output)
